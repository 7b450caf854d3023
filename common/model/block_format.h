/* SPDX-License-Identifier: Apache-2.0 */
/* Places and limits of the block format, version 1, shared by its encoder and decoder. Byte tables:
 * docs/formats.md; drawing: rowset_block.c. */
#ifndef TG_COMMON_MODEL_BLOCK_FORMAT_H
#define TG_COMMON_MODEL_BLOCK_FORMAT_H

#include <stdint.h>

#include "common/model/ids.h"

#define BLOCK_MAGIC "TGBK"

enum {
    BLOCK_VERSION = 1,
    BLOCK_COLUMNS_MAX = COLUMNS_MAX + 8, /* the visible ones and the hidden ones */
    BLOCK_DICTIONARY_MAX = 4096,         /* distinct values; a code fits 12 bits */
    BLOCK_DICTIONARY_BITS = 12,
    BLOCK_DELTA_BITS_MAX = 32
};

/* Offsets in the header. */
enum {
    BLOCK_AT_MAGIC = 0,
    BLOCK_AT_VERSION = 4,
    BLOCK_AT_RESERVED = 6, /* zero */
    BLOCK_AT_LENGTH = 8,
    BLOCK_AT_ROWS = 12,
    BLOCK_AT_COLUMNS = 16,
    BLOCK_AT_RESERVED2 = 20, /* zero */
    BLOCK_HEADER_BYTES = 24
};

/* Offsets in a directory entry. */
enum {
    ENTRY_AT_ID = 0,
    ENTRY_AT_KIND = 4,
    ENTRY_AT_PRECISION = 5,
    ENTRY_AT_SCALE = 6,
    ENTRY_AT_ENCODING = 7,
    ENTRY_AT_TYPE_LENGTH = 8,
    ENTRY_AT_FLAGS = 12,
    ENTRY_AT_RESERVED = 13, /* three zero bytes */
    ENTRY_AT_OFFSET = 16,
    ENTRY_AT_LEN = 20,
    ENTRY_BYTES = 24
};

enum { BLOCK_TRAILER_BYTES = 8 }; /* XXH3-64 of all before it */

/* How the numbers of a dictionary's values are written. */
enum { CODES_PACKED = 1, CODES_RUNS = 2 };

/* Values at any address, for typed loops over bytes that come from vectors and blocks. */
typedef int8_t any_i8 __attribute__((aligned(1), may_alias));
typedef int16_t any_i16 __attribute__((aligned(1), may_alias));
typedef int32_t any_i32 __attribute__((aligned(1), may_alias));
typedef int64_t any_i64 __attribute__((aligned(1), may_alias));
typedef __int128 any_i128 __attribute__((aligned(1), may_alias));

#endif
