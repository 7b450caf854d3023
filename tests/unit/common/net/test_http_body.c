/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of body framing at every cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "common/net/http_body.h"

/* Decodes text in pieces cut at `cut`; returns the last event, the bytes in out, what was left in
 * *left. */
static enum http_body_event decode(enum http_body_kind kind, uint64_t length, const char *text,
                                   size_t cut, struct buf *out, size_t *left)
{
    struct http_body body;
    http_body_init(&body, kind, length);
    size_t len = strlen(text);
    size_t ends[2] = {cut, len};
    size_t from = 0;
    enum http_body_event event = HTTP_BODY_MORE;
    for (size_t i = 0; i < 2 && event == HTTP_BODY_MORE; i++) {
        size_t n = ends[i] - from;
        uint8_t *piece_memory = malloc(n > 0 ? n : 1);
        memcpy(piece_memory, text + from, n);
        const uint8_t *at = piece_memory;
        struct slice piece;
        while ((event = http_body_next(&body, &at, piece_memory + n, &piece)) == HTTP_BODY_PIECE)
            buf_append(out, piece.data, piece.len);
        *left = len - from - (size_t)(at - piece_memory);
        assert_true(event != HTTP_BODY_MORE || at == piece_memory + n);
        assert_true((event == HTTP_BODY_BROKEN) == (body.why != NULL));
        free(piece_memory);
        from = ends[i];
    }
    return event;
}

static void check(enum http_body_kind kind, uint64_t length, const char *text,
                  enum http_body_event expected, const char *expected_bytes, size_t expected_left)
{
    for (size_t cut = 0; cut <= strlen(text); cut++) {
        struct buf out = BUF_INIT;
        size_t left = 0;
        enum http_body_event event = decode(kind, length, text, cut, &out, &left);
        assert_int_equal(event, expected);
        if (expected_bytes != NULL)
            assert_true(slice_equal_str(slice_of(out.data, out.len), expected_bytes));
        if (event == HTTP_BODY_DONE)
            assert_int_equal(left, expected_left);
        buf_close(&out);
    }
}

static void check_chunks(const char *text, enum http_body_event expected, const char *bytes,
                         size_t left)
{
    check(HTTP_BODY_BY_CHUNKS, 0, text, expected, bytes, left);
}

static void test_a_length_counts_and_leaves_the_rest(void **state)
{
    (void)state;
    check(HTTP_BODY_BY_LENGTH, 5, "helloGET ", HTTP_BODY_DONE, "hello", 4);
    check(HTTP_BODY_BY_LENGTH, 5, "hell", HTTP_BODY_MORE, "hell", 0);
    check(HTTP_BODY_BY_LENGTH, 0, "x", HTTP_BODY_DONE, "", 1);
}

static void test_until_end_takes_everything(void **state)
{
    (void)state;
    check(HTTP_BODY_UNTIL_END, 0, "anything\r\n", HTTP_BODY_MORE, "anything\r\n", 0);
}

static void test_chunks_are_joined(void **state)
{
    (void)state;
    check_chunks("3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\nNEXT", HTTP_BODY_DONE, "abc0123456789",
                 4);
    check_chunks("0\r\n\r\n", HTTP_BODY_DONE, "", 0);
    check_chunks("0003;name=\"v\";x\r\nabc\r\n000\r\n\r\n", HTTP_BODY_DONE, "abc", 0);
    check_chunks("1\r\na\r\n0\r\nTrailer: x\r\nOther: y\r\n\r\nZ", HTTP_BODY_DONE, "a", 1);
    check_chunks("4\r\nab\r\n1\r\n0\r\n\r\n", HTTP_BODY_BROKEN, NULL, 0);
    check_chunks("3\r\nabc\r\n", HTTP_BODY_MORE, "abc", 0);
}

static void test_malformed_chunks_are_broken(void **state)
{
    (void)state;
    check_chunks("3\r\nabcXX0\r\n\r\n", HTTP_BODY_BROKEN, "abc", 0);
    check_chunks("3\r\nabc\n0\r\n\r\n", HTTP_BODY_BROKEN, "abc", 0);
    check_chunks("3\r\nabc\rX", HTTP_BODY_BROKEN, "abc", 0);
    check_chunks("3\nabc\r\n", HTTP_BODY_BROKEN, "", 0);
    check_chunks("3\rabc\r\n", HTTP_BODY_BROKEN, "", 0);
    check_chunks("\r\n", HTTP_BODY_BROKEN, "", 0);
    check_chunks(";x\r\n", HTTP_BODY_BROKEN, "", 0);
    check_chunks("-1\r\n", HTTP_BODY_BROKEN, "", 0);
    check_chunks("0x3\r\nabc\r\n", HTTP_BODY_BROKEN, "", 0);
    check_chunks("3 \r\nabc\r\n", HTTP_BODY_BROKEN, "", 0);
    check_chunks("1000000000000000\r\n", HTTP_BODY_BROKEN, "", 0);
    check_chunks("3;\x01\r\nabc\r\n", HTTP_BODY_BROKEN, "", 0);
    check_chunks("0\r\nT: x\n\r\n", HTTP_BODY_BROKEN, "", 0);
    check_chunks("0\r\n folded\r\n\r\n", HTTP_BODY_BROKEN, "", 0);
    check_chunks("0\r\n\rX", HTTP_BODY_BROKEN, "", 0);
}

static void test_lines_and_trailers_are_bounded(void **state)
{
    (void)state;
    char *text = malloc(HTTP_TRAILER_BYTES_MAX + 100);
    struct buf out = BUF_INIT;
    size_t left;
    memset(text, 'x', HTTP_CHUNK_LINE_BYTES_MAX + 10);
    memcpy(text, "3;", 2);
    strcpy(text + HTTP_CHUNK_LINE_BYTES_MAX + 10, "\r\nabc\r\n0\r\n\r\n");
    assert_int_equal(decode(HTTP_BODY_BY_CHUNKS, 0, text, 0, &out, &left), HTTP_BODY_BROKEN);
    memset(text, 'x', HTTP_TRAILER_BYTES_MAX + 50);
    memcpy(text, "0\r\n", 3);
    strcpy(text + HTTP_TRAILER_BYTES_MAX + 50, "\r\n\r\n");
    assert_int_equal(decode(HTTP_BODY_BY_CHUNKS, 0, text, 0, &out, &left), HTTP_BODY_BROKEN);
    buf_close(&out);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_length_counts_and_leaves_the_rest),
        cmocka_unit_test(test_until_end_takes_everything),
        cmocka_unit_test(test_chunks_are_joined),
        cmocka_unit_test(test_malformed_chunks_are_broken),
        cmocka_unit_test(test_lines_and_trailers_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
