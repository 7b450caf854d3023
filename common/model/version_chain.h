/* SPDX-License-Identifier: Apache-2.0 */
/* A digest over the versions of one tablet, each on top of those before it. The coordinators' log
 * gives one, and what a participant has bound gives one: if they are equal, it holds the same
 * versions with the same rowsets. */
#ifndef TG_COMMON_MODEL_VERSION_CHAIN_H
#define TG_COMMON_MODEL_VERSION_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/checksum.h"
#include "common/model/ids.h"

struct chain_version {
    version_t version;
    version_t prev; /* that touched the tablet before it, 0 if none */
    txn_id txn;
    bool replace; /* everything below it is replaced */
    uint32_t rowset_count;
};

/* A chain without versions is all zero. Adds a version; its rowsets follow, each with
 * version_chain_add_rowset, in ascending order. */
void version_chain_add(struct digest *chain, const struct chain_version *version);
void version_chain_add_rowset(struct digest *chain, rowset_id rowset, const struct digest *digest);

#endif
