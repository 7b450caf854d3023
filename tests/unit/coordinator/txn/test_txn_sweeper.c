/* SPDX-License-Identifier: Apache-2.0 */
/* What has become too old. */
#include "coordinator/txn/txn_sweeper.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/state_builder.h"

enum { NOW_MS = 1000000, LEASE_MS = 5000, HOUR_MS = 3600000 };

struct fixture {
    struct state_builder b;
    struct health health;
    struct txn_sweep sweep;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    state_builder_init(&f->b);
    state_builder_members(&f->b, 1, 2);
    state_builder_db(&f->b, "d");
    state_builder_table(&f->b, &(struct state_builder_table){
                                   .db = "d", .table = "t", .buckets = 1, .replication = 1});
    health_init(&f->health, LEASE_MS, NOW_MS);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    txn_sweep_close(&f->sweep);
    health_close(&f->health);
    state_builder_close(&f->b);
    free(f);
    return 0;
}

static const struct txn_sweep *plan(struct fixture *f, uint64_t now_ms)
{
    struct txn_sweeper_options options = {.precommit_timeout_ms = HOUR_MS};

    txn_sweep_close(&f->sweep);
    assert_int_equal(txn_sweeper_plan(&f->b.state, &f->health, &options, f->b.state.elapsed_ms,
                                      now_ms, &f->sweep),
                     0);
    return &f->sweep;
}

static void hear(struct fixture *f, node_id node, uint64_t high, const uint64_t *live,
                 uint32_t count, uint64_t now_ms)
{
    struct msg_heartbeat message = {.node = node,
                                    .epoch = state_builder_epoch(&f->b, node),
                                    .request_high = high,
                                    .live_count = count};

    message.live = calloc(count + 1, sizeof *message.live);
    for (uint32_t i = 0; i < count; i++)
        message.live[i] = live[i];
    assert_int_equal(health_heard(&f->health, &message, now_ms), 0);
    msg_heartbeat_close(&message);
}

static txn_id begin(struct fixture *f, node_id node, const char *table, const char *label)
{
    assert_int_equal(state_builder_begin(&f->b, node, "d", table, label, true), 0);
    return f->b.last.txn;
}

static void test_nothing_is_planned_for_the_young(void **state)
{
    struct fixture *f = *state;

    begin(f, 0, NULL, "a");
    begin(f, 1, "t", "b");
    assert_int_equal(plan(f, NOW_MS)->abort_count, 0);
    assert_int_equal(f->sweep.forget.count, 0);
}

static void test_prepare_ages_from_its_begin(void **state)
{
    struct fixture *f = *state;
    txn_id txn = begin(f, 0, NULL, "a");
    uint64_t timeout = txn_table_find(&f->b.state.txns, txn)->timeout_ms;

    state_builder_elapse(&f->b, timeout - 1);
    assert_int_equal(plan(f, NOW_MS)->abort_count, 0);
    state_builder_elapse(&f->b, 1);
    assert_int_equal(plan(f, NOW_MS)->abort_count, 1);
    assert_int_equal(f->sweep.aborts[0].txn, txn);
    assert_int_equal(f->sweep.aborts[0].expect_state, TXN_PREPARE);
    assert_string_equal(f->sweep.aborts[0].reason, "timeout by txn manager");
    /* It was precommitted meanwhile: the abort does not apply any more (rule 8). */
    struct command command = {.type = COMMAND_TXN_ABORT, .finish = f->sweep.aborts[0]};
    assert_int_equal(state_builder_finish(&f->b, COMMAND_TXN_PRECOMMIT, txn), 0);
    assert_int_equal(state_builder_apply(&f->b, &command), TG_TXN_STATE);
}

static void test_precommitted_ages_from_its_precommit(void **state)
{
    struct fixture *f = *state;
    txn_id txn = begin(f, 0, NULL, "a");

    state_builder_elapse(&f->b, HOUR_MS);
    assert_int_equal(state_builder_finish(&f->b, COMMAND_TXN_PRECOMMIT, txn), 0);
    state_builder_elapse(&f->b, HOUR_MS - 1);
    assert_int_equal(plan(f, NOW_MS)->abort_count, 0);
    state_builder_elapse(&f->b, 1);
    assert_int_equal(plan(f, NOW_MS)->abort_count, 1);
    assert_int_equal(f->sweep.aborts[0].expect_state, TXN_PRECOMMITTED);
}

static void test_a_load_whose_node_is_silent_is_lost(void **state)
{
    struct fixture *f = *state;
    txn_id txn = begin(f, 1, "t", "a");

    assert_int_equal(plan(f, NOW_MS + LEASE_MS)->abort_count, 0); /* a leadership's full lease */
    assert_int_equal(plan(f, NOW_MS + LEASE_MS + 1)->abort_count, 1);
    assert_int_equal(f->sweep.aborts[0].txn, txn);
    assert_non_null(strstr(f->sweep.aborts[0].reason, "coordinate BE"));
}

static void test_a_load_its_node_does_not_know_is_lost(void **state)
{
    struct fixture *f = *state;
    txn_id txn = begin(f, 1, "t", "a");
    uint64_t request = txn_table_find(&f->b.state.txns, txn)->begin_key.request;

    hear(f, 1, request - 1, NULL, 0, NOW_MS); /* made before the request was given out */
    assert_int_equal(plan(f, NOW_MS)->abort_count, 0);
    hear(f, 1, request + 5, (uint64_t[]){request + 5, request}, 2, NOW_MS);
    assert_int_equal(plan(f, NOW_MS)->abort_count, 0);
    hear(f, 1, request + 5, (uint64_t[]){request + 5}, 1, NOW_MS);
    assert_int_equal(plan(f, NOW_MS)->abort_count, 1);
}

static void test_a_new_registration_loses_the_loads_of_the_old(void **state)
{
    struct fixture *f = *state;

    begin(f, 1, "t", "a");
    struct command command = {.type = COMMAND_MEMBER_REGISTER};
    const struct member *member = members_find(&f->b.state.members, 1);
    memcpy(command.member.message.node_uuid, member->uuid, sizeof member->uuid);
    memcpy(command.member.message.cluster_uuid, f->b.state.cluster_uuid, UUID_BYTES);
    command.member.message.previous_nonce = member->nonce;
    command.member.message.new_nonce = 777;
    assert_int_equal(state_builder_apply(&f->b, &command), 0);
    assert_int_equal(plan(f, NOW_MS)->abort_count, 1);
}

static void test_a_done_load_needs_no_node(void **state)
{
    struct fixture *f = *state;
    txn_id txn = begin(f, 1, "t", "a");

    assert_int_equal(state_builder_done(&f->b, txn, f->b.last.rowset, 1, 1), 0);
    assert_int_equal(plan(f, NOW_MS + 10 * LEASE_MS)->abort_count, 0);
}

static void test_finished_ones_are_forgotten_after_their_time(void **state)
{
    struct fixture *f = *state;
    txn_id txn = state_builder_load(&f->b, "d", "t", "a");

    state_builder_elapse(&f->b, f->b.state.limits.label_keep_ms - 1);
    assert_int_equal(plan(f, NOW_MS)->forget.count, 0);
    state_builder_elapse(&f->b, 1);
    assert_int_equal(plan(f, NOW_MS)->forget.count, 1);
    assert_int_equal(f->sweep.forget.txns[0], txn);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_nothing_is_planned_for_the_young),
        TEST(test_prepare_ages_from_its_begin),
        TEST(test_precommitted_ages_from_its_precommit),
        TEST(test_a_load_whose_node_is_silent_is_lost),
        TEST(test_a_load_its_node_does_not_know_is_lost),
        TEST(test_a_new_registration_loses_the_loads_of_the_old),
        TEST(test_a_done_load_needs_no_node),
        TEST(test_finished_ones_are_forgotten_after_their_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
