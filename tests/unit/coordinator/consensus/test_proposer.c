/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: what waits goes out together, stamps only grow, and each proposer is told how its
 * command ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/consensus/batch.h"
#include "coordinator/consensus/proposer.h"

struct outcome {
    struct consensus_request request;
    bool done;
    int err;
    bool has_result;
    struct apply_result result;
    uint32_t turn; /* order of being told */
};

static uint32_t turns;

static void on_done(struct consensus_request *request, int err, const struct apply_result *result)
{
    struct outcome *outcome = request->data;
    assert_false(outcome->done);
    outcome->done = true;
    outcome->err = err;
    outcome->has_result = result != NULL;
    if (result != NULL)
        outcome->result = *result;
    outcome->turn = ++turns;
}

static void outcome_init(struct outcome *outcome)
{
    memset(outcome, 0, sizeof *outcome);
    outcome->request.done = on_done;
    outcome->request.data = outcome;
}

struct fixture {
    struct proposer proposer;
    struct state state;
    struct proposer_time now;
    struct buf bytes;
};

static struct fixture *fixture_open(uint32_t window)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    proposer_init(&fixture->proposer, window);
    assert_int_equal(state_init(&fixture->state), 0);
    fixture->now = (struct proposer_time){10000000, 50000};
    turns = 0;
    return fixture;
}

static void fixture_close(struct fixture *fixture)
{
    proposer_lose(&fixture->proposer);
    while (proposer_deliver(&fixture->proposer))
        ;
    proposer_close(&fixture->proposer);
    state_close(&fixture->state);
    buf_close(&fixture->bytes);
    free(fixture);
}

static void lead(struct fixture *fixture)
{
    proposer_lead(&fixture->proposer, fixture->state.stamp_us, fixture->now);
}

static struct proposer_batch *next(struct fixture *fixture)
{
    buf_clear(&fixture->bytes);
    return proposer_next(&fixture->proposer, fixture->now, &fixture->bytes);
}

static void apply(struct fixture *fixture, struct proposer_batch *batch)
{
    uint32_t count;
    struct tg_errmsg msg;
    assert_int_equal(batch_apply(&fixture->state, slice_of(fixture->bytes.data, fixture->bytes.len),
                                 batch->results, batch->commands.count, &count, &msg),
                     0);
    assert_int_equal(count, batch->commands.count);
    proposer_applied(&fixture->proposer, batch, fixture->state.stamp_us);
}

static void create_db(struct fixture *fixture, const char *name, struct outcome *outcome)
{
    struct command command = {.type = COMMAND_CREATE_DB};
    snprintf(command.name.db, sizeof command.name.db, "%s", name);
    outcome_init(outcome);
    proposer_add_command(&fixture->proposer, &command, &outcome->request);
}

static void test_what_waits_goes_out_in_one_batch_and_results_match_their_commands(void **state)
{
    (void)state;
    struct fixture *f = fixture_open(1);
    struct outcome a, b, again;
    lead(f);
    create_db(f, "a", &a);
    create_db(f, "b", &b);
    create_db(f, "a", &again);
    struct proposer_batch *batch = next(f);
    assert_non_null(batch);
    assert_int_equal(f->bytes.len % 8, 0);
    assert_null(next(f));
    assert_false(a.done);
    buf_clear(&f->bytes);
    proposer_failed(&f->proposer, batch);
    proposer_deliver(&f->proposer);
    assert_int_equal(a.err, TG_UNKNOWN_OUTCOME);
    assert_false(a.has_result);

    create_db(f, "a", &a);
    create_db(f, "b", &b);
    create_db(f, "a", &again);
    batch = next(f);
    apply(f, batch);
    assert_true(proposer_deliver(&f->proposer));
    assert_true(a.done && b.done && again.done);
    assert_int_equal(a.result.err, 0);
    assert_int_equal(b.result.err, 0);
    assert_int_not_equal(again.result.err, 0);
    assert_true(a.turn < b.turn && b.turn < again.turn);
    fixture_close(f);
}

static void test_a_follower_refuses_and_says_so_only_when_asked_to_deliver(void **state)
{
    (void)state;
    struct fixture *f = fixture_open(1);
    struct outcome a;
    create_db(f, "a", &a);
    assert_false(a.done);
    proposer_deliver(&f->proposer);
    assert_int_equal(a.err, TG_NOT_LEADER);
    fixture_close(f);
}

static void test_stamps_grow_when_the_clock_jumps_back_and_across_leaders(void **state)
{
    (void)state;
    struct fixture *f = fixture_open(1);
    struct outcome a;
    uint64_t last = 0;
    lead(f);
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "d%d", i);
        create_db(f, name, &a);
        struct proposer_batch *batch = next(f);
        assert_true(batch->stamp_us > last);
        last = batch->stamp_us;
        apply(f, batch);
        assert_true(f->state.stamp_us >= last);
        last = f->state.stamp_us;
        proposer_deliver(&f->proposer);
        assert_int_equal(a.result.err, 0);
        f->now.wall_us -= 300000; /* an operator sets the clock back */
    }
    /* Another leader, whose clock is far behind, took over and stamped above: this one follows it.
     */
    proposer_lose(&f->proposer);
    struct fixture *other = fixture_open(1);
    other->now.wall_us = 10;
    proposer_lead(&other->proposer, f->state.stamp_us, other->now);
    create_db(other, "x", &a);
    struct proposer_batch *batch = next(other);
    assert_true(batch->stamp_us > f->state.stamp_us);
    proposer_failed(&other->proposer, batch);
    fixture_close(other);
    fixture_close(f);
}

static void test_a_leader_never_stamps_twice_even_if_a_batch_was_lost(void **state)
{
    (void)state;
    struct fixture *f = fixture_open(1);
    struct outcome a;
    f->now.wall_us = 77;
    lead(f);
    create_db(f, "a", &a);
    struct proposer_batch *batch = next(f);
    uint64_t first = batch->stamp_us;
    proposer_lose(&f->proposer);
    proposer_deliver(&f->proposer);
    assert_int_equal(a.err, TG_UNKNOWN_OUTCOME);
    lead(f);
    create_db(f, "a", &a);
    batch = next(f);
    assert_true(batch->stamp_us > first);
    proposer_failed(&f->proposer, batch);
    fixture_close(f);
}

static void test_elapsed_time_is_accounted_for_once(void **state)
{
    (void)state;
    struct fixture *f = fixture_open(1);
    struct outcome a;
    /* Time without leading does not count. */
    f->now.monotonic_us += 9000 * 1000;
    lead(f);
    assert_int_equal(proposer_elapsed_ms(&f->proposer, f->now), 0);
    uint64_t total = 0;
    for (int i = 0; i < 4; i++) {
        f->now.monotonic_us += 1700; /* 1.7 ms */
        f->now.wall_us += 1700;
        create_db(f, "a", &a);
        struct proposer_batch *batch = next(f);
        total += batch->elapsed_delta_ms;
        if (i == 1) {
            /* Certainly not in the log: its time goes into the next. */
            total -= batch->elapsed_delta_ms;
            proposer_refused(&f->proposer, batch, TG_NOT_LEADER);
        } else {
            apply(f, batch);
        }
        proposer_deliver(&f->proposer);
    }
    assert_int_equal(total, 6); /* of 6.8 */
    assert_int_equal(f->state.elapsed_ms, 6);
    fixture_close(f);
}

static void test_losing_leadership_tells_what_flies_from_what_waits(void **state)
{
    (void)state;
    struct fixture *f = fixture_open(1);
    struct outcome flies, waits, barrier, late;
    lead(f);
    create_db(f, "a", &flies);
    assert_non_null(next(f));
    create_db(f, "b", &waits);
    outcome_init(&barrier);
    proposer_add_barrier(&f->proposer, 0, f->now, &barrier.request);
    proposer_lose(&f->proposer);
    proposer_deliver(&f->proposer);
    assert_int_equal(flies.err, TG_UNKNOWN_OUTCOME);
    assert_int_equal(waits.err, TG_NOT_LEADER);
    assert_int_equal(barrier.err, TG_NOT_LEADER);
    create_db(f, "c", &late);
    proposer_deliver(&f->proposer);
    assert_int_equal(late.err, TG_NOT_LEADER);
    assert_true(proposer_is_idle(&f->proposer));
    fixture_close(f);
}

static void test_batches_stay_within_their_limits(void **state)
{
    (void)state;
    enum { COUNT = 10 };
    struct fixture *f = fixture_open(1);
    struct outcome outcomes[COUNT];
    lead(f);
    f->proposer.batch_commands_max = 4;
    for (int i = 0; i < COUNT; i++) {
        char name[16];
        snprintf(name, sizeof name, "d%d", i);
        create_db(f, name, &outcomes[i]);
    }
    size_t sizes[3] = {4, 4, 2};
    for (int i = 0; i < 3; i++) {
        struct proposer_batch *batch = next(f);
        assert_int_equal(batch->commands.count, sizes[i]);
        apply(f, batch);
        proposer_deliver(&f->proposer);
    }
    assert_null(next(f));
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(outcomes[i].result.err, 0);

    f->proposer.batch_commands_max = BATCH_COMMANDS_MAX;
    f->proposer.batch_bytes_max = 128 + 30; /* room for a few names */
    for (int i = 0; i < COUNT; i++)
        create_db(f, "same", &outcomes[i]);
    int batches = 0;
    for (struct proposer_batch *batch; (batch = next(f)) != NULL; batches++) {
        assert_true(f->bytes.len <= f->proposer.batch_bytes_max);
        apply(f, batch);
        proposer_deliver(&f->proposer);
    }
    assert_true(batches > 1 && batches <= COUNT);
    fixture_close(f);
}

static void test_barriers_share_an_empty_batch_and_ride_on_others(void **state)
{
    (void)state;
    struct fixture *f = fixture_open(1);
    struct outcome a, b, command;
    lead(f);
    assert_null(next(f));
    outcome_init(&a);
    outcome_init(&b);
    proposer_add_barrier(&f->proposer, 0, f->now, &a.request);
    proposer_add_barrier(&f->proposer, 0, f->now, &b.request);
    struct proposer_batch *batch = next(f);
    assert_int_equal(batch->commands.count, 0);
    assert_int_equal(batch->barriers.count, 2);
    apply(f, batch);
    proposer_deliver(&f->proposer);
    assert_true(a.done && a.err == 0 && !a.has_result);
    assert_true(b.done && b.err == 0);

    outcome_init(&a);
    proposer_add_barrier(&f->proposer, 0, f->now, &a.request);
    create_db(f, "x", &command);
    batch = next(f);
    assert_int_equal(batch->commands.count, 1);
    assert_int_equal(batch->barriers.count, 1);
    apply(f, batch);
    proposer_deliver(&f->proposer);
    assert_null(next(f));
    fixture_close(f);
}

static void test_a_barrier_that_closes_time_waits_for_it(void **state)
{
    (void)state;
    struct fixture *f = fixture_open(1);
    struct outcome soon, far;
    lead(f);
    outcome_init(&soon);
    proposer_add_barrier(&f->proposer, f->now.wall_us + 3000, f->now, &soon.request);
    assert_null(next(f));
    assert_int_equal(proposer_due_us(&f->proposer), f->now.monotonic_us + 3000);
    /* The wall clock goes back meanwhile: the wait is over all the same, and the stamp is where it
     * was asked. */
    uint64_t closes = f->now.wall_us + 3000;
    f->now.wall_us -= 500000;
    f->now.monotonic_us += 3000;
    struct proposer_batch *batch = next(f);
    assert_non_null(batch);
    assert_int_equal(batch->stamp_us, closes);
    apply(f, batch);
    proposer_deliver(&f->proposer);
    assert_true(soon.done && soon.err == 0);
    assert_true(f->state.stamp_us >= closes);

    outcome_init(&far);
    proposer_add_barrier(&f->proposer, f->now.wall_us + 3600ULL * 1000000, f->now, &far.request);
    proposer_deliver(&f->proposer);
    assert_int_equal(far.err, TG_FUTURE);
    fixture_close(f);
}

static void test_a_window_of_two_sends_a_second_batch_and_tells_in_order(void **state)
{
    (void)state;
    struct fixture *f = fixture_open(2);
    struct outcome a, b, c;
    struct buf first = BUF_INIT;
    uint32_t count;
    lead(f);
    create_db(f, "a", &a);
    struct proposer_batch *one = next(f);
    buf_append(&first, f->bytes.data, f->bytes.len);
    create_db(f, "b", &b);
    struct proposer_batch *two = next(f);
    assert_non_null(two);
    assert_true(two->stamp_us > one->stamp_us);
    struct buf second = BUF_INIT;
    buf_append(&second, f->bytes.data, f->bytes.len);
    create_db(f, "c", &c);
    assert_null(next(f));
    assert_int_equal(
        batch_apply(&f->state, slice_of(first.data, first.len), one->results, 1, &count, NULL), 0);
    assert_int_equal(
        batch_apply(&f->state, slice_of(second.data, second.len), two->results, 1, &count, NULL),
        0);
    proposer_applied(&f->proposer, two, f->state.stamp_us);
    proposer_applied(&f->proposer, one, f->state.stamp_us);
    proposer_deliver(&f->proposer);
    assert_true(a.turn < b.turn);
    assert_int_equal(a.result.err, 0);
    assert_int_equal(b.result.err, 0);
    buf_close(&first);
    buf_close(&second);
    fixture_close(f);
}

static void test_a_full_disk_refuses_new_work_first(void **state)
{
    (void)state;
    struct fixture *f = fixture_open(1);
    struct outcome begin, abort, later;
    struct command command = {.type = COMMAND_TXN_ABORT};
    lead(f);
    proposer_set_room(&f->proposer, PROPOSER_ROOM_RESERVE);
    create_db(f, "a", &begin);
    outcome_init(&abort);
    proposer_add_command(&f->proposer, &command, &abort.request);
    proposer_deliver(&f->proposer);
    assert_int_equal(begin.err, TG_NOSPACE);
    assert_false(abort.done);
    proposer_set_room(&f->proposer, PROPOSER_ROOM_NONE);
    outcome_init(&later);
    proposer_add_command(&f->proposer, &command, &later.request);
    proposer_deliver(&f->proposer);
    assert_int_equal(later.err, TG_NOSPACE);
    fixture_close(f);
}

static void test_a_batch_out_of_time_order_is_void(void **state)
{
    (void)state;
    struct fixture *f = fixture_open(1);
    struct outcome a;
    uint32_t count;
    struct apply_result result;
    lead(f);
    create_db(f, "a", &a);
    struct proposer_batch *batch = next(f);
    apply(f, batch);
    proposer_deliver(&f->proposer);
    uint64_t hash = state_hash(&f->state);
    assert_int_equal(
        batch_apply(&f->state, slice_of(f->bytes.data, f->bytes.len), &result, 1, &count, NULL), 0);
    assert_int_equal(result.err, TG_STALE);
    assert_true(state_hash(&f->state) == hash);
    fixture_close(f);
}

static void test_damaged_or_unknown_batches_are_errors(void **state)
{
    (void)state;
    struct fixture *f = fixture_open(1);
    struct outcome a;
    uint32_t count;
    lead(f);
    create_db(f, "a", &a);
    struct proposer_batch *batch = next(f);
    proposer_failed(&f->proposer, batch);
    for (size_t len = 0; len + 8 < f->bytes.len; len += 8) {
        struct state fresh;
        assert_int_equal(state_init(&fresh), 0);
        assert_int_not_equal(
            batch_apply(&fresh, slice_of(f->bytes.data, len), NULL, 0, &count, NULL), 0);
        state_close(&fresh);
    }
    fixture_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_waits_goes_out_in_one_batch_and_results_match_their_commands),
        cmocka_unit_test(test_a_follower_refuses_and_says_so_only_when_asked_to_deliver),
        cmocka_unit_test(test_stamps_grow_when_the_clock_jumps_back_and_across_leaders),
        cmocka_unit_test(test_a_leader_never_stamps_twice_even_if_a_batch_was_lost),
        cmocka_unit_test(test_elapsed_time_is_accounted_for_once),
        cmocka_unit_test(test_losing_leadership_tells_what_flies_from_what_waits),
        cmocka_unit_test(test_batches_stay_within_their_limits),
        cmocka_unit_test(test_barriers_share_an_empty_batch_and_ride_on_others),
        cmocka_unit_test(test_a_barrier_that_closes_time_waits_for_it),
        cmocka_unit_test(test_a_window_of_two_sends_a_second_batch_and_tells_in_order),
        cmocka_unit_test(test_a_full_disk_refuses_new_work_first),
        cmocka_unit_test(test_a_batch_out_of_time_order_is_void),
        cmocka_unit_test(test_damaged_or_unknown_batches_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
