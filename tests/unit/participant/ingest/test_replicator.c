/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas that fail, fall silent or are slow: dropped while a quorum is left, and nothing of them
 * is forgotten too early. */
#include "participant/ingest/replicator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "tests/lib/fake_load_world.h"

enum { BUCKETS = 4, PIECE = 1000 };

struct fixture {
    struct fake_load_world world;
    struct msg_txn_begin_reply plan;
    struct rowset_meta metas[BUCKETS];
    struct digest_stream *digests[BUCKETS];
    struct replicator *replicator;
    unsigned looks; /* at whether to stop: each waits a little */
    unsigned stop_after;
};

/* Time passes quickly: a second for each look at the clock while somebody waits. */
static uint64_t now_us;
static uint64_t fast_now(struct clock *clock)
{
    (void)clock;
    return now_us += 100000;
}
static struct clock fast = {.wall_us = fast_now, .monotonic_us = fast_now};

static bool stopped(void *ctx, struct tg_errmsg *msg)
{
    struct fixture *f = ctx;
    if (f->stop_after == 0 || ++f->looks < f->stop_after)
        return false;
    tg_fail(msg, TG_CANCELED, "told to stop");
    return true;
}

static void setup(struct fixture *f, bool write_all)
{
    struct tg_errmsg msg = {{0}};
    struct buf head = BUF_INIT;
    struct buf reply = BUF_INIT;
    struct msg_txn_begin begin = {.node = 1, .epoch = 1, .request_id = 1, .label = "L"};

    memset(f, 0, sizeof *f);
    fake_load_world_init(&f->world, KEY_DUPLICATE, 1, "k INT", BUCKETS);
    f->world.replicas = 3;
    f->world.write_all = write_all;
    msg_txn_begin_encode(&begin, &head);
    assert_int_equal(f->world.calls.coordinator(f->world.calls.ctx, 20, &head, 0, 0, &reply, &msg),
                     0);
    msg_txn_begin_reply_init(&f->plan);
    assert_int_equal(msg_txn_begin_reply_decode(slice_of(reply.data, reply.len), &f->plan), 0);
    buf_close(&reply);
    struct replicator_options options = {.calls = &f->world.calls,
                                         .clock = &fast,
                                         .plan = &f->plan,
                                         .node = 1,
                                         .epoch = 1,
                                         .backlog_bytes = 3 * REPLICATOR_MESSAGE_BYTES,
                                         .stopped = stopped,
                                         .ctx = f};
    assert_int_equal(replicator_open(&options, &f->replicator), 0);
    for (uint32_t b = 0; b < BUCKETS; b++) {
        rowset_meta_init(&f->metas[b]);
        f->metas[b].tablet = 100 + b;
        f->metas[b].rowset = FAKE_ROWSET;
        f->metas[b].txn = f->plan.txn;
        f->metas[b].table = f->plan.table;
        f->digests[b] = digest_stream_open();
    }
}

static void teardown(struct fixture *f)
{
    replicator_close(f->replicator);
    fake_load_world_close(&f->world); /* late answers come after the load has ended */
    for (uint32_t b = 0; b < BUCKETS; b++) {
        rowset_meta_close(&f->metas[b]);
        digest_stream_close(f->digests[b]);
    }
    msg_txn_begin_reply_close(&f->plan);
}

static int put(struct fixture *f, uint32_t bucket, size_t len, struct tg_errmsg *msg)
{
    uint8_t *bytes = calloc(1, len);
    memset(bytes, (int)bucket + 1, len);
    uint64_t offset = f->metas[bucket].bytes;
    rowset_meta_add_block(&f->metas[bucket], offset, (uint32_t)len, 1, 0, slice_str("a"),
                          slice_str("a"));
    f->metas[bucket].bytes += len;
    f->metas[bucket].rows++;
    digest_stream_add(f->digests[bucket], bytes, len);
    int err = replicator_piece(f->replicator, bucket, offset, slice_of(bytes, len), msg);
    free(bytes);
    return err;
}

static int seal(struct fixture *f, struct tg_errmsg *msg)
{
    static const uint32_t ALL[BUCKETS] = {0, 1, 2, 3};
    const struct rowset_meta *metas[BUCKETS];
    for (uint32_t b = 0; b < BUCKETS; b++) {
        f->metas[b].digest = digest_stream_value(f->digests[b]);
        metas[b] = &f->metas[b];
    }
    return replicator_seal(f->replicator, ALL, metas, BUCKETS, msg);
}

static void check_sealed(struct fixture *f, uint8_t bits)
{
    for (uint32_t b = 0; b < BUCKETS; b++)
        assert_int_equal(replicator_sealed(f->replicator, b), bits);
}

static void test_all_replicas_get_the_same_bytes_in_few_messages(void **state)
{
    struct fixture f;
    struct tg_errmsg msg = {{0}};
    (void)state;
    setup(&f, false);
    for (uint32_t b = 0; b < BUCKETS; b++)
        assert_int_equal(put(&f, b, PIECE, &msg), 0);
    assert_int_equal(seal(&f, &msg), 0);
    check_sealed(&f, 7);
    for (uint32_t n = 1; n <= 3; n++) {
        assert_int_equal(f.world.messages[n], 1);
        for (uint32_t b = 0; b < BUCKETS; b++) {
            assert_true(f.world.tablets[n][b].sealed);
            assert_int_equal(f.world.tablets[n][b].content.len, PIECE);
        }
    }
    teardown(&f);
}

static void test_big_content_is_cut_into_messages(void **state)
{
    struct fixture f;
    struct tg_errmsg msg = {{0}};
    (void)state;
    setup(&f, false);
    for (uint32_t b = 0; b < BUCKETS; b++)
        assert_int_equal(put(&f, b, 2500000, &msg), 0);
    assert_int_equal(seal(&f, &msg), 0);
    check_sealed(&f, 7);
    assert_true(f.world.messages[2] >= 8);
    teardown(&f);
}

static void test_a_silent_replica_is_dropped_when_its_backlog_stays_full(void **state)
{
    struct fixture f;
    struct tg_errmsg msg = {{0}};
    (void)state; /* rule 20 */
    setup(&f, false);
    f.world.silent[3] = true;
    for (int i = 0; i < 6; i++)
        assert_int_equal(put(&f, 0, REPLICATOR_MESSAGE_BYTES, &msg), 0);
    for (uint32_t b = 1; b < BUCKETS; b++)
        assert_int_equal(put(&f, b, PIECE, &msg), 0);
    assert_true(f.world.messages[3] <= 4);
    assert_int_equal(seal(&f, &msg), 0);
    check_sealed(&f, 3);
    teardown(&f);
}

static void test_a_straggler_is_awaited_for_a_bounded_time(void **state)
{
    struct fixture f;
    struct tg_errmsg msg = {{0}};
    (void)state;
    setup(&f, false);
    f.world.silent[2] = true;
    for (uint32_t b = 0; b < BUCKETS; b++)
        assert_int_equal(put(&f, b, PIECE, &msg), 0);
    uint64_t began = now_us;
    assert_int_equal(seal(&f, &msg), 0);
    assert_true(now_us - began < (REPLICATOR_GRACE_MS + 1000) * UINT64_C(1000));
    check_sealed(&f, 5);
    teardown(&f);
}

static void test_without_a_quorum_the_load_fails_and_says_which_tablet(void **state)
{
    struct fixture f;
    struct tg_errmsg msg = {{0}};
    (void)state;
    setup(&f, false);
    f.world.replicate_err[1] = TG_NOSPACE;
    f.world.silent[2] = true;
    for (uint32_t b = 0; b < BUCKETS; b++)
        assert_int_equal(put(&f, b, PIECE, &msg), 0);
    assert_int_equal(seal(&f, &msg), TG_QUORUM);
    assert_non_null(
        strstr(msg.text, "tablet 100 succ replica num 1 < load required replica num 2"));
    teardown(&f);
}

static void test_write_all_needs_every_replica(void **state)
{
    struct fixture f;
    struct tg_errmsg msg = {{0}};
    (void)state;
    setup(&f, true);
    f.world.replicate_err[3] = TG_UNREACHABLE;
    for (uint32_t b = 0; b < BUCKETS; b++)
        assert_int_equal(put(&f, b, PIECE, &msg), 0);
    assert_int_equal(seal(&f, &msg), TG_QUORUM);
    teardown(&f);
}

static void test_a_replica_that_is_behind_is_neither_sent_to_nor_waited_for(void **state)
{
    struct fixture f;
    struct tg_errmsg msg = {{0}};
    (void)state; /* rule 3 */
    setup(&f, false);
    for (uint32_t b = 0; b < BUCKETS; b++)
        f.plan.tablets[b].behind = 2;
    f.world.silent[2] = true; /* waiting for it would cost the whole grace time */
    for (uint32_t b = 0; b < BUCKETS; b++)
        assert_int_equal(put(&f, b, PIECE, &msg), 0);
    uint64_t began = clock_monotonic_ms(clock_system());
    assert_int_equal(seal(&f, &msg), 0);
    assert_true(clock_monotonic_ms(clock_system()) - began < REPLICATOR_GRACE_MS / 2);
    assert_int_equal(f.world.tablets[2][0].content.len, 0);
    teardown(&f);

    setup(&f, false);
    for (uint32_t b = 0; b < BUCKETS; b++)
        f.plan.tablets[b].behind = 2;
    f.world.replicate_err[3] = TG_UNREACHABLE;
    for (uint32_t b = 0; b < BUCKETS; b++)
        assert_int_equal(put(&f, b, PIECE, &msg), 0);
    assert_int_equal(seal(&f, &msg), TG_QUORUM);
    teardown(&f);
}

/* Its repair comes to an end: it is written to, and is no part of a quorum. */
static void test_a_replica_that_catches_up_is_written_to_and_does_not_count(void **state)
{
    struct fixture f;
    struct tg_errmsg msg = {{0}};
    (void)state;
    setup(&f, false);
    for (uint32_t b = 0; b < BUCKETS; b++)
        f.plan.tablets[b].behind = f.plan.tablets[b].catching = 2;
    for (uint32_t b = 0; b < BUCKETS; b++)
        assert_int_equal(put(&f, b, PIECE, &msg), 0);
    assert_int_equal(seal(&f, &msg), 0);
    for (uint32_t b = 0; b < BUCKETS; b++)
        assert_int_equal(replicator_sealed(f.replicator, b), 7);
    teardown(&f);

    setup(&f, false);
    for (uint32_t b = 0; b < BUCKETS; b++)
        f.plan.tablets[b].behind = f.plan.tablets[b].catching = 2;
    f.world.replicate_err[3] = TG_UNREACHABLE;
    for (uint32_t b = 0; b < BUCKETS; b++)
        assert_int_equal(put(&f, b, PIECE, &msg), 0);
    assert_int_equal(seal(&f, &msg), TG_QUORUM);
    teardown(&f);

    /* Dead: no load is kept from its quorum. */
    setup(&f, false);
    for (uint32_t b = 0; b < BUCKETS; b++)
        f.plan.tablets[b].behind = f.plan.tablets[b].catching = 2;
    f.world.replicate_err[2] = TG_UNREACHABLE;
    for (uint32_t b = 0; b < BUCKETS; b++)
        assert_int_equal(put(&f, b, PIECE, &msg), 0);
    assert_int_equal(seal(&f, &msg), 0);
    teardown(&f);
}

static void test_a_stop_ends_a_wait(void **state)
{
    struct fixture f;
    struct tg_errmsg msg = {{0}};
    (void)state;
    setup(&f, false);
    f.world.silent[1] = f.world.silent[2] = f.world.silent[3] = true;
    f.stop_after = 3;
    for (uint32_t b = 0; b < BUCKETS; b++)
        assert_int_equal(put(&f, b, PIECE, &msg), 0);
    assert_int_equal(seal(&f, &msg), TG_CANCELED);
    assert_string_equal(msg.text, "told to stop");
    teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_replicas_get_the_same_bytes_in_few_messages),
        cmocka_unit_test(test_big_content_is_cut_into_messages),
        cmocka_unit_test(test_a_silent_replica_is_dropped_when_its_backlog_stays_full),
        cmocka_unit_test(test_a_straggler_is_awaited_for_a_bounded_time),
        cmocka_unit_test(test_without_a_quorum_the_load_fails_and_says_which_tablet),
        cmocka_unit_test(test_write_all_needs_every_replica),
        cmocka_unit_test(test_a_replica_that_is_behind_is_neither_sent_to_nor_waited_for),
        cmocka_unit_test(test_a_replica_that_catches_up_is_written_to_and_does_not_count),
        cmocka_unit_test(test_a_stop_ends_a_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
