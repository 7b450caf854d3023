/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP for tests: byte for byte on a socket where that matters, and a small client that follows
 * redirects and cuts bodies into chunks wherever the test wants. All addresses are 127.0.0.1. */
#ifndef TG_TESTS_LIB_TEST_HTTP_H
#define TG_TESTS_LIB_TEST_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TEST_HTTP_TIMEOUT_MS = 30000 };

/* How an exchange ended. */
enum test_http_end {
    TEST_HTTP_ANSWERED = 0,
    TEST_HTTP_CLOSED = -1, /* orderly, without a whole answer */
    TEST_HTTP_RESET = -2,
    TEST_HTTP_SILENT = -3 /* nothing within the time */
};

struct test_answer {
    int status;
    char *head; /* status line and headers, zero-terminated; owned */
    char *body; /* decoded, zero-terminated; owned */
    size_t body_len;
    bool continued; /* a 100 came before it */
};

/* ---- sockets ---- */

/* Connects; ends the test if nobody listens. -1 only if `may_fail`. */
int test_socket_open(uint16_t port, bool may_fail);
void test_socket_close(int fd);
/* All bytes; false if the other side hung up. */
bool test_socket_send(int fd, const void *bytes, size_t len);
bool test_socket_send_text(int fd, const char *text);
/* The next whole answer that is no 100; close it either way. The connection is not used further by
 * this. */
enum test_http_end test_socket_answer(int fd, unsigned timeout_ms, struct test_answer *answer);
/* Waits for "100 Continue": true if it came, false if something else did, which a later
 * test_socket_answer does not see (answer then holds it). */
bool test_socket_continue(int fd, unsigned timeout_ms, struct test_answer *answer);
/* Whether the other side closes within the time; bytes that come are dropped. */
bool test_socket_ends(int fd, unsigned timeout_ms);

/* ---- calls ---- */

struct test_call {
    uint16_t port;
    const char *method; /* NULL: GET */
    const char *target;
    const char *headers; /* lines with \r\n, or NULL; credentials of root are added */
    bool anonymous;      /* no credentials */
    const void *body;    /* NULL: none, with Content-Length: 0 unless GET */
    size_t len;
    bool expect;        /* Expect: 100-continue, and waits for it before the body */
    bool follow;        /* a 307, to its Location */
    const size_t *cuts; /* positions in the body where chunks end; NULL: Content-Length */
    size_t cut_count;
    unsigned pause_ms;   /* between chunks */
    unsigned timeout_ms; /* for the answer; 0: TEST_HTTP_TIMEOUT_MS */
};

enum test_http_end test_http_try(const struct test_call *call, struct test_answer *answer);
/* Ends the test unless it was answered. */
void test_http(const struct test_call *call, struct test_answer *answer);
void test_answer_close(struct test_answer *answer);
/* The value of a header, "" if there is none; cut to cap. */
const char *test_answer_header(const struct test_answer *answer, const char *name, char *out,
                               size_t cap);

#endif
