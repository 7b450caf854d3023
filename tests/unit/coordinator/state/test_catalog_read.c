/* SPDX-License-Identifier: Apache-2.0 */
/* Read points: the right version or an explicit error, never another version. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/proto/msg_read.h"
#include "tests/lib/state_builder.h"

static int setup(void **state)
{
    static struct state_builder builder;
    state_builder_init(&builder);
    state_builder_members(&builder, 1, 3);
    assert_int_equal(state_builder_db(&builder, "d"), 0);
    struct state_builder_table table = {.db = "d", .table = "t", .buckets = 4, .replication = 3};
    assert_int_equal(state_builder_table(&builder, &table), 0);
    *state = &builder;
    return 0;
}
static int teardown(void **state)
{
    state_builder_close(*state);
    return 0;
}

struct answer {
    int err;
    version_t version;
    version_t after;
    uint64_t time_us;
    uint32_t version_count;
    version_t needs[4];
    txn_id first_txns[2]; /* of the changes */
    char text[TG_ERRMSG_MAX];
};

/* Asks for the version at `bound`; with changes if `after` is not NULL. */
static struct answer ask(struct state_builder *b, struct read_bound bound,
                         const struct read_bound *after)
{
    struct msg_read_point message = {.db = "d", .table = "t", .bound = bound};
    if (after != NULL) {
        message.with_changes = true;
        message.after = *after;
    }
    struct msg_read_point_reply reply;
    struct tg_errmsg msg = {""};
    msg_read_point_reply_init(&reply);
    struct answer answer = {0};
    answer.err = catalog_read_point(&b->state, &message, b->state.stamp_us, &reply, &msg);
    answer.version = reply.version;
    answer.after = reply.after;
    answer.time_us = reply.time_us;
    answer.version_count = reply.version_count;
    for (uint32_t i = 0; i < reply.version_count && i < 2; i++)
        answer.first_txns[i] = reply.versions[i].txn;
    for (uint32_t i = 0; i < reply.tablet_count; i++)
        answer.needs[i] = reply.tablets[i].need;
    memcpy(answer.text, msg.text, sizeof msg.text);
    msg_read_point_reply_close(&reply);
    return answer;
}

static struct answer ask_time(struct state_builder *b, uint64_t us)
{
    return ask(b, (struct read_bound){READ_TIME, us}, NULL);
}

static struct txn *precommitted(struct state_builder *b, const char *label)
{
    assert_int_equal(state_builder_begin(b, 1, "d", "t", label, true), 0);
    txn_id id = b->last.txn;
    assert_int_equal(state_builder_done(b, id, b->last.rowset, 1, 7), 0);
    return txn_table_find(&b->state.txns, id);
}

static void publish(struct state_builder *b, const struct txn *txn)
{
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, txn->id), 0);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, txn->id, 7), 0);
}

/* A moment before the first version is the empty table, not the first version. */
static void test_a_time_names_exactly_one_version(void **state)
{
    struct state_builder *b = *state;
    const struct table *table = state_builder_find(b, "d", "t");
    publish(b, precommitted(b, "a"));
    publish(b, precommitted(b, "b"));
    uint64_t t1 = table->versions[0].time_us;
    uint64_t t2 = table->versions[1].time_us;
    assert_int_equal(ask_time(b, t1 - 1).version, 0);
    assert_int_equal(ask_time(b, t1 - 1).time_us, table->created_us);
    assert_int_equal(ask_time(b, t1).version, 1);
    assert_int_equal(ask_time(b, t2 - 1).version, 1);
    assert_int_equal(ask_time(b, t2).version, 2);
    assert_int_equal(ask_time(b, t2).time_us, t2);
    assert_int_equal(ask_time(b, table->created_us).version, 0);

    struct answer early = ask_time(b, table->created_us - 1);
    assert_int_equal(early.err, TG_NOT_FOUND);
    assert_non_null(strstr(early.text, "did not exist"));
    /* Nothing of the first version is lost to a range that starts before it. */
    struct read_bound after = {READ_TIME, t1 - 1};
    struct answer changes = ask(b, (struct read_bound){READ_TIME, t2}, &after);
    assert_int_equal(changes.after, 0);
    assert_int_equal(changes.version_count, 2);
    after.value = 0;
    assert_int_equal(ask(b, (struct read_bound){READ_TIME, t2}, &after).version_count, 2);
}

/* The order is that of becoming visible, so that no checkpoint jumps over a slow writer. */
static void test_a_slow_writer_comes_after_a_fast_one_that_began_later(void **state)
{
    struct state_builder *b = *state;
    struct txn *slow = precommitted(b, "slow");
    struct txn *fast = precommitted(b, "fast");
    publish(b, fast);
    struct read_bound from = {READ_VERSION, 0};
    struct answer first = ask(b, (struct read_bound){READ_LATEST, 0}, &from);
    assert_int_equal(first.version, 1);
    assert_int_equal(first.version_count, 1);
    uint64_t checkpoint = b->state.stamp_us;
    publish(b, slow);
    from.value = first.version;
    struct answer second = ask(b, (struct read_bound){READ_LATEST, 0}, &from);
    assert_int_equal(second.version, 2);
    assert_int_equal(second.version_count, 1);
    from.value = 0;
    struct answer both = ask(b, (struct read_bound){READ_LATEST, 0}, &from);
    assert_int_equal(both.version_count, 2);
    assert_int_equal(both.first_txns[0], fast->id);
    assert_int_equal(both.first_txns[1], slow->id);
    /* Also by time: the slow one completes above everything that was closed. */
    assert_true(slow->visible_us > checkpoint);
    assert_int_equal(ask_time(b, checkpoint).version, 1);
}

static void test_what_is_not_there_yet_is_an_error(void **state)
{
    struct state_builder *b = *state;
    publish(b, precommitted(b, "a"));
    struct txn *txn = precommitted(b, "b");
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_COMMIT, txn->id), 0);
    /* COMMITTED is not visible. */
    assert_int_equal(ask(b, (struct read_bound){READ_VERSION, 2}, NULL).err, TG_NOT_YET);
    assert_int_equal(ask(b, (struct read_bound){READ_VERSION, 1}, NULL).version, 1);
    assert_int_equal(ask(b, (struct read_bound){READ_VERSION, 0}, NULL).version, 0);
    assert_int_equal(ask(b, (struct read_bound){READ_LATEST, 0}, NULL).version, 1);
    uint64_t now = b->state.stamp_us;
    assert_int_equal(ask_time(b, now).err, 0);
    assert_int_equal(ask_time(b, now + 1).err, TG_NOT_YET);
    assert_int_equal(ask_time(b, now + 500000).err, TG_NOT_YET);
    assert_int_equal(ask_time(b, now + 500001).err, TG_FUTURE);
    struct read_bound after = {READ_VERSION, 1};
    assert_int_equal(ask(b, (struct read_bound){READ_VERSION, 0}, &after).err, TG_INVALID);
    assert_int_equal(ask(b, (struct read_bound){READ_VERSION, 1}, &after).version_count, 0);
}

static void test_unknown_names_are_told(void **state)
{
    struct state_builder *b = *state;
    struct msg_read_point message = {.db = "x", .table = "t"};
    struct msg_read_point_reply reply;
    struct tg_errmsg msg;
    msg_read_point_reply_init(&reply);
    assert_int_equal(catalog_read_point(&b->state, &message, 0, &reply, &msg), TG_NOT_FOUND);
    assert_string_equal(msg.text, "unknown database, database=x");
    strcpy(message.db, "d");
    strcpy(message.table, "x");
    assert_int_equal(catalog_read_point(&b->state, &message, 0, &reply, &msg), TG_NOT_FOUND);
    assert_string_equal(msg.text, "table not found, tableName=x");
    msg_read_point_reply_close(&reply);
}

/* Rule 1: need is the last version that touched the tablet. */
static void test_needs_and_replicas_of_each_tablet(void **state)
{
    struct state_builder *b = *state;
    const uint64_t buckets[] = {3, 2, 8};
    const char *const labels[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(state_builder_begin(b, 1, "d", "t", labels[i], false), 0);
        txn_id txn = b->last.txn;
        /* The last load misses slot 0 of bucket 3. */
        uint8_t sealed = i == 2 ? 6 : 7;
        assert_int_equal(state_builder_done(b, txn, b->last.rowset, buckets[i], sealed), 0);
        assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, txn, 7), 0);
    }
    struct answer answer = ask(b, (struct read_bound){READ_LATEST, 0}, NULL);
    const version_t newest[] = {1, 2, 0, 3};
    const version_t second[] = {1, 2, 0, 0};
    assert_memory_equal(answer.needs, newest, sizeof newest);
    answer = ask(b, (struct read_bound){READ_VERSION, 2}, NULL);
    assert_memory_equal(answer.needs, second, sizeof second);

    struct msg_read_point message = {.db = "d", .table = "t"};
    struct msg_read_point_reply reply;
    msg_read_point_reply_init(&reply);
    const struct tablet *tablet = state_builder_find(b, "d", "t")->tablets[3];
    assert_int_equal(catalog_read_point(&b->state, &message, b->now_us, &reply, NULL), 0);
    assert_int_equal(reply.tablets[3].ready, 2);
    assert_int_equal(reply.tablets[3].replica_count, 3);
    assert_int_equal(reply.tablets[3].replicas[0], tablet->replicas[1].node);
    assert_int_equal(reply.tablets[3].replicas[2], tablet->replicas[0].node);
    assert_int_equal(reply.schema.column_count, 2);
    assert_int_equal(reply.distribution_count, 1);
    msg_read_point_reply_close(&reply);
    /* Behind since version 3: what came before it can still be read there. */
    msg_read_point_reply_init(&reply);
    message.bound = (struct read_bound){READ_VERSION, 2};
    assert_int_equal(catalog_read_point(&b->state, &message, b->now_us, &reply, NULL), 0);
    assert_int_equal(reply.tablets[3].ready, 3);
    msg_read_point_reply_close(&reply);
}

static void test_truncate_shows_in_changes_and_old_versions_stay(void **state)
{
    struct state_builder *b = *state;
    state_builder_load(b, "d", "t", "a");
    assert_int_equal(state_builder_name(b, COMMAND_TRUNCATE_TABLE, "d", "t", false, false), 0);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, b->last.txn, 7), 0);
    struct msg_read_point message = {
        .db = "d", .table = "t", .with_changes = true, .after = {READ_VERSION, 0}};
    struct msg_read_point_reply reply;
    msg_read_point_reply_init(&reply);
    assert_int_equal(catalog_read_point(&b->state, &message, b->now_us, &reply, NULL), 0);
    assert_int_equal(reply.version_count, 2);
    assert_false(reply.versions[0].replace);
    assert_true(reply.versions[1].replace);
    assert_int_equal(reply.versions[1].version, 2);
    msg_read_point_reply_close(&reply);
    assert_int_equal(ask(b, (struct read_bound){READ_VERSION, 1}, NULL).version, 1);
}

static void test_a_long_range_is_cut_and_says_where(void **state)
{
    struct state_builder *b = *state;
    struct table *table = state_builder_find(b, "d", "t");
    /* As many versions as no test wants to load. */
    uint64_t count = READ_VERSIONS_MAX + 10;
    struct version_record *versions = calloc(count, sizeof *versions);
    for (uint64_t i = 0; i < count; i++)
        versions[i].time_us = table->created_us + 1 + i;
    table->versions = versions;
    table->version_capacity = table->committed = table->visible = count;
    b->state.stamp_us = table->created_us + count + 1;
    struct read_bound after = {READ_VERSION, 5};
    struct answer answer = ask(b, (struct read_bound){READ_LATEST, 0}, &after);
    assert_int_equal(answer.version_count, READ_VERSIONS_MAX);
    assert_int_equal(answer.version, READ_VERSIONS_MAX + 5);
    for (uint64_t i = 0; i < count; i += 997)
        assert_int_equal(table_version_at(table, versions[i].time_us), i + 1);
    assert_int_equal(table_version_at(table, UINT64_MAX), count);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_time_names_exactly_one_version),
        TEST(test_a_slow_writer_comes_after_a_fast_one_that_began_later),
        TEST(test_what_is_not_there_yet_is_an_error),
        TEST(test_unknown_names_are_told),
        TEST(test_needs_and_replicas_of_each_tablet),
        TEST(test_truncate_shows_in_changes_and_old_versions_stay),
        TEST(test_a_long_range_is_cut_and_says_where),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
