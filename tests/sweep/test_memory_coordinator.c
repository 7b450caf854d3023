/* SPDX-License-Identifier: Apache-2.0 */
/* No memory, at every allocation: the state's commands and snapshots, statements. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/consensus/batch.h"
#include "coordinator/ddl/ddl.h"
#include "tests/lib/state_builder.h"
#include "tests/sweep/memory_sweep.h"

/* ---- the replicated state ---- */

static void fill_log(struct state_builder *b)
{
    state_builder_init(b);
    state_builder_members(b, 1, 3);
    assert_int_equal(state_builder_db(b, "d"), 0);
    struct state_builder_table table = {.db = "d", .table = "t", .buckets = 3, .replication = 3};
    assert_int_equal(state_builder_table(b, &table), 0);
    state_builder_load(b, "d", "t", "visible");
    assert_int_equal(state_builder_begin(b, 2, "d", "t", "behind", false), 0);
    assert_int_equal(state_builder_done(b, b->last.txn, b->last.rowset, 5, 6), 0);
    assert_int_equal(state_builder_begin(b, 3, "d", "t", "precommitted", true), 0);
    assert_int_equal(state_builder_done(b, b->last.txn, b->last.rowset, 3, 7), 0);
    assert_int_equal(state_builder_begin(b, 3, "d", "t", "aborted", true), 0);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_ABORT, b->last.txn), 0);
    assert_int_equal(state_builder_begin(b, 0, "d", NULL, "explicit", true), 0);
    assert_int_equal(state_builder_load_start(b, 1, b->last.txn, "d", "t"), 0);
    state_builder_elapse(b, 1000);
}

static int replay(struct slice log, struct state *state)
{
    struct cursor cursor;
    uint32_t count;
    int err = 0;
    cursor_init(&cursor, log.data, log.len);
    while (err == 0 && cursor_left(&cursor) > 0) {
        uint64_t len = cursor_u64le(&cursor);
        err = batch_apply(state, cursor_bytes(&cursor, len), NULL, 0, &count, NULL);
    }
    return err;
}

static int run_state(void *data)
{
    struct state_builder *b = data;
    struct state state;
    struct state again;
    struct buf bytes = BUF_INIT;
    int err = state_init(&state);
    if (err != 0)
        return err;
    err = replay(slice_of(b->log.data, b->log.len), &state);
    if (err == 0) {
        state_encode(&state, &bytes);
        err = bytes.err;
    }
    if (err == 0 && (err = state_init(&again)) == 0) {
        err = state_decode(&again, slice_of(bytes.data, bytes.len), NULL);
        if (err == 0 && state_hash(&again) != state_hash(&b->state))
            err = TG_CORRUPT;
        state_close(&again);
    }
    buf_close(&bytes);
    state_close(&state);
    return err;
}

static void test_the_state_applies_whole_or_ends(void **unused)
{
    (void)unused;
    struct state_builder b;
    fill_log(&b);
    memory_sweep(&(struct memory_sweep){.run = run_state, .data = &b}, "state");
    state_builder_close(&b);
}

/* ---- statements ---- */

static int run_ddl(void *data)
{
    static const char text[] =
        "CREATE TABLE IF NOT EXISTS d.t (k INT NOT NULL, v VARCHAR(20) DEFAULT \"x\", w "
        "DECIMAL(9,2)) UNIQUE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 3 "
        "PROPERTIES (\"replication_num\" = \"2\")";
    struct ddl ddl;
    struct tg_errmsg msg;
    (void)data;
    int err = ddl_parse(text, sizeof text - 1, &ddl, &msg);
    if (err == 0)
        ddl_close(&ddl);
    return err;
}

static void test_statements(void **unused)
{
    (void)unused;
    memory_sweep(&(struct memory_sweep){.run = run_ddl}, "statement");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_state_applies_whole_or_ends),
        cmocka_unit_test(test_statements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
