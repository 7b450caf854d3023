/* SPDX-License-Identifier: Apache-2.0 */
/* A digest over the versions of one tablet. */
#include "common/model/version_chain.h"

#include <string.h>

#include "common/base/endian.h"

enum { NUMBER_BYTES = 8, CHAIN_BYTES = sizeof(struct digest), VERSION_NUMBERS = 5 };

void version_chain_add(struct digest *chain, const struct chain_version *version)
{
    const uint64_t numbers[VERSION_NUMBERS] = {version->version, version->prev, version->txn,
                                               version->replace, version->rowset_count};
    uint8_t bytes[CHAIN_BYTES + VERSION_NUMBERS * NUMBER_BYTES];

    memcpy(bytes, chain->bytes, CHAIN_BYTES);
    for (unsigned i = 0; i < VERSION_NUMBERS; i++)
        store_u64le(bytes + CHAIN_BYTES + (size_t)i * NUMBER_BYTES, numbers[i]);
    *chain = digest_of(bytes, sizeof bytes);
}

void version_chain_add_rowset(struct digest *chain, rowset_id rowset, const struct digest *digest)
{
    uint8_t bytes[2 * CHAIN_BYTES + NUMBER_BYTES];

    memcpy(bytes, chain->bytes, CHAIN_BYTES);
    store_u64le(bytes + CHAIN_BYTES, rowset);
    memcpy(bytes + CHAIN_BYTES + NUMBER_BYTES, digest->bytes, CHAIN_BYTES);
    *chain = digest_of(bytes, sizeof bytes);
}
