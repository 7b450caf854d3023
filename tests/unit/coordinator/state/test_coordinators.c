/* SPDX-License-Identifier: Apache-2.0 */
/* The replicated list of coordinators: one change at a time, and no id twice (rule 12). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/state_builder.h"

static struct state_builder b;

static int order(enum command_type type, uint64_t id, uint64_t nonce)
{
    struct command command = {.type = type};

    command.coordinator.id = id;
    command.coordinator.nonce = nonce;
    if (type == COMMAND_COORDINATOR_FOUND || type == COMMAND_COORDINATOR_ADD) {
        snprintf(command.coordinator.raft, ADDRESS_BYTES, "h%u:1", (unsigned)id);
        snprintf(command.coordinator.rpc, ADDRESS_BYTES, "h%u:2", (unsigned)id);
        snprintf(command.coordinator.http, ADDRESS_BYTES, "h%u:3", (unsigned)id);
    }
    return state_builder_apply(&b, &command);
}

static enum coordinator_standing standing(uint64_t id)
{
    const struct coordinator_record *record = coordinators_find(&b.state.coordinators, id);

    return record != NULL ? record->standing : 0;
}

static int begin(void **state)
{
    (void)state;
    state_builder_init(&b);
    for (uint64_t id = 1; id <= 3; id++)
        assert_int_equal(order(COMMAND_COORDINATOR_FOUND, id, 0), 0);
    return 0;
}

static int end(void **state)
{
    (void)state;
    state_builder_close(&b);
    return 0;
}

static void test_one_joins_and_then_votes(void **state)
{
    (void)state;
    assert_int_equal(order(COMMAND_COORDINATOR_ADD, 4, 77), 0);
    assert_int_equal(standing(4), COORDINATOR_JOINS);
    assert_int_equal(order(COMMAND_COORDINATOR_PROMOTE, 4, 0), 0);
    assert_int_equal(standing(4), COORDINATOR_VOTES);
    assert_null(coordinators_changing(&b.state.coordinators));
}

static void test_a_repeated_order_changes_nothing(void **state)
{
    (void)state;
    assert_int_equal(order(COMMAND_COORDINATOR_ADD, 4, 77), 0);
    uint64_t changes = b.state.coordinators.changes;
    assert_int_equal(order(COMMAND_COORDINATOR_ADD, 4, 77), 0);
    assert_true(b.last.repeated);
    assert_int_equal(order(COMMAND_COORDINATOR_FOUND, 1, 0), 0);
    assert_true(b.last.repeated);
    assert_int_equal(b.state.coordinators.changes, changes);
}

static void test_an_id_is_given_once(void **state)
{
    (void)state;
    assert_int_equal(order(COMMAND_COORDINATOR_ADD, 2, 77), TG_EXISTS);
    assert_int_equal(order(COMMAND_COORDINATOR_DROP, 2, 0), 0);
    assert_int_equal(order(COMMAND_COORDINATOR_GONE, 2, 0), 0);
    assert_int_equal(order(COMMAND_COORDINATOR_ADD, 2, 77), TG_EXISTS);
    assert_non_null(strstr(b.last.msg.text, "the next free one is 4"));
    assert_true(coordinators_is_gone(&b.state.coordinators, 2));
    assert_int_equal(order(COMMAND_COORDINATOR_ADD, 9, 77), 0); /* ids may be left out … */
    assert_int_equal(order(COMMAND_COORDINATOR_PROMOTE, 9, 0), 0);
    assert_int_equal(order(COMMAND_COORDINATOR_ADD, 4, 77), TG_EXISTS); /* … for good */
}

static void test_two_changes_at_once_are_refused(void **state)
{
    (void)state;
    assert_int_equal(order(COMMAND_COORDINATOR_ADD, 4, 77), 0);
    assert_int_equal(order(COMMAND_COORDINATOR_ADD, 5, 78), TG_REFUSED);
    assert_int_equal(order(COMMAND_COORDINATOR_DROP, 1, 0), TG_REFUSED);
    assert_int_equal(order(COMMAND_COORDINATOR_DROP, 4, 0), 0); /* but it may be given up */
    assert_int_equal(standing(4), COORDINATOR_LEAVES);
    assert_int_equal(order(COMMAND_COORDINATOR_ADD, 5, 78), TG_REFUSED);
    assert_int_equal(order(COMMAND_COORDINATOR_PROMOTE, 4, 0), TG_STALE);
    assert_int_equal(order(COMMAND_COORDINATOR_GONE, 4, 0), 0);
    assert_int_equal(order(COMMAND_COORDINATOR_ADD, 5, 78), 0);
}

static void test_the_last_voter_stays(void **state)
{
    (void)state;
    for (uint64_t id = 1; id <= 2; id++) {
        assert_int_equal(order(COMMAND_COORDINATOR_DROP, id, 0), 0);
        assert_int_equal(order(COMMAND_COORDINATOR_GONE, id, 0), 0);
    }
    assert_int_equal(order(COMMAND_COORDINATOR_DROP, 3, 0), TG_REFUSED);
    assert_int_equal(order(COMMAND_COORDINATOR_DROP, 8, 0), TG_NOT_FOUND);
}

static void test_an_address_is_one_coordinator_s(void **state)
{
    struct command command = {
        .type = COMMAND_COORDINATOR_ADD,
        .coordinator = {.id = 4, .nonce = 1, .raft = "h1:1", .rpc = "h4:2", .http = "h4:3"}};

    (void)state;
    assert_int_equal(state_builder_apply(&b, &command), TG_EXISTS);
}

static void test_there_is_a_limit(void **state)
{
    (void)state;
    for (uint64_t id = 4; id <= COORDINATORS_MAX; id++) {
        assert_int_equal(order(COMMAND_COORDINATOR_ADD, id, 7), 0);
        assert_int_equal(order(COMMAND_COORDINATOR_PROMOTE, id, 0), 0);
    }
    assert_int_equal(order(COMMAND_COORDINATOR_ADD, COORDINATORS_MAX + 1, 7), TG_LIMIT);
}

static void test_the_list_survives_a_snapshot(void **state)
{
    (void)state;
    assert_int_equal(order(COMMAND_COORDINATOR_DROP, 2, 0), 0);
    assert_int_equal(order(COMMAND_COORDINATOR_GONE, 2, 0), 0);
    assert_int_equal(order(COMMAND_COORDINATOR_ADD, 4, 77), 0);
    struct coordinators before = b.state.coordinators;
    uint64_t hash = state_hash(&b.state);
    state_builder_restore(&b);
    assert_memory_equal(&b.state.coordinators, &before, sizeof before);
    assert_int_equal(state_hash(&b.state), hash);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_joins_and_then_votes, begin, end),
        cmocka_unit_test_setup_teardown(test_a_repeated_order_changes_nothing, begin, end),
        cmocka_unit_test_setup_teardown(test_an_id_is_given_once, begin, end),
        cmocka_unit_test_setup_teardown(test_two_changes_at_once_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(test_the_last_voter_stays, begin, end),
        cmocka_unit_test_setup_teardown(test_an_address_is_one_coordinator_s, begin, end),
        cmocka_unit_test_setup_teardown(test_there_is_a_limit, begin, end),
        cmocka_unit_test_setup_teardown(test_the_list_survives_a_snapshot, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
