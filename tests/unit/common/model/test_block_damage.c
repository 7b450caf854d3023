/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged and lying blocks: an error that says so, never wrong rows, never a crash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/checksum.h"
#include "common/base/endian.h"
#include "common/model/block_format.h"
#include "common/model/rowset_block.h"
#include "tests/lib/sample_columns.h"

enum { COLUMNS = SAMPLE_TYPES, MUTATIONS = 3000 };

/* All types in all shapes, some with nulls; a few hundred rows. */
static uint8_t *make_block(uint32_t rows, uint64_t seed, size_t *len)
{
    struct vector vectors[COLUMNS];
    const struct vector *columns[COLUMNS];
    uint32_t ids[COLUMNS];
    for (uint32_t i = 0; i < COLUMNS; i++) {
        vector_init(&vectors[i], sample_types[i]);
        sample_column(&vectors[i], (enum sample_shape)((i + seed) % SAMPLE_SHAPES),
                      i % 3 == 0 ? SAMPLE_SOME_NULLS : SAMPLE_NO_NULLS, rows, seed);
        columns[i] = &vectors[i];
        ids[i] = i + 1;
    }
    struct block_encoder *encoder = block_encoder_open();
    struct buf out = BUF_INIT;
    assert_int_equal(block_encode(encoder, columns, ids, COLUMNS, 0, rows, &out), 0);
    block_encoder_close(encoder);
    for (int i = 0; i < COLUMNS; i++)
        vector_close(&vectors[i]);
    uint8_t *exact = malloc(out.len);
    memcpy(exact, out.data, out.len);
    *len = out.len;
    buf_close(&out);
    return exact;
}

static int open_copy(const uint8_t *bytes, size_t len)
{
    uint8_t *exact = malloc(len > 0 ? len : 1);
    memcpy(exact, bytes, len);
    struct block block;
    struct tg_errmsg msg = {0};
    int err = block_open(&block, exact, len, &msg);
    if (err != 0)
        assert_true(strncmp(msg.text, "block: ", 7) == 0);
    free(exact);
    return err;
}

static void put_checksum(uint8_t *bytes, size_t len)
{
    size_t at = len - BLOCK_TRAILER_BYTES;
    store_u64le(bytes + at, checksum64(bytes, at));
}

static void every_flipped_byte_is_found(void **state)
{
    (void)state;
    size_t len;
    uint8_t *bytes = make_block(40, 1, &len);
    assert_int_equal(open_copy(bytes, len), 0);
    for (size_t at = 0; at < len; at++) {
        bytes[at] ^= 0xFF;
        assert_int_equal(open_copy(bytes, len), TG_CORRUPT);
        bytes[at] ^= 0xFF ^ 0x01;
        assert_int_equal(open_copy(bytes, len), TG_CORRUPT);
        bytes[at] ^= 0x01;
    }
    free(bytes);
}

static void every_truncation_is_found(void **state)
{
    (void)state;
    size_t len;
    uint8_t *bytes = make_block(40, 2, &len);
    for (size_t cut = 0; cut < len; cut++)
        assert_int_equal(open_copy(bytes, cut), TG_CORRUPT);
    uint8_t *longer = calloc(1, len + 1);
    memcpy(longer, bytes, len);
    assert_int_equal(open_copy(longer, len + 1), TG_CORRUPT);
    free(longer);
    free(bytes);
}

static void another_version_is_unsupported(void **state)
{
    (void)state;
    size_t len;
    uint8_t *bytes = make_block(40, 3, &len);
    store_u16le(bytes + BLOCK_AT_VERSION, BLOCK_VERSION + 1);
    put_checksum(bytes, len);
    assert_int_equal(open_copy(bytes, len), TG_UNSUPPORTED);
    free(bytes);
}

static void impossible_headers_are_found_behind_a_right_checksum(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        uint32_t value;
    } lies[] = {
        {BLOCK_AT_ROWS, 0},
        {BLOCK_AT_ROWS, BLOCK_ROWS_MAX + 1},
        {BLOCK_AT_COLUMNS, 0},
        {BLOCK_AT_COLUMNS, COLUMNS - 1},
        {BLOCK_AT_COLUMNS, COLUMNS + 1},
        {BLOCK_AT_COLUMNS, UINT32_MAX},
        {BLOCK_AT_RESERVED2, 1},
        {BLOCK_HEADER_BYTES + ENTRY_AT_OFFSET, 0},
        {BLOCK_HEADER_BYTES + ENTRY_AT_OFFSET, UINT32_MAX},
        {BLOCK_HEADER_BYTES + ENTRY_AT_LEN, UINT32_MAX},
        {BLOCK_HEADER_BYTES + ENTRY_AT_FLAGS, 0x80},
        {BLOCK_HEADER_BYTES + ENTRY_AT_FLAGS, BLOCK_LZ4},
        {BLOCK_HEADER_BYTES + ENTRY_AT_FLAGS, BLOCK_ALL_NULL},
        {BLOCK_HEADER_BYTES + ENTRY_AT_KIND, 0},
        {BLOCK_HEADER_BYTES + ENTRY_AT_KIND, TYPE_JSON + 1 + (BLOCK_PLAIN << 24)},
        {BLOCK_HEADER_BYTES + ENTRY_AT_KIND, TYPE_BOOLEAN},
        {BLOCK_HEADER_BYTES + ENTRY_AT_KIND, TYPE_BOOLEAN + (BLOCK_DICTIONARY << 24)},
        {BLOCK_HEADER_BYTES + ENTRY_AT_KIND, TYPE_STRING + ((uint32_t)BLOCK_FOR << 24)},
    };
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        size_t len;
        uint8_t *bytes = make_block(40, 4, &len);
        store_u32le(bytes + lies[i].at, lies[i].value);
        put_checksum(bytes, len);
        assert_int_equal(open_copy(bytes, len), TG_CORRUPT);
        free(bytes);
    }
}

/* Decodes all columns of a block that opens; each gives its rows or an error and no rows. */
static void decode_all(struct block_decoder *decoder, const uint8_t *bytes, size_t len)
{
    struct block block;
    if (block_open(&block, bytes, len, NULL) != 0)
        return;
    for (uint32_t i = 0; i < block.column_count; i++) {
        struct block_column column;
        block_column_at(&block, i, &column);
        union type_value min;
        union type_value max;
        (void)block_column_range(&block, i, &min, &max);
        struct vector back;
        vector_init(&back, column.type);
        int err = block_decode_column(decoder, &block, i, &back, NULL);
        assert_true(err == 0 || err == TG_CORRUPT);
        assert_int_equal(back.rows, err == 0 ? block.rows : 0);
        if (err != 0)
            assert_int_equal(back.bytes_len, 0);
        else if (back.width == 0)
            assert_int_equal(back.ends[back.rows - 1], back.bytes_len);
        vector_close(&back);
    }
}

static void lies_with_a_right_checksum_never_crash(void **state)
{
    (void)state;
    struct block_decoder *decoder = block_decoder_open();
    for (uint64_t seed = 0; seed < SAMPLE_SHAPES; seed++) {
        size_t len;
        uint8_t *bytes = make_block(300, seed, &len);
        uint8_t *mutated = malloc(len);
        for (uint64_t i = 0; i < MUTATIONS; i++) {
            memcpy(mutated, bytes, len);
            uint64_t changes = 1 + sample_mix(i) % 3;
            for (uint64_t c = 0; c < changes; c++) {
                uint64_t mixed = sample_mix(i * 8 + c + (seed << 40));
                mutated[BLOCK_AT_ROWS + mixed % (len - BLOCK_AT_ROWS)] = (uint8_t)(mixed >> 40);
            }
            put_checksum(mutated, len);
            decode_all(decoder, mutated, len);
        }
        free(mutated);
        free(bytes);
    }
    block_decoder_close(decoder);
}

static void each_byte_of_each_parameter_may_lie(void **state)
{
    (void)state;
    struct block_decoder *decoder = block_decoder_open();
    for (uint64_t seed = 0; seed < SAMPLE_SHAPES; seed++) {
        size_t len;
        uint8_t *bytes = make_block(300, seed, &len);
        for (uint32_t i = 0; i < COLUMNS; i++) {
            /* Widths, counts and codes stand at the front of a column's data. */
            uint32_t at =
                load_u32le(bytes + BLOCK_HEADER_BYTES + i * ENTRY_BYTES + ENTRY_AT_OFFSET);
            for (uint32_t front = 0; front < 110 && at + front < len - BLOCK_TRAILER_BYTES;
                 front++) {
                static const uint8_t lies[] = {0, 1, 31, 33, 64, 65, 127, 255};
                uint8_t truth = bytes[at + front];
                for (size_t lie = 0; lie < sizeof lies; lie++) {
                    bytes[at + front] = lies[lie];
                    put_checksum(bytes, len);
                    decode_all(decoder, bytes, len);
                }
                bytes[at + front] = truth;
            }
        }
        free(bytes);
    }
    block_decoder_close(decoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_flipped_byte_is_found),
        cmocka_unit_test(every_truncation_is_found),
        cmocka_unit_test(another_version_is_unsupported),
        cmocka_unit_test(impossible_headers_are_found_behind_a_right_checksum),
        cmocka_unit_test(lies_with_a_right_checksum_never_crash),
        cmocka_unit_test(each_byte_of_each_parameter_may_lie),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
