/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of request heads: what is accepted, what is refused and how, at every cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/net/http_head.h"

struct parsed {
    struct http_head head;
    char *text;
    int status; /* 0: accepted */
    const char *why;
};

/* Scans in two pieces cut at `cut`, then parses. */
static void parse_bytes(struct parsed *parsed, const char *bytes, size_t len, size_t cut)
{
    memset(parsed, 0, sizeof *parsed);
    struct http_head_scan scan = {0};
    size_t end = 0;
    /* each piece in memory of its own size, so that looking too far is noticed */
    uint8_t *first = malloc(cut > 0 ? cut : 1);
    memcpy(first, bytes, cut);
    int err = http_head_scan(&scan, first, cut, &end);
    free(first);
    uint8_t *whole = malloc(len);
    memcpy(whole, bytes, len);
    if (err == TG_INCOMPLETE)
        err = http_head_scan(&scan, whole, len, &end);
    if (err == TG_INCOMPLETE) {
        parsed->status = -1;
    } else if (err != 0) {
        parsed->status = scan.status;
        parsed->why = scan.why;
    } else {
        parsed->text = malloc(http_head_text_bytes(end));
        memcpy(parsed->text, whole, end);
        err = http_head_parse(&parsed->head, parsed->text, end, &parsed->status, &parsed->why);
        assert_int_equal(err == 0, parsed->status == 0);
    }
    free(whole);
}

static void parse(struct parsed *parsed, const char *text)
{
    parse_bytes(parsed, text, strlen(text), 0);
}

static int status_of(const char *text)
{
    struct parsed parsed;
    parse(&parsed, text);
    free(parsed.text);
    return parsed.status;
}

#define PUT_HEAD                                                                             \
    "PUT /api/db/t/_stream_load?a=1&b=%20 HTTP/1.1\r\nHost: here:8030\r\nLabel:  x y \t\r\n" \
    "Empty:\r\nExpect: 100-continue\r\nContent-Length: 12\r\n\r\n"

static void test_a_head_is_the_same_wherever_it_is_cut(void **state)
{
    (void)state;
    for (size_t cut = 0; cut <= strlen(PUT_HEAD); cut++) {
        struct parsed parsed;
        parse_bytes(&parsed, PUT_HEAD "body", strlen(PUT_HEAD) + 4, cut);
        assert_int_equal(parsed.status, 0);
        struct http_request *request = &parsed.head.request;
        assert_string_equal(request->method, "PUT");
        assert_string_equal(request->target, "/api/db/t/_stream_load?a=1&b=%20");
        assert_string_equal(request->path, "/api/db/t/_stream_load");
        assert_string_equal(request->query, "a=1&b=%20");
        assert_int_equal(request->header_count, 5);
        assert_string_equal(request->headers[1].name, "label");
        assert_string_equal(http_request_header(request, "label"), "x y");
        assert_string_equal(request->headers[2].value, "");
        assert_null(http_request_header(request, "empty"));
        assert_null(http_request_header(request, "absent"));
        assert_int_equal(request->framing, HTTP_BODY_LENGTH);
        assert_true(request->content_length == 12);
        assert_true(request->has_expect);
        assert_true(request->expect_continue);
        assert_true(request->keep_alive);
        free(parsed.text);
    }
}

#define G "GET / HTTP/1.1\r\nHost: h\r\n"
#define P "PUT / HTTP/1.1\r\nHost: h\r\n"

static void test_smuggling_attempts_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        G "X:\rContent-Length: 5\r\n\r\n",    /* lone CR ends a header */
        G "\r\rX: 1\r\n\r\n",                 /* CR CR */
        "GET / HTTP/1.1\r\nHost: h\r\n\rX",   /* CR X ends the head */
        "GET / HTTP/1.1\nHost: h\n\n",        /* bare LF */
        G "A: b\nContent-Length: 3\r\n\r\n",  /* bare LF inside */
        G "A: b\r\n folded\r\n\r\n",          /* folded line */
        G "A: b\r\n\tfolded\r\n\r\n",         /* folded line */
        " GET / HTTP/1.1\r\nHost: h\r\n\r\n", /* blank before the line */
        G "A : b\r\n\r\n",                    /* blank before the colon */
        G ": chunked\r\n\r\n",                /* no name */
        G "A\x01: b\r\n\r\n",                 /* control character */
        G "A: b\x7f\r\n\r\n",                 /* control character */
        G "Content-Length: 5\r\nContent-Length: 5\r\n\r\n",
        G "Content-Length: +5\r\n\r\n",
        G "Content-Length: 5,5\r\n\r\n",
        G "Content-Length: 0x5\r\n\r\n",
        G "Content-Length: -1\r\n\r\n",
        G "Content-Length: 99999999999999999999\r\n\r\n",
        G "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        G "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
        G "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
        G "Host: again\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET x HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n",
        "BREW / HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET / HTTP/1.1 \r\nHost: h\r\n\r\n",
        "GET / \r\nHost: h\r\n\r\n",
        "GET /\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int status = status_of(bad[i]);
        if (status < 400)
            print_message("accepted: %s\n", bad[i]);
        assert_true(status >= 400);
    }
    struct parsed parsed;
    parse_bytes(&parsed, G "A: \0\r\n\r\n", strlen(G) + 8, 0);
    assert_int_equal(parsed.status, 400);
}

static void test_versions_and_encodings_have_their_own_status(void **state)
{
    (void)state;
    assert_int_equal(status_of("GET / HTTP/2.0\r\nHost: h\r\n\r\n"), 505);
    assert_int_equal(status_of("GET / HTTP/0.9\r\nHost: h\r\n\r\n"), 505);
    assert_int_equal(status_of(P "Transfer-Encoding: gzip, chunked\r\n\r\n"), 501);
    assert_int_equal(status_of(P "Transfer-Encoding: gzip\r\n\r\n"), 501);
    assert_int_equal(status_of(P "Transfer-Encoding: xchunked\r\n\r\n"), 501);
}

static void test_an_upload_with_both_framings_reaches_the_handler(void **state)
{
    (void)state;
    struct parsed parsed;
    parse(&parsed, P "Content-Length: 5\r\nTransfer-Encoding: Chunked\r\n\r\n");
    assert_int_equal(parsed.status, 0);
    assert_int_equal(parsed.head.request.framing, HTTP_BODY_BOTH);
    free(parsed.text);
    parse(&parsed, P "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n");
    assert_int_equal(parsed.head.request.framing, HTTP_BODY_BOTH);
    free(parsed.text);
    parse(&parsed, P "Transfer-Encoding: chunked\r\n\r\n");
    assert_int_equal(parsed.head.request.framing, HTTP_BODY_CHUNKED);
    free(parsed.text);
    parse(&parsed, P "\r\n");
    assert_int_equal(parsed.head.request.framing, HTTP_BODY_NONE);
    free(parsed.text);
}

static void test_limits_have_their_statuses(void **state)
{
    (void)state;
    char *text = malloc(2 * HTTP_HEAD_BYTES_MAX);
    memset(text, 'x', 2 * HTTP_HEAD_BYTES_MAX);
    memcpy(text, "GET /", 5);
    text[2 * HTTP_HEAD_BYTES_MAX - 1] = '\0';
    assert_int_equal(status_of(text), 414);

    sprintf(text, "GET /%0*d HTTP/1.1\r\nHost: h\r\n\r\n", HTTP_TARGET_BYTES_MAX - 1, 7);
    assert_int_equal(status_of(text), 0);
    sprintf(text, "GET /%0*d HTTP/1.1\r\nHost: h\r\n\r\n", HTTP_TARGET_BYTES_MAX, 7);
    assert_int_equal(status_of(text), 414);

    sprintf(text, G "X: %0*d\r\n\r\n", HTTP_HEAD_BYTES_MAX, 7);
    assert_int_equal(status_of(text), 431);
    size_t fits = HTTP_HEAD_BYTES_MAX - strlen(G) - 7;
    sprintf(text, G "X: %0*d\r\n\r\n", (int)fits, 7);
    assert_int_equal(strlen(text), HTTP_HEAD_BYTES_MAX);
    assert_int_equal(status_of(text), 0);

    strcpy(text, G);
    for (int i = 1; i < HTTP_HEADERS_MAX; i++)
        sprintf(text + strlen(text), "h%d: v\r\n", i);
    size_t len = strlen(text);
    strcpy(text + len, "\r\n");
    assert_int_equal(status_of(text), 0);
    strcpy(text + len, "more: v\r\n\r\n");
    assert_int_equal(status_of(text), 431);
    free(text);
}

static bool keeps_alive(const char *version, const char *connection)
{
    char text[256];
    snprintf(text, sizeof text, "GET / %s\r\nHost: h\r\n%s\r\n", version, connection);
    struct parsed parsed;
    parse(&parsed, text);
    assert_int_equal(parsed.status, 0);
    free(parsed.text);
    return parsed.head.request.keep_alive;
}

static void test_keep_alive_follows_version_and_connection(void **state)
{
    (void)state;
    assert_true(keeps_alive("HTTP/1.1", ""));
    assert_false(keeps_alive("HTTP/1.1", "Connection: close\r\n"));
    assert_false(keeps_alive("HTTP/1.1", "Connection: upgrade, Close\r\n"));
    assert_false(keeps_alive("HTTP/1.0", ""));
    assert_true(keeps_alive("HTTP/1.0", "Connection: Keep-Alive\r\n"));
    assert_true(keeps_alive("HTTP/1.1", "Connection: closely\r\n"));
}

static void test_targets_may_be_absolute_and_values_may_be_utf8(void **state)
{
    (void)state;
    struct parsed parsed;
    parse(&parsed,
          "GET http://user@h:80/p%C3%A4th?q HTTP/1.1\r\nHost: h\r\nV: \xc3\xa4 \xff\r\n\r\n");
    assert_int_equal(parsed.status, 0);
    assert_string_equal(parsed.head.request.target, "/p%C3%A4th?q");
    assert_string_equal(parsed.head.request.path, "/p%C3%A4th");
    assert_string_equal(http_request_header(&parsed.head.request, "v"), "\xc3\xa4 \xff");
    free(parsed.text);
    assert_int_equal(status_of("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"), 0);
}

static void test_upgrade_and_connect_do_not_confuse_the_parser(void **state)
{
    (void)state;
    assert_int_equal(status_of(G "Connection: upgrade\r\nUpgrade: h2c\r\n\r\n"), 0);
    assert_true(status_of("CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n") >= 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_head_is_the_same_wherever_it_is_cut),
        cmocka_unit_test(test_smuggling_attempts_are_refused),
        cmocka_unit_test(test_versions_and_encodings_have_their_own_status),
        cmocka_unit_test(test_an_upload_with_both_framings_reaches_the_handler),
        cmocka_unit_test(test_limits_have_their_statuses),
        cmocka_unit_test(test_keep_alive_follows_version_and_connection),
        cmocka_unit_test(test_targets_may_be_absolute_and_values_may_be_utf8),
        cmocka_unit_test(test_upgrade_and_connect_do_not_confuse_the_parser),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
