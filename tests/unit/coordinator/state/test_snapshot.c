/* SPDX-License-Identifier: Apache-2.0 */
/* A snapshot holds everything, and a damaged one is refused without a crash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/state_builder.h"

/* One transaction in each state, a failed explicit one, a fence, a dropped table in wait, a replica
 * that is behind, a TRUNCATE. */
static void fill(struct state_builder *b)
{
    state_builder_init(b);
    state_builder_members(b, 1, 4);
    assert_int_equal(state_builder_db(b, "d"), 0);
    struct state_builder_table table = {.db = "d", .table = "t", .buckets = 4, .replication = 3};
    assert_int_equal(state_builder_table(b, &table), 0);
    table = (struct state_builder_table){
        .db = "d", .table = "u", .buckets = 2, .replication = 2, .write_all = true, .occ = true};
    assert_int_equal(state_builder_table(b, &table), 0);

    state_builder_load(b, "d", "t", "visible");
    assert_int_equal(state_builder_begin(b, 2, "d", "t", "behind", false), 0);
    txn_id txn = b->last.txn;
    assert_int_equal(state_builder_done(b, txn, b->last.rowset, 5, 6), 0);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, txn, 6), 0);
    assert_int_equal(state_builder_begin(b, 2, "d", "t", "unconfirmed", false), 0);
    txn = b->last.txn;
    assert_int_equal(state_builder_done(b, txn, b->last.rowset, 2, 7), 0);
    assert_int_equal(state_builder_publish(b, COMMAND_TXN_VISIBLE, txn, 3), 0);
    assert_int_equal(state_builder_name(b, COMMAND_TRUNCATE_TABLE, "d", "t", false, false), 0);
    assert_int_equal(state_builder_begin(b, 3, "d", "u", "precommitted", true), 0);
    assert_int_equal(state_builder_done(b, b->last.txn, b->last.rowset, 3, 3), 0);
    assert_int_equal(state_builder_begin(b, 3, "d", "t", "aborted", true), 0);
    assert_int_equal(state_builder_finish(b, COMMAND_TXN_ABORT, b->last.txn), 0);
    assert_int_equal(state_builder_begin(b, 4, "d", "t", "running", true), 0);
    assert_int_equal(state_builder_begin(b, 0, "d", NULL, "explicit", true), 0);
    txn = b->last.txn;
    assert_int_equal(state_builder_load_start(b, 1, txn, "d", "u"), 0);
    assert_int_equal(state_builder_failed(b, txn, b->last.rowset, "cut off"), TG_TXN_ABORTED);
    assert_int_equal(state_builder_name(b, COMMAND_DROP_TABLE, "d", "u", false, false), 0);
    struct command failed = {.type = COMMAND_LOAD_FAILED};
    failed.load_failed.key = (struct request_key){1, state_builder_epoch(b, 1), 4711};
    assert_int_equal(state_builder_apply(b, &failed), 0);
    state_builder_elapse(b, 1234);
    b->state.limits.label_keep_ms = 99;
}

static void test_a_snapshot_gives_the_same_state_back(void **unused)
{
    (void)unused;
    struct state_builder b;
    fill(&b);
    state_builder_check(&b.state);
    uint64_t hash = state_hash(&b.state);
    struct state before = b.state;
    state_builder_restore(&b);
    state_builder_check(&b.state);
    assert_int_equal(state_hash(&b.state), hash);
    assert_int_equal(b.state.limits.label_keep_ms, 99);
    assert_int_equal(b.state.elapsed_ms, before.elapsed_ms);
    assert_int_equal(b.state.stamp_us, before.stamp_us);
    assert_int_equal(b.state.txn_low_water, before.txn_low_water);
    assert_int_equal(b.state.txns.finished_bytes, before.txns.finished_bytes);
    assert_int_equal(b.state.txns.fence_count, 1);
    assert_int_equal(b.state.txns.publishing.count, before.txns.publishing.count);
    assert_memory_equal(&b.state.members, &before.members, sizeof before.members);
    state_builder_close(&b);
}

static int decode(const uint8_t *bytes, size_t len)
{
    struct state state;
    struct tg_errmsg msg;
    assert_int_equal(state_init(&state), 0);
    int err = state_decode(&state, slice_of(bytes, len), &msg);
    state_close(&state);
    return err;
}

static void test_a_cut_snapshot_is_refused(void **unused)
{
    (void)unused;
    struct state_builder b;
    fill(&b);
    struct buf bytes = BUF_INIT;
    state_encode(&b.state, &bytes);
    for (size_t len = 0; len < bytes.len; len++) {
        uint8_t *copy = malloc(len + 1); /* so that a read behind it is found */
        memcpy(copy, bytes.data, len);
        assert_int_equal(decode(copy, len), TG_CORRUPT);
        free(copy);
    }
    buf_append_u8(&bytes, 0);
    assert_int_equal(decode(bytes.data, bytes.len), TG_CORRUPT);
    bytes.data[1] = 77;
    assert_int_equal(decode(bytes.data, bytes.len), TG_UNSUPPORTED);
    buf_close(&bytes);
    state_builder_close(&b);
}

static void test_no_damaged_byte_crashes_the_reader(void **unused)
{
    (void)unused;
    struct state_builder b;
    fill(&b);
    struct buf bytes = BUF_INIT;
    state_encode(&b.state, &bytes);
    for (size_t at = 0; at < bytes.len; at++) {
        const uint8_t values[] = {0, 1, 0xFF, (uint8_t)(bytes.data[at] ^ 0x10)};
        uint8_t good = bytes.data[at];
        for (size_t i = 0; i < sizeof values; i++) {
            bytes.data[at] = values[i];
            decode(bytes.data, bytes.len);
        }
        bytes.data[at] = good;
    }
    buf_close(&bytes);
    state_builder_close(&b);
}

/* Labels are cheap: a thousand stay far below the 20 MB a coordinator may have, and many more fit.
 */
static void test_many_finished_transactions_take_little_memory(void **unused)
{
    (void)unused;
    enum { MANY = 20000 };
    struct state_builder b;
    state_builder_init(&b);
    state_builder_members(&b, 1, 3);
    assert_int_equal(state_builder_db(&b, "d"), 0);
    struct state_builder_table table = {.db = "d", .table = "t", .buckets = 4, .replication = 3};
    assert_int_equal(state_builder_table(&b, &table), 0);
    size_t before = 0;
    for (int i = 0; i < MANY; i++) {
        char label[LABEL_BYTES];
        snprintf(label, sizeof label, "01234567-89ab-cdef-0123-%012d", i);
        state_builder_load(&b, "d", "t", label);
        buf_clear(&b.log);
        if (i == MANY / 4)
            before = mallinfo2().uordblks;
    }
    size_t each = (mallinfo2().uordblks - before) / (MANY - MANY / 4);
    /* Sanitizers have an allocator of their own, which this cannot ask. */
    if (before > 0)
        assert_true(each < 900);
    assert_true(b.state.txns.finished_bytes / MANY < 800);

    struct buf bytes = BUF_INIT;
    state_encode(&b.state, &bytes);
    assert_true(bytes.len / MANY < 350);
    uint64_t hash = state_hash(&b.state);
    state_builder_restore(&b);
    assert_int_equal(state_hash(&b.state), hash);
    state_builder_check(&b.state);
    buf_close(&bytes);
    state_builder_close(&b);
}

static void test_labels_are_taken_after_a_snapshot_too(void **unused)
{
    (void)unused;
    static const char *const labels[] = {"visible",      "behind",  "unconfirmed",
                                         "precommitted", "running", "explicit"};
    struct state_builder b;
    fill(&b);
    state_builder_restore(&b);
    for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++)
        assert_int_equal(state_builder_begin(&b, 1, "d", "t", labels[i], false), TG_LABEL_EXISTS);
    assert_int_equal(state_builder_begin(&b, 1, "d", "t", "aborted", false), 0);
    state_builder_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_labels_are_taken_after_a_snapshot_too),
        cmocka_unit_test(test_a_snapshot_gives_the_same_state_back),
        cmocka_unit_test(test_a_cut_snapshot_is_refused),
        cmocka_unit_test(test_no_damaged_byte_crashes_the_reader),
        cmocka_unit_test(test_many_finished_transactions_take_little_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
