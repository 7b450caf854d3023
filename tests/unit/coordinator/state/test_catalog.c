/* SPDX-License-Identifier: Apache-2.0 */
/* Databases and tables come and go; replicas are spread evenly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/state_builder.h"

static int setup(void **state)
{
    static struct state_builder builder;
    state_builder_init(&builder);
    state_builder_members(&builder, 1, 3);
    assert_int_equal(state_builder_db(&builder, "d"), 0);
    *state = &builder;
    return 0;
}
static int teardown(void **state)
{
    struct state_builder *builder = *state;
    state_builder_check(&builder->state);
    state_builder_close(builder);
    return 0;
}

static int make(struct state_builder *b, const char *name, uint32_t buckets, uint8_t replication)
{
    return state_builder_table(
        b, &(struct state_builder_table){
               .db = "d", .table = name, .buckets = buckets, .replication = replication});
}

static void test_a_database_is_created_once(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(state_builder_db(b, "d"), TG_EXISTS);
    assert_string_equal(b->last.msg.text, "Can't create database 'd'; database exists");
    assert_int_equal(state_builder_name(b, COMMAND_CREATE_DB, "d", NULL, true, false), 0);
    assert_true(b->last.repeated);
    assert_int_equal(state_builder_db(b, "D"), 0); /* names are told apart by case */
}

static void test_a_database_with_tables_is_dropped_by_force_only(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(make(b, "t", 2, 1), 0);
    assert_int_equal(state_builder_name(b, COMMAND_DROP_DB, "d", NULL, false, false), TG_REFUSED);
    assert_int_equal(state_builder_name(b, COMMAND_DROP_DB, "d", NULL, false, true), 0);
    assert_null(catalog_database(&b->state.catalog, "d"));
    assert_null(b->state.catalog.tables);
    assert_null(b->state.catalog.tablets);
    assert_int_equal(state_builder_name(b, COMMAND_DROP_DB, "d", NULL, false, false), TG_NOT_FOUND);
    assert_int_equal(state_builder_name(b, COMMAND_DROP_DB, "d", NULL, true, false), 0);
}

static void test_a_table_is_created_once(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(make(b, "t", 4, 3), 0);
    table_id id = b->last.table;
    assert_int_equal(make(b, "t", 4, 3), TG_EXISTS);
    assert_string_equal(b->last.msg.text, "Table 't' already exists");
    const struct table *table = state_builder_find(b, "d", "t");
    assert_int_equal(table->id, id);
    assert_int_equal(table->visible, 0);
    assert_int_equal(table->schema.column_count, 2);
    for (uint32_t i = 0; i < 4; i++) {
        const struct tablet *tablet = table->tablets[i];
        assert_int_equal(tablet->replica_count, 3);
        assert_ptr_equal(catalog_tablet(&b->state.catalog, tablet->id), tablet);
    }
    assert_int_equal(state_builder_table(b, &(struct state_builder_table){.db = "nowhere",
                                                                          .table = "t",
                                                                          .buckets = 1,
                                                                          .replication = 1}),
                     TG_NOT_FOUND);
    assert_string_equal(b->last.msg.text, "unknown database, database=nowhere");
}

static void test_bounds_of_a_table_are_checked(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(make(b, "t", 0, 1), TG_INVALID);
    assert_int_equal(make(b, "t", BUCKETS_MAX + 1, 1), TG_INVALID);
    assert_int_equal(make(b, "t", 1, 0), TG_INVALID);
    assert_int_equal(make(b, "t", 1, REPLICAS_MAX + 1), TG_INVALID);
    assert_int_equal(make(b, "", 1, 1), TG_INVALID);
    assert_null(b->state.catalog.tables);
    assert_int_equal(b->state.next_table, 1);
}

static void test_too_few_participants_refuse_a_table(void **state)
{
    (void)state;
    struct state_builder b;
    state_builder_init(&b);
    state_builder_members(&b, 1, 2);
    assert_int_equal(state_builder_db(&b, "d"), 0);
    assert_int_equal(make(&b, "t", 1, 3), TG_REFUSED);
    assert_non_null(strstr(b.last.msg.text, "replication num: 3, available backends: 2"));
    state_builder_close(&b);
}

static void test_a_table_may_be_dropped_and_made_again(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(make(b, "t", 1, 1), 0);
    table_id first = b->last.table;
    assert_int_equal(state_builder_name(b, COMMAND_DROP_TABLE, "d", "t", false, false), 0);
    assert_int_equal(state_builder_name(b, COMMAND_DROP_TABLE, "d", "t", false, false),
                     TG_NOT_FOUND);
    assert_string_equal(b->last.msg.text, "Unknown table 't'");
    assert_int_equal(state_builder_name(b, COMMAND_DROP_TABLE, "d", "t", true, false), 0);
    assert_int_equal(make(b, "t", 1, 1), 0);
    assert_true(b->last.table > first);
}

/* How many replicas, and how many first replicas, each node has. */
static void count_replicas(const struct table *table, uint32_t *all, uint32_t *first)
{
    for (uint32_t i = 0; i < table->bucket_count; i++) {
        const struct tablet *tablet = table->tablets[i];
        first[tablet->replicas[0].node]++;
        for (uint32_t j = 0; j < tablet->replica_count; j++) {
            all[tablet->replicas[j].node]++;
            for (uint32_t k = 0; k < j; k++)
                assert_int_not_equal(tablet->replicas[j].node, tablet->replicas[k].node);
        }
    }
}

static void test_replicas_are_spread_evenly(void **state)
{
    (void)state;
    for (uint8_t replication = 1; replication <= 3; replication++) {
        for (node_id nodes = replication; nodes <= 7; nodes++) {
            struct state_builder b;
            state_builder_init(&b);
            state_builder_members(&b, 1, nodes);
            assert_int_equal(state_builder_db(&b, "d"), 0);
            uint32_t all[8] = {0};
            uint32_t first[8] = {0};
            for (int t = 0; t < 10; t++) {
                char name[16];
                snprintf(name, sizeof name, "t%d", t);
                assert_int_equal(make(&b, name, 5, replication), 0);
                count_replicas(state_builder_find(&b, "d", name), all, first);
            }
            for (node_id node = 1; node <= nodes; node++) {
                uint32_t share = 50u * replication / nodes;
                assert_in_range(all[node], share, share + 1);
                assert_true(first[node] > 0);
            }
            state_builder_close(&b);
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_database_is_created_once),
        TEST(test_a_database_with_tables_is_dropped_by_force_only),
        TEST(test_a_table_is_created_once),
        TEST(test_bounds_of_a_table_are_checked),
        TEST(test_too_few_participants_refuse_a_table),
        TEST(test_a_table_may_be_dropped_and_made_again),
        TEST(test_replicas_are_spread_evenly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
