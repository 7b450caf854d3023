/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to the leader: who answers, who does not, and what a read waits for. */
#include "coordinator/dispatch/dispatch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/proto/message.h"
#include "common/proto/msg_member.h"
#include "common/proto/msg_read.h"
#include "common/proto/msg_status.h"
#include "tests/lib/coordinator_scene.h"

struct fixture {
    struct coordinator_scene scene;
    struct health health;
    struct txn_manager *txns;
    struct dispatch dispatch;
    unsigned answers;
    int err;
    char sentence[600];
    struct buf head;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    coordinator_scene_open(&f->scene);
    health_init(&f->health, 5000, clock_monotonic_ms(&f->scene.clock.clock));
    assert_int_equal(txn_manager_open(f->scene.consensus, &f->scene.clock.clock, &f->txns), 0);
    f->dispatch = (struct dispatch){.consensus = f->scene.consensus,
                                    .txns = f->txns,
                                    .health = &f->health,
                                    .clock = &f->scene.clock.clock,
                                    .self = FAKE_CONSENSUS_ID,
                                    .peer_count = 2};
    f->dispatch.peers[0] =
        (struct dispatch_peer){.id = 1, .rpc = "127.0.0.1:9020", .http = "127.0.0.1:8030"};
    f->dispatch.peers[1] =
        (struct dispatch_peer){.id = 2, .rpc = "127.0.0.1:9021", .http = "127.0.0.1:8031"};
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    txn_manager_close(f->txns);
    coordinator_scene_close(&f->scene);
    health_close(&f->health);
    buf_close(&f->head);
    free(f);
    return 0;
}

static void on_done(void *data, int err, const char *sentence, struct slice head)
{
    struct fixture *f = data;

    f->answers++;
    f->err = err;
    snprintf(f->sentence, sizeof f->sentence, "%s", sentence);
    buf_clear(&f->head);
    buf_append(&f->head, head.data, head.len);
}

/* Takes over head. */
static void call(struct fixture *f, uint16_t type, struct buf *head)
{
    f->answers = 0;
    dispatch_call(&f->dispatch, type, slice_of(head->data, head->len), on_done, f);
    buf_close(head);
}

static void call_and_run(struct fixture *f, uint16_t type, struct buf *head)
{
    call(f, type, head);
    fake_consensus_run(f->scene.fake);
    assert_int_equal(f->answers, 1);
}

static struct slice head_of(const struct fixture *f)
{
    return slice_of(f->head.data, f->head.len);
}

static void test_anybody_tells_the_status(void **state)
{
    struct fixture *f = *state;
    struct msg_status_reply reply;
    struct buf head = BUF_INIT;

    fake_consensus_set_leader(f->scene.fake, false);
    fake_consensus_set_other_leader(f->scene.fake, 2);
    call(f, MSG_STATUS, &head);
    assert_int_equal(f->err, 0);
    assert_int_equal(msg_status_reply_decode(head_of(f), &reply), 0);
    assert_int_equal(reply.coordinator, 1);
    assert_int_equal(reply.leader, 2);
    assert_string_equal(reply.leader_rpc, "127.0.0.1:9021");
    assert_string_equal(reply.leader_http, "127.0.0.1:8031");
    assert_int_equal(reply.phase, STATUS_SERVES);
    assert_string_equal(reply.cluster_uuid, coordinator_scene_state(&f->scene)->cluster_uuid);
}

static void test_a_follower_sends_everything_else_away(void **state)
{
    static const uint16_t types[] = {MSG_REGISTER,    MSG_HEARTBEAT, MSG_TXN_BEGIN,  MSG_LOAD_DONE,
                                     MSG_LOAD_FAILED, MSG_TXN_2PC,   MSG_READ_POINT, MSG_QUERY};
    struct fixture *f = *state;

    fake_consensus_set_leader(f->scene.fake, false);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct buf head = BUF_INIT;

        call(f, types[i], &head);
        assert_int_equal(f->answers, 1);
        assert_int_equal(f->err, TG_NOT_LEADER);
    }
}

static void test_garbage_and_strangers_are_refused(void **state)
{
    struct fixture *f = *state;
    struct buf head = BUF_INIT;

    for (uint16_t type = 2; type < 100; type++) {
        buf_append_str(&head, "\x95garbage");
        call(f, type, &head);
        assert_int_equal(f->answers, 1);
        assert_true(f->err != 0);
    }
}

static void test_a_participant_registers(void **state)
{
    struct fixture *f = *state;
    struct msg_register message = {.new_nonce = 99, .http = "h:1", .rpc = "r:1"};
    struct msg_register_reply reply;
    struct buf head = BUF_INIT;

    strcpy(message.node_uuid, "00000000-0000-4000-8000-00000000abcd");
    msg_register_encode(&message, &head);
    call_and_run(f, MSG_REGISTER, &head);
    assert_int_equal(f->err, 0);
    assert_int_equal(msg_register_reply_decode(head_of(f), &reply), 0);
    assert_int_equal(reply.node, 4);
    fake_clock_advance_ms(&f->scene.clock, 4000);
    assert_non_null(health_find(&f->health, 4)); /* alive without a heartbeat yet */
    assert_string_equal(reply.cluster_uuid, coordinator_scene_state(&f->scene)->cluster_uuid);
    message.previous_nonce = 5; /* an old copy of the directory */
    message.new_nonce = 100;
    msg_register_encode(&message, &head);
    call_and_run(f, MSG_REGISTER, &head);
    assert_int_equal(f->err, TG_FENCED);
}

static void test_a_heartbeat_counts_for_its_registration_only(void **state)
{
    struct fixture *f = *state;
    struct msg_heartbeat message = {.node = 2};
    struct msg_heartbeat_reply reply;
    struct buf head = BUF_INIT;

    message.epoch = members_find(&coordinator_scene_state(&f->scene)->members, 2)->epoch;
    msg_heartbeat_encode(&message, &head);
    call(f, MSG_HEARTBEAT, &head);
    assert_int_equal(f->err, 0);
    assert_int_equal(msg_heartbeat_reply_decode(head_of(f), &reply), 0);
    assert_int_equal(reply.closed_us, coordinator_scene_state(&f->scene)->stamp_us);
    msg_heartbeat_reply_close(&reply);
    assert_non_null(health_find(&f->health, 2));
    message.epoch += 100;
    msg_heartbeat_encode(&message, &head);
    call(f, MSG_HEARTBEAT, &head);
    assert_int_equal(f->err, TG_FENCED);
}

/* What it is told to drop must be so at a moment after it asked. */
static void test_a_heartbeat_with_a_tablet_that_moved_waits_for_a_barrier(void **state)
{
    struct fixture *f = *state;
    const struct tablet *tablet = coordinator_scene_table(&f->scene, "t")->tablets[0];
    struct msg_heartbeat message = {.tablets = (tablet_id[]){tablet->id}, .tablet_count = 1};
    struct msg_heartbeat_reply reply;
    struct buf head = BUF_INIT;
    struct command member = {.type = COMMAND_MEMBER_REGISTER};

    strcpy(member.member.message.node_uuid, "00000000-0000-4000-8000-000000000099");
    member.member.message.new_nonce = 99;
    struct apply_result joined = fake_consensus_do(f->scene.fake, &member);
    assert_int_equal(joined.err, 0);
    message.node = joined.node;
    message.epoch = joined.epoch;
    msg_heartbeat_encode(&message, &head);
    call(f, MSG_HEARTBEAT, &head);
    assert_int_equal(f->answers, 0);
    fake_consensus_run(f->scene.fake);
    assert_int_equal(f->answers, 1);
    assert_int_equal(f->err, 0);
    assert_int_equal(msg_heartbeat_reply_decode(head_of(f), &reply), 0);
    assert_int_equal(reply.dropped_count, 1);
    msg_heartbeat_reply_close(&reply);
    /* It is given the tablet meanwhile: then nothing is said. */
    msg_heartbeat_encode(&message, &head);
    call(f, MSG_HEARTBEAT, &head);
    struct command add = {.type = COMMAND_REPLICA_ADD,
                          .move = {tablet->id, joined.node, tablet->table->placement_epoch}};
    assert_int_equal(fake_consensus_do(f->scene.fake, &add).err, 0);
    fake_consensus_run(f->scene.fake);
    assert_int_equal(f->err, 0);
    assert_int_equal(msg_heartbeat_reply_decode(head_of(f), &reply), 0);
    assert_int_equal(reply.dropped_count, 0);
    msg_heartbeat_reply_close(&reply);
}

/* ---- reads ---- */

static void read_at(struct fixture *f, struct read_bound bound, bool local)
{
    struct msg_read_point message = {.db = "d", .table = "t", .bound = bound, .local = local};
    struct buf head = BUF_INIT;

    msg_read_point_encode(&message, &head);
    call(f, MSG_READ_POINT, &head);
}

static void test_a_read_waits_for_a_barrier(void **state)
{
    struct fixture *f = *state;
    struct msg_read_point_reply reply;

    read_at(f, (struct read_bound){READ_LATEST, 0}, false);
    assert_int_equal(f->answers, 0);
    fake_consensus_run(f->scene.fake);
    assert_int_equal(f->answers, 1);
    assert_int_equal(f->err, 0);
    msg_read_point_reply_init(&reply);
    assert_int_equal(msg_read_point_reply_decode(head_of(f), &reply), 0);
    assert_int_equal(reply.version, 0);
    assert_int_equal(reply.tablet_count, 2);
    assert_int_equal(reply.node_count, 3);
    msg_read_point_reply_close(&reply);
    read_at(f, (struct read_bound){READ_VERSION, 7}, false);
    fake_consensus_run(f->scene.fake);
    assert_int_equal(f->err, TG_NOT_YET);
}

static void test_a_local_read_asks_nobody(void **state)
{
    struct fixture *f = *state;

    fake_consensus_set_leader(f->scene.fake, false);
    read_at(f, (struct read_bound){READ_LATEST, 0}, true);
    assert_int_equal(f->answers, 1);
    assert_int_equal(f->err, 0);
}

static void test_a_read_of_the_settled_past_needs_no_barrier(void **state)
{
    struct fixture *f = *state;
    uint64_t closed = coordinator_scene_state(&f->scene)->stamp_us;

    read_at(f, (struct read_bound){READ_VERSION, 0}, false);
    assert_int_equal(f->answers, 1);
    assert_int_equal(f->err, 0);
    read_at(f, (struct read_bound){READ_TIME, closed}, false);
    assert_int_equal(f->answers, 1);
    assert_int_equal(f->err, 0);
    read_at(f, (struct read_bound){READ_TIME, closed + 1}, false);
    assert_int_equal(f->answers, 0);
    fake_consensus_run(f->scene.fake);
    assert_int_equal(f->answers, 1);
    read_at(f, (struct read_bound){READ_VERSION, 1}, false);
    assert_int_equal(f->answers, 0);
    fake_consensus_run(f->scene.fake);
    assert_int_equal(f->err, TG_NOT_YET);
}

static void test_a_read_as_of_now_closes_that_time(void **state)
{
    struct fixture *f = *state;
    uint64_t now = clock_wall_us(&f->scene.clock.clock);

    fake_clock_advance_ms(&f->scene.clock, 5);
    read_at(f, (struct read_bound){READ_TIME, now + 3000}, false);
    fake_consensus_run(f->scene.fake);
    assert_int_equal(f->answers, 1);
    assert_int_equal(f->err, 0);
    assert_true(coordinator_scene_state(&f->scene)->stamp_us >= now + 3000);
}

static void test_a_read_a_little_ahead_waits_for_its_time(void **state)
{
    struct fixture *f = *state;
    uint64_t now = clock_wall_us(&f->scene.clock.clock);

    read_at(f, (struct read_bound){READ_TIME, now + 300000}, false);
    fake_consensus_run(f->scene.fake);
    assert_int_equal(f->answers, 0);
    fake_clock_advance_ms(&f->scene.clock, 301);
    fake_consensus_run(f->scene.fake);
    assert_int_equal(f->answers, 1);
    assert_int_equal(f->err, 0);
}

static void test_a_read_far_ahead_is_refused(void **state)
{
    struct fixture *f = *state;

    read_at(f, (struct read_bound){READ_TIME, clock_wall_us(&f->scene.clock.clock) + 600000},
            false);
    assert_int_equal(f->answers, 1);
    assert_int_equal(f->err, TG_FUTURE);
}

static void test_a_read_without_its_barrier_fails(void **state)
{
    struct fixture *f = *state;

    read_at(f, (struct read_bound){READ_LATEST, 0}, false);
    fake_consensus_set_leader(f->scene.fake, false);
    assert_int_equal(f->answers, 1);
    assert_true(f->err == TG_NOT_LEADER || f->err == TG_UNKNOWN_OUTCOME);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_anybody_tells_the_status),
        TEST(test_a_follower_sends_everything_else_away),
        TEST(test_garbage_and_strangers_are_refused),
        TEST(test_a_participant_registers),
        TEST(test_a_heartbeat_counts_for_its_registration_only),
        TEST(test_a_heartbeat_with_a_tablet_that_moved_waits_for_a_barrier),
        TEST(test_a_read_waits_for_a_barrier),
        TEST(test_a_local_read_asks_nobody),
        TEST(test_a_read_of_the_settled_past_needs_no_barrier),
        TEST(test_a_read_as_of_now_closes_that_time),
        TEST(test_a_read_a_little_ahead_waits_for_its_time),
        TEST(test_a_read_far_ahead_is_refused),
        TEST(test_a_read_without_its_barrier_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
