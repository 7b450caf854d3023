/* SPDX-License-Identifier: Apache-2.0 */
/* struct participants on RPC. */
#include "coordinator/cluster/rpc_participants.h"

#include <stdlib.h>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/net/rpc_pool.h"
#include "common/proto/message.h"
#include "coordinator/cluster/health.h"

struct rpc_participants {
    struct participants base; /* first: the seam's pointer is ours */
    struct rpc_pool pool;
    struct health *health; /* that is told of nodes out of reach; may be NULL */
};

/* A call whose answer somebody waits for: of one kind or the other. */
struct wait {
    struct loop_call later; /* to answer a refusal from outside the call */
    participants_publish_done *published;
    participants_clone_done *cloned;
    void *data;
    struct rpc_participants *participants;
    node_id node;
};

/* A participant that is gone is known so to the next caller, long before its lease ends. */
static void note(const struct wait *wait, int err)
{
    if ((err == TG_UNREACHABLE || err == TG_CLOSED) && wait->participants->health != NULL)
        health_doubt(wait->participants->health, wait->node);
}

static void on_published(void *data, const struct rpc_reply *reply)
{
    struct wait *wait = data;
    struct msg_publish_reply answer = {0};
    int err = reply->err != 0 ? reply->err : msg_publish_reply_decode(reply->head, &answer);

    note(wait, reply->err);
    wait->published(wait->data, err, err == 0 ? &answer : NULL);
    if (err == 0)
        msg_publish_reply_close(&answer);
    free(wait);
}

static void on_cloned(void *data, const struct rpc_reply *reply)
{
    struct wait *wait = data;
    struct msg_clone_reply answer = {0};
    int err = reply->err != 0 ? reply->err : msg_clone_reply_decode(reply->head, &answer);

    note(wait, reply->err);
    wait->cloned(wait->data, err, err == 0 ? &answer : NULL);
    free(wait);
}

static void refuse_later(struct loop_call *later)
{
    struct wait *wait = later->data;

    if (wait->published != NULL)
        wait->published(wait->data, TG_UNREACHABLE, NULL);
    else
        wait->cloned(wait->data, TG_UNREACHABLE, NULL);
    free(wait);
}

/* Takes head and wait over. */
static void call(struct rpc_participants *participants, node_id node, const char *address,
                 uint16_t type, struct buf *head, uint64_t timeout_ms, rpc_done *done,
                 struct wait *wait)
{
    struct tg_errmsg msg = {{0}};
    struct buf payload = BUF_INIT;
    struct rpc_client *client = rpc_pool_client(&participants->pool, node, address, &msg);

    if (client == NULL || head->err != 0) {
        log_warn("participants", "cannot_call node=%u reason=%s", node, log_quote(msg.text));
        buf_close(head);
        wait->later = (struct loop_call){.run = refuse_later, .data = wait};
        loop_post(participants->pool.loop, &wait->later);
        return;
    }
    rpc_client_call_take(client, type, head, &payload, timeout_ms, done, wait);
}

static struct wait *new_wait(struct participants *base, node_id node, void *data)
{
    struct wait *wait = calloc(1, sizeof *wait);

    TG_CHECK_MEMORY(wait != NULL);
    wait->participants = (struct rpc_participants *)base;
    wait->node = node;
    wait->data = data;
    return wait;
}

static void publish(struct participants *base, node_id node, const char *address,
                    const struct msg_publish *message, uint64_t timeout_ms,
                    participants_publish_done *done, void *data)
{
    struct wait *wait = new_wait(base, node, data);
    struct buf head = BUF_INIT;

    wait->published = done;
    msg_publish_encode(message, &head);
    call((struct rpc_participants *)base, node, address, MSG_PUBLISH, &head, timeout_ms,
         on_published, wait);
}

static void clone_tablet(struct participants *base, node_id node, const char *address,
                         const struct msg_clone *message, uint64_t timeout_ms,
                         participants_clone_done *done, void *data)
{
    struct wait *wait = new_wait(base, node, data);
    struct buf head = BUF_INIT;

    wait->cloned = done;
    msg_clone_encode(message, &head);
    call((struct rpc_participants *)base, node, address, MSG_CLONE, &head, timeout_ms, on_cloned,
         wait);
}

static const struct participants_ops ops = {.publish = publish, .clone = clone_tablet};

int rpc_participants_open(struct loop *loop, const char *secret,
                          struct rpc_participants **participants, struct tg_errmsg *msg)
{
    struct rpc_participants *p = calloc(1, sizeof *p);
    int err;

    if (p == NULL)
        return tg_fail(msg, TG_NOMEM, "no memory for the participants' connections");
    p->base.ops = &ops;
    err = rpc_pool_init(&p->pool, loop, secret, msg);
    if (err != 0) {
        free(p);
        return err;
    }
    *participants = p;
    return 0;
}

void rpc_participants_close(struct rpc_participants *participants)
{
    if (participants == NULL)
        return;
    rpc_pool_close(&participants->pool);
    free(participants);
}

void rpc_participants_watch(struct rpc_participants *participants, struct health *health)
{
    participants->health = health;
}

struct participants *rpc_participants_calls(struct rpc_participants *participants)
{
    return &participants->base;
}
