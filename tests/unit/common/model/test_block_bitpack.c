/* SPDX-License-Identifier: Apache-2.0 */
/* Bit packing: every width and every shape of the last group. */
#include "common/model/block_bitpack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/sample_columns.h"

enum { COUNT_MAX = 1100, GUARD = 0xA5, GUARDS = 32 };

static const uint32_t counts[] = {0, 1, 2, 7, 8, 9, 255, 256, 257, 511, 512, 513, 1024, 1100};
enum { COUNTS = sizeof counts / sizeof counts[0] };

static uint64_t low_bits(uint64_t value, unsigned bits)
{
    return bits == 0 ? 0 : value >> (64 - bits);
}

static void every_width_comes_back_as_it_went_in(void **state)
{
    (void)state;
    uint32_t values[COUNT_MAX];
    uint32_t back[COUNT_MAX];
    uint8_t packed[COUNT_MAX * 4 + GUARDS];
    for (unsigned bits = 0; bits <= 32; bits++) {
        for (int c = 0; c < COUNTS; c++) {
            uint32_t count = counts[c];
            for (uint32_t i = 0; i < count; i++)
                values[i] = (uint32_t)low_bits(sample_mix(i + 1000 * bits), bits);
            if (count > 0) /* the greatest value is among them */
                values[count / 2] = (uint32_t)low_bits(UINT64_MAX, bits);
            size_t size = block_bitpack_size(count, bits);
            memset(packed, GUARD, sizeof packed);
            block_bitpack_encode(values, count, bits, packed);
            for (int g = 0; g < GUARDS; g++)
                assert_int_equal(packed[size + (size_t)g], GUARD);
            /* Exactly as large as said, so that reading one byte too many is noticed. */
            uint8_t *exact = malloc(size + 1);
            memcpy(exact, packed, size);
            exact = realloc(exact, size > 0 ? size : 1);
            memset(back, GUARD, sizeof back);
            block_bitpack_decode(exact, count, bits, back);
            free(exact);
            assert_memory_equal(values, back, count * sizeof *values);
        }
    }
}

static void widths_up_to_64_come_back_too(void **state)
{
    (void)state;
    static uint64_t values[COUNT_MAX];
    static uint64_t back[COUNT_MAX];
    static uint8_t packed[COUNT_MAX * 8 + GUARDS];
    for (unsigned bits = 0; bits <= 64; bits++) {
        for (int c = 0; c < COUNTS; c++) {
            uint32_t count = counts[c];
            for (uint32_t i = 0; i < count; i++)
                values[i] = low_bits(sample_mix(i + 1000 * bits), bits);
            size_t size = block_bitpack_size(count, bits);
            memset(packed, GUARD, sizeof packed);
            block_bitpack_encode64(values, count, bits, packed);
            for (int g = 0; g < GUARDS; g++)
                assert_int_equal(packed[size + (size_t)g], GUARD);
            block_bitpack_decode64(packed, count, bits, back);
            assert_memory_equal(values, back, count * sizeof *values);
        }
    }
}

/* The layout itself, so that a change of both routines at once is noticed. */
static void number_i_lies_in_lane_i_modulo_8(void **state)
{
    (void)state;
    uint32_t values[BITPACK_GROUP] = {0};
    uint8_t packed[32 * 3];
    values[8 * 2 + 5] = 5; /* row 2, lane 5: bits 6 to 8 of the lane's first word */
    block_bitpack_encode_group(values, 3, packed);
    for (size_t i = 0; i < sizeof packed; i++)
        assert_int_equal(packed[i], i == 5 * 4 ? 0x40 : i == 5 * 4 + 1 ? 0x01 : 0);

    uint32_t few[] = {1, 2, 3}; /* a last group: bit after bit */
    block_bitpack_encode(few, 3, 3, packed);
    assert_int_equal(packed[0], (1 | 2 << 3 | 3 << 6) & 0xFF);
    assert_int_equal(packed[1], 3 >> 2);
}

static void width_is_the_bits_of_the_greatest_value(void **state)
{
    (void)state;
    assert_int_equal(block_bitpack_width(0), 0);
    assert_int_equal(block_bitpack_width(1), 1);
    assert_int_equal(block_bitpack_width(255), 8);
    assert_int_equal(block_bitpack_width(256), 9);
    assert_int_equal(block_bitpack_width(UINT64_MAX), 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_width_comes_back_as_it_went_in),
        cmocka_unit_test(widths_up_to_64_come_back_too),
        cmocka_unit_test(number_i_lies_in_lane_i_modulo_8),
        cmocka_unit_test(width_is_the_bits_of_the_greatest_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
