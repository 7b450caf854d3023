/* SPDX-License-Identifier: Apache-2.0 */
/* Encoded keys sort as their rows do; their bytes and the hash never change
 * (tests/golden/row_key_v1.txt). */
#include "common/model/row_key.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/endian.h"

#define T(k)       ((struct column_type){.kind = TYPE_##k})
#define DEC(p, s)  ((struct column_type){.kind = TYPE_DECIMAL, .precision = (p), .scale = (s)})
#define DTIME(s)   ((struct column_type){.kind = TYPE_DATETIME, .scale = (s)})
#define VARCHAR(n) ((struct column_type){.kind = TYPE_VARCHAR, .length = (n)})
#define COUNT(a)   (sizeof(a) / sizeof *(a))

enum { COLUMNS = 4, ROWS = 400 };

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* Few different values, so that ties in the first columns are common; zeros, ones and 0xFF in
 * strings. */
static void append_random(struct vector *vector, uint64_t *seed)
{
    uint64_t r = next_random(seed);
    if (r % 8 == 0) {
        assert_int_equal(vector_append_null(vector), 0);
    } else if (vector->width > 0) {
        __int128 value = (int64_t)next_random(seed);
        value *= (__int128)1 << (r >> 8 & 63);
        if (r & 16)
            value = (int)(r >> 20 & 3) - 2;
        if (vector->type.kind == TYPE_DOUBLE)
            memcpy(&value,
                   &(double){r & 32   ? (double)(int)(r >> 40 & 7) - 4
                             : r & 64 ? (double)NAN
                                      : 1e300},
                   8);
        if (vector->type.kind == TYPE_DATE)
            value = type_pack_date((uint32_t)(r >> 8) % 10000, (uint32_t)(r >> 30) % 12 + 1, 5);
        assert_int_equal(vector_append_fixed(vector, &value), 0);
    } else {
        static const uint8_t ALPHABET[] = {0, 0, 1, 2, 0x7F, 0xFE, 0xFF, 'a'};
        uint8_t bytes[12];
        size_t len = (r >> 8) % sizeof bytes;
        for (size_t i = 0; i < len; i++)
            bytes[i] = ALPHABET[next_random(seed) % sizeof ALPHABET];
        assert_int_equal(vector_append_bytes(vector, bytes, len), 0);
    }
}

static int sign(int value)
{
    return (value > 0) - (value < 0);
}

static void check_ordering(const struct column_type types[COLUMNS], uint64_t seed)
{
    struct vector vectors[COLUMNS];
    const struct vector *columns[COLUMNS];
    struct buf *keys = calloc(ROWS, sizeof *keys);
    for (uint32_t c = 0; c < COLUMNS; c++) {
        vector_init(&vectors[c], types[c]);
        columns[c] = &vectors[c];
        for (uint32_t i = 0; i < ROWS; i++)
            append_random(&vectors[c], &seed);
    }
    for (uint32_t i = 0; i < ROWS; i++) {
        row_key_encode(columns, COLUMNS, i, &keys[i]);
        assert_int_equal(keys[i].err, 0);
        uint8_t first[8] = {0};
        memcpy(first, keys[i].data, keys[i].len < 8 ? keys[i].len : 8);
        assert_int_equal(row_key_prefix(columns, COLUMNS, i), load_u64be(first));
    }
    for (uint32_t a = 0; a < ROWS; a++) {
        for (uint32_t b = 0; b < ROWS; b++) {
            int by_rows = sign(row_key_compare(columns, a, columns, b, COLUMNS));
            int by_keys = sign(slice_compare(slice_of(keys[a].data, keys[a].len),
                                             slice_of(keys[b].data, keys[b].len)));
            if (by_rows != by_keys)
                fail_msg("rows %u and %u: %d, but their keys: %d", a, b, by_rows, by_keys);
        }
    }
    for (uint32_t i = 0; i < ROWS; i++)
        buf_close(&keys[i]);
    for (uint32_t c = 0; c < COLUMNS; c++)
        vector_close(&vectors[c]);
    free(keys);
}

static void test_keys_sort_as_their_rows_do(void **state)
{
    (void)state;
    static const struct column_type SETS[][COLUMNS] = {
        {T(BOOLEAN), T(TINYINT), T(SMALLINT), T(INT)},
        {VARCHAR(20), VARCHAR(20), T(STRING), T(BIGINT)},
        {T(BIGINT), T(LARGEINT), DEC(9, 2), DEC(38, 3)},
        {T(DATE), DTIME(3), VARCHAR(20), T(LARGEINT)},
        {T(DOUBLE), VARCHAR(20), T(DATE), T(TINYINT)},
        {T(TINYINT), T(TINYINT), T(TINYINT), T(TINYINT)},
    };
    for (size_t i = 0; i < COUNT(SETS); i++)
        check_ordering(SETS[i], 1000 + i);
}

/* A row given as texts; NULL is null. */
struct golden {
    const char *name;
    struct column_type types[3];
    const char *texts[3];
    uint32_t count;
};

static const struct golden GOLDEN[] = {
    {"boolean", {T(BOOLEAN)}, {"true"}, 1},
    {"tinyint", {T(TINYINT)}, {"-1"}, 1},
    {"smallint", {T(SMALLINT)}, {"258"}, 1},
    {"int", {T(INT)}, {"-2147483648"}, 1},
    {"bigint", {T(BIGINT)}, {"1234567890123456789"}, 1},
    {"bigint-five", {T(BIGINT)}, {"5"}, 1},
    {"tinyint-five", {T(TINYINT)}, {"5"}, 1},
    {"largeint-five", {T(LARGEINT)}, {"5"}, 1},
    {"largeint", {T(LARGEINT)}, {"-170141183460469231731687303715884105728"}, 1},
    {"float", {T(FLOAT)}, {"1.5"}, 1},
    {"double", {T(DOUBLE)}, {"-1.5"}, 1},
    {"double-zero", {T(DOUBLE)}, {"0"}, 1},
    {"double-minus-zero", {T(DOUBLE)}, {"-0"}, 1},
    {"double-nan", {T(DOUBLE)}, {"nan"}, 1},
    {"decimal64", {DEC(15, 2)}, {"-1234.56"}, 1},
    {"decimal128", {DEC(38, 2)}, {"-1234.56"}, 1},
    {"date", {T(DATE)}, {"2024-02-29"}, 1},
    {"datetime", {DTIME(6)}, {"2024-02-29 23:59:59.999999"}, 1},
    {"varchar", {VARCHAR(20)}, {"tide"}, 1},
    {"varchar-empty", {VARCHAR(20)}, {""}, 1},
    {"null", {T(INT)}, {NULL}, 1},
    {"null-varchar", {VARCHAR(20)}, {NULL}, 1},
    {"three", {T(INT), VARCHAR(20), T(DATE)}, {"1", "a", "1970-01-01"}, 3},
    {"three-null", {T(INT), VARCHAR(20), T(DATE)}, {"1", NULL, "1970-01-01"}, 3},
};

static void golden_line(const struct golden *golden, char *line, size_t cap)
{
    struct vector vectors[3];
    const struct vector *columns[3];
    for (uint32_t c = 0; c < golden->count; c++) {
        const char *text = golden->texts[c];
        union type_value value;
        vector_init(&vectors[c], golden->types[c]);
        columns[c] = &vectors[c];
        if (text == NULL) {
            assert_int_equal(vector_append_null(&vectors[c]), 0);
        } else if (type_is_bytes(golden->types[c])) {
            assert_int_equal(vector_append_bytes(&vectors[c], text, strlen(text)), 0);
        } else {
            assert_int_equal(type_parse(golden->types[c], text, strlen(text), 0, &value),
                             TYPE_PARSED);
            assert_int_equal(vector_append_fixed(&vectors[c], &value), 0);
        }
    }
    struct buf key = BUF_INIT, out = BUF_INIT;
    uint64_t hash;
    row_key_encode(columns, golden->count, 0, &key);
    row_key_hash(columns, golden->count, 0, 1, &hash);
    buf_printf(&out, "%s ", golden->name);
    for (size_t i = 0; i < key.len; i++)
        buf_printf(&out, "%02x", key.data[i]);
    buf_printf(&out, " %016llx", (unsigned long long)hash);
    snprintf(line, cap, "%s", buf_cstr(&out));
    buf_close(&key);
    buf_close(&out);
    for (uint32_t c = 0; c < golden->count; c++)
        vector_close(&vectors[c]);
}

static FILE *open_golden(void)
{
    const char *top = getenv("TIDEGATE_SOURCE");
    char path[1024];
    snprintf(path, sizeof path, "%s/tests/golden/row_key_v1.txt", top != NULL ? top : ".");
    return fopen(path, "r");
}

static void test_the_bytes_of_keys_and_the_hash_are_those_of_the_golden_file(void **state)
{
    (void)state;
    FILE *file = open_golden();
    assert_non_null(file);
    char expected[512], line[512];
    size_t at = 0;
    while (fgets(expected, sizeof expected, file) != NULL) {
        expected[strcspn(expected, "\n")] = '\0';
        if (expected[0] == '#')
            continue;
        assert_true(at < COUNT(GOLDEN));
        golden_line(&GOLDEN[at++], line, sizeof line);
        assert_string_equal(line, expected);
    }
    assert_int_equal(at, COUNT(GOLDEN));
    fclose(file);
}

static void test_zero_bytes_are_escaped(void **state)
{
    (void)state;
    struct vector vector;
    const struct vector *columns[1] = {&vector};
    struct buf key = BUF_INIT;
    vector_init(&vector, VARCHAR(20));
    assert_int_equal(vector_append_bytes(&vector, "\0a\0\0", 4), 0);
    row_key_encode(columns, 1, 0, &key);
    static const uint8_t EXPECTED[] = {1, 0, 0xFF, 'a', 0, 0xFF, 0, 0xFF, 0, 1};
    assert_int_equal(key.len, sizeof EXPECTED);
    assert_memory_equal(key.data, EXPECTED, sizeof EXPECTED);
    buf_close(&key);
    vector_close(&vector);
}

static void test_the_hash_does_not_depend_on_where_batches_begin(void **state)
{
    (void)state;
    static const struct column_type TYPES[COLUMNS] = {T(INT), VARCHAR(20), T(DOUBLE), DEC(38, 2)};
    struct vector vectors[COLUMNS];
    const struct vector *columns[COLUMNS];
    uint64_t seed = 5, all[ROWS], some[ROWS];
    for (uint32_t c = 0; c < COLUMNS; c++) {
        vector_init(&vectors[c], TYPES[c]);
        columns[c] = &vectors[c];
        for (uint32_t i = 0; i < ROWS; i++)
            append_random(&vectors[c], &seed);
    }
    row_key_hash(columns, COLUMNS, 0, ROWS, all);
    for (uint32_t begin = 0; begin < ROWS; begin += 37) {
        uint32_t count = begin + 37 < ROWS ? 37 : ROWS - begin;
        row_key_hash(columns, COLUMNS, begin, count, some + begin);
    }
    assert_memory_equal(all, some, sizeof all);
    for (uint32_t c = 0; c < COLUMNS; c++)
        vector_close(&vectors[c]);
}

/* Rows 0, stride, 2 stride … must fall evenly into the buckets: chi-squared stays near the number
 * of buckets. */
static void check_distribution(struct column_type type, int64_t stride, uint32_t buckets)
{
    enum { N = 50000 };
    struct vector vector;
    const struct vector *columns[1] = {&vector};
    uint64_t *hashes = malloc(N * sizeof *hashes);
    uint32_t *counts = calloc(buckets, sizeof *counts);
    vector_init(&vector, type);
    for (int64_t i = 0; i < N; i++) {
        int64_t value = i * stride;
        assert_int_equal(vector_append_fixed(&vector, &value), 0);
    }
    row_key_hash(columns, 1, 0, N, hashes);
    for (uint32_t i = 0; i < N; i++) {
        uint32_t bucket = row_key_bucket(hashes[i], buckets);
        assert_true(bucket < buckets);
        counts[bucket]++;
    }
    double expected = (double)N / buckets, chi = 0;
    for (uint32_t b = 0; b < buckets; b++)
        chi += (counts[b] - expected) * (counts[b] - expected) / expected;
    /* Its spread is sqrt(2 buckets): six of them. */
    if (chi > buckets + 6 * sqrt(2.0 * buckets))
        fail_msg("stride %lld, %u buckets: chi-squared %.1f", (long long)stride, buckets, chi);
    free(hashes);
    free(counts);
    vector_close(&vector);
}

static void test_regular_numbers_spread_evenly_over_buckets(void **state)
{
    (void)state;
    static const int64_t STRIDES[] = {1, 2, 10, 64, 1000, 4096, 1 << 20, (int64_t)1 << 40};
    static const uint32_t BUCKETS[] = {2, 3, 8, 12, 48, 100, 1024};
    for (size_t s = 0; s < COUNT(STRIDES); s++) {
        for (size_t b = 0; b < COUNT(BUCKETS); b++)
            check_distribution(T(BIGINT), STRIDES[s], BUCKETS[b]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_sort_as_their_rows_do),
        cmocka_unit_test(test_the_bytes_of_keys_and_the_hash_are_those_of_the_golden_file),
        cmocka_unit_test(test_zero_bytes_are_escaped),
        cmocka_unit_test(test_the_hash_does_not_depend_on_where_batches_begin),
        cmocka_unit_test(test_regular_numbers_spread_evenly_over_buckets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
