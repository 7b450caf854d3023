/* SPDX-License-Identifier: Apache-2.0 */
/* A coordinator that says what a test tells it to. */
#include "tests/lib/fake_coordinator.h"

#include <stdio.h>
#include <string.h>

#include "common/base/check.h"
#include "common/proto/message.h"
#include "common/proto/msg_status.h"

static void answer_status(struct fake_coordinator *c, struct rpc_request *request)
{
    struct msg_status_reply reply = {.coordinator = c->id, .term = 1};
    struct buf head = BUF_INIT;

    atomic_fetch_add(&c->asked, 1);
    pthread_mutex_lock(&c->lock);
    reply.leader = c->leader;
    snprintf(reply.leader_rpc, sizeof reply.leader_rpc, "%s", c->leader_address);
    pthread_mutex_unlock(&c->lock);
    msg_status_reply_encode(&reply, &head);
    rpc_request_reply(request, 0, slice_of(head.data, head.len), slice_of(NULL, 0));
    buf_close(&head);
}

static void on_request(void *ctx, struct rpc_request *request)
{
    struct fake_coordinator *c = ctx;

    if (rpc_request_type(request) == MSG_STATUS) {
        answer_status(c, request);
        return;
    }
    atomic_fetch_add(&c->calls, 1);
    pthread_mutex_lock(&c->lock);
    bool leads = c->leader == c->id;
    void (*handle)(void *data, struct rpc_request *) = c->handle;
    void *data = c->data;
    pthread_mutex_unlock(&c->lock);
    if (!leads)
        rpc_request_fail(request, TG_NOT_LEADER, "another one leads");
    else if (handle != NULL)
        handle(data, request);
    else
        rpc_request_reply(request, 0, slice_of(NULL, 0), slice_of(NULL, 0));
}

static void listen_on_loop(void *data)
{
    struct fake_coordinator *c = data;
    struct rpc_server_options options = {
        .host = "127.0.0.1", .port = c->port, .secret = FAKE_COORDINATOR_SECRET};

    TG_CHECK(rpc_server_open(c->thread->loop, &options, on_request, c, &c->server, NULL) == 0);
    c->port = rpc_server_port(c->server);
}

static void close_on_loop(void *data)
{
    struct fake_coordinator *c = data;

    if (c->server != NULL)
        rpc_server_close(c->server, NULL, NULL);
    c->server = NULL;
}

void fake_coordinator_open(struct fake_coordinator *coordinator, struct loop_thread *thread,
                           uint64_t id)
{
    memset(coordinator, 0, sizeof *coordinator);
    coordinator->thread = thread;
    coordinator->id = id;
    pthread_mutex_init(&coordinator->lock, NULL);
    fake_coordinator_up(coordinator);
    snprintf(coordinator->address, sizeof coordinator->address, "127.0.0.1:%u", coordinator->port);
}

void fake_coordinator_follow(struct fake_coordinator *coordinator,
                             const struct fake_coordinator *leader)
{
    pthread_mutex_lock(&coordinator->lock);
    coordinator->leader = leader != NULL ? leader->id : 0;
    snprintf(coordinator->leader_address, sizeof coordinator->leader_address, "%s",
             leader != NULL ? leader->address : "");
    pthread_mutex_unlock(&coordinator->lock);
}

void fake_coordinator_handle(struct fake_coordinator *coordinator,
                             void (*handle)(void *data, struct rpc_request *request), void *data)
{
    pthread_mutex_lock(&coordinator->lock);
    coordinator->handle = handle;
    coordinator->data = data;
    pthread_mutex_unlock(&coordinator->lock);
}

void fake_coordinator_down(struct fake_coordinator *coordinator)
{
    loop_thread_do(coordinator->thread, close_on_loop, coordinator);
}

void fake_coordinator_up(struct fake_coordinator *coordinator)
{
    loop_thread_do(coordinator->thread, listen_on_loop, coordinator);
}

void fake_coordinator_close(struct fake_coordinator *coordinator)
{
    fake_coordinator_down(coordinator);
    pthread_mutex_destroy(&coordinator->lock);
}
