/* SPDX-License-Identifier: Apache-2.0 */
/* Participants and the orders about them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/query/query.h"
#include "tests/lib/coordinator_scene.h"

enum { LEASE_MS = 5000 };

struct fixture {
    struct coordinator_scene scene;
    struct health health;
    struct query_waits waits;
    unsigned answers;
    int err;
    char text[4096]; /* of the answer, or the sentence */
};

/* Table d.t, one tablet on 1, 2 and 3; 4 is spare. */
static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct state_builder_table table = {.db = "d", .table = "t", .buckets = 1, .replication = 3};
    struct state_builder builder;

    state_builder_init(&builder);
    state_builder_members(&builder, 1, 3);
    assert_int_equal(state_builder_db(&builder, "d"), 0);
    assert_int_equal(state_builder_table(&builder, &table), 0);
    state_builder_members(&builder, 4, 4);
    coordinator_scene_open_with(&f->scene, &builder);
    health_init(&f->health, LEASE_MS, clock_monotonic_ms(&f->scene.clock.clock));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    query_waits_end(&f->waits);
    health_close(&f->health);
    coordinator_scene_close(&f->scene);
    free(f);
    return 0;
}

static void on_done(void *data, int err, const char *sentence, struct slice head)
{
    struct fixture *f = data;
    struct msg_query_reply reply = {0};

    f->answers++;
    f->err = err;
    if (err != 0) {
        snprintf(f->text, sizeof f->text, "%s", sentence);
        return;
    }
    assert_int_equal(msg_query_reply_decode(head, &reply), 0);
    snprintf(f->text, sizeof f->text, "%s", buf_cstr(&reply.data));
    msg_query_reply_close(&reply);
}

static int ask(struct fixture *f, enum query_kind kind, const char *text)
{
    struct query_context context = {.consensus = f->scene.consensus,
                                    .health = &f->health,
                                    .clock = &f->scene.clock.clock,
                                    .waits = &f->waits,
                                    .self = FAKE_CONSENSUS_ID};
    struct msg_query message = {.kind = kind};

    f->answers = 0;
    buf_append_str(&message.text, text);
    query_run(&context, &message, on_done, f);
    msg_query_close(&message);
    fake_consensus_run(f->scene.fake);
    assert_int_equal(f->answers, 1);
    return f->err;
}

static void order(struct fixture *f, const char *text, int err, const char *part)
{
    assert_int_equal(ask(f, QUERY_NODE_ORDER, text), err);
    if (strstr(f->text, part) == NULL)
        fail_msg("%s: '%s' is not in '%s'", text, part, f->text);
}

static void lists(struct fixture *f, const char *part)
{
    assert_int_equal(ask(f, QUERY_NODES, ""), 0);
    if (strstr(f->text, part) == NULL)
        fail_msg("'%s' is not in '%s'", part, f->text);
}

/* Time passes, and all but one are heard. */
static void pass(struct fixture *f, node_id silent)
{
    fake_clock_advance_ms(&f->scene.clock, LEASE_MS + 1);
    for (node_id node = 1; node <= 4; node++) {
        struct msg_heartbeat message = {.node = node, .epoch = 1};

        if (node != silent)
            assert_int_equal(
                health_heard(&f->health, &message, clock_monotonic_ms(&f->scene.clock.clock)), 0);
    }
}

static void test_the_list_tells_who_holds_what(void **state)
{
    struct fixture *f = *state;

    lists(f, "\"state\":\"active\",\"tablets\":1,\"behind\":0,\"joining\":0,"
             "\"waits_for_txn\":null");
    lists(f, "\"id\":4,\"http\":\"127.0.0.1:8043\"");
    lists(f, "\"tablets_moving\":0,\"moves_wait_for_txn\":null,\"tablets_low\":0");
    pass(f, 3);
    lists(f, "\"id\":3,\"http\":\"127.0.0.1:8042\",\"rpc\":\"127.0.0.1:8062\",\"alive\":false");
}

static void test_a_node_drains_and_comes_back(void **state)
{
    struct fixture *f = *state;

    order(f, "decommission 2", 0, "{\"id\":2,\"state\":\"draining\"}");
    order(f, "decommission 2", 0, "draining"); /* again: no harm */
    lists(f, "\"state\":\"draining\",\"tablets\":1");
    order(f, "decommission 4", TG_REFUSED, "table t has replication_num 3");
    order(f, "recommission 2", 0, "{\"id\":2,\"state\":\"active\"}");
    order(f, "decommission 4", 0, "{\"id\":4,\"state\":\"decommissioned\"}");
    assert_int_equal(ask(f, QUERY_BACKENDS, ""), 0);
    assert_null(strstr(f->text, "8043"));
    assert_non_null(strstr(f->text, "8042"));
}

static void test_the_dead_take_nothing(void **state)
{
    struct fixture *f = *state;

    pass(f, 4);
    order(f, "decommission 2", TG_REFUSED, "only 2 of the 3 participants");
}

static void test_only_the_dead_and_the_empty_are_dropped(void **state)
{
    struct fixture *f = *state;

    order(f, "drop 2", TG_REFUSED, "is alive and has 1 replicas");
    order(f, "drop 4", 0, "{\"id\":4,\"state\":\"dropped\"}");
    order(f, "drop 4", TG_NOT_FOUND, "there is no participant 4");
    pass(f, 2);
    order(f, "drop 2", 0, "dropped");
    lists(f, "\"tablets_low\":1");
}

static void test_orders_that_are_none(void **state)
{
    struct fixture *f = *state;

    order(f, "paint 2", TG_INVALID, "'paint' is not decommission");
    order(f, "drop", TG_INVALID, "is not decommission");
    order(f, "drop 2 now", TG_INVALID, "is not decommission");
    order(f, "drop x", TG_INVALID, "is not decommission");
}

int main(void)
{
#define STORY(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        STORY(test_the_list_tells_who_holds_what),
        STORY(test_a_node_drains_and_comes_back),
        STORY(test_the_dead_take_nothing),
        STORY(test_only_the_dead_and_the_empty_are_dropped),
        STORY(test_orders_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
