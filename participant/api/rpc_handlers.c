/* SPDX-License-Identifier: Apache-2.0 */
/* Calls from other nodes. The store answers on its writer threads; a struct answer carries the
 * outcome back to the loop, which alone may touch the request. */
#include "participant/api/rpc_handlers.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/check.h"
#include "common/proto/message.h"
#include "common/proto/msg_publish.h"
#include "common/proto/msg_read.h"
#include "common/proto/msg_replicate.h"
#include "participant/store/rowset_store.h"
#include "participant/tablet/publish.h"

struct answer {
    struct loop_call post;
    struct rpc_handlers *handlers;
    struct rpc_request *request;
    int err;
    char sentence[TG_ERRMSG_MAX]; /* "": the error's own */
    struct buf head;
    struct buf payload;
};

static struct answer *new_answer(struct rpc_handlers *handlers, struct rpc_request *request)
{
    struct answer *answer = calloc(1, sizeof *answer);

    TG_CHECK_MEMORY(answer != NULL);
    answer->handlers = handlers;
    answer->request = request;
    return answer;
}

static void send_on_loop(struct loop_call *post)
{
    struct answer *answer = post->data;

    if (answer->err == 0 && (answer->head.err != 0 || answer->payload.err != 0))
        answer->err = TG_NOMEM;
    if (answer->err != 0)
        rpc_request_fail(answer->request, answer->err,
                         answer->sentence[0] != 0 ? answer->sentence
                                                  : tg_err_sentence(answer->err));
    else
        rpc_request_reply_take(answer->request, answer->err, &answer->head, &answer->payload);
    buf_close(&answer->head);
    buf_close(&answer->payload);
    free(answer);
}

/* Any thread. */
static void post_answer(struct answer *answer)
{
    answer->post = (struct loop_call){.run = send_on_loop, .data = answer};
    loop_post(answer->handlers->loop, &answer->post);
}

static bool is_me(const struct rpc_handlers *handlers, node_id node, uint64_t epoch)
{
    return node == atomic_load(&handlers->identity->node) &&
           epoch == atomic_load(&handlers->identity->epoch);
}

static void published(void *data, int err, struct msg_publish_reply *reply)
{
    struct answer *answer = data;

    answer->err = err;
    if (err == 0)
        msg_publish_reply_encode(reply, &answer->head);
    msg_publish_reply_close(reply);
    post_answer(answer);
}

static void handle_publish(struct rpc_handlers *handlers, struct rpc_request *request)
{
    struct msg_publish message;
    int err = msg_publish_decode(rpc_request_head(request), &message);

    if (err != 0) {
        rpc_request_fail(request, err, "the publish message is malformed");
        return;
    }
    if (!is_me(handlers, message.node, message.epoch)) {
        msg_publish_close(&message);
        rpc_request_fail(request, TG_FENCED, "this participant has registered anew");
        return;
    }
    publish_apply(handlers->store, handlers->tablets, handlers->clock, &message, published,
                  new_answer(handlers, request));
}

static void replicated(void *data, int err)
{
    struct answer *answer = data;

    answer->err = err;
    post_answer(answer);
}

static void handle_replicate(struct rpc_handlers *handlers, struct rpc_request *request)
{
    struct msg_replicate message;
    int err = msg_replicate_decode(rpc_request_head(request), &message);

    if (err != 0) {
        rpc_request_fail(request, err, "the replicate message is malformed");
        return;
    }
    if (message.receiver != atomic_load(&handlers->identity->node))
        rpc_request_fail(request, TG_FENCED, "this participant has another id");
    else
        rowset_store_replicate(handlers->store, &message, rpc_request_payload(request), replicated,
                               new_answer(handlers, request));
    msg_replicate_close(&message);
}

static void tablet_read(void *data, int err, const char *sentence,
                        struct msg_read_tablet_reply *reply, struct buf *payload)
{
    struct answer *answer = data;

    answer->err = err;
    snprintf(answer->sentence, sizeof answer->sentence, "%s", sentence);
    if (err == 0) {
        msg_read_tablet_reply_encode(reply, &answer->head);
        answer->payload = *payload;
        buf_init(payload);
    }
    post_answer(answer);
}

static void handle_read_tablet(struct rpc_handlers *handlers, struct rpc_request *request)
{
    struct msg_read_tablet message;
    int err = msg_read_tablet_decode(rpc_request_head(request), &message);

    if (err != 0) {
        rpc_request_fail(request, err, "the read message is malformed");
        return;
    }
    if (handlers->readers == NULL) {
        msg_read_tablet_close(&message);
        rpc_request_fail(request, TG_CLOSED, "the node shuts down");
        return;
    }
    tablet_reader_serve(handlers->readers, &message, tablet_read, new_answer(handlers, request));
}

static void handle_clone(struct rpc_handlers *handlers, struct rpc_request *request)
{
    struct msg_clone message;
    struct msg_clone_reply reply;
    struct buf head = BUF_INIT;
    struct buf payload = BUF_INIT;
    int err = msg_clone_decode(rpc_request_head(request), &message);

    if (err == 0 && !is_me(handlers, message.node, message.epoch))
        err = TG_FENCED;
    /* It is to come back to a tablet that moved away a moment ago: not before that is gone. */
    if (err == 0 && handlers->gc != NULL && gc_drops_tablet(handlers->gc, message.tablet))
        err = TG_BUSY;
    if (err == 0)
        err =
            handlers->cloner != NULL ? cloner_order(handlers->cloner, &message, &reply) : TG_CLOSED;
    if (err != 0) {
        rpc_request_fail(request, err, tg_err_sentence(err));
        return;
    }
    msg_clone_reply_encode(&reply, &head);
    rpc_request_reply_take(request, 0, &head, &payload);
}

static void clone_answered(void *data, int err, struct buf *head, struct buf *payload)
{
    struct answer *answer = data;

    answer->err = err;
    answer->head = *head;
    answer->payload = *payload;
    buf_init(head);
    buf_init(payload);
    post_answer(answer);
}

static void handle_clone_question(struct rpc_handlers *handlers, struct rpc_request *request)
{
    if (handlers->source == NULL) {
        rpc_request_fail(request, TG_CLOSED, "the node shuts down");
        return;
    }
    clone_source_serve(handlers->source, atomic_load(&handlers->identity->node),
                       rpc_request_type(request), rpc_request_head(request), clone_answered,
                       new_answer(handlers, request));
}

void rpc_handlers_dispatch(void *ctx, struct rpc_request *request)
{
    struct rpc_handlers *handlers = ctx;

    switch (rpc_request_type(request)) {
    case MSG_PUBLISH:
        handle_publish(handlers, request);
        break;
    case MSG_REPLICATE:
        handle_replicate(handlers, request);
        break;
    case MSG_READ_TABLET:
        handle_read_tablet(handlers, request);
        break;
    case MSG_CLONE:
        handle_clone(handlers, request);
        break;
    case MSG_CLONE_LIST:
    case MSG_CLONE_READ:
        handle_clone_question(handlers, request);
        break;
    default:
        rpc_request_fail(request, TG_UNSUPPORTED, "this node does not know that message");
        break;
    }
}
