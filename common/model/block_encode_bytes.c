/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding of bytes columns: a dictionary where values repeat, else lengths and bytes. */
#include <lz4.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/endian.h"
#include "common/model/block_bitpack.h"
#include "common/model/block_encode.h"

enum {
    TRIAL_ROWS = 512,     /* after so many rows a dictionary is given up if … */
    TRIAL_DISTINCT = 256, /* … more than half of them were new */
    STEPS_PER_ROW = 8,    /* mean over the column; beyond that the hash is being played with */
    LZ4_BYTES_MIN = 64    /* fewer are not worth a try */
};

/* Odd constants with well-mixed bits (from the digits of the golden ratio and of pi). */
#define MIX1 0x9E3779B97F4A7C15u
#define MIX2 0x243F6A8885A308D3u

static inline uint64_t mix(uint64_t low, uint64_t high)
{
    uint64_t h = (low ^ MIX2) * MIX1;
    h = (h ^ (h >> 32)) + high;
    h *= MIX2;
    return h ^ (h >> 29);
}

/* Masks of the first n of eight bytes: by table, because lengths are hard to predict. */
static const uint64_t first_bytes[] = {
    0,
    UINT64_C(0xFF),
    UINT64_C(0xFFFF),
    UINT64_C(0xFFFFFF),
    UINT64_C(0xFFFFFFFF),
    UINT64_C(0xFFFFFFFFFF),
    UINT64_C(0xFFFFFFFFFFFF),
    UINT64_C(0xFFFFFFFFFFFFFF),
#define ALL UINT64_MAX
    ALL,
    ALL,
    ALL,
    ALL,
    ALL,
    ALL,
    ALL,
    ALL,
    ALL,
#undef ALL
};
static const uint8_t beyond_eight[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8};

static uint64_t long_hash(const uint8_t *bytes, uint32_t len, uint64_t hash)
{
    for (uint32_t at = 16; at + 16 < len; at += 16)
        hash = mix(load_u64le(bytes + at) ^ hash, load_u64le(bytes + at + 8));
    return mix(load_u64le(bytes + len - 16) ^ hash, load_u64le(bytes + len - 8));
}

/* A value as the dictionary looks at it: its first 16 bytes (zeros behind a shorter one), its hash.
 */
struct probe {
    uint64_t low;
    uint64_t high;
    uint64_t hash;
    const uint8_t *bytes;
    uint32_t len;
};

enum {
    PROBE_ROWS = 256
}; /* hashed ahead of looking up: two short loops are faster than a long one */

/* Reads up to 16 bytes behind the end of values, which vectors have. */
static void hash_rows(const uint8_t *bytes, const uint32_t *ends, uint32_t from, uint32_t count,
                      struct probe *probes)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *value = bytes + from;
        uint32_t len = ends[i] - from;
        uint32_t cut = len < 16 ? len : 16;
        uint64_t low = load_u64le(value) & first_bytes[cut];
        uint64_t high = load_u64le(value + 8) & first_bytes[beyond_eight[cut]];
        uint64_t hash = mix(low, high + len);
        if (len > 16)
            hash = long_hash(value, len, hash);
        probes[i] = (struct probe){low, high, hash, value, len};
        from = ends[i];
    }
}

static inline bool entry_equal(const struct dictionary_entry *entry, const struct probe *probe)
{
    if (entry->low != probe->low || entry->high != probe->high || entry->len != probe->len)
        return false;
    return probe->len <= 16 || memcmp(entry->bytes + 16, probe->bytes + 16, probe->len - 16) == 0;
}

/* The number of a value, given anew if it has none; -1: the dictionary is full. `steps` counts the
 * slots that were looked at in vain. */
static int32_t find_code(struct block_encoder *encoder, const struct probe *probe, uint64_t *steps)
{
    uint32_t at = (uint32_t)(probe->hash >> (64 - encoder->slot_bits));
    uint32_t hash = (uint32_t)probe->hash;
    uint32_t mask = (1u << encoder->slot_bits) - 1;
    for (;; at = (at + 1) & mask, ++*steps) {
        struct dictionary_slot *slot = &encoder->slots[at];
        if (slot->stamp != encoder->stamp) {
            if (encoder->entry_count == BLOCK_DICTIONARY_MAX)
                return -1;
            uint32_t code = encoder->entry_count++;
            *slot = (struct dictionary_slot){hash, encoder->stamp, code};
            encoder->entries[code] =
                (struct dictionary_entry){probe->low, probe->high, probe->bytes, probe->len};
            return (int32_t)code;
        }
        if (slot->hash == hash && entry_equal(&encoder->entries[slot->code], probe))
            return (int32_t)slot->code;
    }
}

/* Slots and entries for a block of so many rows. */
static int reserve_dictionary(struct block_encoder *encoder, uint32_t rows)
{
    bool small = rows <= ENCODER_ROWS_SMALL;
    unsigned bits = small ? DICTIONARY_SLOT_BITS_SMALL : DICTIONARY_SLOT_BITS;
    if (encoder->slot_bits >= bits)
        return 0;
    free(encoder->slots);
    free(encoder->entries);
    encoder->slots = calloc((size_t)1 << bits, sizeof *encoder->slots);
    encoder->entries =
        malloc((small ? ENCODER_ROWS_SMALL : BLOCK_DICTIONARY_MAX) * sizeof *encoder->entries);
    encoder->stamp = 0;
    encoder->slot_bits = encoder->slots != NULL && encoder->entries != NULL ? bits : 0;
    return encoder->slot_bits != 0 ? 0 : TG_NOMEM;
}

/* Codes of all rows into encoder->narrow; a null gets the code before it. False: given up. */
static bool build_dictionary(struct block_encoder *encoder, const struct vector *vector,
                             uint32_t begin, uint32_t count, bool has_nulls)
{
    if (++encoder->stamp == 0) { /* wrapped: old stamps would come to life again */
        memset(encoder->slots, 0, sizeof *encoder->slots << encoder->slot_bits);
        encoder->stamp = 1;
    }
    encoder->entry_count = 0;
    static const uint8_t nothing[16];
    const uint8_t *bytes = vector->bytes == NULL ? nothing : vector->bytes;
    const uint32_t *ends = vector->ends + begin;
    const uint8_t *nulls = has_nulls ? vector->nulls + begin : NULL;
    uint64_t steps = 0;
    int32_t code = 0;
    struct probe probes[PROBE_ROWS];
    for (uint32_t row = 0; row < count; row += PROBE_ROWS) {
        uint32_t n = count - row < PROBE_ROWS ? count - row : PROBE_ROWS;
        hash_rows(bytes, ends + row, begin + row == 0 ? 0 : ends[(int64_t)row - 1], n, probes);
        for (uint32_t i = 0; i < n; i++) {
            if (nulls == NULL || nulls[row + i] == 0)
                code = find_code(encoder, &probes[i], &steps);
            if (code < 0)
                return false;
            encoder->narrow[row + i] = code;
        }
        if (steps > (uint64_t)STEPS_PER_ROW * count)
            return false;
        if (row + n == TRIAL_ROWS && encoder->entry_count > TRIAL_DISTINCT)
            return false;
    }
    return true;
}

int block_encode_lengths(const struct block_encoder *encoder, uint32_t count, struct buf *out)
{
    uint32_t *lengths = encoder->small;
    uint32_t min = lengths[0];
    uint32_t max = lengths[0];
    for (uint32_t i = 1; i < count; i++) {
        min = lengths[i] < min ? lengths[i] : min;
        max = lengths[i] > max ? lengths[i] : max;
    }
    for (uint32_t i = 0; i < count; i++)
        lengths[i] -= min;
    unsigned bits = block_bitpack_width(max - min);
    buf_append_u32le(out, min);
    buf_append_u8(out, (uint8_t)bits);
    uint8_t *to = buf_extend(out, block_bitpack_size(count, bits));
    if (to == NULL)
        return TG_NOMEM;
    block_bitpack_encode(lengths, count, bits, to);
    return 0;
}

/* Appends count, lengths and bytes of the values, and the codes. */
static int append_dictionary(struct block_encoder *encoder, const struct block_numbers *codes,
                             struct block_choice choice, struct buf *out)
{
    buf_append_u16le(out, (uint16_t)encoder->entry_count);
    for (uint32_t i = 0; i < encoder->entry_count; i++)
        encoder->small[i] = encoder->entries[i].len;
    if (block_encode_lengths(encoder, encoder->entry_count, out) != 0)
        return TG_NOMEM;
    for (uint32_t i = 0; i < encoder->entry_count; i++)
        buf_append(out, encoder->entries[i].bytes, encoder->entries[i].len);
    buf_append_u8(out, choice.encoding == BLOCK_RLE ? CODES_RUNS : CODES_PACKED);
    return block_encode_numbers(encoder, codes, &choice, out);
}

/* Bits that lengths and bytes take without a dictionary, before LZ4. */
static uint64_t plain_cost(const uint32_t *lengths, uint32_t count, uint64_t bytes)
{
    uint32_t min = lengths[0];
    uint32_t max = lengths[0];
    for (uint32_t i = 1; i < count; i++) {
        min = lengths[i] < min ? lengths[i] : min;
        max = lengths[i] > max ? lengths[i] : max;
    }
    return bytes * 8 + (uint64_t)count * block_bitpack_width(max - min);
}

static uint64_t dictionary_cost(const struct block_encoder *encoder,
                                const struct block_numbers *codes,
                                const struct block_choice *choice)
{
    uint64_t bytes = 0;
    uint32_t longest = 0;
    for (uint32_t i = 0; i < encoder->entry_count; i++) {
        bytes += encoder->entries[i].len;
        longest = encoder->entries[i].len > longest ? encoder->entries[i].len : longest;
    }
    uint64_t cost = bytes * 8 + (uint64_t)encoder->entry_count * block_bitpack_width(longest);
    if (choice->encoding == BLOCK_RLE)
        return cost + (uint64_t)codes->runs * (choice->bits + choice->length_bits);
    return cost + (uint64_t)codes->count * choice->bits;
}

/* Appends the bytes of all rows, compressed if that saves an eighth. */
static int append_bytes(struct block_encoder *encoder, struct slice bytes, struct buf *out,
                        struct block_encoded *encoded)
{
    if (bytes.len >= LZ4_BYTES_MIN) {
        size_t room = bytes.len - bytes.len / 8;
        if (buf_reserve(out, 4 + room) != 0)
            return TG_NOMEM;
        int packed = LZ4_compress_fast_extState(encoder->lz4_state, (const char *)bytes.data,
                                                (char *)out->data + out->len + 4, (int)bytes.len,
                                                (int)room, 1);
        if (packed > 0) {
            buf_append_u32le(out, (uint32_t)bytes.len);
            (void)buf_extend(out, (size_t)packed);
            encoded->flags |= BLOCK_LZ4;
            return out->err;
        }
    }
    buf_append(out, bytes.data, bytes.len);
    return out->err;
}

int block_encode_bytes(struct block_encoder *encoder, const struct vector *vector, uint32_t begin,
                       uint32_t count, bool has_nulls, struct buf *out,
                       struct block_encoded *encoded)
{
    const uint32_t *ends = vector->ends + begin;
    uint32_t from = begin == 0 ? 0 : ends[-1];
    uint32_t total = ends[count - 1] - from;
    if (total > BLOCK_BYTES_MAX)
        return TG_LIMIT;

    int err = reserve_dictionary(encoder, count);
    if (err != 0)
        return err;
    bool fits = build_dictionary(encoder, vector, begin, count, has_nulls);
    if (fits && encoder->entry_count == 1) {
        encoded->encoding = BLOCK_CONSTANT;
        buf_append(out, encoder->entries[0].bytes, encoder->entries[0].len);
        return out->err;
    }
    struct block_numbers codes;
    struct block_choice choice;
    if (fits) {
        block_numbers_load_codes(&codes, count, encoder->narrow);
        choice = block_choose(&codes, 4, encoder->run_starts);
    }
    uint64_t cost = fits ? dictionary_cost(encoder, &codes, &choice) : UINT64_MAX;
    if (cost >= (uint64_t)total * 8) {
        uint32_t *lengths = encoder->small;
        for (uint32_t i = 0, at = from; i < count; at = ends[i++])
            lengths[i] = ends[i] - at;
    }
    if (cost < (uint64_t)total * 8 || cost < plain_cost(encoder->small, count, total)) {
        encoded->encoding = BLOCK_DICTIONARY;
        return append_dictionary(encoder, &codes, choice, out);
    }
    encoded->encoding = BLOCK_PLAIN;
    if (block_encode_lengths(encoder, count, out) != 0)
        return TG_NOMEM;
    return append_bytes(encoder,
                        slice_of(vector->bytes == NULL ? NULL : vector->bytes + from, total), out,
                        encoded);
}
