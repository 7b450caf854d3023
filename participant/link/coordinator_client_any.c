/* SPDX-License-Identifier: Apache-2.0 */
/* Questions that any coordinator may answer, also when none leads: the leader is asked first, as
 * long as it is believed in; then one after the other, each once. */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/check.h"
#include "participant/link/coordinator_client_private.h"

enum { ANY_ANSWER_MS = 1000, ANY_CONNECT_MS = 250 };

struct question {
    struct coordinator_client *client;
    uint16_t type;
    struct buf head;
    unsigned asking;
    bool leads;      /* as far as known */
    unsigned left;   /* to be asked yet */
    int second_best; /* a verdict of one that may just be behind, 0 if there was none */
    char sentence[TG_ERRMSG_MAX];
    rpc_done *done;
    void *data;
};

static void ask(struct question *question);

/* It may be behind, or not know who leads: another one may know more. */
static bool is_final(int err, bool leads)
{
    if ((err == TG_NOT_FOUND || err == TG_NOT_YET) && leads)
        return true;
    switch (err) {
    case TG_CANCELED: /* its connection was given up for another's */
    case TG_NOT_LEADER:
    case TG_UNREACHABLE:
    case TG_CLOSED:
    case TG_TIMEOUT:
    case TG_BUSY:
    case TG_UNKNOWN_OUTCOME:
    case TG_NOT_FOUND:
    case TG_NOT_YET:
        return false;
    default:
        return true;
    }
}

static void on_reply(void *data, const struct rpc_reply *reply)
{
    struct question *question = data;
    struct coordinator_client *client = question->client;

    bool final = is_final(reply->err, question->leads);
    if (!final && (reply->err == TG_NOT_FOUND || reply->err == TG_NOT_YET)) {
        question->second_best = reply->err;
        snprintf(question->sentence, sizeof question->sentence, "%s", reply->message);
    }
    if (!client->closing && !final && question->left > 0) {
        question->asking = (question->asking + 1) % client->count;
        ask(question);
        return;
    }
    struct rpc_reply other = {.err = TG_CANCELED, .message = "the node shuts down"};
    if (!client->closing && !final && question->second_best != 0)
        other = (struct rpc_reply){.err = question->second_best, .message = question->sentence};
    bool tell_other = client->closing || (!final && question->second_best != 0);
    question->done(question->data, tell_other ? &other : reply);
    buf_close(&question->head);
    free(question);
}

static void ask(struct question *question)
{
    struct rpc_client *peer = question->client->peers[question->asking];

    question->left--;
    question->leads =
        question->client->leader_known && question->asking == question->client->leader;
    rpc_client_call(peer, question->type, slice_of(question->head.data, question->head.len),
                    slice_of(NULL, 0), rpc_client_connected(peer) ? ANY_ANSWER_MS : ANY_CONNECT_MS,
                    on_reply, question);
}

void coordinator_client_ask_any(struct coordinator_client *client, uint16_t type, struct buf *head,
                                rpc_done *done, void *data)
{
    struct question *question = calloc(1, sizeof *question);

    TG_CHECK_MEMORY(question);
    question->client = client;
    question->type = type;
    question->head = *head;
    buf_init(head);
    question->asking = client->leader;
    question->left = client->count;
    question->done = done;
    question->data = data;
    ask(question);
}
