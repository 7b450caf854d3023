/* SPDX-License-Identifier: Apache-2.0 */
/* How fast blocks are encoded and decoded, and how small they get: a generated table of 17 columns
 * in the shape of the Star Schema Benchmark's lineorder, and string columns of many distinct
 * values. Arguments: rows (default 524288), rows of a block (8192), rounds (5). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/check.h"
#include "common/model/rowset_block.h"
#include "common/model/vector.h"

enum { ROWS = 512 * 1024, ROUNDS = 5, STRING_MAX = 64 };

struct column {
    const char *name;
    struct column_type type;
};

enum lineorder_column {
    ORDERKEY,
    LINENUMBER,
    CUSTKEY,
    PARTKEY,
    SUPPKEY,
    ORDERDATE,
    PRIORITY,
    SHIPPRIORITY,
    QUANTITY,
    EXTENDEDPRICE,
    TOTALPRICE,
    DISCOUNT,
    REVENUE,
    SUPPLYCOST,
    TAX,
    COMMITDATE,
    SHIPMODE,
    LINEORDER_COLUMNS
};

static const struct column lineorder[LINEORDER_COLUMNS] = {
    [ORDERKEY] = {"orderkey", {.kind = TYPE_BIGINT}},
    [LINENUMBER] = {"linenumber", {.kind = TYPE_TINYINT}},
    [CUSTKEY] = {"custkey", {.kind = TYPE_INT}},
    [PARTKEY] = {"partkey", {.kind = TYPE_INT}},
    [SUPPKEY] = {"suppkey", {.kind = TYPE_INT}},
    [ORDERDATE] = {"orderdate", {.kind = TYPE_DATE}},
    [PRIORITY] = {"orderpriority", {.kind = TYPE_VARCHAR, .length = 15}},
    [SHIPPRIORITY] = {"shippriority", {.kind = TYPE_TINYINT}},
    [QUANTITY] = {"quantity", {.kind = TYPE_TINYINT}},
    [EXTENDEDPRICE] = {"extendedprice", {.kind = TYPE_DECIMAL, .precision = 15, .scale = 2}},
    [TOTALPRICE] = {"ordtotalprice", {.kind = TYPE_DECIMAL, .precision = 15, .scale = 2}},
    [DISCOUNT] = {"discount", {.kind = TYPE_DECIMAL, .precision = 4, .scale = 2}},
    [REVENUE] = {"revenue", {.kind = TYPE_DECIMAL, .precision = 15, .scale = 2}},
    [SUPPLYCOST] = {"supplycost", {.kind = TYPE_DECIMAL, .precision = 15, .scale = 2}},
    [TAX] = {"tax", {.kind = TYPE_DECIMAL, .precision = 4, .scale = 2}},
    [COMMITDATE] = {"commitdate", {.kind = TYPE_DATE}},
    [SHIPMODE] = {"shipmode", {.kind = TYPE_VARCHAR, .length = 10}},
};

static const char *const priorities[] = {"1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECI", "5-LOW"};
static const char *const shipmodes[] = {"AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"};

static uint64_t random_state = 42;

/* Marsaglia's xorshift*: good enough for made-up prices. */
static uint64_t below(uint64_t bound)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (random_state * UINT64_C(0x2545F4914F6CDD1D)) % bound;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void add_number(struct vector *vector, int64_t value)
{
    TG_CHECK(vector_append_fixed(vector, &value) == 0); /* little-endian: the low bytes count */
}

static void add_text(struct vector *vector, const char *text)
{
    TG_CHECK(vector_append_bytes(vector, text, strlen(text)) == 0);
}

static int64_t random_date(void)
{
    return (int64_t)((1992 + below(7)) << 9 | (1 + below(12)) << 5 | (1 + below(28)));
}

static void fill_lineorder(struct vector *v, uint32_t rows)
{
    int64_t orderkey = 0;
    for (uint32_t row = 0; row < rows;) {
        orderkey++;
        uint32_t lines = 1 + (uint32_t)below(7);
        int64_t custkey = (int64_t)below(300000);
        int64_t orderdate = random_date();
        const char *priority = priorities[below(5)];
        int64_t total = (int64_t)(90000 + below(50000000));
        for (uint32_t line = 1; line <= lines && row < rows; line++, row++) {
            int64_t quantity = 1 + (int64_t)below(50);
            int64_t price = quantity * (int64_t)(90000 + below(120000));
            int64_t discount = (int64_t)below(11);
            add_number(&v[ORDERKEY], orderkey);
            add_number(&v[LINENUMBER], line);
            add_number(&v[CUSTKEY], custkey);
            add_number(&v[PARTKEY], (int64_t)below(1000000));
            add_number(&v[SUPPKEY], (int64_t)below(20000));
            add_number(&v[ORDERDATE], orderdate);
            add_text(&v[PRIORITY], priority);
            add_number(&v[SHIPPRIORITY], 0);
            add_number(&v[QUANTITY], quantity);
            add_number(&v[EXTENDEDPRICE], price);
            add_number(&v[TOTALPRICE], total);
            add_number(&v[DISCOUNT], discount);
            add_number(&v[REVENUE], price * (100 - discount) / 100);
            add_number(&v[SUPPLYCOST], (int64_t)(54000 + below(72000)));
            add_number(&v[TAX], (int64_t)below(9));
            add_number(&v[COMMITDATE], random_date());
            add_text(&v[SHIPMODE], shipmodes[below(7)]);
        }
    }
}

/* Encodes and decodes the columns in blocks; prints the best of the rounds. */
static void measure(const char *name, struct vector *vectors, uint32_t count, uint32_t block_rows,
                    int rounds)
{
    const struct vector *columns[LINEORDER_COLUMNS];
    uint32_t ids[LINEORDER_COLUMNS];
    uint32_t rows = vectors[0].rows;
    double plain = 0;
    for (uint32_t i = 0; i < count; i++) {
        columns[i] = &vectors[i];
        ids[i] = i + 1;
        plain += vectors[i].width > 0 ? (double)vectors[i].width * rows
                                      : (double)vectors[i].bytes_len + 4.0 * rows;
    }
    struct block_encoder *encoder = block_encoder_open();
    struct block_decoder *decoder = block_decoder_open();
    TG_CHECK(encoder != NULL && decoder != NULL);
    struct buf out = BUF_INIT;
    size_t ends[ROWS];
    uint32_t blocks = 0;
    double encode_best = 1e9;
    double decode_best = 1e9;
    for (int round = 0; round < rounds; round++) {
        buf_clear(&out);
        blocks = 0;
        double start = now();
        for (uint32_t at = 0; at < rows; at += block_rows) {
            uint32_t n = rows - at < block_rows ? rows - at : block_rows;
            TG_CHECK(block_encode(encoder, columns, ids, count, at, n, &out) == 0);
            ends[blocks++] = out.len;
        }
        double spent = now() - start;
        encode_best = spent < encode_best ? spent : encode_best;

        struct vector decoded[LINEORDER_COLUMNS];
        for (uint32_t i = 0; i < count; i++)
            vector_init(&decoded[i], vectors[i].type);
        spent = 0;
        for (uint32_t b = 0; b < blocks; b++) {
            size_t begin = b == 0 ? 0 : ends[b - 1];
            struct block block;
            start = now();
            TG_CHECK(block_open(&block, out.data + begin, ends[b] - begin, NULL) == 0);
            for (uint32_t i = 0; i < count; i++) {
                vector_clear(&decoded[i]);
                TG_CHECK(block_decode_column(decoder, &block, i, &decoded[i], NULL) == 0);
            }
            spent += now() - start;
        }
        decode_best = spent < decode_best ? spent : decode_best;
        for (uint32_t i = 0; i < count; i++)
            vector_close(&decoded[i]);
    }
    printf("%-14s %7.2f %7.2f %9.0f %7.1f %9.0f %7.1f %8.0f\n", name, plain / rows,
           (double)out.len / rows, plain / encode_best / 1e6, encode_best * 1e9 / rows,
           plain / decode_best / 1e6, decode_best * 1e9 / rows, rows / decode_best / 1e6);
    buf_close(&out);
    block_encoder_close(encoder);
    block_decoder_close(decoder);
}

static void print_head(const char *what)
{
    printf("\n%-14s %7s %7s %9s %7s %9s %7s %8s\n", what, "plain", "block", "encode", "", "decode",
           "", "");
    printf("%-14s %7s %7s %9s %7s %9s %7s %8s\n", "", "B/row", "B/row", "MB/s", "ns/row", "MB/s",
           "ns/row", "Mrows/s");
}

/* Strings that a dictionary does not help. */
static void make_string(int shape, uint32_t row, char out[STRING_MAX])
{
    switch (shape) {
    case 0:
        snprintf(out, STRING_MAX, "name-%07u", row);
        break;
    case 1:
        snprintf(out, STRING_MAX, "%016" PRIx64 "%016" PRIx64, below(UINT64_MAX),
                 below(UINT64_MAX));
        break;
    case 2:
        snprintf(out, STRING_MAX, "user%u.%s@mail%u.example.com", (unsigned)below(1000000),
                 shipmodes[below(7)], (unsigned)below(20));
        break;
    default:
        snprintf(out, STRING_MAX, "word%u", (unsigned)below(4000));
        break;
    }
}

int main(int argc, char **argv)
{
    uint32_t rows = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : ROWS;
    uint32_t block_rows = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : BLOCK_ROWS;
    int rounds = argc > 3 ? (int)strtol(argv[3], NULL, 10) : ROUNDS;
    if (rows == 0 || rows > ROWS || block_rows == 0 || block_rows > BLOCK_ROWS_MAX || rounds < 1) {
        fprintf(stderr, "bench_codec [rows 1..%d] [rows of a block] [rounds]\n", ROWS);
        return 2;
    }
    struct vector vectors[LINEORDER_COLUMNS];
    for (int i = 0; i < LINEORDER_COLUMNS; i++)
        vector_init(&vectors[i], lineorder[i].type);
    fill_lineorder(vectors, rows);
    print_head("table");
    measure("lineorder", vectors, LINEORDER_COLUMNS, block_rows, rounds);
    /* The same without its two strings. */
    struct vector numbers[LINEORDER_COLUMNS];
    uint32_t number_count = 0;
    for (int i = 0; i < LINEORDER_COLUMNS; i++)
        if (vectors[i].width > 0)
            numbers[number_count++] = vectors[i];
    measure("its numbers", numbers, number_count, block_rows, rounds);
    print_head("column");
    for (int i = 0; i < LINEORDER_COLUMNS; i++) {
        measure(lineorder[i].name, &vectors[i], 1, block_rows, rounds);
        vector_close(&vectors[i]);
    }

    static const char *const shapes[] = {"name-0000001", "hex 32", "e-mail", "4,000 words"};
    print_head("strings");
    for (int shape = 0; shape < 4; shape++) {
        struct vector strings;
        vector_init(&strings, (struct column_type){.kind = TYPE_STRING});
        for (uint32_t row = 0; row < rows; row++) {
            char text[STRING_MAX];
            make_string(shape, row, text);
            add_text(&strings, text);
        }
        measure(shapes[shape], &strings, 1, block_rows, rounds);
        vector_close(&strings);
    }
    return 0;
}
