/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of RPC server and client over loopback, both on one loop; the test thread drives by
 * posting. */
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/net/rpc.h"
#include "common/net/rpc_frame.h"
#include "common/net/rpc_hello.h"
#include "common/net/rpc_wait.h"

enum { ECHO = 1, HOLD = 2, FAIL = 3, BIG_ANSWER = 4, HELD_MAX = 64, CALL_MS = 5000 };

struct fixture {
    struct loop *loop;
    pthread_t thread;
    struct rpc_server *server;
    struct rpc_client *client;
    uint16_t port;
    struct rpc_request *held[HELD_MAX];
    size_t held_count;
};

static void fixture_handle(void *ctx, struct rpc_request *request)
{
    struct fixture *fixture = ctx;
    switch (rpc_request_type(request)) {
    case ECHO:
        rpc_request_reply(request, 0, rpc_request_head(request), rpc_request_payload(request));
        return;
    case HOLD:
        assert_true(fixture->held_count < HELD_MAX);
        fixture->held[fixture->held_count++] = request;
        return;
    case FAIL:
        rpc_request_fail(request, TG_NOT_LEADER, "ask 10.0.0.2");
        return;
    default: {
        struct buf payload = BUF_INIT;
        memset(buf_extend(&payload, RPC_PAYLOAD_BYTES_MAX + 1), 7, RPC_PAYLOAD_BYTES_MAX + 1);
        rpc_request_reply_take(request, 0, NULL, &payload);
    }
    }
}

/* ---- doing things on the loop from the test's thread ---- */

struct on_loop {
    struct loop_call call;
    void (*run)(struct fixture *fixture, void *data);
    struct fixture *fixture;
    void *data;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool finished;
};

static void on_loop_run(struct loop_call *call)
{
    struct on_loop *on = call->data;
    on->run(on->fixture, on->data);
    pthread_mutex_lock(&on->lock);
    on->finished = true;
    pthread_cond_signal(&on->changed);
    pthread_mutex_unlock(&on->lock);
}

static void on_loop(struct fixture *fixture, void (*run)(struct fixture *, void *), void *data)
{
    struct on_loop on = {.run = run, .fixture = fixture, .data = data};
    on.call = (struct loop_call){.run = on_loop_run, .data = &on};
    pthread_mutex_init(&on.lock, NULL);
    pthread_cond_init(&on.changed, NULL);
    loop_post(fixture->loop, &on.call);
    pthread_mutex_lock(&on.lock);
    while (!on.finished)
        pthread_cond_wait(&on.changed, &on.lock);
    pthread_mutex_unlock(&on.lock);
    pthread_cond_destroy(&on.changed);
    pthread_mutex_destroy(&on.lock);
}

static void *fixture_run(void *data)
{
    loop_run(((struct fixture *)data)->loop);
    return NULL;
}

static void fixture_serve(struct fixture *fixture, void *data)
{
    struct rpc_server_options options = {
        .host = "127.0.0.1", .port = fixture->port, .secret = data, .connections_max = 8};
    assert_int_equal(
        rpc_server_open(fixture->loop, &options, fixture_handle, fixture, &fixture->server, NULL),
        0);
    fixture->port = rpc_server_port(fixture->server);
}

static void fixture_stop_serving(struct fixture *fixture, void *data)
{
    (void)data;
    if (fixture->server != NULL)
        rpc_server_close(fixture->server, NULL, NULL);
    fixture->server = NULL;
}

static void fixture_connect(struct fixture *fixture, void *data)
{
    char address[64];
    snprintf(address, sizeof address, "127.0.0.1:%u", fixture->port);
    assert_int_equal(rpc_client_open(fixture->loop, address, data, &fixture->client, NULL), 0);
    assert_string_equal(rpc_client_address(fixture->client), address);
}

static void fixture_disconnect(struct fixture *fixture, void *data)
{
    (void)data;
    rpc_client_close(fixture->client);
    fixture->client = NULL;
}

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_int_equal(loop_open(&fixture->loop, NULL), 0);
    pthread_create(&fixture->thread, NULL, fixture_run, fixture);
    on_loop(fixture, fixture_serve, "secret");
    on_loop(fixture, fixture_connect, "secret");
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    on_loop(fixture, fixture_disconnect, NULL);
    on_loop(fixture, fixture_stop_serving, NULL);
    loop_stop(fixture->loop);
    pthread_join(fixture->thread, NULL);
    for (size_t i = 0; i < fixture->held_count; i++)
        rpc_request_drop(fixture->held[i]);
    loop_close(fixture->loop);
    free(fixture);
    return 0;
}

struct waiting {
    struct rpc_wait wait; /* first */
    struct loop_call post;
    struct fixture *fixture;
    uint16_t type;
    struct buf head;
    struct buf payload;
    uint64_t timeout_ms;
};

static void waiting_gone(struct rpc_wait *wait)
{
    struct waiting *w = (struct waiting *)wait;
    buf_close(&w->head);
    buf_close(&w->payload);
    free(w);
}

static void waiting_start(struct loop_call *post)
{
    struct waiting *w = post->data;
    rpc_client_call_take(w->fixture->client, w->type, &w->head, &w->payload, w->timeout_ms,
                         rpc_wait_reply, &w->wait);
}

static int call(struct fixture *fixture, uint16_t type, const char *head_text, size_t payload_len,
                uint64_t timeout_ms, struct tg_errmsg *msg)
{
    struct waiting *w = calloc(1, sizeof *w);
    struct buf reply_head = BUF_INIT;
    struct buf reply_payload = BUF_INIT;
    w->post = (struct loop_call){.run = waiting_start, .data = w};
    w->fixture = fixture;
    w->type = type;
    w->timeout_ms = timeout_ms;
    buf_append_str(&w->head, head_text);
    if (payload_len > 0)
        memset(buf_extend(&w->payload, payload_len), 42, payload_len);
    int err = rpc_wait_begin(&w->wait, fixture->loop, waiting_gone, msg);
    if (err != 0)
        return err;
    loop_post(fixture->loop, &w->post);
    err = rpc_wait_end(&w->wait, NULL, &reply_head, &reply_payload, msg);
    if (err == 0) {
        assert_int_equal(reply_head.len, strlen(head_text));
        assert_memory_equal(reply_head.data, head_text, reply_head.len);
        assert_int_equal(reply_payload.len, payload_len);
        for (size_t i = 0; i < payload_len; i += 997)
            assert_int_equal(reply_payload.data[i], 42);
    }
    buf_close(&reply_head);
    buf_close(&reply_payload);
    return err;
}

static void test_a_call_is_answered_whatever_its_size(void **state)
{
    struct fixture *fixture = *state;
    static const size_t sizes[] = {0, 1, 16384, 16385, 65536, 3000000, RPC_PAYLOAD_BYTES_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        assert_int_equal(call(fixture, ECHO, "head", sizes[i], CALL_MS, NULL), 0);
    assert_int_equal(call(fixture, ECHO, "", 0, CALL_MS, NULL), 0);
}

static void test_an_error_brings_its_sentence(void **state)
{
    struct tg_errmsg msg = {0};
    assert_int_equal(call(*state, FAIL, "", 0, CALL_MS, &msg), TG_NOT_LEADER);
    assert_string_equal(msg.text, "ask 10.0.0.2");
}

static void test_what_does_not_fit_is_refused_on_either_side(void **state)
{
    struct tg_errmsg msg = {0};
    assert_int_equal(call(*state, ECHO, "", (size_t)RPC_PAYLOAD_BYTES_MAX + 1, CALL_MS, &msg),
                     TG_TOO_LARGE);
    assert_int_equal(call(*state, BIG_ANSWER, "", 0, CALL_MS, &msg), TG_TOO_LARGE);
    assert_int_equal(call(*state, ECHO, "still fine", 10, CALL_MS, &msg), 0);
}

/* ---- many at once ---- */

struct many {
    unsigned want, done, busy, wrong, inside;
    bool calling;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

static void many_done(void *data, const struct rpc_reply *reply)
{
    struct many *many = data;
    pthread_mutex_lock(&many->lock);
    if (many->calling)
        many->inside++;
    if (reply->err == TG_BUSY)
        many->busy++;
    else if (reply->err != 0 || reply->head.len != 5)
        many->wrong++;
    if (++many->done == many->want)
        pthread_cond_signal(&many->changed);
    pthread_mutex_unlock(&many->lock);
}

static void many_start(struct fixture *fixture, void *data)
{
    struct many *many = data;
    many->calling = true;
    for (unsigned i = 0; i < many->want; i++)
        rpc_client_call(fixture->client, ECHO, slice_str("abcde"), slice_of(NULL, 0), CALL_MS,
                        many_done, many);
    many->calling = false;
}

static void many_wait(struct many *many)
{
    pthread_mutex_lock(&many->lock);
    while (many->done < many->want)
        pthread_cond_wait(&many->changed, &many->lock);
    pthread_mutex_unlock(&many->lock);
}

static void test_many_calls_are_outstanding_and_too_many_are_refused(void **state)
{
    struct fixture *fixture = *state;
    struct many many = {.want = RPC_CALLS_MAX + 10,
                        .lock = PTHREAD_MUTEX_INITIALIZER,
                        .changed = PTHREAD_COND_INITIALIZER};
    on_loop(fixture, many_start, &many);
    many_wait(&many);
    assert_int_equal(many.busy, 10);
    assert_int_equal(many.wrong, 0);
    assert_int_equal(many.inside, 0);
    many.done = 0;
    many.busy = 0;
    many.want = RPC_CALLS_MAX; /* all slots came back; this time the link is up */
    on_loop(fixture, many_start, &many);
    many_wait(&many);
    assert_int_equal(many.busy + many.wrong + many.inside, 0);
}

/* ---- deadlines and lost connections ---- */

static void reply_all(struct fixture *fixture, void *data)
{
    (void)data;
    for (size_t i = 0; i < fixture->held_count; i++)
        rpc_request_reply(fixture->held[i], 0, slice_of(NULL, 0), slice_of(NULL, 0));
    fixture->held_count = 0;
}

static void test_a_deadline_ends_a_call_and_a_late_answer_is_dropped(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(call(fixture, HOLD, "", 0, 30, NULL), TG_TIMEOUT);
    on_loop(fixture, reply_all, NULL);
    assert_int_equal(call(fixture, ECHO, "x", 0, CALL_MS, NULL), 0);
}

static void test_without_a_server_the_call_was_not_sent_for_sure(void **state)
{
    struct fixture *fixture = *state;
    on_loop(fixture, fixture_stop_serving, NULL);
    assert_int_equal(call(fixture, ECHO, "", 0, 120, NULL), TG_UNREACHABLE);
}

static void *call_held(void *data)
{
    return (void *)(intptr_t)call(data, HOLD, "", 0, CALL_MS, NULL);
}

static void held_count(struct fixture *fixture, void *data)
{
    *(size_t *)data = fixture->held_count;
}

static int held_call_after(struct fixture *fixture, void (*then)(struct fixture *, void *))
{
    pthread_t thread;
    pthread_create(&thread, NULL, call_held, fixture);
    size_t count = 0;
    while (count == 0) {
        usleep(1000);
        on_loop(fixture, held_count, &count);
    }
    on_loop(fixture, then, NULL);
    void *result;
    pthread_join(thread, &result);
    return (int)(intptr_t)result;
}

static void test_a_lost_connection_ends_sent_calls_and_the_next_one_reconnects(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(held_call_after(fixture, fixture_stop_serving), TG_CLOSED);
    on_loop(fixture, reply_all, NULL); /* into a dead connection: nothing but memory goes */
    on_loop(fixture, fixture_serve, "secret");
    assert_int_equal(call(fixture, ECHO, "again", 0, CALL_MS, NULL), 0);
}

static void limit_patience(struct fixture *fixture, void *data)
{
    (void)data;
    rpc_client_set_patience(fixture->client, 60);
}

static uint64_t call_ms(struct fixture *fixture, int expected)
{
    uint64_t begun = clock_monotonic_ms(clock_system());

    assert_int_equal(call(fixture, ECHO, "", 0, CALL_MS, NULL), expected);
    return clock_monotonic_ms(clock_system()) - begun;
}

static void test_with_patience_a_node_out_of_reach_is_given_up_until_it_is_back(void **state)
{
    struct fixture *fixture = *state;
    on_loop(fixture, limit_patience, NULL);
    on_loop(fixture, fixture_stop_serving, NULL);
    assert_true(call_ms(fixture, TG_UNREACHABLE) < CALL_MS / 2);
    for (int i = 0; i < 20; i++) /* without waiting for a back-off that grows */
        assert_true(call_ms(fixture, TG_UNREACHABLE) < CALL_MS / 2);
    /* Back, it is reached by the first call: a quorum may want it. */
    on_loop(fixture, fixture_serve, "secret");
    assert_int_equal(call(fixture, ECHO, "", 0, CALL_MS, NULL), 0);
}

static void reopen_client(struct fixture *fixture, void *data)
{
    (void)data;
    fixture_disconnect(fixture, NULL);
    fixture_connect(fixture, "secret");
}

static void test_closing_the_client_cancels_its_calls(void **state)
{
    assert_int_equal(held_call_after(*state, reopen_client), TG_CANCELED);
}

static void stop_loop(struct fixture *fixture, void *data)
{
    (void)data;
    loop_stop(fixture->loop);
}

static void test_a_stopping_loop_cancels_calls_that_wait(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(held_call_after(fixture, stop_loop), TG_CANCELED);
    pthread_join(fixture->thread, NULL);
    struct tg_errmsg msg;
    assert_int_equal(call(fixture, ECHO, "", 0, CALL_MS, &msg), TG_CANCELED);
    pthread_create(&fixture->thread, NULL, fixture_run, fixture); /* for the teardown */
}

/* ---- strangers ---- */

static void bad_frames(struct fixture *fixture, void *data)
{
    *(uint64_t *)data = rpc_server_bad_frames(fixture->server);
}

static uint64_t count_bad_frames(struct fixture *fixture)
{
    uint64_t count = 0;
    on_loop(fixture, bad_frames, &count);
    return count;
}

static int dial(const struct fixture *fixture)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(fixture->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* Reads until the other side closes; true if it did (a reset counts). */
static bool read_to_end(int fd)
{
    char sink[4096];
    ssize_t n;
    while ((n = read(fd, sink, sizeof sink)) > 0)
        continue;
    return true;
}

/* A raw connection on which the hello was done properly. */
static int dial_with_hello(const struct fixture *fixture)
{
    int fd = dial(fixture);
    struct rpc_hello hello;
    unsigned char nonce[AUTH_NONCE_BYTES];
    struct buf out = BUF_INIT;
    assert_int_equal(rpc_hello_nonce(nonce), 0);
    rpc_hello_init(&hello, "rpc", "secret", false, nonce, &out);
    int err = TG_INCOMPLETE;
    while (err == TG_INCOMPLETE) {
        uint8_t bytes[256];
        ssize_t n = read(fd, bytes, sizeof bytes);
        assert_true(n > 0);
        size_t used;
        err = rpc_hello_feed(&hello, bytes, (size_t)n, &used, &out);
        assert_int_equal(write(fd, out.data, out.len), (ssize_t)out.len);
        buf_clear(&out);
    }
    assert_int_equal(err, 0);
    buf_close(&out);
    return fd;
}

static void test_a_wrong_secret_closes_the_connection_and_is_counted(void **state)
{
    struct fixture *fixture = *state;
    on_loop(fixture, fixture_disconnect, NULL);
    on_loop(fixture, fixture_connect, "guess");
    assert_int_equal(call(fixture, ECHO, "", 0, 100, NULL), TG_UNREACHABLE);
    assert_true(count_bad_frames(fixture) >= 1);
}

static void test_frames_before_the_hello_are_refused(void **state)
{
    struct fixture *fixture = *state;
    int fd = dial(fixture);
    struct rpc_frame frame = {.type = ECHO, .id = 1};
    uint8_t header[RPC_FRAME_HEADER_BYTES];
    rpc_frame_encode(&frame, header);
    assert_int_equal(write(fd, header, sizeof header), (ssize_t)sizeof header);
    assert_true(read_to_end(fd));
    close(fd);
    assert_int_equal(count_bad_frames(fixture), 1);
}

static void test_a_corrupt_frame_closes_the_connection_and_is_counted(void **state)
{
    struct fixture *fixture = *state;
    int fd = dial_with_hello(fixture);
    struct rpc_frame frame = {.type = ECHO, .id = 1, .head = slice_str("good head")};
    uint8_t header[RPC_FRAME_HEADER_BYTES];
    rpc_frame_encode(&frame, header);
    assert_int_equal(write(fd, header, sizeof header), (ssize_t)sizeof header);
    assert_int_equal(write(fd, "bad! head", 9), 9);
    assert_true(read_to_end(fd));
    close(fd);
    assert_int_equal(count_bad_frames(fixture), 1);
    assert_int_equal(call(fixture, ECHO, "others go on", 0, CALL_MS, NULL), 0);
}

static void test_every_socket_has_nodelay(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(call(fixture, ECHO, "", 0, CALL_MS, NULL), 0);
    unsigned connected = 0;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        int fd = atoi(entry->d_name);
        struct sockaddr_in peer;
        socklen_t len = sizeof peer;
        if (entry->d_name[0] == '.' || getpeername(fd, (struct sockaddr *)&peer, &len) != 0 ||
            peer.sin_family != AF_INET)
            continue;
        int value = 0;
        len = sizeof value;
        assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &len), 0);
        assert_int_equal(value != 0, 1);
        connected++;
    }
    closedir(dir);
    assert_int_equal(connected, 2); /* both ends of the one connection */
}

static void test_more_connections_than_allowed_are_closed(void **state)
{
    struct fixture *fixture = *state;
    int fds[9];
    for (size_t i = 0; i < 8; i++)
        fds[i] = dial_with_hello(fixture);
    fds[8] = dial(fixture);
    char byte;
    assert_true(read(fds[8], &byte, 1) <= 0);
    for (size_t i = 0; i < 9; i++)
        close(fds[i]);
}

int main(void)
{
#define RPC_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        RPC_TEST(test_a_call_is_answered_whatever_its_size),
        RPC_TEST(test_an_error_brings_its_sentence),
        RPC_TEST(test_what_does_not_fit_is_refused_on_either_side),
        RPC_TEST(test_many_calls_are_outstanding_and_too_many_are_refused),
        RPC_TEST(test_a_deadline_ends_a_call_and_a_late_answer_is_dropped),
        RPC_TEST(test_without_a_server_the_call_was_not_sent_for_sure),
        RPC_TEST(test_a_lost_connection_ends_sent_calls_and_the_next_one_reconnects),
        RPC_TEST(test_with_patience_a_node_out_of_reach_is_given_up_until_it_is_back),
        RPC_TEST(test_closing_the_client_cancels_its_calls),
        RPC_TEST(test_a_stopping_loop_cancels_calls_that_wait),
        RPC_TEST(test_a_wrong_secret_closes_the_connection_and_is_counted),
        RPC_TEST(test_frames_before_the_hello_are_refused),
        RPC_TEST(test_a_corrupt_frame_closes_the_connection_and_is_counted),
        RPC_TEST(test_every_socket_has_nodelay),
        RPC_TEST(test_more_connections_than_allowed_are_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
