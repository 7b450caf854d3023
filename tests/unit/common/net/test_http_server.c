/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the server as a whole: refusals, limits of connections and descriptors, its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/net/http_server.h"
#include "tests/lib/http_fixture.h"

#define H "HTTP/1.1\r\nHost: h\r\n"

static void test_bad_and_oversize_heads_are_told_so(void **state)
{
    static const struct {
        const char *head;
        const char *status;
    } cases[] = {
        {"GET / HTTP/1.1\nHost: h\n\n", "HTTP/1.1 400"},
        {"GET /echo HTTP/3.0\r\nHost: h\r\n\r\n", "HTTP/1.1 505"},
        {"\x16\x03\x01\x02", "HTTP/1.1 400"}, /* TLS on the wrong port */
        {"PUT /echo " H "Transfer-Encoding: gzip\r\n\r\n", "HTTP/1.1 501"},
        {"GET /nothing " H "Connection: close\r\n\r\n", "HTTP/1.1 404"},
        {"DELETE /echo " H "Connection: close\r\n\r\n", "HTTP/1.1 405"},
        {"GET /api/%zz/t/_scan " H "Connection: close\r\n\r\n", "HTTP/1.1 400"},
        {"GET /api//t/_scan " H "Connection: close\r\n\r\n", "HTTP/1.1 404"},
        {"GET /api/d%2Fx/t%20y/_scan?q " H "Connection: close\r\n\r\n", "HTTP/1.1 200"},
    };
    struct buf in = BUF_INIT;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int fd = http_fixture_dial(*state);
        http_fixture_put_text(fd, cases[i].head);
        buf_clear(&in);
        const char *text = http_fixture_get_until(fd, &in, NULL);
        assert_true(strncmp(text, cases[i].status, strlen(cases[i].status)) == 0);
        close(fd);
    }
    assert_non_null(strstr(buf_cstr(&in), "2 d/x|t y 127.0.0.1"));
    char *large = malloc(MIB);
    memset(large, 'x', MIB);
    int fd = http_fixture_dial(*state);
    http_fixture_put_text(fd, "GET / HTTP/1.1\r\nHost: h\r\nX: ");
    http_fixture_put(fd, large, MIB);
    buf_clear(&in);
    assert_true(strncmp(http_fixture_get_until(fd, &in, NULL), "HTTP/1.1 431", 12) == 0);
    close(fd);
    fd = http_fixture_dial(*state);
    http_fixture_put_text(fd, "GET /");
    http_fixture_put(fd, large, MIB);
    buf_clear(&in);
    assert_true(strncmp(http_fixture_get_until(fd, &in, NULL), "HTTP/1.1 414", 12) == 0);
    close(fd);
    free(large);
    buf_close(&in);
}

static void test_hundreds_of_stalled_uploads_do_not_hinder_others(void **state)
{
    struct http_fixture *fixture = *state;
    enum { STALLED = 300 };
    int fds[STALLED];
    for (size_t i = 0; i < STALLED; i++) {
        fds[i] = http_fixture_dial(fixture);
        http_fixture_put_text(fds[i], "PUT /echo " H "Content-Length: 100\r\n\r\n1\n");
    }
    http_fixture_expect(&fixture->requests, STALLED);
    int fd = http_fixture_dial(fixture);
    for (int i = 0; i < 100; i++) {
        http_fixture_put_text(fd, "PUT /echo " H "Content-Length: 5\r\n\r\nhello");
        http_fixture_expect_answer(fd, "HTTP/1.1 200", "hello");
    }
    close(fd);
    for (size_t i = 0; i < STALLED; i++)
        close(fds[i]);
    http_fixture_expect(&fixture->aborts, STALLED);
}

static void test_connections_over_the_limit_get_503(void **state)
{
    struct http_fixture *fixture = *state;
    int fds[CONNECTIONS_MAX];
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
        fds[i] = http_fixture_dial(fixture);
        http_fixture_put_text(fds[i], "PUT /echo " H "Content-Length: 2\r\n\r\na");
    }
    http_fixture_expect(&fixture->requests, CONNECTIONS_MAX);
    int fd = http_fixture_dial(fixture);
    http_fixture_put_text(fd, "GET /echo " H "\r\n");
    http_fixture_expect_answer(fd, "HTTP/1.1 503", "too many connections\n");
    close(fd);
    http_fixture_put_text(fds[7], "b");
    http_fixture_expect_answer(fds[7], "HTTP/1.1 200", "ab");
    for (size_t i = 0; i < CONNECTIONS_MAX; i++)
        close(fds[i]);
}

static void test_no_descriptors_left_is_survived(void **state)
{
    struct http_fixture *fixture = *state;
    int fd = http_fixture_dial(fixture);
    http_fixture_put_text(fd, "GET /echo " H "\r\n");
    http_fixture_expect_answer(fd, "HTTP/1.1 200", "");
    int spare = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct rlimit before;
    getrlimit(RLIMIT_NOFILE, &before);
    struct rlimit tight = before;
    tight.rlim_cur = (rlim_t)spare + 1;
    setrlimit(RLIMIT_NOFILE, &tight);
    /* the client's socket exists already; the server has no descriptor for its side */
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(fixture->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval limit = {.tv_sec = 10};
    setsockopt(spare, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    assert_int_equal(connect(spare, (struct sockaddr *)&address, sizeof address), 0);
    assert_true(http_fixture_is_closed(spare));
    http_fixture_put_text(fd, "GET /echo " H "\r\n");
    http_fixture_expect_answer(fd, "HTTP/1.1 200", "");
    setrlimit(RLIMIT_NOFILE, &before);
    close(spare);
    close(fd);
    fd = http_fixture_dial(fixture);
    http_fixture_put_text(fd, "GET /echo " H "\r\n");
    http_fixture_expect_answer(fd, "HTTP/1.1 200", "");
    close(fd);
}

static void test_every_socket_of_the_server_has_nodelay(void **state)
{
    struct http_fixture *fixture = *state;
    int fd = http_fixture_dial(fixture);
    http_fixture_put_text(fd, "GET /echo " H "\r\n");
    http_fixture_expect_answer(fd, "HTTP/1.1 200", "");
    unsigned found = 0;
    DIR *dir = opendir("/proc/self/fd");
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        struct sockaddr_in own;
        struct sockaddr_in peer;
        socklen_t own_len = sizeof own;
        socklen_t peer_len = sizeof peer;
        int other = atoi(entry->d_name);
        if (entry->d_name[0] == '.' || getsockname(other, (struct sockaddr *)&own, &own_len) != 0 ||
            getpeername(other, (struct sockaddr *)&peer, &peer_len) != 0 ||
            own.sin_family != AF_INET || ntohs(own.sin_port) != fixture->port)
            continue;
        int value = 0;
        socklen_t len = sizeof value;
        getsockopt(other, IPPROTO_TCP, TCP_NODELAY, &value, &len);
        assert_int_equal(value != 0, 1);
        found++;
    }
    closedir(dir);
    assert_int_equal(found, 1);
    close(fd);
}

static void test_closing_lets_requests_finish_and_cuts_the_rest(void **state)
{
    struct http_fixture *fixture = *state;
    int idle = http_fixture_dial(fixture);
    http_fixture_put_text(idle, "GET /echo " H "\r\n");
    http_fixture_expect_answer(idle, "HTTP/1.1 200", "");
    int late = http_fixture_dial(fixture);
    http_fixture_put_text(late, "PUT /late " H "Content-Length: 0\r\n\r\n");
    int stuck = http_fixture_dial(fixture);
    http_fixture_put_text(stuck, "PUT /echo " H "Content-Length: 9\r\n\r\n");
    http_fixture_expect(&fixture->requests, 3);
    struct loop_call call;
    http_fixture_stop(fixture, &call);
    assert_true(http_fixture_is_closed(idle));
    http_fixture_expect_answer(late, "HTTP/1.1 200", "late");
    assert_true(http_fixture_is_closed(late));
    close(late);
    assert_true(http_fixture_is_closed(stuck));
    pthread_join(fixture->thread, NULL);
    assert_true(fixture->server_gone);
    assert_int_equal(fixture->closes, 3);
    close(idle);
    close(stuck);
    loop_close(fixture->loop);
    free(fixture);
    http_fixture_setup(state); /* for the teardown */
}

int main(void)
{
#define HTTP_TEST(name) \
    cmocka_unit_test_setup_teardown(name, http_fixture_setup, http_fixture_teardown)
    const struct CMUnitTest tests[] = {
        HTTP_TEST(test_bad_and_oversize_heads_are_told_so),
        HTTP_TEST(test_hundreds_of_stalled_uploads_do_not_hinder_others),
        HTTP_TEST(test_connections_over_the_limit_get_503),
        HTTP_TEST(test_no_descriptors_left_is_survived),
        HTTP_TEST(test_every_socket_of_the_server_has_nodelay),
        HTTP_TEST(test_closing_lets_requests_finish_and_cuts_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
