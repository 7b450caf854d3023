/* SPDX-License-Identifier: Apache-2.0 */
/* struct participants on RPC. */
#include "coordinator/cluster/rpc_participants.h"

#include <stdlib.h>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/net/rpc_pool.h"
#include "common/proto/message.h"

struct rpc_participants {
    struct participants base; /* first: the seam's pointer is ours */
    struct rpc_pool pool;
};

struct publish_wait {
    struct loop_call later; /* to answer a refusal from outside the call */
    participants_publish_done *done;
    void *data;
};

static void on_reply(void *data, const struct rpc_reply *reply)
{
    struct publish_wait *wait = data;
    struct msg_publish_reply answer = {0};
    int err = reply->err != 0 ? reply->err : msg_publish_reply_decode(reply->head, &answer);

    wait->done(wait->data, err, err == 0 ? &answer : NULL);
    if (err == 0)
        msg_publish_reply_close(&answer);
    free(wait);
}

static void refuse_later(struct loop_call *later)
{
    struct publish_wait *wait = later->data;

    wait->done(wait->data, TG_UNREACHABLE, NULL);
    free(wait);
}

static void publish(struct participants *base, node_id node, const char *address,
                    const struct msg_publish *message, uint64_t timeout_ms,
                    participants_publish_done *done, void *data)
{
    struct rpc_participants *participants = (struct rpc_participants *)base;
    struct publish_wait *wait = calloc(1, sizeof *wait);
    struct tg_errmsg msg = {{0}};
    struct buf head = BUF_INIT;
    struct buf payload = BUF_INIT;

    TG_CHECK(wait != NULL);
    wait->done = done;
    wait->data = data;
    struct rpc_client *client = rpc_pool_client(&participants->pool, node, address, &msg);
    msg_publish_encode(message, &head);
    if (client == NULL || head.err != 0) {
        log_warn("participants", "cannot_call node=%u reason=%s", node, log_quote(msg.text));
        buf_close(&head);
        wait->later = (struct loop_call){.run = refuse_later, .data = wait};
        loop_post(participants->pool.loop, &wait->later);
        return;
    }
    rpc_client_call_take(client, MSG_PUBLISH, &head, &payload, timeout_ms, on_reply, wait);
}

static const struct participants_ops ops = {.publish = publish};

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

struct participants *rpc_participants_calls(struct rpc_participants *participants)
{
    return &participants->base;
}
