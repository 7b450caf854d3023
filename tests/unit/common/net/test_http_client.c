/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the blocking client: against our own server, and against a scripted one that says what
 * it is told to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/net/http_client.h"
#include "common/net/http_server.h"
#include "common/net/loop.h"

/* ---- our own server, which echoes ---- */

struct echo {
    struct loop *loop;
    pthread_t thread;
    struct http_server *server;
    char address[32];
};

struct echo_job {
    struct http_exchange *exchange;
    struct buf body;
};

static void echo_close(void *data)
{
    struct echo_job *job = data;
    buf_close(&job->body);
    free(job);
}

static void echo_on_body(void *data, const uint8_t *bytes, size_t len)
{
    buf_append(&((struct echo_job *)data)->body, bytes, len);
}

static void echo_on_end(void *data)
{
    struct echo_job *job = data;
    http_exchange_stream_begin(job->exchange, 200, NULL, "X-Kind: echo\r\n", NULL, NULL);
    http_exchange_stream_write(job->exchange, job->body.data, job->body.len);
    http_exchange_stream_end(job->exchange);
}

static void echo_on_abort(void *data, int err, const char *why)
{
    (void)data;
    (void)err;
    (void)why;
}

static void echo_request(void *ctx, struct http_exchange *exchange)
{
    (void)ctx;
    if (strcmp(http_exchange_request(exchange)->path, "/redirect") == 0) {
        http_exchange_respond(exchange, 307, NULL, "Location: http://x/\r\n", NULL, 0);
        return;
    }
    struct echo_job *job = calloc(1, sizeof *job);
    job->exchange = exchange;
    http_exchange_on_close(exchange, echo_close, job);
    struct http_body_sink sink = {
        .on_body = echo_on_body, .on_end = echo_on_end, .on_abort = echo_on_abort, .data = job};
    http_exchange_read_body(exchange, &sink);
}

static void *echo_run(void *data)
{
    loop_run(((struct echo *)data)->loop);
    return NULL;
}

static int setup(void **state)
{
    struct echo *echo = calloc(1, sizeof *echo);
    struct http_server_options options = {.host = "127.0.0.1",
                                          .connections_max = 10,
                                          .head_timeout_ms = 5000,
                                          .idle_timeout_ms = 300,
                                          .drain_timeout_ms = 1000};
    struct http_server_handlers handlers = {.on_request = echo_request};
    assert_int_equal(loop_open(&echo->loop, NULL), 0);
    assert_int_equal(http_server_open(echo->loop, &options, &handlers, &echo->server, NULL), 0);
    snprintf(echo->address, sizeof echo->address, "127.0.0.1:%u", http_server_port(echo->server));
    pthread_create(&echo->thread, NULL, echo_run, echo);
    *state = echo;
    return 0;
}

static void echo_closed(void *data)
{
    loop_stop(((struct echo *)data)->loop);
}

static void echo_stop(struct loop_call *call)
{
    struct echo *echo = call->data;
    http_server_close(echo->server, 100, echo_closed, echo);
}

static int teardown(void **state)
{
    struct echo *echo = *state;
    struct loop_call call = {.run = echo_stop, .data = echo};
    loop_post(echo->loop, &call);
    pthread_join(echo->thread, NULL);
    loop_close(echo->loop);
    free(echo);
    return 0;
}

static struct http_client *open_client(const char *address)
{
    struct http_client *client;
    assert_int_equal(http_client_open(address, 5000, &client, NULL), 0);
    return client;
}

static void test_requests_follow_each_other_on_one_connection(void **state)
{
    struct echo *echo = *state;
    struct http_client *client = open_client(echo->address);
    struct http_reply reply;
    size_t len = 3 * 1024 * 1024;
    char *body = malloc(len);
    for (size_t i = 0; i < len; i++)
        body[i] = (char)(i * 7);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(http_client_request(client, "PUT", "/x", NULL, body, len, &reply, NULL),
                         0);
        assert_int_equal(reply.status, 200);
        assert_int_equal(reply.body.len, len);
        assert_memory_equal(reply.body.data, body, len);
        char value[16];
        assert_int_equal(http_reply_header(&reply, "x-kind", value, sizeof value), 0);
        assert_string_equal(value, "echo");
        assert_int_equal(http_reply_header(&reply, "X-None", value, sizeof value), TG_NOT_FOUND);
        assert_int_equal(http_reply_header(&reply, "x-kind", value, 4), TG_TOO_LARGE);
        http_reply_close(&reply);
        assert_int_equal(http_client_request(client, "GET", "/", "A: b\r\n", NULL, 0, &reply, NULL),
                         0);
        assert_int_equal(reply.body.len, 0);
        http_reply_close(&reply);
        assert_int_equal(http_client_request(client, "HEAD", "/", NULL, NULL, 0, &reply, NULL), 0);
        assert_int_equal(reply.status, 200);
        http_reply_close(&reply);
    }
    free(body);
    http_client_close(client);
}

static void test_a_kept_connection_that_died_is_opened_again(void **state)
{
    struct echo *echo = *state;
    struct http_client *client = open_client(echo->address);
    struct http_reply reply;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(http_client_request(client, "POST", "/", NULL, "abc", 3, &reply, NULL), 0);
        assert_int_equal(reply.body.len, 3);
        http_reply_close(&reply);
        usleep(700000); /* longer than the server keeps idle connections */
    }
    http_client_close(client);
}

struct producer {
    size_t left;
    long result_at_end;
};

static long produce(void *data, void *bytes, size_t cap)
{
    struct producer *producer = data;
    size_t n = producer->left < cap ? producer->left : cap;
    if (n > 100000)
        n = 100000;
    memset(bytes, 'p', n);
    producer->left -= n;
    return n > 0 ? (long)n : producer->result_at_end;
}

static void test_a_produced_body_is_sent_in_chunks(void **state)
{
    struct echo *echo = *state;
    struct http_client *client = open_client(echo->address);
    struct http_reply reply;
    for (int i = 0; i < 2; i++) {
        struct producer producer = {.left = 1234567};
        assert_int_equal(http_client_request_chunked(client, "PUT", "/",
                                                     i == 0 ? NULL : "Expect: 100-continue\r\n",
                                                     produce, &producer, &reply, NULL),
                         0);
        assert_int_equal(reply.body.len, 1234567);
        http_reply_close(&reply);
    }
    struct producer broken = {.left = 10, .result_at_end = -1};
    assert_int_equal(
        http_client_request_chunked(client, "PUT", "/", NULL, produce, &broken, &reply, NULL),
        TG_CANCELED);
    http_reply_close(&reply);
    assert_int_equal(http_client_request(client, "PUT", "/", NULL, "x", 1, &reply, NULL), 0);
    http_reply_close(&reply);
    http_client_close(client);
}

static void test_an_early_answer_is_seen_and_saves_the_body(void **state)
{
    struct echo *echo = *state;
    struct http_client *client = open_client(echo->address);
    struct http_reply reply;
    struct producer producer = {.left = 100000000};
    assert_int_equal(http_client_request_chunked(client, "PUT", "/redirect",
                                                 "Expect: 100-continue\r\n", produce, &producer,
                                                 &reply, NULL),
                     0);
    assert_int_equal(reply.status, 307);
    assert_int_equal(producer.left, 100000000);
    http_reply_close(&reply);
    /* without Expect a part of it is sent before the answer is there */
    assert_int_equal(http_client_request_chunked(client, "PUT", "/redirect", NULL, produce,
                                                 &producer, &reply, NULL),
                     0);
    assert_int_equal(reply.status, 307);
    assert_true(producer.left > 0);
    http_reply_close(&reply);
    char *body = calloc(1, 4 * 1024 * 1024);
    assert_int_equal(
        http_client_request(client, "PUT", "/redirect", NULL, body, 4 * 1024 * 1024, &reply, NULL),
        0);
    assert_int_equal(reply.status, 307);
    http_reply_close(&reply);
    free(body);
    http_client_close(client);
}

/* ---- a scripted server: accepts once, reads a head, says its line, closes ---- */

struct script {
    int listener;
    pthread_t thread;
    const char *says;
};

static void *script_run(void *data)
{
    struct script *script = data;
    int fd = accept(script->listener, NULL, NULL);
    char bytes[4096];
    ssize_t n = recv(fd, bytes, sizeof bytes, 0);
    if (n > 0)
        send(fd, script->says, strlen(script->says), MSG_NOSIGNAL);
    close(fd);
    return NULL;
}

static int ask_script(const char *says, struct http_reply *reply)
{
    struct script script = {.says = says};
    script.listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    assert_int_equal(bind(script.listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(script.listener, 1), 0);
    getsockname(script.listener, (struct sockaddr *)&address, &len);
    pthread_create(&script.thread, NULL, script_run, &script);
    char text[32];
    snprintf(text, sizeof text, "127.0.0.1:%u", ntohs(address.sin_port));
    struct http_client *client = open_client(text);
    struct tg_errmsg msg = {0};
    int err = http_client_request(client, "GET", "/", NULL, NULL, 0, reply, &msg);
    assert_true((err != 0) == (msg.text[0] != '\0'));
    http_client_close(client);
    pthread_join(script.thread, NULL);
    close(script.listener);
    return err;
}

static int ask(const char *says, const char *body)
{
    struct http_reply reply;
    int err = ask_script(says, &reply);
    if (err == 0)
        assert_true(slice_equal_str(slice_of(reply.body.data, reply.body.len), body));
    http_reply_close(&reply);
    return err;
}

static void test_all_ends_of_an_answer_are_known(void **state)
{
    (void)state;
    assert_int_equal(ask("HTTP/1.1 200 OK\r\n\r\nuntil the end", "until the end"), 0);
    assert_int_equal(ask("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", "ab"), 0);
    assert_int_equal(
        ask("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", "x"), 0);
    assert_int_equal(
        ask("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", "a"), 0);
    assert_int_equal(ask("HTTP/1.1 204 No Content\r\n\r\n", ""), 0);
}

static void test_what_is_not_a_whole_answer_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(ask("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", ""), TG_CLOSED);
    assert_int_equal(ask("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n", ""),
                     TG_CLOSED);
    assert_int_equal(ask("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", ""),
                     TG_CORRUPT);
    assert_int_equal(ask("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", ""), TG_CORRUPT);
    assert_int_equal(ask("SSH-2.0-OpenSSH_9.2\r\n\r\n", ""), TG_CORRUPT);
    assert_int_equal(ask("HTTP/1.1 200", ""), TG_CLOSED);
    assert_int_equal(ask("", ""), TG_CLOSED);
}

static void test_addresses_are_checked(void **state)
{
    (void)state;
    struct http_client *client = NULL;
    struct http_reply reply;
    assert_int_equal(http_client_open("127.0.0.1", 100, &client, NULL), TG_INVALID);
    assert_int_equal(http_client_open("127.0.0.1:0", 100, &client, NULL), TG_INVALID);
    assert_int_equal(http_client_open("127.0.0.1:65536", 100, &client, NULL), TG_INVALID);
    assert_int_equal(http_client_open(":80", 100, &client, NULL), TG_INVALID);
    assert_int_equal(http_client_open("127.0.0.1:80x", 100, &client, NULL), TG_INVALID);
    client = open_client("127.0.0.1:1");
    assert_int_equal(http_client_request(client, "GET", "/", NULL, NULL, 0, &reply, NULL),
                     TG_UNREACHABLE);
    http_reply_close(&reply);
    http_client_close(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_requests_follow_each_other_on_one_connection, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_kept_connection_that_died_is_opened_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_produced_body_is_sent_in_chunks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_early_answer_is_seen_and_saves_the_body, setup,
                                        teardown),
        cmocka_unit_test(test_all_ends_of_an_answer_are_known),
        cmocka_unit_test(test_what_is_not_a_whole_answer_is_an_error),
        cmocka_unit_test(test_addresses_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
