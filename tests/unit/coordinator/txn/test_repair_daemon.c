/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas that are behind are cloned from good ones, within limits, until they are good; with
 * participants that answer when the test says so. */
#include "coordinator/txn/repair_daemon.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/check.h"
#include "coordinator/txn/repair_plan.h"
#include "tests/lib/coordinator_scene.h"

enum { CALLS_MAX = 64, LEASE_MS = 2000, BUCKETS = 12 };

struct call {
    struct msg_clone message;
    participants_clone_done *done;
    void *data;
};

struct fake_participants {
    struct participants base;
    unsigned count;
    struct call calls[CALLS_MAX];
};

struct fixture {
    struct coordinator_scene scene;
    struct fake_participants participants;
    struct health health;
    struct repair_daemon *daemon;
};

static void clone_tablet(struct participants *base, node_id node, const char *address,
                         const struct msg_clone *message, uint64_t timeout_ms,
                         participants_clone_done *done, void *data)
{
    struct fake_participants *fake = (struct fake_participants *)base;

    TG_CHECK(fake->count < CALLS_MAX && address[0] != '\0' && timeout_ms > 0);
    TG_CHECK(message->node == node && message->address[0] != '\0' && message->source != node);
    fake->calls[fake->count++] = (struct call){*message, done, data};
}

static const struct participants_ops fake_ops = {.clone = clone_tablet};

static struct call take(struct fixture *f)
{
    assert_true(f->participants.count > 0);
    struct call call = f->participants.calls[0];
    f->participants.count--;
    memmove(&f->participants.calls[0], &f->participants.calls[1],
            f->participants.count * sizeof call);
    return call;
}

static void answer(struct fixture *f, int err, enum clone_state state, version_t bound)
{
    struct call call = take(f);
    struct msg_clone_reply reply = {.state = state,
                                    .bound = bound,
                                    .proven = call.message.prove,
                                    .err = state == CLONE_FAILED ? TG_IO : 0};
    const struct tablet *tablet =
        catalog_tablet(&consensus_state(f->scene.consensus)->catalog, call.message.tablet);

    if (tablet != NULL) /* it holds what the log has */
        reply.chain = tablet->chain;
    call.done(call.data, err, err == 0 ? &reply : NULL);
}

/* Time passes and the daemon looks; what it proposes is applied. */
static void look(struct fixture *f, uint64_t ms)
{
    fake_clock_advance_ms(&f->scene.clock, ms);
    repair_daemon_run(f->daemon);
    fake_consensus_run(f->scene.fake);
}

/* They are heard, so that they stay alive. */
static void heard(struct fixture *f, node_id first, node_id last)
{
    for (node_id node = first; node <= last; node++) {
        struct msg_heartbeat message = {.node = node, .epoch = 1};

        assert_int_equal(
            health_heard(&f->health, &message, clock_monotonic_ms(&f->scene.clock.clock)), 0);
    }
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    coordinator_scene_open(&f->scene);
    f->participants.base.ops = &fake_ops;
    health_init(&f->health, LEASE_MS, clock_monotonic_ms(&f->scene.clock.clock));
    assert_int_equal(repair_daemon_open(f->scene.consensus, &f->participants.base, &f->health,
                                        &f->scene.clock.clock, &f->daemon),
                     0);
    coordinator_scene_load(&f->scene, 1, "one", LOAD_FINISH_COMMIT);
    coordinator_scene_load(&f->scene, 2, "two", LOAD_FINISH_COMMIT);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    repair_daemon_close(f->daemon);
    while (f->participants.count > 0) /* late answers find nobody */
        answer(f, TG_CANCELED, CLONE_UNDER_WAY, 0);
    health_close(&f->health);
    coordinator_scene_close(&f->scene);
    free(f);
    return 0;
}

static struct tablet *tablet_of(struct fixture *f, unsigned bucket)
{
    return coordinator_scene_table(&f->scene, "t")->tablets[bucket];
}

static const struct replica *replica_of(struct fixture *f, unsigned bucket, node_id node)
{
    const struct tablet *tablet = tablet_of(f, bucket);
    return &tablet->replicas[tablet_slot(tablet, node)];
}

static void lacks(struct fixture *f, unsigned bucket, node_id node, version_t version)
{
    struct command command = {.type = COMMAND_REPLICA_LACKS,
                              .replica = {tablet_of(f, bucket)->id, node, version}};

    assert_int_equal(fake_consensus_do(f->scene.fake, &command).err, 0);
}

static void test_a_replica_is_cloned_written_to_again_and_healed(void **state)
{
    struct fixture *f = *state;

    look(f, REPAIR_LOOK_MS);
    assert_int_equal(f->participants.count, 0); /* all is well */
    lacks(f, 0, 2, 2);
    look(f, REPAIR_LOOK_MS);
    assert_int_equal(f->participants.count, 1);
    const struct msg_clone *order = &f->participants.calls[0].message;
    assert_int_equal(order->node, 2);
    assert_int_equal(order->tablet, tablet_of(f, 0)->id);
    assert_int_equal(order->lacks, 2);
    uint64_t round = order->round;
    assert_int_equal(repair_daemon_active(f->daemon), 1);
    /* Not ready: asked again, after a while, with the same round. */
    answer(f, 0, CLONE_UNDER_WAY, 0);
    look(f, 1);
    assert_int_equal(f->participants.count, 0);
    look(f, REPAIR_ASK_MS_MIN);
    assert_int_equal(f->participants.calls[0].message.round, round);
    answer(f, 0, CLONE_DONE, 2);
    look(f, 1);
    assert_true(replica_of(f, 0, 2)->catching);
    look(f, 1);
    assert_false(replica_of(f, 0, 2)->behind);
    assert_int_equal(repair_daemon_active(f->daemon), 0);
    look(f, REPAIR_LOOK_MS);
    assert_int_equal(f->participants.count, 0);
}

/* What was committed between the clone and CATCH is fetched by another round. */
static void test_a_gap_takes_another_round(void **state)
{
    struct fixture *f = *state;

    lacks(f, 0, 2, 1);
    look(f, REPAIR_LOOK_MS);
    answer(f, 0, CLONE_DONE, 1);
    look(f, 1); /* CATCH; version 2 is missing still */
    assert_true(replica_of(f, 0, 2)->catching);
    assert_int_equal(replica_of(f, 0, 2)->missed_version, 2);
    look(f, 1);
    assert_int_equal(f->participants.count, 1);
    assert_int_equal(f->participants.calls[0].message.lacks, 0); /* it was checked */
    answer(f, 0, CLONE_DONE, 2);
    look(f, 1);
    assert_false(replica_of(f, 0, 2)->behind);
}

static void test_a_failure_is_tried_again_later_and_elsewhere(void **state)
{
    struct fixture *f = *state;

    lacks(f, 0, 2, 2);
    look(f, REPAIR_LOOK_MS);
    node_id first = f->participants.calls[0].message.source;
    answer(f, 0, CLONE_FAILED, 0);
    assert_int_equal(repair_daemon_active(f->daemon), 0);
    look(f, REPAIR_RETRY_MS_MIN / 2);
    assert_int_equal(f->participants.count, 0);
    look(f, REPAIR_RETRY_MS_MIN);
    assert_int_equal(f->participants.count, 1);
    assert_int_not_equal(f->participants.calls[0].message.source, first);
    /* No answer at all: the same round, since it may have arrived. */
    uint64_t round = f->participants.calls[0].message.round;
    answer(f, TG_TIMEOUT, 0, 0);
    look(f, REPAIR_RETRY_MS_MAX);
    heard(f, 1, 3);
    look(f, REPAIR_RETRY_MS_MAX);
    assert_true(f->participants.count <= 1);
    heard(f, 1, 3);
    look(f, REPAIR_LOOK_MS);
    assert_int_equal(f->participants.count, 1);
    assert_true(f->participants.calls[0].message.round >= round);
}

static void test_who_is_dead_is_neither_repaired_nor_asked(void **state)
{
    struct fixture *f = *state;

    lacks(f, 0, 2, 2);
    fake_clock_advance_ms(&f->scene.clock, LEASE_MS + 1);
    heard(f, 1, 1);
    look(f, 1);
    assert_int_equal(f->participants.count, 0);
    heard(f, 1, 2);
    look(f, REPAIR_LOOK_MS);
    assert_int_equal(f->participants.count, 1);
    assert_int_equal(f->participants.calls[0].message.source, 1);
    /* It dies in the middle: its round keeps nobody else from one. */
    answer(f, 0, CLONE_UNDER_WAY, 0);
    fake_clock_advance_ms(&f->scene.clock, LEASE_MS + 1);
    heard(f, 1, 1);
    look(f, 1);
    assert_int_equal(f->participants.count, 0);
    assert_int_equal(repair_daemon_active(f->daemon), 0);
}

/* Each lacks another version: they help one another, and nobody believes the other blindly. */
static void test_without_a_good_replica_they_clone_from_each_other(void **state)
{
    struct fixture *f = *state;

    lacks(f, 0, 1, 1);
    lacks(f, 0, 2, 2);
    look(f, REPAIR_LOOK_MS);
    assert_int_equal(f->participants.count, 2);
    for (unsigned i = 0; i < f->participants.count; i++) {
        assert_true(f->participants.calls[i].message.trusted);
        assert_int_equal(f->participants.calls[i].message.source, 3);
    }
    while (f->participants.count > 0)
        answer(f, 0, CLONE_FAILED, 0);
    lacks(f, 0, 3, 2);
    look(f, REPAIR_RETRY_MS_MIN + 1);
    assert_int_equal(f->participants.count, 3);
    for (unsigned i = 0; i < 3; i++)
        assert_false(f->participants.calls[i].message.trusted);
    while (f->participants.count > 0)
        answer(f, 0, CLONE_DONE, 1);
    look(f, 1); /* CATCH */
    look(f, 1); /* another round */
    assert_int_equal(f->participants.count, 3);
    /* A source that has no more is not asked again at once. */
    while (f->participants.count > 0)
        answer(f, 0, CLONE_DONE, 1);
    look(f, REPAIR_LOOK_MS);
    assert_int_equal(f->participants.count, 0);
    look(f, REPAIR_RETRY_MS_MIN);
    assert_int_equal(f->participants.count, 3);
}

static void test_what_is_reported_as_damaged_is_repaired(void **state)
{
    struct fixture *f = *state;
    struct msg_heartbeat message = {.node = 3, .epoch = 1, .damaged_count = 3};

    message.damaged = calloc(3, sizeof *message.damaged);
    message.damaged[0] = (struct damaged_version){tablet_of(f, 1)->id, 1};
    message.damaged[1] = (struct damaged_version){4711, 1};                 /* nobody's */
    message.damaged[2] = (struct damaged_version){tablet_of(f, 0)->id, 77}; /* no version */
    assert_int_equal(health_heard(&f->health, &message, clock_monotonic_ms(&f->scene.clock.clock)),
                     0);
    look(f, REPAIR_LOOK_MS);
    assert_true(replica_of(f, 1, 3)->behind);
    assert_false(replica_of(f, 0, 3)->behind);
    assert_int_equal(replica_of(f, 1, 3)->behind_version, 1);
    look(f, REPAIR_LOOK_MS);
    assert_int_equal(f->participants.count, 1);
    assert_int_equal(f->participants.calls[0].message.node, 3);
    assert_int_equal(f->participants.calls[0].message.lacks, 1);
}

/* A follower does nothing, and a new leader finds what there is to do. */
static void test_a_new_leader_begins_anew(void **state)
{
    struct fixture *f = *state;

    lacks(f, 0, 2, 2);
    look(f, REPAIR_LOOK_MS);
    uint64_t round = f->participants.calls[0].message.round;
    fake_consensus_set_leader(f->scene.fake, false);
    repair_daemon_reset(f->daemon);
    answer(f, 0, CLONE_DONE, 2); /* nobody waits for it */
    look(f, REPAIR_LOOK_MS);
    assert_int_equal(f->participants.count, 0);
    fake_consensus_set_leader(f->scene.fake, true);
    repair_daemon_reset(f->daemon);
    look(f, REPAIR_LOOK_MS);
    assert_int_equal(f->participants.count, 1);
    assert_true(f->participants.calls[0].message.round > round);
}

/* ---- limits ---- */

static void test_so_many_at_once_and_not_more(void **state)
{
    (void)state;
    struct state_builder b;
    struct state_builder_table table = {
        .db = "d", .table = "t", .buckets = BUCKETS, .replication = 3};
    struct health health;
    struct repair_step steps[REPAIR_STEPS_MAX];
    state_builder_init(&b);
    state_builder_members(&b, 1, 3);
    state_builder_db(&b, "d");
    assert_int_equal(state_builder_table(&b, &table), 0);
    state_builder_load(&b, "d", "t", "a");
    health_init(&health, LEASE_MS, 0);
    const struct table *t = state_builder_find(&b, "d", "t");
    for (unsigned i = 0; i < BUCKETS; i++)
        for (node_id node = 2; node <= 3; node++) {
            struct command command = {.type = COMMAND_REPLICA_LACKS,
                                      .replica = {t->tablets[i]->id, node, 1}};
            assert_int_equal(state_builder_apply(&b, &command), 0);
        }
    uint32_t count = repair_plan(&b.state, &health, NULL, 1, steps);
    unsigned into[4] = {0};
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(steps[i].act, REPAIR_ORDER);
        assert_int_equal(steps[i].source, 1);
        into[steps[i].node]++;
    }
    assert_int_equal(into[2], REPAIR_CLONES_PER_NODE);
    assert_int_equal(into[3], REPAIR_CLONES_PER_NODE);
    assert_true(count <= REPAIR_CLONES_PER_SOURCE);
    health_close(&health);
    state_builder_close(&b);
}

/* How far replicas reach is known once each has said so. */
static void test_what_is_left_is_known_once_all_have_said_so(void **state)
{
    struct fixture *f = *state;
    struct tg_errmsg msg = {{0}};
    version_t reach;

    for (node_id node = 1; node <= 3; node++)
        lacks(f, 0, node, 1);
    const struct tablet *tablet = tablet_of(f, 0);
    assert_int_equal(repair_daemon_reach(f->daemon, tablet, false, &reach, &msg), TG_REFUSED);
    look(f, REPAIR_LOOK_MS);
    assert_int_equal(repair_daemon_reach(f->daemon, tablet, false, &reach, &msg), TG_REFUSED);
    while (f->participants.count > 0)
        answer(f, 0, CLONE_DONE, 1);
    assert_int_equal(repair_daemon_reach(f->daemon, tablet, false, &reach, &msg), 0);
    assert_int_equal(reach, 1);
    /* One that is silent may hold more, unless the operator knows better. */
    fake_clock_advance_ms(&f->scene.clock, LEASE_MS + 1);
    heard(f, 1, 2);
    assert_int_equal(repair_daemon_reach(f->daemon, tablet, false, &reach, &msg), TG_REFUSED);
    assert_int_equal(repair_daemon_reach(f->daemon, tablet, true, &reach, &msg), 0);
    assert_int_equal(reach, 1);
    /* A slot that a move has left free is nobody. */
    tablet_of(f, 0)->replicas[tablet_slot(tablet, 3)].node = 0;
    assert_int_equal(repair_daemon_reach(f->daemon, tablet, false, &reach, &msg), 0);
    assert_int_equal(reach, 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_replica_is_cloned_written_to_again_and_healed),
        TEST(test_a_gap_takes_another_round),
        TEST(test_a_failure_is_tried_again_later_and_elsewhere),
        TEST(test_who_is_dead_is_neither_repaired_nor_asked),
        TEST(test_without_a_good_replica_they_clone_from_each_other),
        TEST(test_what_is_reported_as_damaged_is_repaired),
        TEST(test_what_is_left_is_known_once_all_have_said_so),
        TEST(test_a_new_leader_begins_anew),
        cmocka_unit_test(test_so_many_at_once_and_not_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
