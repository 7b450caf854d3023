/* SPDX-License-Identifier: Apache-2.0 */
/* Compressed bodies: read whole or refused. */
#include "participant/ingest/decompressor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

struct bytes {
    const uint8_t *data;
    size_t len;
    size_t at;
    size_t piece;
};

static int read_bytes(struct load_source *source, uint8_t *out, size_t cap, uint64_t deadline_ms,
                      size_t *n, struct tg_errmsg *msg)
{
    struct bytes *b = source->ctx;
    (void)deadline_ms;
    (void)msg;
    *n = b->len - b->at;
    *n = *n < cap ? *n : cap;
    *n = *n < b->piece ? *n : b->piece;
    memcpy(out, b->data + b->at, *n);
    b->at += *n;
    source->received += *n;
    return 0;
}

/* The decompressed text, or the error in *err. */
static char *run(enum load_compression kind, const void *data, size_t len, size_t piece, int *err)
{
    struct bytes bytes = {.data = data, .len = len, .piece = piece};
    struct load_source source = {.read = read_bytes, .ctx = &bytes};
    struct decompressor *d;
    struct tg_errmsg msg = {{0}};
    char *out = calloc(1, 1 << 20);
    size_t at = 0;
    size_t n;

    assert_int_equal(decompressor_open(kind, &source, &d), 0);
    struct load_source *plain = decompressor_source(d);
    do {
        *err = plain->read(plain, (uint8_t *)out + at, 1000, UINT64_MAX, &n, &msg);
        at += n;
    } while (*err == 0 && n > 0);
    if (*err == 0)
        assert_int_equal(plain->received, len);
    else
        assert_non_null(strstr(msg.text, "decompression failed"));
    decompressor_close(d);
    return out;
}

static size_t compress_to(const char *text, int window, uint8_t *out, size_t cap)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)text;
    z.avail_in = (uInt)strlen(text);
    z.next_out = out;
    z.avail_out = (uInt)cap;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return cap - z.avail_out;
}

static char *make_text(void)
{
    char *text = calloc(1, 100001);
    for (size_t i = 0; i < 100000; i++)
        text[i] = (char)('a' + (i * i / 7) % 26);
    return text;
}

static void test_gz_of_several_members_is_read_in_any_pieces(void **state)
{
    static uint8_t packed[200000];
    char *text = make_text();
    int err;
    (void)state;
    size_t first = compress_to("1\tone\n", 15 + 16, packed, sizeof packed);
    size_t len = first + compress_to(text, 15 + 16, packed + first, sizeof packed - first);
    for (size_t piece = 1; piece < 100000; piece = piece * 3 + 1) {
        char *out = run(LOAD_GZ, packed, len, piece, &err);
        assert_int_equal(err, 0);
        assert_memory_equal(out, "1\tone\n", 6);
        assert_string_equal(out + 6, text);
        free(out);
    }
    free(text);
}

static void test_a_body_that_is_cut_off_or_damaged_is_refused(void **state)
{
    static uint8_t packed[200000];
    char *text = make_text();
    int err;
    (void)state;
    size_t len = compress_to(text, 15 + 16, packed, sizeof packed);
    for (size_t cut = 1; cut < len; cut += 997) {
        free(run(LOAD_GZ, packed, cut, 4096, &err));
        assert_int_equal(err, TG_CORRUPT);
    }
    packed[len / 2] ^= 0x55;
    free(run(LOAD_GZ, packed, len, 4096, &err));
    assert_int_equal(err, TG_CORRUPT);
    free(run(LOAD_GZ, "1\tplain\n", 8, 4096, &err));
    assert_int_equal(err, TG_CORRUPT);
    free(run(LOAD_BZ2, "1\tplain\n", 8, 4096, &err));
    assert_int_equal(err, TG_CORRUPT);
    free(run(LOAD_LZ4, "1\tplain\n", 8, 4096, &err));
    assert_int_equal(err, TG_CORRUPT);
    free(text);
}

static void test_raw_deflate_is_read_and_nothing_may_follow_it(void **state)
{
    uint8_t packed[200];
    int err;
    (void)state;
    size_t len = compress_to("1\tone\n", -15, packed, sizeof packed / 2);
    char *out = run(LOAD_DEFLATE, packed, len, 3, &err);
    assert_int_equal(err, 0);
    assert_string_equal(out, "1\tone\n");
    free(out);
    /* Not even what would be another body, wherever the first one's end is cut off. */
    memcpy(packed + len, packed, len);
    for (size_t piece = 1; piece <= 2 * len; piece++) {
        free(run(LOAD_DEFLATE, packed, 2 * len, piece, &err));
        assert_int_equal(err, TG_CORRUPT);
    }
}

static void test_bz2_and_lz4_frames_are_read_whole_or_refused(void **state)
{
    /* "1\tone\n" as bzip2 and lz4 write it */
    static const uint8_t BZ2[] = {0x42, 0x5a, 0x68, 0x39, 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, 0x48,
                                  0xa2, 0x8f, 0x96, 0x00, 0x00, 0x01, 0x49, 0x00, 0x00, 0x30, 0x20,
                                  0x00, 0x02, 0x01, 0xa0, 0x00, 0x21, 0x80, 0x0c, 0x01, 0xc9, 0x76,
                                  0xe2, 0xee, 0x48, 0xa7, 0x0a, 0x12, 0x09, 0x14, 0x51, 0xf2, 0xc0};
    static const uint8_t LZ4[] = {0x04, 0x22, 0x4d, 0x18, 0x64, 0x40, 0xa7, 0x06, 0x00,
                                  0x00, 0x80, 0x31, 0x09, 0x6f, 0x6e, 0x65, 0x0a, 0x00,
                                  0x00, 0x00, 0x00, 0x19, 0xa2, 0x3a, 0xfd};
    static const struct {
        enum load_compression kind;
        const uint8_t *data;
        size_t len;
    } CASES[] = {{LOAD_BZ2, BZ2, sizeof BZ2}, {LOAD_LZ4, LZ4, sizeof LZ4}};
    int err;
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char *out = run(CASES[i].kind, CASES[i].data, CASES[i].len, 7, &err);
        assert_int_equal(err, 0);
        assert_string_equal(out, "1\tone\n");
        free(out);
        for (size_t cut = 1; cut < CASES[i].len; cut++) {
            free(run(CASES[i].kind, CASES[i].data, cut, 7, &err));
            if (err != TG_CORRUPT)
                fail_msg("kind %zu cut at %zu: %d", i, cut, err);
        }
    }
}

static void test_an_empty_body_is_empty(void **state)
{
    static const enum load_compression KINDS[] = {LOAD_GZ, LOAD_DEFLATE, LOAD_BZ2, LOAD_LZ4};
    int err;
    (void)state;
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++) {
        char *out = run(KINDS[i], "", 0, 100, &err);
        assert_int_equal(err, 0);
        assert_string_equal(out, "");
        free(out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gz_of_several_members_is_read_in_any_pieces),
        cmocka_unit_test(test_a_body_that_is_cut_off_or_damaged_is_refused),
        cmocka_unit_test(test_raw_deflate_is_read_and_nothing_may_follow_it),
        cmocka_unit_test(test_bz2_and_lz4_frames_are_read_whole_or_refused),
        cmocka_unit_test(test_an_empty_body_is_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
