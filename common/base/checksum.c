/* SPDX-License-Identifier: Apache-2.0 */
/* XXH3 through libxxhash. */
#include "common/base/checksum.h"

#include <assert.h>
#include <string.h>
#include <xxhash.h>

#include "common/base/check.h"

uint64_t checksum64(const void *data, size_t len)
{
    return XXH3_64bits(data, len);
}

bool digest_equal(const struct digest *a, const struct digest *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

/* The canonical (big-endian) form: the same 16 bytes on every machine. */
static struct digest digest_from(XXH128_hash_t hash)
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, hash);
    struct digest digest;
    static_assert(sizeof digest.bytes == sizeof canonical.digest, "digest is 16 bytes");
    memcpy(digest.bytes, canonical.digest, sizeof digest.bytes);
    return digest;
}

struct digest digest_of(const void *data, size_t len)
{
    return digest_from(XXH3_128bits(data, len));
}

/* The public struct is only a name: the library allocates (with the alignment it needs). */
struct digest_stream *digest_stream_open(void)
{
    XXH3_state_t *state = XXH3_createState();
    if (state == NULL)
        return NULL;
    TG_CHECK(XXH3_128bits_reset(state) == XXH_OK);
    return (struct digest_stream *)state;
}

void digest_stream_add(struct digest_stream *stream, const void *data, size_t len)
{
    if (len > 0)
        TG_CHECK(XXH3_128bits_update((XXH3_state_t *)stream, data, len) == XXH_OK);
}

struct digest digest_stream_value(const struct digest_stream *stream)
{
    return digest_from(XXH3_128bits_digest((const XXH3_state_t *)stream));
}

void digest_stream_close(struct digest_stream *stream)
{
    (void)XXH3_freeState((XXH3_state_t *)stream);
}
