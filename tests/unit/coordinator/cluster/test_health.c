/* SPDX-License-Identifier: Apache-2.0 */
/* Participants as a leader has heard them, and what a heartbeat is answered. */
#include "coordinator/cluster/health.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/state_builder.h"

static void test_a_lease_begins_with_the_leadership(void **state)
{
    struct health health;

    (void)state;
    health_init(&health, 5000, 100);
    assert_true(health_is_alive(&health, 1, 5100));
    assert_false(health_is_alive(&health, 1, 5101));
    struct msg_heartbeat message = {.node = 1, .epoch = 3};
    assert_int_equal(health_heard(&health, &message, 6000), 0);
    assert_true(health_is_alive(&health, 1, 11000));
    assert_false(health_is_alive(&health, 1, 11001));
    health_reset(&health, 20000);
    assert_true(health_is_alive(&health, 1, 25000));
    health_close(&health);
}

static void test_the_number_of_nodes_is_bounded(void **state)
{
    struct health health;

    (void)state;
    health_init(&health, 5000, 0);
    for (node_id node = 1; node <= NODES_MAX; node++)
        assert_int_equal(health_heard(&health, &(struct msg_heartbeat){.node = node}, 1), 0);
    assert_int_equal(health_heard(&health, &(struct msg_heartbeat){.node = NODES_MAX + 1}, 1),
                     TG_LIMIT);
    health_close(&health);
}

static void test_staged_rowsets_die_on_the_logs_word_only(void **state)
{
    struct state_builder b;
    struct msg_heartbeat message = {.node = 1};
    struct msg_heartbeat_reply reply;

    (void)state;
    state_builder_init(&b);
    state_builder_members(&b, 1, 1);
    state_builder_db(&b, "d");
    state_builder_table(
        &b, &(struct state_builder_table){.db = "d", .table = "t", .buckets = 2, .replication = 1});
    txn_id visible = state_builder_load(&b, "d", "t", "v");
    assert_int_equal(state_builder_begin(&b, 1, "d", "t", "running", true), 0);
    txn_id running = b.last.txn;
    uint64_t running_request = txn_table_find(&b.state.txns, running)->begin_key.request;
    assert_int_equal(state_builder_begin(&b, 1, "d", "t", "aborted", true), 0);
    txn_id aborted = b.last.txn;
    uint64_t aborted_request = txn_table_find(&b.state.txns, aborted)->begin_key.request;
    assert_int_equal(state_builder_finish(&b, COMMAND_TXN_ABORT, aborted), 0);
    tablet_id tablet = state_builder_find(&b, "d", "t")->tablets[0]->id;

    message.epoch = state_builder_epoch(&b, 1);
    message.staged = (txn_id[]){visible, running, aborted, 99999};
    message.staged_count = 4;
    message.live = (uint64_t[]){running_request, aborted_request, 55555};
    message.live_count = 3;
    message.tablets = (tablet_id[]){tablet, 99999};
    message.tablet_count = 2;
    assert_int_equal(health_answer(&b.state, &message, false, &reply), 0);
    /* A transaction below the low water has nothing unbound any more; one that the log has never
     * given out (99999) is not dead but unknown. */
    assert_int_equal(reply.dead_count, 2);
    assert_int_equal(reply.dead[0], visible);
    assert_int_equal(reply.dead[1], aborted);
    assert_int_equal(reply.stopped_count, 1);
    assert_int_equal(reply.stopped[0], aborted_request);
    assert_int_equal(reply.dropped_count, 0); /* an id that was never given out is nobody's */
    assert_int_equal(reply.txn_low_water, running);
    assert_int_equal(reply.closed_us, b.state.stamp_us);
    msg_heartbeat_reply_close(&reply);

    assert_int_equal(state_builder_finish(&b, COMMAND_TXN_ABORT, running), 0);
    assert_int_equal(state_builder_name(&b, COMMAND_DROP_TABLE, "d", "t", false, false), 0);
    assert_int_equal(health_answer(&b.state, &message, false, &reply), 0);
    assert_int_equal(reply.dropped_count, 1);
    assert_int_equal(reply.dropped[0], tablet);
    msg_heartbeat_reply_close(&reply);
    state_builder_close(&b);
}

/* A tablet that moved away is dropped on proven word only: an old leader may not know that the node
 * got it back. */
static void test_a_tablet_that_moved_away_is_dropped_on_proven_word(void **state)
{
    struct state_builder b;
    struct msg_heartbeat message = {.node = 2};
    struct msg_heartbeat_reply reply;

    (void)state;
    state_builder_init(&b);
    state_builder_members(&b, 1, 2);
    state_builder_db(&b, "d");
    state_builder_table(
        &b, &(struct state_builder_table){.db = "d", .table = "t", .buckets = 2, .replication = 1});
    const struct table *table = state_builder_find(&b, "d", "t");
    unsigned away = tablet_slot(table->tablets[0], 2) < 0 ? 0 : 1;
    message.epoch = state_builder_epoch(&b, 2);
    message.tablets = (tablet_id[]){table->tablets[1 - away]->id};
    message.tablet_count = 1;
    assert_false(health_has_retired(&b.state, &message));
    message.tablets = (tablet_id[]){table->tablets[0]->id, table->tablets[1]->id};
    message.tablet_count = 2;
    assert_true(health_has_retired(&b.state, &message));
    assert_int_equal(health_answer(&b.state, &message, false, &reply), 0);
    assert_int_equal(reply.dropped_count, 0);
    msg_heartbeat_reply_close(&reply);
    assert_int_equal(health_answer(&b.state, &message, true, &reply), 0);
    assert_int_equal(reply.dropped_count, 1);
    assert_int_equal(reply.dropped[0], table->tablets[away]->id);
    msg_heartbeat_reply_close(&reply);
    state_builder_close(&b);
}

static void test_who_cannot_be_reached_is_sent_no_clients_until_it_is_heard(void **state)
{
    struct health health;
    struct msg_heartbeat message = {.node = 1, .epoch = 1};

    (void)state;
    health_init(&health, 5000, 1000);
    health_doubt(&health, 1); /* nothing is known of it */
    assert_true(health_is_reachable(&health, 1, 2000));
    assert_int_equal(health_heard(&health, &message, 2000), 0);
    health_doubt(&health, 1);
    assert_true(health_is_alive(&health, 1, 2100));
    assert_false(health_is_reachable(&health, 1, 2100));
    assert_int_equal(health_silent_ms(&health, 1, 2100), 100);
    assert_int_equal(health_heard(&health, &message, 2200), 0);
    assert_true(health_is_reachable(&health, 1, 2200));
    assert_false(health_is_reachable(&health, 1, 9000));
    health_close(&health);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_lease_begins_with_the_leadership),
        cmocka_unit_test(test_the_number_of_nodes_is_bounded),
        cmocka_unit_test(test_staged_rowsets_die_on_the_logs_word_only),
        cmocka_unit_test(test_a_tablet_that_moved_away_is_dropped_on_proven_word),
        cmocka_unit_test(test_who_cannot_be_reached_is_sent_no_clients_until_it_is_heard),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
