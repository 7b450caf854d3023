/* SPDX-License-Identifier: Apache-2.0 */
/* Is there a cluster already? Coordinators that start at once, late, or without their disk. */
#include "coordinator/preflight.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/rpc/rpc_handlers.h"
#include "tests/lib/coordinator_scene.h"

enum { NODES = 3 };

struct node {
    struct fixture *fixture;
    struct dispatch dispatch;
    struct rpc_handlers handlers;
    struct rpc_server *server;
    struct preflight *preflight;
    unsigned ended;
    int err;
    char sentence[600];
};

struct fixture {
    struct coordinator_scene scene; /* a formed cluster, for those that serve */
    struct loop *loop;
    struct loop_timer *limit;
    struct node nodes[NODES];
    uint16_t ports[NODES];
};

static void too_long(void *data)
{
    (void)data;
    fail_msg("it takes too long");
}

static void open_server(struct node *node, uint16_t port)
{
    struct rpc_server_options options = {
        .host = "127.0.0.1", .port = port, .secret = "s", .connections_max = 16};
    struct tg_errmsg msg = {{0}};

    node->handlers.dispatch = &node->dispatch;
    if (rpc_server_open(node->fixture->loop, &options, rpc_handlers_call, &node->handlers,
                        &node->server, &msg) != 0)
        fail_msg("%s", msg.text);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct tg_errmsg msg;

    coordinator_scene_open(&f->scene);
    assert_int_equal(loop_open(&f->loop, &msg), 0);
    f->limit = loop_timer_open(f->loop, too_long, NULL);
    for (unsigned i = 0; i < NODES; i++) {
        struct node *node = &f->nodes[i];

        node->fixture = f;
        node->handlers.phase = STATUS_LOOKS;
        open_server(node, 0);
        f->ports[i] = rpc_server_port(node->server);
    }
    for (unsigned i = 0; i < NODES; i++) {
        struct dispatch *dispatch = &f->nodes[i].dispatch;

        dispatch->self = i + 1;
        dispatch->consensus = f->scene.consensus;
        dispatch->clock = clock_system();
        dispatch->peer_count = NODES;
        for (unsigned j = 0; j < NODES; j++) {
            dispatch->peers[j].id = j + 1;
            snprintf(dispatch->peers[j].rpc, ADDRESS_BYTES, "127.0.0.1:%u", f->ports[j]);
        }
    }
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    loop_timer_close(f->limit);
    for (unsigned i = 0; i < NODES; i++) {
        preflight_close(f->nodes[i].preflight);
        rpc_server_close(f->nodes[i].server, NULL, NULL);
    }
    loop_close(f->loop);
    coordinator_scene_close(&f->scene);
    free(f);
    return 0;
}

static void on_done(void *data, int err, const char *sentence)
{
    struct node *node = data;

    node->ended++;
    node->err = err;
    snprintf(node->sentence, sizeof node->sentence, "%s", sentence);
    if (err == 0)
        node->handlers.phase = STATUS_SERVES;
    loop_stop(node->fixture->loop);
}

static void start(struct node *node)
{
    struct tg_errmsg msg;

    assert_int_equal(preflight_start(node->fixture->loop, &node->dispatch, "s",
                                     &node->handlers.phase, on_done, node, &node->preflight, &msg),
                     0);
}

static void run_until_ended(struct fixture *f, struct node *node)
{
    loop_timer_start(f->limit, 5000, 0);
    while (node->ended == 0)
        loop_run(f->loop);
}

static void stop_loop(void *data)
{
    loop_stop(data);
}

static void run_for(struct fixture *f, uint64_t ms)
{
    struct loop_timer *timer = loop_timer_open(f->loop, stop_loop, f->loop);

    loop_timer_start(timer, ms, 0);
    loop_run(f->loop);
    loop_timer_close(timer);
}

static void test_nodes_that_start_together_go_on_together(void **state)
{
    struct fixture *f = *state;

    /* A new cluster has no uuid yet. */
    fake_consensus_state(f->scene.fake)->cluster_uuid[0] = '\0';
    for (unsigned i = 0; i < NODES; i++)
        start(&f->nodes[i]);
    for (unsigned i = 0; i < NODES; i++) {
        run_until_ended(f, &f->nodes[i]);
        assert_int_equal(f->nodes[i].err, 0);
    }
}

static void test_an_empty_directory_is_refused_where_a_cluster_is(void **state)
{
    struct fixture *f = *state;

    f->nodes[1].handlers.phase = STATUS_SERVES;
    f->nodes[2].handlers.phase = STATUS_SERVES;
    start(&f->nodes[0]);
    run_until_ended(f, &f->nodes[0]);
    assert_int_equal(f->nodes[0].err, TG_REFUSED);
    assert_non_null(strstr(f->nodes[0].sentence, "belongs to cluster"));
}

/* The whole cluster is restarted, one node without its disk: the others have not applied their log
 * yet and do not know their uuid. That must not be read as "no cluster". */
static void test_nodes_that_still_load_are_waited_for(void **state)
{
    struct fixture *f = *state;
    char uuid[UUID_BYTES];
    struct state *applied = fake_consensus_state(f->scene.fake);

    memcpy(uuid, applied->cluster_uuid, sizeof uuid);
    applied->cluster_uuid[0] = '\0';
    for (unsigned i = 1; i < NODES; i++) {
        f->nodes[i].handlers.phase = STATUS_SERVES;
        f->nodes[i].dispatch.of_cluster = true;
    }
    start(&f->nodes[0]);
    run_for(f, 300);
    assert_int_equal(f->nodes[0].ended, 0);
    memcpy(applied->cluster_uuid, uuid, sizeof uuid);
    run_until_ended(f, &f->nodes[0]);
    assert_int_equal(f->nodes[0].err, TG_REFUSED);
}

static void test_all_are_waited_for_and_the_last_is_still_of_the_cluster(void **state)
{
    struct fixture *f = *state;
    char uuid[UUID_BYTES];
    struct state *applied = fake_consensus_state(f->scene.fake);

    memcpy(uuid, applied->cluster_uuid, sizeof uuid);
    applied->cluster_uuid[0] = '\0';
    rpc_server_close(f->nodes[2].server, NULL, NULL);
    start(&f->nodes[0]);
    start(&f->nodes[1]);
    run_for(f, 600);
    assert_int_equal(f->nodes[0].ended + f->nodes[1].ended, 0);
    open_server(&f->nodes[2], f->ports[2]);
    start(&f->nodes[2]);
    /* As soon as one goes on, the cluster gets its uuid; the others, that asked before, go on too.
     */
    while (f->nodes[0].ended + f->nodes[1].ended + f->nodes[2].ended == 0)
        loop_run(f->loop);
    memcpy(applied->cluster_uuid, uuid, sizeof uuid);
    for (unsigned i = 0; i < NODES; i++) {
        run_until_ended(f, &f->nodes[i]);
        assert_int_equal(f->nodes[i].err, 0);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_nodes_that_start_together_go_on_together),
        TEST(test_an_empty_directory_is_refused_where_a_cluster_is),
        TEST(test_nodes_that_still_load_are_waited_for),
        TEST(test_all_are_waited_for_and_the_last_is_still_of_the_cluster),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
