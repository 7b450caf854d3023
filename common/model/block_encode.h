/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the block encoder: its scratch memory, and what its files call of each other. */
#ifndef TG_COMMON_MODEL_BLOCK_ENCODE_H
#define TG_COMMON_MODEL_BLOCK_ENCODE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/model/block_choose.h"
#include "common/model/block_format.h"
#include "common/model/rowset_block.h"

enum {
    DICTIONARY_SLOT_BITS = 13, /* at most half full */
    /* Small loads and answers make blocks of some rows: they get by with little scratch memory,
     * which would otherwise have to be faulted in for each. */
    ENCODER_ROWS_SMALL = 512,
    DICTIONARY_SLOT_BITS_SMALL = 10
};

/* A slot is in use if its stamp is that of the column at hand, so nothing is cleared in between. */
struct dictionary_slot {
    uint32_t hash;
    uint32_t stamp;
    uint32_t code;
};
/* A distinct value: its first 16 bytes (zeros behind a shorter one) and where all of it is. */
struct dictionary_entry {
    uint64_t low;
    uint64_t high;
    const uint8_t *bytes;
    uint32_t len;
};

struct block_encoder {
    uint32_t rows; /* that the arrays have room for */
    void *memory;
    uint8_t *filled;      /* values with nulls filled: 16 bytes a row */
    int64_t *wide;        /* 128-bit values that fit 64 bits */
    int32_t *narrow;      /* see block_choose.h */
    uint32_t *run_starts; /* one more than rows */
    uint64_t *run_values;
    uint32_t *small; /* run lengths, lengths of bytes */
    void *lz4_state;
    unsigned slot_bits; /* of the dictionary: 0 while there is none */
    struct dictionary_slot *slots;
    struct dictionary_entry *entries;
    uint32_t stamp;
    uint32_t entry_count;
};

/* What a column's directory entry will say of its data. */
struct block_encoded {
    uint8_t encoding;
    uint8_t flags;
};

/* Appends the values of a column of numbers, not all of them null: min, max, [bitmap was written by
 * the caller], data. 0 or TG_NOMEM. */
int block_encode_fixed(struct block_encoder *encoder, const struct vector *vector, uint32_t begin,
                       uint32_t count, bool has_nulls, struct buf *out,
                       struct block_encoded *encoded);
/* The same for a bytes column. 0, TG_NOMEM or TG_LIMIT. */
int block_encode_bytes(struct block_encoder *encoder, const struct vector *vector, uint32_t begin,
                       uint32_t count, bool has_nulls, struct buf *out,
                       struct block_encoded *encoded);

/* Appends numbers as choice says (not PLAIN or CONSTANT): the part that dictionaries share. */
int block_encode_numbers(struct block_encoder *encoder, const struct block_numbers *numbers,
                         const struct block_choice *choice, struct buf *out);
/* Appends `count` small numbers of encoder->small: least, bits, packed rest. */
int block_encode_lengths(const struct block_encoder *encoder, uint32_t count, struct buf *out);

#endif
