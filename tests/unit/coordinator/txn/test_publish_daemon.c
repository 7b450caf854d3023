/* SPDX-License-Identifier: Apache-2.0 */
/* The publisher: COMMITTED to VISIBLE, with participants that answer when the test says so. */
#include "coordinator/txn/publish_daemon.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/check.h"
#include "tests/lib/coordinator_scene.h"

enum { CALLS_MAX = 64 };

/* A message on its way to a participant. */
struct call {
    node_id node;
    struct msg_publish message; /* a copy by its encoding */
    participants_publish_done *done;
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
    struct publish_daemon *daemon;
};

static void publish(struct participants *base, node_id node, const char *address,
                    const struct msg_publish *message, uint64_t timeout_ms,
                    participants_publish_done *done, void *data)
{
    struct fake_participants *fake = (struct fake_participants *)base;
    struct buf bytes = BUF_INIT;

    TG_CHECK(fake->count < CALLS_MAX && address[0] != '\0' && timeout_ms > 0);
    struct call *call = &fake->calls[fake->count++];
    call->node = node;
    call->done = done;
    call->data = data;
    msg_publish_encode(message, &bytes);
    TG_CHECK(msg_publish_decode(slice_of(bytes.data, bytes.len), &call->message) == 0);
    buf_close(&bytes);
}

static const struct participants_ops fake_ops = {.publish = publish};

/* The oldest call to the node, taken off; fails the test if there is none. */
static struct call take(struct fixture *f, node_id node)
{
    struct fake_participants *fake = &f->participants;

    for (unsigned i = 0; i < fake->count; i++)
        if (fake->calls[i].node == node) {
            struct call call = fake->calls[i];

            memmove(&fake->calls[i], &fake->calls[i + 1],
                    (fake->count - i - 1) * sizeof fake->calls[0]);
            fake->count--;
            return call;
        }
    fail_msg("nothing was sent to participant %u", node);
    return (struct call){0};
}

static bool is_asked(const struct fixture *f, node_id node)
{
    for (unsigned i = 0; i < f->participants.count; i++)
        if (f->participants.calls[i].node == node)
            return true;
    return false;
}

static void answer_call(struct fixture *f, struct call *call, int err, uint8_t status)
{
    struct msg_publish_reply reply = {.count = call->message.bind_count};
    uint8_t statuses[256];

    memset(statuses, status, sizeof statuses);
    reply.status = statuses;
    call->done(call->data, err, err == 0 ? &reply : NULL);
    msg_publish_close(&call->message);
    fake_consensus_run(f->scene.fake);
}

static void answer(struct fixture *f, node_id node, int err, uint8_t status)
{
    struct call call = take(f, node);

    answer_call(f, &call, err, status);
}

static void on_applied(void *data)
{
    struct fixture *f = data;

    publish_daemon_run(f->daemon);
}

static void on_leadership(void *data, bool leads)
{
    struct fixture *f = data;

    publish_daemon_reset(f->daemon);
    if (leads)
        publish_daemon_run(f->daemon);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct publish_daemon_options options = {.publish_wait_ms = 300000, .rpc_timeout_ms = 10000};

    coordinator_scene_open(&f->scene);
    f->participants.base.ops = &fake_ops;
    assert_int_equal(publish_daemon_open(f->scene.consensus, &f->participants.base,
                                         &f->scene.clock.clock, &options, &f->daemon),
                     0);
    fake_consensus_set_observer(f->scene.fake,
                                &(struct consensus_observer){
                                    .leadership = on_leadership, .applied = on_applied, .data = f});
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    publish_daemon_close(f->daemon);
    fake_consensus_set_observer(f->scene.fake, &(struct consensus_observer){0});
    while (f->participants.count > 0) { /* late answers find nobody */
        struct call call = take(f, f->participants.calls[0].node);

        call.done(call.data, TG_CANCELED, NULL);
        msg_publish_close(&call.message);
    }
    coordinator_scene_close(&f->scene);
    free(f);
    return 0;
}

static enum txn_state state_of(const struct fixture *f, txn_id txn)
{
    return (enum txn_state)coordinator_scene_txn(&f->scene, txn)->state;
}

/* The time after which a confirmation goes out by itself. */
static void confirm_late(struct fixture *f)
{
    fake_clock_advance_ms(&f->scene.clock, PUBLISH_CONFIRM_MS);
    publish_daemon_run(f->daemon);
    fake_consensus_run(f->scene.fake);
}

static void test_a_majority_makes_it_visible_and_the_last_one_confirms(void **state)
{
    struct fixture *f = *state;
    txn_id txn = coordinator_scene_load(&f->scene, 1, "l", LOAD_FINISH_COMMIT);
    struct call call = take(f, 1);

    assert_int_equal(call.message.bind_count, 2); /* both tablets in one message */
    assert_int_equal(call.message.binds[0].version, 1);
    assert_int_equal(call.message.binds[0].prev, 0);
    assert_int_equal(call.message.binds[0].txn, txn);
    assert_int_equal(call.message.binds[0].rowset_count, 1);
    answer_call(f, &call, 0, PUBLISH_BOUND);
    assert_int_equal(state_of(f, txn), TXN_COMMITTED);
    answer(f, 2, 0, PUBLISH_BOUND);
    assert_int_equal(state_of(f, txn), TXN_VISIBLE);
    assert_false(coordinator_scene_txn(&f->scene, txn)->confirmed);
    answer(f, 3, 0, PUBLISH_BOUND);
    confirm_late(f);
    assert_true(coordinator_scene_txn(&f->scene, txn)->confirmed);
    assert_int_equal(f->participants.count, 0); /* nothing more to say */
}

static void test_a_confirmation_rides_with_the_next_that_becomes_visible(void **state)
{
    struct fixture *f = *state;
    txn_id first = coordinator_scene_load(&f->scene, 1, "a", LOAD_FINISH_COMMIT);

    for (node_id node = 1; node <= 3; node++)
        answer(f, node, 0, PUBLISH_BOUND);
    assert_int_equal(state_of(f, first), TXN_VISIBLE);
    assert_false(coordinator_scene_txn(&f->scene, first)->confirmed);
    txn_id second = coordinator_scene_load(&f->scene, 2, "b", LOAD_FINISH_COMMIT);
    answer(f, 1, 0, PUBLISH_BOUND);
    assert_false(coordinator_scene_txn(&f->scene, first)->confirmed);
    answer(f, 2, 0, PUBLISH_BOUND);
    assert_int_equal(state_of(f, second), TXN_VISIBLE);
    assert_true(coordinator_scene_txn(&f->scene, first)->confirmed);
    answer(f, 3, 0, PUBLISH_BOUND);
    fake_clock_advance_ms(&f->scene.clock, PUBLISH_CONFIRM_MS - 1);
    publish_daemon_run(f->daemon);
    fake_consensus_run(f->scene.fake);
    assert_false(coordinator_scene_txn(&f->scene, second)->confirmed);
    confirm_late(f);
    assert_true(coordinator_scene_txn(&f->scene, second)->confirmed);
}

static void test_commits_gather_while_a_message_is_in_the_air(void **state)
{
    struct fixture *f = *state;
    txn_id first = coordinator_scene_load(&f->scene, 1, "a", LOAD_FINISH_COMMIT);
    txn_id second = coordinator_scene_load(&f->scene, 2, "b", LOAD_FINISH_COMMIT);
    txn_id third = coordinator_scene_load(&f->scene, 3, "c", LOAD_FINISH_COMMIT);

    assert_int_equal(f->participants.count, 3); /* one to each */
    for (node_id node = 1; node <= 3; node++)
        answer(f, node, 0, PUBLISH_BOUND);
    assert_int_equal(state_of(f, first), TXN_VISIBLE);
    assert_int_equal(f->participants.count, 3);
    struct call call = take(f, 2);
    assert_int_equal(call.message.bind_count, 4);
    assert_int_equal(call.message.binds[0].txn, second);
    assert_int_equal(call.message.binds[1].txn, second);
    assert_int_equal(call.message.binds[2].txn, third); /* in order of versions */
    assert_int_equal(call.message.binds[2].prev, 2);
    answer_call(f, &call, 0, PUBLISH_BOUND);
    answer(f, 1, 0, PUBLISH_BOUND);
    assert_int_equal(state_of(f, second), TXN_VISIBLE);
    assert_int_equal(state_of(f, third), TXN_VISIBLE);
    assert_true(coordinator_scene_txn(&f->scene, third)->visible_us >
                coordinator_scene_txn(&f->scene, second)->visible_us);
}

static void test_a_participant_that_is_away_is_asked_again_with_pauses(void **state)
{
    struct fixture *f = *state;
    txn_id txn = coordinator_scene_load(&f->scene, 1, "l", LOAD_FINISH_COMMIT);

    answer(f, 3, TG_UNREACHABLE, 0);
    assert_false(is_asked(f, 3));
    fake_clock_advance_ms(&f->scene.clock, PUBLISH_RETRY_MS_MIN - 1);
    publish_daemon_run(f->daemon);
    assert_false(is_asked(f, 3));
    fake_clock_advance_ms(&f->scene.clock, 1);
    publish_daemon_run(f->daemon);
    answer(f, 3, TG_CLOSED, 0);
    fake_clock_advance_ms(&f->scene.clock, PUBLISH_RETRY_MS_MIN);
    publish_daemon_run(f->daemon);
    assert_false(is_asked(f, 3)); /* the pause has grown */
    answer(f, 1, 0, PUBLISH_BOUND);
    answer(f, 2, 0, PUBLISH_BOUND);
    assert_int_equal(state_of(f, txn), TXN_VISIBLE);
    fake_clock_advance_ms(&f->scene.clock, PUBLISH_RETRY_MS_MAX);
    publish_daemon_run(f->daemon);
    answer(f, 3, 0, PUBLISH_BOUND);
    confirm_late(f);
    assert_true(coordinator_scene_txn(&f->scene, txn)->confirmed);
}

static void test_a_replica_without_its_rowset_is_declared_behind(void **state)
{
    struct fixture *f = *state;
    txn_id txn = coordinator_scene_load(&f->scene, 1, "l", LOAD_FINISH_COMMIT);
    const struct table *table = coordinator_scene_table(&f->scene, "t");

    answer(f, 2, 0, PUBLISH_MISSING);
    for (uint32_t i = 0; i < 2; i++)
        assert_true(table->tablets[i]->replicas[tablet_slot(table->tablets[i], 2)].behind);
    answer(f, 1, 0, PUBLISH_BOUND);
    assert_int_equal(state_of(f, txn), TXN_COMMITTED); /* one of three is no majority */
    answer(f, 3, 0, PUBLISH_BOUND);
    assert_int_equal(state_of(f, txn), TXN_VISIBLE);
    confirm_late(f);
    assert_true(coordinator_scene_txn(&f->scene, txn)->confirmed);
}

/* Each replica lacks something else: what it holds it must bind, so that others can clone it. */
static void test_a_tablet_without_a_good_replica_is_bound_where_it_can_be(void **state)
{
    struct fixture *f = *state;
    txn_id txn = coordinator_scene_load(&f->scene, 1, "l", LOAD_FINISH_COMMIT);

    answer(f, 2, 0, PUBLISH_MISSING);
    fake_clock_advance_ms(&f->scene.clock, PUBLISH_RETRY_MS_MAX);
    publish_daemon_run(f->daemon);
    assert_false(is_asked(f, 2)); /* others are good */
    answer(f, 1, 0, PUBLISH_MISSING);
    answer(f, 3, 0, PUBLISH_MISSING);
    fake_clock_advance_ms(&f->scene.clock, PUBLISH_RETRY_MS_MAX);
    publish_daemon_run(f->daemon);
    for (node_id node = 1; node <= 3; node++)
        assert_true(is_asked(f, node));
    answer(f, 1, 0, PUBLISH_BOUND);
    answer(f, 2, 0, PUBLISH_BOUND);
    assert_int_equal(state_of(f, txn), TXN_COMMITTED); /* none of them counts yet */
    answer(f, 3, 0, PUBLISH_MISSING);
}

static void test_behind_while_an_earlier_version_is_still_out_is_only_order(void **state)
{
    struct fixture *f = *state;
    const struct table *table = coordinator_scene_table(&f->scene, "t");

    coordinator_scene_load(&f->scene, 1, "a", LOAD_FINISH_COMMIT);
    answer(f, 2, 0, PUBLISH_FAILED); /* the first version is still not bound there */
    coordinator_scene_load(&f->scene, 2, "b", LOAD_FINISH_COMMIT);
    fake_clock_advance_ms(&f->scene.clock, PUBLISH_RETRY_MS_MAX);
    publish_daemon_run(f->daemon);
    struct call call = take(f, 2);
    uint8_t status[] = {PUBLISH_FAILED, PUBLISH_FAILED, PUBLISH_BEHIND, PUBLISH_BEHIND};
    struct msg_publish_reply reply = {.count = 4, .status = status};
    assert_int_equal(call.message.bind_count, 4);
    call.done(call.data, 0, &reply);
    msg_publish_close(&call.message);
    fake_consensus_run(f->scene.fake);
    assert_false(table->tablets[0]->replicas[tablet_slot(table->tablets[0], 2)].behind);
}

static void test_after_the_wait_one_good_replica_suffices(void **state)
{
    struct fixture *f = *state;
    txn_id txn = coordinator_scene_load(&f->scene, 1, "l", LOAD_FINISH_COMMIT);

    answer(f, 1, 0, PUBLISH_BOUND);
    answer(f, 2, TG_UNREACHABLE, 0);
    answer(f, 3, TG_UNREACHABLE, 0);
    fake_clock_advance_ms(&f->scene.clock, 299000);
    publish_daemon_run(f->daemon);
    fake_consensus_run(f->scene.fake);
    assert_int_equal(state_of(f, txn), TXN_COMMITTED);
    fake_clock_advance_ms(&f->scene.clock, 1000);
    publish_daemon_run(f->daemon);
    fake_consensus_run(f->scene.fake);
    assert_int_equal(state_of(f, txn), TXN_VISIBLE);
}

static void test_a_new_leader_finds_the_work_by_looking(void **state)
{
    struct fixture *f = *state;
    txn_id txn = coordinator_scene_load(&f->scene, 1, "l", LOAD_FINISH_COMMIT);
    struct call old = take(f, 1);

    fake_consensus_set_leader(f->scene.fake, false);
    publish_daemon_run(f->daemon); /* a follower sends nothing */
    while (f->participants.count > 0)
        answer(f, f->participants.calls[0].node, 0, PUBLISH_BOUND);
    assert_int_equal(f->participants.count, 0);
    fake_consensus_set_leader(f->scene.fake, true);
    assert_int_equal(f->participants.count, 3);
    answer_call(f, &old, 0, PUBLISH_BOUND); /* of an earlier leadership: forgotten */
    answer(f, 2, 0, PUBLISH_BOUND);
    assert_int_equal(state_of(f, txn), TXN_COMMITTED);
    answer(f, 3, 0, PUBLISH_BOUND);
    assert_int_equal(state_of(f, txn), TXN_VISIBLE);
}

static void test_a_dropped_table_counts_as_published(void **state)
{
    struct fixture *f = *state;
    txn_id txn = coordinator_scene_load(&f->scene, 1, "l", LOAD_FINISH_COMMIT);
    struct command command = {.type = COMMAND_DROP_TABLE};

    strcpy(command.name.db, "d");
    strcpy(command.name.table, "t");
    assert_int_equal(fake_consensus_do(f->scene.fake, &command).err, 0);
    fake_consensus_run(f->scene.fake);
    publish_daemon_run(f->daemon);
    fake_consensus_run(f->scene.fake);
    assert_int_equal(state_of(f, txn), TXN_VISIBLE);
    for (node_id node = 1; node <= 3; node++)
        answer(f, node, 0, PUBLISH_MISSING); /* dropped there too: no harm */
}

static void register_node(struct fixture *f, node_id node)
{
    struct command command = {.type = COMMAND_MEMBER_REGISTER};
    struct msg_register *message = &command.member.message;

    message->wanted = node;
    message->new_nonce = 100 + node;
    snprintf(message->node_uuid, UUID_BYTES, "new-%u", node);
    snprintf(message->rpc, ADDRESS_BYTES, "127.0.0.1:%u", 9000 + node);
    assert_int_equal(fake_consensus_do(f->scene.fake, &command).err, 0);
}

static void move(struct fixture *f, enum command_type type, const struct tablet *tablet,
                 node_id node)
{
    struct command command = {.type = type,
                              .move = {tablet->id, node, tablet->table->placement_epoch}};

    assert_int_equal(fake_consensus_do(f->scene.fake, &command).err, 0);
}

static void heal(struct fixture *f, const struct tablet *tablet, node_id node, version_t version)
{
    struct command command = {.type = COMMAND_REPLICA_CATCH, .replica = {tablet->id, node, 0}};

    assert_int_equal(fake_consensus_do(f->scene.fake, &command).err, 0);
    command.type = COMMAND_REPLICA_HEALED;
    command.replica.version = version;
    assert_int_equal(fake_consensus_do(f->scene.fake, &command).err, 0);
}

/* What was answered from a slot is void once the slot may be another's. */
static void test_answers_do_not_count_for_the_next_holder_of_a_slot(void **state)
{
    struct fixture *f = *state;
    const struct table *table = coordinator_scene_table(&f->scene, "t");

    register_node(f, 4);
    for (unsigned i = 0; i < 2; i++) {
        move(f, COMMAND_REPLICA_ADD, table->tablets[i], 4);
        heal(f, table->tablets[i], 4, 0);
    }
    txn_id txn = coordinator_scene_load(&f->scene, 1, "l", LOAD_FINISH_COMMIT);
    node_id gone = table->tablets[0]->replicas[0].node;
    answer(f, gone, 0, PUBLISH_BOUND);
    assert_int_equal(state_of(f, txn), TXN_COMMITTED);
    for (unsigned i = 0; i < 2; i++) {
        heal(f, table->tablets[i], 4, 1); /* the load was not sealed there */
        move(f, COMMAND_REPLICA_REMOVE, table->tablets[i], gone);
    }
    register_node(f, 5);
    for (unsigned i = 0; i < 2; i++) {
        move(f, COMMAND_REPLICA_ADD, table->tablets[i], 5);
        assert_int_equal(tablet_slot(table->tablets[i], 5),
                         i == 0 ? 0 : tablet_slot(table->tablets[1], 5));
        heal(f, table->tablets[i], 5, 1);
    }
    publish_daemon_run(f->daemon);
    fake_consensus_run(f->scene.fake);
    /* One of the others and the words of the one that left are no majority. */
    node_id other = gone == 2 ? 3 : 2;
    answer(f, other, 0, PUBLISH_BOUND);
    assert_int_equal(state_of(f, txn), TXN_COMMITTED);
    assert_true(is_asked(f, 5));
    while (is_asked(f, 5)) /* tablet by tablet, as it was healed */
        answer(f, 5, 0, PUBLISH_BOUND);
    assert_int_equal(state_of(f, txn), TXN_VISIBLE);
}

static void test_an_answer_of_the_wrong_length_is_no_answer(void **state)
{
    struct fixture *f = *state;
    txn_id txn = coordinator_scene_load(&f->scene, 1, "l", LOAD_FINISH_COMMIT);
    struct call call = take(f, 1);

    /* An answer of the wrong length is no answer. */
    struct msg_publish_reply reply = {.count = 1, .status = (uint8_t[]){PUBLISH_BOUND}};
    call.done(call.data, 0, &reply);
    msg_publish_close(&call.message);
    answer(f, 2, 0, PUBLISH_BOUND);
    assert_int_equal(state_of(f, txn), TXN_COMMITTED);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_majority_makes_it_visible_and_the_last_one_confirms),
        TEST(test_answers_do_not_count_for_the_next_holder_of_a_slot),
        TEST(test_a_confirmation_rides_with_the_next_that_becomes_visible),
        TEST(test_commits_gather_while_a_message_is_in_the_air),
        TEST(test_a_participant_that_is_away_is_asked_again_with_pauses),
        TEST(test_a_replica_without_its_rowset_is_declared_behind),
        TEST(test_a_tablet_without_a_good_replica_is_bound_where_it_can_be),
        TEST(test_behind_while_an_earlier_version_is_still_out_is_only_order),
        TEST(test_after_the_wait_one_good_replica_suffices),
        TEST(test_a_new_leader_finds_the_work_by_looking),
        TEST(test_a_dropped_table_counts_as_published),
        TEST(test_an_answer_of_the_wrong_length_is_no_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
