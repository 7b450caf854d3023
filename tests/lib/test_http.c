/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP for tests. */
#include "tests/lib/test_http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/buf.h"
#include "common/base/check.h"

#define ROOT "Authorization: Basic cm9vdDo=\r\n"

enum { PIECE_BYTES = 64 * 1024, LOCATION_BYTES = 2048 };

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void pause_for(unsigned ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

    if (ms > 0)
        nanosleep(&time, NULL);
}

/* ---- sockets ---- */

int test_socket_open(uint16_t port, bool may_fail)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;

    TG_CHECK(fd >= 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    TG_CHECK(may_fail);
    close(fd);
    return -1;
}

void test_socket_close(int fd)
{
    if (fd >= 0)
        close(fd);
}

bool test_socket_send(int fd, const void *bytes, size_t len)
{
    const char *at = bytes;

    while (len > 0) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

bool test_socket_send_text(int fd, const char *text)
{
    return test_socket_send(fd, text, strlen(text));
}

/* Appends what comes: > 0, 0 at the end, or a test_http_end. */
static int receive(int fd, uint64_t until_ms, struct buf *in)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    uint64_t now = now_ms();
    int rc = now >= until_ms ? 0 : poll(&poll_fd, 1, (int)(until_ms - now));

    if (rc <= 0)
        return TEST_HTTP_SILENT;
    uint8_t *at = buf_extend(in, PIECE_BYTES);
    TG_CHECK(at != NULL);
    ssize_t n = recv(fd, at, PIECE_BYTES, 0);
    in->len -= PIECE_BYTES - (size_t)(n > 0 ? n : 0);
    if (n < 0)
        return TEST_HTTP_RESET;
    return n > 0 ? 1 : 0;
}

static int as_end(int rc)
{
    return rc == 0 ? TEST_HTTP_CLOSED : rc;
}

static const char *find_header(const char *head, const char *name)
{
    size_t len = strlen(name);

    for (const char *line = strstr(head, "\r\n"); line != NULL; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, len) == 0 && line[len] == ':')
            return line + len + 1 + strspn(line + len + 1, " ");
    }
    return NULL;
}

const char *test_answer_header(const struct test_answer *answer, const char *name, char *out,
                               size_t cap)
{
    const char *value = find_header(answer->head, name);

    snprintf(out, cap, "%.*s", value != NULL ? (int)strcspn(value, "\r\n") : 0,
             value != NULL ? value : "");
    return out;
}

/* Takes a head out of `in`: 0 or a test_http_end. */
static int read_head(int fd, uint64_t until_ms, struct buf *in, struct buf *head)
{
    void *end;

    while ((end = in->len > 0 ? memmem(in->data, in->len, "\r\n\r\n", 4) : NULL) == NULL) {
        int rc = receive(fd, until_ms, in);

        if (rc <= 0)
            return as_end(rc);
    }
    size_t len = (size_t)((uint8_t *)end - in->data) + 4;
    buf_clear(head);
    buf_append(head, in->data, len);
    buf_consume(in, len);
    TG_CHECK(buf_cstr(head) != NULL);
    return 0;
}

static int read_length(int fd, uint64_t until_ms, struct buf *in, size_t len, struct buf *body)
{
    while (in->len < len) {
        int rc = receive(fd, until_ms, in);

        if (rc <= 0)
            return as_end(rc);
    }
    buf_append(body, in->data, len);
    buf_consume(in, len);
    return 0;
}

static int read_chunks(int fd, uint64_t until_ms, struct buf *in, struct buf *body)
{
    for (;;) {
        uint8_t *end = in->len > 0 ? memmem(in->data, in->len, "\r\n", 2) : NULL;
        struct buf line_end = BUF_INIT;
        int rc;

        if (end == NULL) {
            rc = receive(fd, until_ms, in);
            if (rc <= 0)
                return as_end(rc);
            continue;
        }
        size_t len = strtoul((const char *)in->data, NULL, 16);
        buf_consume(in, (size_t)(end - in->data) + 2);
        rc = read_length(fd, until_ms, in, len, body);
        if (rc == 0)
            rc = read_length(fd, until_ms, in, 2, &line_end);
        buf_close(&line_end);
        if (rc != 0 || len == 0)
            return rc;
    }
}

static int read_to_end(int fd, uint64_t until_ms, struct buf *in, struct buf *body)
{
    int rc;

    while ((rc = receive(fd, until_ms, in)) > 0)
        ;
    buf_append(body, in->data, in->len);
    return rc;
}

static int read_body(int fd, uint64_t until_ms, const char *head, struct buf *in, struct buf *body)
{
    const char *length = find_header(head, "content-length");

    if (find_header(head, "transfer-encoding") != NULL)
        return read_chunks(fd, until_ms, in, body);
    if (length != NULL)
        return read_length(fd, until_ms, in, strtoul(length, NULL, 10), body);
    return read_to_end(fd, until_ms, in, body);
}

static int read_answer(int fd, unsigned timeout_ms, bool stop_at_100, struct test_answer *answer)
{
    uint64_t until_ms = now_ms() + timeout_ms;
    struct buf in = BUF_INIT;
    struct buf head = BUF_INIT;
    struct buf body = BUF_INIT;
    size_t len;
    int rc;

    memset(answer, 0, sizeof *answer);
    do {
        rc = read_head(fd, until_ms, &in, &head);
        if (rc == 0)
            answer->status = atoi(buf_cstr(&head) + strlen("HTTP/1.1 "));
        answer->continued = answer->continued || (rc == 0 && answer->status == 100);
    } while (rc == 0 && answer->status == 100 && !stop_at_100);
    if (rc == 0 && answer->status != 100)
        rc = read_body(fd, until_ms, buf_cstr(&head), &in, &body);
    TG_CHECK(buf_cstr(&head) != NULL && buf_cstr(&body) != NULL);
    answer->body_len = body.len;
    answer->head = (char *)buf_take(&head, &len);
    answer->body = (char *)buf_take(&body, &len);
    buf_close(&in);
    return rc;
}

enum test_http_end test_socket_answer(int fd, unsigned timeout_ms, struct test_answer *answer)
{
    return (enum test_http_end)read_answer(fd, timeout_ms, false, answer);
}

bool test_socket_continue(int fd, unsigned timeout_ms, struct test_answer *answer)
{
    return read_answer(fd, timeout_ms, true, answer) == 0 && answer->status == 100;
}

bool test_socket_ends(int fd, unsigned timeout_ms)
{
    uint64_t until_ms = now_ms() + timeout_ms;
    struct buf in = BUF_INIT;
    int rc;

    do {
        buf_clear(&in);
        rc = receive(fd, until_ms, &in);
    } while (rc > 0);
    buf_close(&in);
    return rc == 0 || rc == TEST_HTTP_RESET;
}

/* ---- calls ---- */

static void print_head(const struct test_call *call, const char *target, struct buf *out)
{
    const char *method = call->method != NULL ? call->method : "GET";

    buf_printf(out, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n%s%s%s", method, target, call->port,
               call->anonymous ? "" : ROOT, call->expect ? "Expect: 100-continue\r\n" : "",
               call->headers != NULL ? call->headers : "");
    if (call->cuts != NULL)
        buf_append_str(out, "Transfer-Encoding: chunked\r\n");
    else if (call->body != NULL || strcmp(method, "GET") != 0)
        buf_printf(out, "Content-Length: %zu\r\n", call->len);
    buf_append_str(out, "\r\n");
}

static bool send_chunk(int fd, const void *bytes, size_t len)
{
    struct buf chunk = BUF_INIT;

    buf_printf(&chunk, "%zx\r\n", len);
    buf_append(&chunk, bytes, len);
    buf_append_str(&chunk, "\r\n");
    bool good = test_socket_send(fd, chunk.data, chunk.len);
    buf_close(&chunk);
    return good;
}

/* False once the other side does not listen any more: its answer may be there nevertheless. */
static bool send_body(int fd, const struct test_call *call)
{
    const char *body = call->body;
    size_t at = 0;

    if (call->cuts == NULL)
        return call->body == NULL || test_socket_send(fd, body, call->len);
    for (size_t i = 0; i <= call->cut_count; i++) {
        size_t end = i < call->cut_count ? call->cuts[i] : call->len;

        if (end > at && !send_chunk(fd, body + at, end - at))
            return false;
        if (i < call->cut_count)
            pause_for(call->pause_ms);
        at = end;
    }
    return send_chunk(fd, "", 0);
}

static enum test_http_end exchange(const struct test_call *call, const char *target,
                                   struct test_answer *answer)
{
    unsigned timeout_ms = call->timeout_ms > 0 ? call->timeout_ms : TEST_HTTP_TIMEOUT_MS;
    struct buf head = BUF_INIT;
    int fd = test_socket_open(call->port, true);

    memset(answer, 0, sizeof *answer);
    if (fd < 0)
        return TEST_HTTP_CLOSED;
    print_head(call, target, &head);
    test_socket_send(fd, head.data, head.len);
    buf_close(&head);
    bool waits = call->expect && (call->cuts != NULL || call->len > 0);
    if (waits && !test_socket_continue(fd, timeout_ms, answer)) {
        close(fd);
        return answer->status > 0 ? TEST_HTTP_ANSWERED : TEST_HTTP_CLOSED;
    }
    test_answer_close(answer);
    send_body(fd, call);
    enum test_http_end end = test_socket_answer(fd, timeout_ms, answer);
    answer->continued = answer->continued || waits;
    close(fd);
    return end;
}

enum test_http_end test_http_try(const struct test_call *call, struct test_answer *answer)
{
    char location[LOCATION_BYTES];
    struct test_call there = *call;
    enum test_http_end end = exchange(call, call->target, answer);

    if (end != TEST_HTTP_ANSWERED || answer->status != 307 || !call->follow)
        return end;
    test_answer_header(answer, "location", location, sizeof location);
    test_answer_close(answer);
    const char *authority = strstr(location, "//");
    const char *path = authority != NULL ? strchr(authority + 2, '/') : NULL;
    TG_CHECK(path != NULL);
    const char *colon = memrchr(location, ':', (size_t)(path - location));
    TG_CHECK(colon != NULL);
    there.port = (uint16_t)atoi(colon + 1);
    return exchange(&there, path, answer);
}

void test_http(const struct test_call *call, struct test_answer *answer)
{
    enum test_http_end end = test_http_try(call, answer);

    if (end != TEST_HTTP_ANSWERED)
        fail_msg("%s %s: ended with %d", call->method != NULL ? call->method : "GET", call->target,
                 (int)end);
}

void test_answer_close(struct test_answer *answer)
{
    free(answer->head);
    free(answer->body);
    memset(answer, 0, sizeof *answer);
}
