/* SPDX-License-Identifier: Apache-2.0 */
/* XXH3: 64 bits to guard a block or a frame, 128 bits as the digest of a rowset. Not for secrets.
 */
#ifndef TG_COMMON_BASE_CHECKSUM_H
#define TG_COMMON_BASE_CHECKSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint64_t checksum64(const void *data, size_t len);

struct digest {
    uint8_t bytes[16];
};

bool digest_equal(const struct digest *a, const struct digest *b);
struct digest digest_of(const void *data, size_t len);

/* A digest over pieces: the result depends on the bytes only, not on where they were cut. */
struct digest_stream;
struct digest_stream *digest_stream_open(void); /* NULL on TG_NOMEM */
void digest_stream_add(struct digest_stream *stream, const void *data, size_t len);
struct digest digest_stream_value(const struct digest_stream *stream);
void digest_stream_close(struct digest_stream *stream);

#endif
