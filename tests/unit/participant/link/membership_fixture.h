/* SPDX-License-Identifier: Apache-2.0 */
/* A node that joins, against a scripted coordinator. */
#ifndef TG_TESTS_UNIT_PARTICIPANT_LINK_MEMBERSHIP_FIXTURE_H
#define TG_TESTS_UNIT_PARTICIPANT_LINK_MEMBERSHIP_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/proto/message.h"
#include "participant/link/membership.h"
#include "tests/lib/fake_coordinator.h"

enum { REGISTERED_MAX = 8, SAVED_MAX = 8, WAIT_MS = 15000 };

static const char CLUSTER[] = "11111111-2222-4333-8444-555555555555";

struct fixture {
    struct loop_thread thread;
    struct fake_coordinator coordinator;
    struct coordinator_client *client;
    struct random_seeded random;
    struct node_identity identity;
    struct membership *membership;
    struct membership_record record; /* at the start */

    pthread_mutex_t lock; /* of what follows */
    unsigned registrations, saves, beats;
    struct msg_register registered[REGISTERED_MAX];
    struct membership_record saved[SAVED_MAX];
    struct msg_heartbeat beat; /* the last one */
    int register_errors[8];
    const char *register_sentence;
    unsigned register_error_count;
    int beat_err;
    int save_err;
    int fill_err;
    bool hold; /* neither registrations nor heartbeats are answered */
    struct rpc_request *held[8];
    unsigned held_count;
    unsigned joined, answered, fenced, closed;
    int fenced_err;
    char fenced_sentence[128];
    txn_id dead; /* what the last answer named */
    bool close_in_joined, close_in_answered;
};

/* ---- the coordinator ---- */

static inline void handle_register(struct fixture *f, struct rpc_request *request)
{
    struct msg_register message;
    struct msg_register_reply reply = {.node = 4};
    struct buf head = BUF_INIT;

    assert_int_equal(msg_register_decode(rpc_request_head(request), &message), 0);
    unsigned n = f->registrations++;
    if (n < REGISTERED_MAX)
        f->registered[n] = message;
    if (n < f->register_error_count) {
        rpc_request_fail(request, f->register_errors[n], f->register_sentence);
        return;
    }
    reply.epoch = 100 + n;
    strcpy(reply.cluster_uuid, CLUSTER);
    msg_register_reply_encode(&reply, &head);
    rpc_request_reply(request, 0, slice_of(head.data, head.len), slice_of(NULL, 0));
    buf_close(&head);
}

static inline void handle_heartbeat(struct fixture *f, struct rpc_request *request)
{
    txn_id dead = 55;
    struct msg_heartbeat_reply reply = {.dead = &dead, .dead_count = 1, .txn_low_water = 9};
    struct buf head = BUF_INIT;

    msg_heartbeat_close(&f->beat);
    assert_int_equal(msg_heartbeat_decode(rpc_request_head(request), &f->beat), 0);
    f->beats++;
    if (f->beat_err != 0) {
        rpc_request_fail(request, f->beat_err, "so the test says");
        return;
    }
    msg_heartbeat_reply_encode(&reply, &head);
    rpc_request_reply(request, 0, slice_of(head.data, head.len), slice_of(NULL, 0));
    buf_close(&head);
}

static inline void handle(void *data, struct rpc_request *request)
{
    struct fixture *f = data;

    pthread_mutex_lock(&f->lock);
    if (f->hold)
        f->held[f->held_count++] = request;
    else if (rpc_request_type(request) == MSG_REGISTER)
        handle_register(f, request);
    else
        handle_heartbeat(f, request);
    pthread_mutex_unlock(&f->lock);
}

/* ---- the node's hooks ---- */

static inline int save(void *data, const struct membership_record *record)
{
    struct fixture *f = data;

    pthread_mutex_lock(&f->lock);
    if (f->saves < SAVED_MAX)
        f->saved[f->saves] = *record;
    f->saves++;
    int err = f->save_err;
    pthread_mutex_unlock(&f->lock);
    return err;
}

static inline void closed(void *data)
{
    struct fixture *f = data;

    pthread_mutex_lock(&f->lock);
    f->closed++;
    pthread_mutex_unlock(&f->lock);
}

static inline void joined(void *data)
{
    struct fixture *f = data;

    pthread_mutex_lock(&f->lock);
    f->joined++;
    bool close = f->close_in_joined;
    pthread_mutex_unlock(&f->lock);
    if (close)
        membership_close(f->membership, closed, f);
}

static inline int fill(void *data, struct msg_heartbeat *message)
{
    struct fixture *f = data;

    message->live = malloc(2 * sizeof *message->live);
    message->live[0] = 3;
    message->live[1] = 8;
    message->live_count = 2;
    message->request_high = 8;
    message->disk_free_bytes = 1234;
    pthread_mutex_lock(&f->lock);
    int err = f->fill_err;
    pthread_mutex_unlock(&f->lock);
    return err;
}

static inline void answered(void *data, struct msg_heartbeat_reply *reply)
{
    struct fixture *f = data;

    pthread_mutex_lock(&f->lock);
    f->answered++;
    f->dead = reply->dead_count == 1 ? reply->dead[0] : 0;
    bool close = f->close_in_answered && f->closed == 0;
    pthread_mutex_unlock(&f->lock);
    msg_heartbeat_reply_close(reply);
    if (close)
        membership_close(f->membership, closed, f);
}

static inline void fenced(void *data, int err, const char *sentence)
{
    struct fixture *f = data;

    pthread_mutex_lock(&f->lock);
    f->fenced++;
    f->fenced_err = err;
    snprintf(f->fenced_sentence, sizeof f->fenced_sentence, "%s", sentence);
    pthread_mutex_unlock(&f->lock);
}

/* ---- fixture ---- */

static inline void open_all(void *data)
{
    struct fixture *f = data;
    struct membership_options options = {.wanted = 4, .heartbeat_ms = 20};
    struct membership_hooks hooks = {save, joined, fill, answered, fenced, f};

    strcpy(options.http, "127.0.0.1:8040");
    strcpy(options.rpc, "127.0.0.1:8060");
    assert_int_equal(coordinator_client_open(f->thread.loop, f->coordinator.address,
                                             FAKE_COORDINATOR_SECRET, &f->client, NULL),
                     0);
    assert_int_equal(membership_open(f->thread.loop, f->client, &options, &f->record, &hooks,
                                     &f->random.source, &f->identity, &f->membership),
                     0);
    membership_start(f->membership);
}

static inline void start(struct fixture *f)
{
    loop_thread_do(&f->thread, open_all, f);
}

static inline void begin_close(void *data)
{
    struct fixture *f = data;

    membership_close(f->membership, closed, f);
    f->membership = NULL;
}

static inline void close_client(void *data)
{
    struct fixture *f = data;

    coordinator_client_close(f->client);
    f->client = NULL;
}

static inline void drop_held(void *data)
{
    struct fixture *f = data;

    while (f->held_count > 0)
        rpc_request_drop(f->held[--f->held_count]);
}

static inline int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    pthread_mutex_init(&f->lock, NULL);
    random_seeded_init(&f->random, 5);
    loop_thread_open(&f->thread);
    fake_coordinator_open(&f->coordinator, &f->thread, 1);
    fake_coordinator_follow(&f->coordinator, &f->coordinator);
    fake_coordinator_handle(&f->coordinator, handle, f);
    *state = f;
    return 0;
}

/* Waits until a counter has reached a value. */
static inline void expect(struct fixture *f, const unsigned *counter, unsigned value)
{
    for (unsigned ms = 0;; ms++) {
        pthread_mutex_lock(&f->lock);
        bool reached = *counter >= value;
        pthread_mutex_unlock(&f->lock);
        if (reached)
            return;
        assert_true(ms < WAIT_MS);
        usleep(1000);
    }
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;

    if (f->closed == 0)
        loop_thread_do(&f->thread, begin_close, f);
    loop_thread_do(&f->thread, close_client, f);
    expect(f, &f->closed, 1);
    loop_thread_do(&f->thread, drop_held, f);
    fake_coordinator_close(&f->coordinator);
    loop_thread_close(&f->thread);
    assert_int_equal(f->closed, 1);
    msg_heartbeat_close(&f->beat);
    pthread_mutex_destroy(&f->lock);
    free(f);
    return 0;
}

/* ---- joining ---- */

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
