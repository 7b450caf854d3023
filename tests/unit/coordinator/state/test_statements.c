/* SPDX-License-Identifier: Apache-2.0 */
/* A statement that is asked for again, because its answer was lost, is done once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/state/apply.h"
#include "tests/lib/state_builder.h"

static int start(void **state)
{
    static struct state_builder builder;

    state_builder_init(&builder);
    state_builder_members(&builder, 1, 3);
    *state = &builder;
    return 0;
}

static int end(void **state)
{
    state_builder_close(*state);
    return 0;
}

static struct request_key key_of(uint64_t n)
{
    return (struct request_key){.epoch = 77, .request = n};
}

/* Node 0's statement number n, about a database or a table t of it. */
static int ask(struct state_builder *b, enum command_type type, uint64_t n, const char *db,
               const char *table)
{
    struct command command = {.type = type};

    command.name.key = key_of(n);
    snprintf(command.name.db, sizeof command.name.db, "%s", db);
    snprintf(command.name.table, sizeof command.name.table, "%s", table);
    return state_builder_apply(b, &command);
}

static void make_table(struct state_builder *b)
{
    struct state_builder_table table = {.db = "d", .table = "t", .buckets = 1, .replication = 1};

    assert_int_equal(state_builder_table(b, &table), 0);
}

static void
test_the_same_request_is_done_once_and_another_is_told_what_stands_against_it(void **state)
{
    struct state_builder *b = *state;

    assert_int_equal(ask(b, COMMAND_CREATE_DB, 1, "d", ""), 0);
    assert_false(b->last.repeated);
    assert_int_equal(ask(b, COMMAND_CREATE_DB, 1, "d", ""), 0);
    assert_true(b->last.repeated);
    assert_int_not_equal(ask(b, COMMAND_CREATE_DB, 2, "d", ""), 0);
    assert_int_equal(state_builder_db(b, "e"), 0); /* without a key: never a repetition */
    assert_int_not_equal(state_builder_db(b, "e"), 0);
}

static void test_a_repeated_truncate_names_the_transaction_of_the_first(void **state)
{
    struct state_builder *b = *state;

    assert_int_equal(state_builder_db(b, "d"), 0);
    make_table(b);
    assert_int_equal(ask(b, COMMAND_TRUNCATE_TABLE, 1, "d", "t"), 0);
    txn_id txn = b->last.txn;
    assert_int_not_equal(txn, 0);
    version_t committed = state_builder_find(b, "d", "t")->committed;
    assert_int_equal(ask(b, COMMAND_TRUNCATE_TABLE, 1, "d", "t"), 0);
    assert_int_equal(b->last.txn, txn);
    assert_int_equal(state_builder_find(b, "d", "t")->committed, committed);
}

static void test_a_repeated_drop_spares_the_table_made_since(void **state)
{
    struct state_builder *b = *state;

    assert_int_equal(state_builder_db(b, "d"), 0);
    make_table(b);
    assert_int_equal(ask(b, COMMAND_DROP_TABLE, 5, "d", "t"), 0);
    make_table(b);
    assert_int_equal(ask(b, COMMAND_DROP_TABLE, 5, "d", "t"), 0);
    assert_non_null(state_builder_find(b, "d", "t"));
}

static void test_a_refused_statement_may_be_tried_again(void **state)
{
    struct state_builder *b = *state;

    assert_int_not_equal(ask(b, COMMAND_DROP_DB, 1, "d", ""), 0);
    assert_int_equal(state_builder_db(b, "d"), 0);
    assert_int_equal(ask(b, COMMAND_DROP_DB, 1, "d", ""), 0);
    assert_false(b->last.repeated);
}

static void test_snapshots_keep_the_newest_and_their_order(void **state)
{
    struct state_builder *b = *state;

    for (uint64_t i = 1; i <= STATEMENTS_KEPT + 3; i++)
        assert_int_equal(ask(b, i % 2 == 1 ? COMMAND_CREATE_DB : COMMAND_DROP_DB, i, "d", ""), 0);
    uint64_t hash = state_hash(&b->state);
    state_builder_restore(b);
    assert_int_equal(state_hash(&b->state), hash);
    struct request_key gone = key_of(3);
    struct request_key kept = key_of(4);
    struct request_key newest = key_of(STATEMENTS_KEPT + 3);
    assert_null(statements_find(&b->state.statements, &gone));
    assert_non_null(statements_find(&b->state.statements, &kept));
    assert_non_null(statements_find(&b->state.statements, &newest));
    /* After the next one the oldest is still the right one to go. */
    assert_int_equal(ask(b, COMMAND_DROP_DB, STATEMENTS_KEPT + 4, "d", ""), 0);
    assert_null(statements_find(&b->state.statements, &kept));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)
    const struct CMUnitTest tests[] = {
        TEST(test_the_same_request_is_done_once_and_another_is_told_what_stands_against_it),
        TEST(test_a_repeated_truncate_names_the_transaction_of_the_first),
        TEST(test_a_repeated_drop_spares_the_table_made_since),
        TEST(test_a_refused_statement_may_be_tried_again),
        TEST(test_snapshots_keep_the_newest_and_their_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
