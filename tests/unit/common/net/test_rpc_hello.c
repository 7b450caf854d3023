/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the hello between nodes, without sockets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "common/base/err.h"
#include "common/net/rpc_hello.h"

struct pair {
    struct rpc_hello server, client;
    struct buf to_client, to_server;
    int server_err, client_err;
};

static void pair_init(struct pair *pair, const char *service, const char *server_secret,
                      const char *client_secret)
{
    unsigned char nonce_a[AUTH_NONCE_BYTES];
    unsigned char nonce_b[AUTH_NONCE_BYTES];
    memset(pair, 0, sizeof *pair);
    assert_int_equal(rpc_hello_nonce(nonce_a), 0);
    assert_int_equal(rpc_hello_nonce(nonce_b), 0);
    rpc_hello_init(&pair->server, "rpc", server_secret, true, nonce_a, &pair->to_client);
    rpc_hello_init(&pair->client, service, client_secret, false, nonce_b, &pair->to_server);
    pair->server_err = TG_INCOMPLETE;
    pair->client_err = TG_INCOMPLETE;
}

static void pair_close(struct pair *pair)
{
    buf_close(&pair->to_client);
    buf_close(&pair->to_server);
}

/* Moves bytes in pieces of `piece` until nobody has anything to say. */
static void pair_talk(struct pair *pair, size_t piece)
{
    bool moved = true;
    while (moved) {
        moved = false;
        struct buf *in[2] = {&pair->to_client, &pair->to_server};
        struct rpc_hello *hello[2] = {&pair->client, &pair->server};
        int *err[2] = {&pair->client_err, &pair->server_err};
        for (size_t i = 0; i < 2; i++) {
            size_t n = in[i]->len < piece ? in[i]->len : piece;
            if (n == 0 || *err[i] != TG_INCOMPLETE)
                continue;
            size_t used;
            *err[i] = rpc_hello_feed(hello[i], in[i]->data, n, &used, in[1 - i]);
            assert_true(used <= n);
            buf_consume(in[i], used);
            moved = true;
        }
    }
}

static void test_both_sides_agree_at_every_cut(void **state)
{
    (void)state;
    for (size_t piece = 1; piece <= RPC_HELLO_MESSAGE_BYTES_MAX; piece++) {
        struct pair pair;
        pair_init(&pair, "rpc", "open sesame", "open sesame");
        pair_talk(&pair, piece);
        assert_int_equal(pair.server_err, 0);
        assert_int_equal(pair.client_err, 0);
        assert_int_equal(pair.to_client.len, 0);
        assert_int_equal(pair.to_server.len, 0);
        pair_close(&pair);
    }
}

static void test_bytes_after_the_hello_are_left_alone(void **state)
{
    (void)state;
    struct pair pair;
    pair_init(&pair, "rpc", "s", "s");
    size_t used;
    assert_int_equal(rpc_hello_feed(&pair.client, pair.to_client.data, pair.to_client.len, &used,
                                    &pair.to_server),
                     TG_INCOMPLETE);
    size_t hello_len = pair.to_server.len;
    buf_append_str(&pair.to_server, "frame");
    assert_int_equal(rpc_hello_feed(&pair.server, pair.to_server.data, pair.to_server.len, &used,
                                    &pair.to_client),
                     0);
    assert_int_equal(used, hello_len);
    pair_close(&pair);
}

static void test_a_wrong_secret_is_denied_and_learns_nothing(void **state)
{
    (void)state;
    struct pair pair;
    pair_init(&pair, "rpc", "right", "wrong");
    size_t greeting = pair.to_client.len;
    pair_talk(&pair, 1000);
    assert_int_equal(pair.server_err, TG_DENIED);
    assert_int_equal(pair.client_err, TG_INCOMPLETE);
    assert_true(greeting > 0);
    assert_int_equal(pair.to_client.len, 0); /* no proof went out */
    pair_close(&pair);
}

static void test_a_link_for_another_service_is_denied(void **state)
{
    (void)state;
    struct pair pair;
    pair_init(&pair, "raft", "same", "same");
    pair_talk(&pair, 1000);
    assert_int_equal(pair.server_err, TG_DENIED);
    pair_close(&pair);
}

static void test_a_server_that_does_not_know_the_secret_is_refused(void **state)
{
    (void)state;
    struct pair pair;
    pair_init(&pair, "rpc", "same", "same");
    size_t used;
    rpc_hello_feed(&pair.client, pair.to_client.data, pair.to_client.len, &used, &pair.to_server);
    buf_clear(&pair.to_client);
    assert_int_equal(rpc_hello_feed(&pair.server, pair.to_server.data, pair.to_server.len, &used,
                                    &pair.to_client),
                     0);
    pair.to_client.data[pair.to_client.len - 1] ^= 1;
    assert_int_equal(rpc_hello_feed(&pair.client, pair.to_client.data, pair.to_client.len, &used,
                                    &pair.to_server),
                     TG_DENIED);
    pair_close(&pair);
}

static void test_strangers_and_other_versions_are_refused_early(void **state)
{
    (void)state;
    struct pair pair;
    size_t used;
    pair_init(&pair, "rpc", "s", "s");
    assert_int_equal(
        rpc_hello_feed(&pair.server, (const uint8_t *)"GET / HT", 8, &used, &pair.to_client),
        TG_CORRUPT);
    pair_close(&pair);
    pair_init(&pair, "rpc", "s", "s");
    assert_int_equal(
        rpc_hello_feed(&pair.server, (const uint8_t *)"TGRH\2\0\0\0", 8, &used, &pair.to_client),
        TG_UNSUPPORTED);
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_sides_agree_at_every_cut),
        cmocka_unit_test(test_bytes_after_the_hello_are_left_alone),
        cmocka_unit_test(test_a_wrong_secret_is_denied_and_learns_nothing),
        cmocka_unit_test(test_a_link_for_another_service_is_denied),
        cmocka_unit_test(test_a_server_that_does_not_know_the_secret_is_refused),
        cmocka_unit_test(test_strangers_and_other_versions_are_refused_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
