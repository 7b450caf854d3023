/* SPDX-License-Identifier: Apache-2.0 */
/* raft's links: only servers that know the secret and say who they are get through, and none waits
 * for Nagle. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <uv.h>

#include "common/net/loop.h"
#include "coordinator/consensus/raft_transport.h"

enum { TURNS_MAX = 10000 };

struct side {
    struct raft_transport *transport;
    struct raft_transport_server servers[2];
    uv_stream_t *stream; /* accepted or connected */
    uint64_t from;
    char address[ADDRESS_BYTES]; /* of who was accepted */
    int status;
    bool done;
    bool closed;
};

struct fixture {
    struct loop *loop;
    struct side a, b; /* ids 1 and 2; a listens, b connects */
    struct raft_uv_connect request;
};

static void on_accept(struct raft_uv_transport *uv, raft_id id, const char *address,
                      struct uv_stream_s *stream)
{
    struct side *side = uv->data;
    snprintf(side->address, sizeof side->address, "%s", address);
    side->stream = stream;
    side->from = id;
    side->done = true;
}

static void on_connect(struct raft_uv_connect *request, struct uv_stream_s *stream, int status)
{
    struct side *side = request->data;
    side->stream = stream;
    side->status = status;
    side->done = true;
}

static void on_closed(struct raft_uv_transport *uv)
{
    struct side *side = uv->data;
    side->closed = true;
}

static void open_side(struct fixture *fixture, struct side *side, raft_id id, const char *secret)
{
    struct raft_transport_options options = {.secret = secret,
                                             .listen_address = "127.0.0.1:0",
                                             .own_address = id == 1 ? "one:1" : "two:2"};
    struct tg_errmsg msg;
    memset(side, 0, sizeof *side);
    side->servers[0].id = 1;
    side->servers[1].id = 2;
    assert_int_equal(raft_transport_open(fixture->loop, &options, &side->transport, &msg), 0);
    struct raft_uv_transport *uv = raft_transport_uv(side->transport);
    assert_int_equal(uv->init(uv, id, "unused"), 0);
    uv->data = side;
    assert_int_equal(uv->listen(uv, on_accept), 0);
}

static void open_both(struct fixture *fixture, const char *secret_a, const char *secret_b)
{
    memset(fixture, 0, sizeof *fixture);
    assert_int_equal(loop_open(&fixture->loop, NULL), 0);
    open_side(fixture, &fixture->a, 1, secret_a);
    open_side(fixture, &fixture->b, 2, secret_b);
    for (int i = 0; i < 2; i++) {
        struct side *side = i == 0 ? &fixture->a : &fixture->b;
        snprintf(side->servers[0].address, ADDRESS_BYTES, "127.0.0.1:%u",
                 raft_transport_port(fixture->a.transport));
        snprintf(side->servers[1].address, ADDRESS_BYTES, "127.0.0.1:%u",
                 raft_transport_port(fixture->b.transport));
        raft_transport_set_servers(side->transport, side->servers, 2, 3);
    }
}

static void turn(struct fixture *fixture)
{
    uv_run(loop_uv(fixture->loop), UV_RUN_ONCE);
}

static void connect_b_to(struct fixture *fixture, raft_id id, const char *address)
{
    struct raft_uv_transport *uv = raft_transport_uv(fixture->b.transport);
    uv_update_time(loop_uv(fixture->loop));
    fixture->request.data = &fixture->b;
    fixture->b.done = false;
    assert_int_equal(uv->connect(uv, &fixture->request, id, address, on_connect), 0);
}

static void run_until_connected(struct fixture *fixture)
{
    for (int i = 0; i < TURNS_MAX && !fixture->b.done; i++)
        turn(fixture);
    assert_true(fixture->b.done);
}

static void free_stream(uv_handle_t *handle)
{
    raft_free(handle);
}

static void close_both(struct fixture *fixture)
{
    struct side *sides[2] = {&fixture->a, &fixture->b};
    for (int i = 0; i < 2; i++) {
        if (sides[i]->stream != NULL)
            uv_close((uv_handle_t *)sides[i]->stream, free_stream);
        struct raft_uv_transport *uv = raft_transport_uv(sides[i]->transport);
        uv->close(uv, on_closed);
    }
    for (int i = 0; i < TURNS_MAX && !(fixture->a.closed && fixture->b.closed); i++)
        turn(fixture);
    assert_true(fixture->a.closed && fixture->b.closed);
    raft_transport_close(fixture->a.transport);
    raft_transport_close(fixture->b.transport);
    loop_close(fixture->loop);
}

static int no_delay(const uv_stream_t *stream)
{
    uv_os_fd_t fd;
    int value = 0;
    socklen_t len = sizeof value;
    assert_int_equal(uv_fileno((const uv_handle_t *)stream, &fd), 0);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &len), 0);
    return value;
}

static void test_a_proven_link_is_handed_over_on_both_sides_without_delay(void **state)
{
    struct fixture fixture;
    (void)state;
    open_both(&fixture, "secret", "secret");
    connect_b_to(&fixture, 1, "ignored: the configured address counts");
    run_until_connected(&fixture);
    while (!fixture.a.done)
        turn(&fixture);
    assert_int_equal(fixture.b.status, 0);
    assert_non_null(fixture.b.stream);
    assert_int_equal(fixture.a.from, 2);
    assert_int_equal(no_delay(fixture.a.stream), 1);
    assert_int_equal(no_delay(fixture.b.stream), 1);
    assert_int_equal(raft_transport_stats(fixture.a.transport)->accepted, 1);
    close_both(&fixture);
}

static char received[16];

static void give_space(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)handle;
    (void)suggested;
    *buf = uv_buf_init(received, sizeof received);
}

static bool got_bytes;

static void take_bytes(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    (void)stream;
    (void)buf;
    assert_int_equal(n, 5);
    got_bytes = true;
}

static void test_the_first_bytes_of_raft_arrive_whole(void **state)
{
    struct fixture fixture;
    (void)state;
    open_both(&fixture, "secret", "secret");
    connect_b_to(&fixture, 1, "");
    run_until_connected(&fixture);
    uv_buf_t bytes = uv_buf_init((char *)(uintptr_t) "hello", 5);
    assert_int_equal(uv_try_write(fixture.b.stream, &bytes, 1), 5);
    while (!fixture.a.done)
        turn(&fixture);
    got_bytes = false;
    assert_int_equal(uv_read_start(fixture.a.stream, give_space, take_bytes), 0);
    for (int i = 0; i < TURNS_MAX && !got_bytes; i++)
        turn(&fixture);
    assert_true(got_bytes);
    assert_memory_equal(received, "hello", 5);
    close_both(&fixture);
}

static void test_another_secret_is_refused_and_counted(void **state)
{
    struct fixture fixture;
    (void)state;
    open_both(&fixture, "secret", "another");
    connect_b_to(&fixture, 1, "");
    run_until_connected(&fixture);
    assert_int_equal(fixture.b.status, RAFT_NOCONNECTION);
    assert_null(fixture.b.stream);
    assert_false(fixture.a.done);
    for (int i = 0; i < TURNS_MAX && raft_transport_stats(fixture.a.transport)->refused_proof == 0;
         i++)
        turn(&fixture);
    assert_int_equal(raft_transport_stats(fixture.a.transport)->refused_proof, 1);
    assert_int_equal(raft_transport_stats(fixture.b.transport)->connect_failed, 1);
    close_both(&fixture);
}

static void test_a_link_meant_for_another_server_is_refused(void **state)
{
    struct fixture fixture;
    (void)state;
    open_both(&fixture, "secret", "secret");
    /* b believes that server 3 lives where server 1 does. */
    connect_b_to(&fixture, 3, fixture.b.servers[0].address);
    run_until_connected(&fixture);
    assert_int_equal(fixture.b.status, RAFT_NOCONNECTION);
    assert_false(fixture.a.done);
    for (int i = 0;
         i < TURNS_MAX && raft_transport_stats(fixture.a.transport)->refused_identity == 0; i++)
        turn(&fixture);
    assert_int_equal(raft_transport_stats(fixture.a.transport)->refused_identity, 1);
    close_both(&fixture);
}

static void test_a_member_that_is_none_any_more_is_refused(void **state)
{
    struct fixture fixture;
    (void)state;
    open_both(&fixture, "secret", "secret");
    raft_transport_set_servers(fixture.a.transport, fixture.a.servers, 1, 3);
    connect_b_to(&fixture, 1, fixture.b.servers[0].address);
    run_until_connected(&fixture);
    assert_int_equal(fixture.b.status, RAFT_NOCONNECTION);
    assert_false(fixture.a.done);
    for (int i = 0;
         i < TURNS_MAX && raft_transport_stats(fixture.a.transport)->refused_identity == 0; i++)
        turn(&fixture);
    assert_int_equal(raft_transport_stats(fixture.a.transport)->refused_identity, 1);
    close_both(&fixture);
}

static void test_a_newer_member_is_believed_and_says_where_it_is(void **state)
{
    struct fixture fixture;
    (void)state;
    open_both(&fixture, "secret", "secret");
    raft_transport_set_servers(fixture.a.transport, fixture.a.servers, 1, 2);
    connect_b_to(&fixture, 1, fixture.b.servers[0].address);
    run_until_connected(&fixture);
    assert_int_equal(fixture.b.status, 0);
    while (!fixture.a.done)
        turn(&fixture);
    assert_int_equal(fixture.a.from, 2);
    assert_string_equal(fixture.a.address, "two:2");
    close_both(&fixture);
}

static int dial(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void test_garbage_closes_the_connection_and_is_counted(void **state)
{
    struct fixture fixture;
    (void)state;
    open_both(&fixture, "secret", "secret");
    int fd = dial(raft_transport_port(fixture.a.transport));
    const char *garbage = "GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n";
    assert_true(send(fd, garbage, strlen(garbage), MSG_NOSIGNAL) > 0);
    for (int i = 0;
         i < TURNS_MAX && raft_transport_stats(fixture.a.transport)->refused_garbage == 0; i++)
        turn(&fixture);
    assert_int_equal(raft_transport_stats(fixture.a.transport)->refused_garbage, 1);
    /* What we are told ends with the connection. */
    char bytes[256];
    ssize_t n;
    while ((n = recv(fd, bytes, sizeof bytes, 0)) > 0)
        ;
    assert_true(n <= 0);
    close(fd);
    close_both(&fixture);
}

static void test_a_server_that_says_nothing_is_given_up(void **state)
{
    struct fixture fixture;
    (void)state;
    open_both(&fixture, "secret", "secret");
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    char text[ADDRESS_BYTES];
    snprintf(text, sizeof text, "127.0.0.1:%u", ntohs(address.sin_port));
    uint64_t before = uv_hrtime() / 1000000;
    connect_b_to(&fixture, 3, text);
    run_until_connected(&fixture);
    uint64_t took = uv_hrtime() / 1000000 - before;
    assert_int_equal(fixture.b.status, RAFT_NOCONNECTION);
    assert_true(took >= RAFT_TRANSPORT_CONNECT_MS_MAX - 200);
    assert_true(took < 3 * RAFT_TRANSPORT_CONNECT_MS_MAX);
    close(fd);
    close_both(&fixture);
}

static void test_closing_ends_a_connect_that_is_under_way(void **state)
{
    struct fixture fixture;
    (void)state;
    open_both(&fixture, "secret", "secret");
    connect_b_to(&fixture, 1, "");
    close_both(&fixture);
    assert_true(fixture.b.done);
    assert_int_equal(fixture.b.status, RAFT_CANCELED);
}

static void test_too_many_strangers_are_turned_away(void **state)
{
    struct fixture fixture;
    int fds[RAFT_TRANSPORT_PENDING_MAX + 5];
    (void)state;
    open_both(&fixture, "secret", "secret");
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        fds[i] = dial(raft_transport_port(fixture.a.transport));
    for (int i = 0; i < TURNS_MAX && raft_transport_stats(fixture.a.transport)->refused_crowd < 5;
         i++)
        turn(&fixture);
    assert_int_equal(raft_transport_stats(fixture.a.transport)->refused_crowd, 5);
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        close(fds[i]);
    close_both(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_proven_link_is_handed_over_on_both_sides_without_delay),
        cmocka_unit_test(test_the_first_bytes_of_raft_arrive_whole),
        cmocka_unit_test(test_another_secret_is_refused_and_counted),
        cmocka_unit_test(test_a_link_meant_for_another_server_is_refused),
        cmocka_unit_test(test_a_member_that_is_none_any_more_is_refused),
        cmocka_unit_test(test_a_newer_member_is_believed_and_says_where_it_is),
        cmocka_unit_test(test_garbage_closes_the_connection_and_is_counted),
        cmocka_unit_test(test_a_server_that_says_nothing_is_given_up),
        cmocka_unit_test(test_closing_ends_a_connect_that_is_under_way),
        cmocka_unit_test(test_too_many_strangers_are_turned_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
