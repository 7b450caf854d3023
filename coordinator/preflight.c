/* SPDX-License-Identifier: Apache-2.0 */
/* Is there a cluster already? */
#include "coordinator/preflight.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/net/rpc_pool.h"
#include "common/proto/message.h"

struct peer_view {
    struct preflight *preflight;
    bool heard_none; /* it said, since this node is up, that there is no cluster */
    bool ready;      /* it has looked around too, or takes part already */
};

struct preflight {
    struct loop *loop;
    const struct dispatch *dispatch;
    enum status_phase *phase;
    struct rpc_pool pool;
    struct loop_timer *timer;
    void (*done)(void *data, int err, const char *sentence);
    void *data;
    bool closing;
    bool over;
    bool asked; /* a round is under way */
    unsigned waits_for;
    uint64_t began_ms;
    uint64_t logged_ms;
    struct peer_view peers[DISPATCH_PEERS_MAX];
};

static void end(struct preflight *p, int err, const char *sentence)
{
    p->over = true;
    loop_timer_stop(p->timer);
    p->done(p->data, err, sentence);
}

/* Enough of them: all, or, when some have been silent for long, a majority with this node. */
static bool suffices(const struct preflight *p, unsigned others)
{
    unsigned total = p->dispatch->peer_count;
    bool late = loop_now_ms(p->loop) - p->began_ms >= PREFLIGHT_WAIT_ALL_MS;

    return others + 1 == total || (late && (others + 1) * 2 > total);
}

static void count(const struct preflight *p, unsigned *heard, unsigned *ready)
{
    *heard = 0;
    *ready = 0;
    for (uint32_t i = 0; i < p->dispatch->peer_count; i++) {
        *heard += p->peers[i].heard_none;
        *ready += p->peers[i].heard_none && p->peers[i].ready;
    }
}

static void round_ended(struct preflight *p)
{
    uint64_t now = loop_now_ms(p->loop);
    unsigned heard;
    unsigned ready;

    count(p, &heard, &ready);
    if (suffices(p, heard))
        *p->phase = STATUS_READY;
    if (suffices(p, ready)) {
        end(p, 0, "");
        return;
    }
    if (now - p->logged_ms >= PREFLIGHT_LOG_MS) {
        p->logged_ms = now;
        log_info("preflight", "waiting reached=%u of=%u why=%s", heard + 1, p->dispatch->peer_count,
                 log_quote("a new cluster is formed once its coordinators are up"));
    }
    loop_timer_start(p->timer, PREFLIGHT_PAUSE_MS, 0);
}

static void refuse(struct preflight *p, const struct msg_status_reply *status)
{
    struct tg_errmsg msg;

    tg_fail(&msg, TG_REFUSED,
            "coordinator %lu belongs to cluster %s already, but the data directory here is empty: "
            "bring the old directory back, or remove this coordinator from the cluster and join "
            "with a new id",
            (unsigned long)status->coordinator, status->cluster_uuid);
    end(p, TG_REFUSED, msg.text);
}

static void on_status(void *data, const struct rpc_reply *reply)
{
    struct peer_view *peer = data;
    struct preflight *p = peer->preflight;
    struct msg_status_reply status;

    p->waits_for--;
    if (p->closing || p->over)
        return;
    if (reply->err == 0 && msg_status_reply_decode(reply->head, &status) == 0 &&
        !status.of_cluster) {
        /* Once everybody said that there is no cluster, one that exists was formed meanwhile, and
         * this node is of it. */
        if (status.cluster_uuid[0] != '\0' && *p->phase != STATUS_READY) {
            refuse(p, &status);
            return;
        }
        peer->heard_none = true;
        peer->ready = status.phase != STATUS_LOOKS;
    }
    if (p->waits_for == 0)
        loop_timer_start(p->timer, 0, 0);
}

static void ask(struct preflight *p)
{
    const struct dispatch *dispatch = p->dispatch;

    /* New connections each round: an old one may be resting for a second before it tries again. */
    rpc_pool_close(&p->pool);
    for (uint32_t i = 0; i < dispatch->peer_count; i++) {
        const struct dispatch_peer *to = &dispatch->peers[i];
        struct rpc_client *client;

        if (to->id == dispatch->self)
            continue;
        client = rpc_pool_client(&p->pool, to->id, to->rpc, NULL);
        if (client == NULL)
            continue;
        p->waits_for++;
        p->peers[i].preflight = p;
        rpc_client_call(client, MSG_STATUS, slice_of(NULL, 0), slice_of(NULL, 0), PREFLIGHT_ASK_MS,
                        on_status, &p->peers[i]);
    }
    if (p->waits_for == 0)
        loop_timer_start(p->timer, PREFLIGHT_PAUSE_MS, 0);
}

/* Each firing either ends a round or begins one. */
static void fire(void *data)
{
    struct preflight *p = data;

    if (p->asked) {
        p->asked = false;
        round_ended(p);
    } else {
        p->asked = true;
        ask(p);
    }
}

int preflight_start(struct loop *loop, const struct dispatch *dispatch, const char *secret,
                    enum status_phase *phase,
                    void (*done)(void *data, int err, const char *sentence), void *data,
                    struct preflight **preflight, struct tg_errmsg *msg)
{
    struct preflight *p = calloc(1, sizeof *p);
    int err = p == NULL ? tg_fail(msg, TG_NOMEM, "out of memory") : 0;

    if (err == 0)
        err = rpc_pool_init(&p->pool, loop, secret, msg);
    if (err == 0) {
        p->timer = loop_timer_open(loop, fire, p);
        err = p->timer == NULL ? tg_fail(msg, TG_NOMEM, "out of memory") : 0;
    }
    if (err != 0) {
        free(p);
        return err;
    }
    p->loop = loop;
    p->dispatch = dispatch;
    p->phase = phase;
    p->done = done;
    p->data = data;
    p->began_ms = loop_now_ms(loop);
    p->logged_ms = p->began_ms;
    *phase = STATUS_LOOKS;
    loop_timer_start(p->timer, 0, 0);
    *preflight = p;
    return 0;
}

void preflight_close(struct preflight *preflight)
{
    if (preflight == NULL)
        return;
    preflight->closing = true;
    rpc_pool_close(&preflight->pool);
    loop_timer_close(preflight->timer);
    free(preflight);
}
