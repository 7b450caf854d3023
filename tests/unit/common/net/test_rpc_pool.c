/* SPDX-License-Identifier: Apache-2.0 */
/* One connection a node, on a loop that is run by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/net/rpc_pool.h"

struct fixture {
    struct loop *loop;
    struct rpc_pool pool;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_int_equal(loop_open(&f->loop, NULL), 0);
    assert_int_equal(rpc_pool_init(&f->pool, f->loop, "secret", NULL), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    rpc_pool_close(&f->pool);
    loop_close(f->loop);
    free(f);
    return 0;
}

static void test_a_node_keeps_its_connection_until_it_moves(void **state)
{
    struct fixture *f = *state;
    struct rpc_client *first = rpc_pool_client(&f->pool, 1, "127.0.0.1:1", NULL);
    struct rpc_client *other = rpc_pool_client(&f->pool, 2, "127.0.0.1:1", NULL);

    assert_non_null(first);
    assert_ptr_not_equal(first, other);
    assert_ptr_equal(rpc_pool_client(&f->pool, 1, "127.0.0.1:1", NULL), first);
    struct rpc_client *moved = rpc_pool_client(&f->pool, 1, "127.0.0.1:2", NULL);
    assert_string_equal(rpc_client_address(moved), "127.0.0.1:2");
    assert_ptr_equal(rpc_pool_client(&f->pool, 1, "127.0.0.1:2", NULL), moved);
    assert_ptr_equal(rpc_pool_client(&f->pool, 2, "127.0.0.1:1", NULL), other);
}

static void test_a_bad_address_leaves_what_is_there(void **state)
{
    struct fixture *f = *state;
    struct tg_errmsg msg = {{0}};
    struct rpc_client *first = rpc_pool_client(&f->pool, 1, "127.0.0.1:1", NULL);

    assert_null(rpc_pool_client(&f->pool, 1, "nowhere", &msg));
    assert_string_not_equal(msg.text, "");
    assert_ptr_equal(rpc_pool_client(&f->pool, 1, "127.0.0.1:1", NULL), first);
}

static void test_there_is_room_for_a_whole_cluster_and_nodes_that_left_make_it(void **state)
{
    struct fixture *f = *state;
    struct tg_errmsg msg = {{0}};

    for (uint64_t node = 1; node <= RPC_POOL_NODES_MAX; node++)
        assert_non_null(rpc_pool_client(&f->pool, node, "127.0.0.1:1", NULL));
    /* One more takes the place of the one that was not wanted for the longest. */
    assert_non_null(rpc_pool_client(&f->pool, 1, "127.0.0.1:1", &msg));
    assert_non_null(rpc_pool_client(&f->pool, RPC_POOL_NODES_MAX + 1, "127.0.0.1:1", &msg));
    assert_int_equal(f->pool.count, RPC_POOL_NODES_MAX);
    assert_int_equal(f->pool.nodes[0].node, 1);
    assert_int_equal(f->pool.nodes[1].node, RPC_POOL_NODES_MAX + 1);
    assert_non_null(rpc_pool_client(&f->pool, RPC_POOL_NODES_MAX, "127.0.0.1:2", NULL));
}

static void test_a_secret_that_is_too_long_is_refused(void **state)
{
    struct fixture *f = *state;
    struct rpc_pool pool;
    char secret[RPC_POOL_SECRET_BYTES + 1];

    memset(secret, 's', sizeof secret);
    secret[RPC_POOL_SECRET_BYTES] = 0;
    assert_int_equal(rpc_pool_init(&pool, f->loop, secret, NULL), TG_TOO_LARGE);
    secret[RPC_POOL_SECRET_BYTES - 1] = 0;
    assert_int_equal(rpc_pool_init(&pool, f->loop, secret, NULL), 0);
}

struct moving {
    struct rpc_pool *pool;
    unsigned told;
};

/* What a caller does whose call was canceled: it tries the node again. */
static void call_node_again(void *data, const struct rpc_reply *reply)
{
    struct moving *moving = data;

    assert_int_equal(reply->err, TG_CANCELED);
    moving->told++;
    struct rpc_client *client = rpc_pool_client(moving->pool, 1, "127.0.0.1:2", NULL);
    assert_string_equal(rpc_client_address(client), "127.0.0.1:2");
}

static void test_a_move_cancels_calls_whose_owners_may_ask_the_pool_at_once(void **state)
{
    struct fixture *f = *state;
    struct moving moving = {.pool = &f->pool};
    struct rpc_client *first = rpc_pool_client(&f->pool, 1, "127.0.0.1:1", NULL);

    rpc_client_call(first, 1, slice_of(NULL, 0), slice_of(NULL, 0), 1000, call_node_again, &moving);
    struct rpc_client *moved = rpc_pool_client(&f->pool, 1, "127.0.0.1:2", NULL);
    assert_int_equal(moving.told, 1);
    assert_ptr_equal(rpc_pool_client(&f->pool, 1, "127.0.0.1:2", NULL), moved);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_node_keeps_its_connection_until_it_moves),
        TEST(test_a_bad_address_leaves_what_is_there),
        TEST(test_there_is_room_for_a_whole_cluster_and_nodes_that_left_make_it),
        TEST(test_a_secret_that_is_too_long_is_refused),
        TEST(test_a_move_cancels_calls_whose_owners_may_ask_the_pool_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
