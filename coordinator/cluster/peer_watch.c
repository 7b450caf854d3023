/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the other coordinators how they are. */
#include "coordinator/cluster/peer_watch.h"

#include <stdlib.h>
#include <string.h>

#include "common/net/rpc_pool.h"
#include "common/proto/message.h"

/* One question; at most one is out for each peer. */
struct peer_question {
    struct peer_watch *watch;
    uint64_t id; /* 0: free */
    uint64_t asked_us;
};

struct peer_watch {
    struct loop *loop;
    struct clock *clock;
    uint64_t self;
    struct rpc_pool pool;
    struct loop_timer *timer;
    bool closing;
    struct peer_words words;
    struct peer_question questions[PEER_WORDS_MAX];
    void (*heard)(void *data, const struct msg_status_reply *status);
    void *data;
};

static void on_status(void *data, const struct rpc_reply *reply)
{
    struct peer_question *question = data;
    struct peer_watch *watch = question->watch;
    struct msg_status_reply status;

    question->id = 0;
    if (watch->closing || reply->err != 0 || msg_status_reply_decode(reply->head, &status) != 0)
        return;
    peer_words_heard(&watch->words, &status, question->asked_us);
    if (watch->heard != NULL)
        watch->heard(watch->data, &status);
}

static struct peer_question *question_for(struct peer_watch *watch, uint64_t id)
{
    struct peer_question *found = NULL;

    for (uint32_t i = 0; i < PEER_WORDS_MAX; i++) {
        if (watch->questions[i].id == id)
            return NULL;
        if (watch->questions[i].id == 0)
            found = &watch->questions[i];
    }
    return found;
}

static void ask(void *data)
{
    struct peer_watch *watch = data;

    for (uint32_t i = 0; i < watch->words.count; i++) {
        const struct peer_word *word = &watch->words.list[i];
        struct peer_question *question = question_for(watch, word->id);
        struct rpc_client *client =
            question != NULL ? rpc_pool_client(&watch->pool, word->id, word->rpc, NULL) : NULL;

        if (client == NULL)
            continue;
        question->watch = watch;
        question->id = word->id;
        question->asked_us = clock_monotonic_us(watch->clock);
        rpc_client_call(client, MSG_STATUS, slice_of(NULL, 0), slice_of(NULL, 0), PEER_ANSWER_MS,
                        on_status, question);
    }
}

int peer_watch_open(struct loop *loop, const char *secret, struct clock *clock, uint64_t self,
                    void (*heard)(void *data, const struct msg_status_reply *status), void *data,
                    struct peer_watch **watch, struct tg_errmsg *msg)
{
    struct peer_watch *w = calloc(1, sizeof *w);

    if (w == NULL)
        return tg_fail(msg, TG_NOMEM, "out of memory");
    int err = rpc_pool_init(&w->pool, loop, secret, msg);
    if (err == 0 && (w->timer = loop_timer_open(loop, ask, w)) == NULL)
        err = tg_fail(msg, TG_NOMEM, "out of memory");
    if (err != 0) {
        free(w);
        return err;
    }
    w->loop = loop;
    w->clock = clock;
    w->self = self;
    w->heard = heard;
    w->data = data;
    loop_timer_start(w->timer, 0, PEER_ASK_MS);
    *watch = w;
    return 0;
}

void peer_watch_close(struct peer_watch *watch)
{
    if (watch == NULL)
        return;
    watch->closing = true;
    loop_timer_close(watch->timer);
    rpc_pool_close(&watch->pool);
    free(watch);
}

void peer_watch_set(struct peer_watch *watch, const struct coordinator_infos *infos)
{
    peer_words_set(&watch->words, watch->self, infos);
    loop_timer_start(watch->timer, 0, PEER_ASK_MS);
}

const struct peer_words *peer_watch_words(const struct peer_watch *watch)
{
    return &watch->words;
}
