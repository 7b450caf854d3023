/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots carry the whole state and nothing damaged is taken for one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/endian.h"
#include "coordinator/consensus/batch.h"
#include "coordinator/consensus/raft_fsm.h"
#include "tests/lib/state_builder.h"

static void build(struct state_builder *builder)
{
    state_builder_init(builder);
    state_builder_members(builder, 1, 3);
    assert_int_equal(state_builder_db(builder, "shop"), 0);
}

static void test_a_snapshot_restores_the_same_state_and_index(void **state)
{
    (void)state;
    struct state_builder builder;
    struct state copy;
    struct buf bytes = BUF_INIT;
    uint64_t index = 0;
    build(&builder);
    assert_int_equal(raft_fsm_encode_snapshot(&builder.state, 4711, &bytes), 0);
    assert_int_equal(state_init(&copy), 0);
    assert_int_equal(raft_fsm_decode_snapshot(slice_of(bytes.data, bytes.len), &copy, &index, NULL),
                     0);
    assert_int_equal(index, 4711);
    assert_true(state_hash(&copy) == state_hash(&builder.state));
    state_close(&copy);
    buf_close(&bytes);
    state_builder_close(&builder);
}

static void test_restoring_replaces_what_was_there(void **state)
{
    (void)state;
    struct state_builder builder, other;
    struct buf bytes = BUF_INIT;
    uint64_t index;
    build(&builder);
    build(&other);
    assert_int_equal(state_builder_db(&other, "second"), 0);
    assert_int_equal(raft_fsm_encode_snapshot(&builder.state, 1, &bytes), 0);
    assert_int_equal(
        raft_fsm_decode_snapshot(slice_of(bytes.data, bytes.len), &other.state, &index, NULL), 0);
    assert_true(state_hash(&other.state) == state_hash(&builder.state));
    assert_null(catalog_database(&other.state.catalog, "second"));
    buf_close(&bytes);
    state_builder_close(&builder);
    state_builder_close(&other);
}

static void test_every_damaged_byte_is_noticed_and_the_state_stays(void **state)
{
    (void)state;
    struct state_builder builder;
    struct buf bytes = BUF_INIT;
    uint64_t index;
    build(&builder);
    uint64_t hash = state_hash(&builder.state);
    assert_int_equal(raft_fsm_encode_snapshot(&builder.state, 1, &bytes), 0);
    for (size_t i = 0; i < bytes.len; i++) {
        bytes.data[i] ^= 0x10;
        assert_int_not_equal(
            raft_fsm_decode_snapshot(slice_of(bytes.data, bytes.len), &builder.state, &index, NULL),
            0);
        bytes.data[i] ^= 0x10;
    }
    for (size_t len = 0; len < bytes.len; len++)
        assert_int_not_equal(
            raft_fsm_decode_snapshot(slice_of(bytes.data, len), &builder.state, &index, NULL), 0);
    assert_true(state_hash(&builder.state) == hash);
    buf_close(&bytes);
    state_builder_close(&builder);
}

static void test_an_unknown_format_is_told_apart(void **state)
{
    (void)state;
    struct state_builder builder;
    struct buf bytes = BUF_INIT;
    struct tg_errmsg msg;
    uint64_t index;
    build(&builder);
    assert_int_equal(raft_fsm_encode_snapshot(&builder.state, 1, &bytes), 0);
    bytes.data[4] = 2;
    assert_int_equal(
        raft_fsm_decode_snapshot(slice_of(bytes.data, bytes.len), &builder.state, &index, &msg),
        TG_UNSUPPORTED);
    assert_string_equal(msg.text, "unknown snapshot format 2");
    buf_close(&bytes);
    state_builder_close(&builder);
}

/* A snapshot that is newer than the log behind it was taken for (a crash between the two): what it
 * holds already is void when it comes again. */
static void test_replaying_what_a_snapshot_holds_changes_nothing(void **state)
{
    (void)state;
    struct state_builder builder;
    struct state copy;
    struct buf bytes = BUF_INIT;
    uint64_t index;
    build(&builder);
    struct state_builder_table table = {.db = "shop", .table = "t", .buckets = 2, .replication = 3};
    assert_int_equal(state_builder_table(&builder, &table), 0);
    size_t from = builder.log.len;
    state_builder_load(&builder, "shop", "t", "one");
    assert_int_equal(
        state_builder_name(&builder, COMMAND_TRUNCATE_TABLE, "shop", "t", false, false), 0);
    state_builder_elapse(&builder, 1000);
    uint64_t hash = state_hash(&builder.state);
    assert_int_equal(raft_fsm_encode_snapshot(&builder.state, 7, &bytes), 0);
    assert_int_equal(state_init(&copy), 0);
    assert_int_equal(raft_fsm_decode_snapshot(slice_of(bytes.data, bytes.len), &copy, &index, NULL),
                     0);
    for (size_t at = from; at < builder.log.len;) {
        uint32_t count;
        struct tg_errmsg msg;
        size_t len = (size_t)load_u64le(builder.log.data + at);
        at += sizeof(uint64_t);
        assert_int_equal(
            batch_apply(&copy, slice_of(builder.log.data + at, len), NULL, 0, &count, &msg), 0);
        at += len;
    }
    assert_true(state_hash(&copy) == hash);
    state_close(&copy);
    buf_close(&bytes);
    state_builder_close(&builder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_snapshot_restores_the_same_state_and_index),
        cmocka_unit_test(test_restoring_replaces_what_was_there),
        cmocka_unit_test(test_every_damaged_byte_is_noticed_and_the_state_stays),
        cmocka_unit_test(test_an_unknown_format_is_told_apart),
        cmocka_unit_test(test_replaying_what_a_snapshot_holds_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
