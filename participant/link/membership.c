/* SPDX-License-Identifier: Apache-2.0 */
/* This node's place in the cluster. One thing at a time is under way: a save in the pool, a
 * registration, a heartbeat's filling, a heartbeat. `busy` says so; closing waits for it. */
#include "participant/link/membership.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/uuid.h"
#include "common/proto/message.h"

enum {
    REGISTER_TIMEOUT_MS = 3000, /* then the log says that nobody answers; the next try follows */
    REGISTER_RETRY_MS = 500,
    NOT_FORMED_RETRY_MS = 200,
    HEARTBEAT_TIMEOUT_MS = 10000,
    HEARTBEAT_ATTEMPT_MS = 1000
};

struct membership {
    struct loop *loop;
    struct coordinator_client *coordinators;
    struct membership_options options;
    struct membership_record record;
    struct membership_hooks hooks;
    struct random_source *random;
    struct node_identity *identity;
    struct loop_timer *timer;
    struct loop_work work;
    struct msg_heartbeat heartbeat;
    int work_err;
    bool busy;
    bool joined;
    bool over;     /* fenced */
    bool hurry;    /* the next heartbeat goes out at once */
    bool clearing; /* the registration under way is an earlier start's */
    /* What could not be written down and is tried again; NULL: nothing. */
    void (*unsaved)(struct loop_work *work);
    void (*closed)(void *data); /* closing if not NULL */
    void *closed_data;
};

static void save_then(struct membership *m, void (*then)(struct loop_work *work));
static void send_registration(struct membership *m);
static void on_timer(void *data);

int membership_open(struct loop *loop, struct coordinator_client *coordinators,
                    const struct membership_options *options,
                    const struct membership_record *record, const struct membership_hooks *hooks,
                    struct random_source *random, struct node_identity *identity,
                    struct membership **membership)
{
    struct membership *m = calloc(1, sizeof *m);

    if (m == NULL)
        return TG_NOMEM;
    m->timer = loop_timer_open(loop, on_timer, m);
    if (m->timer == NULL) {
        free(m);
        return TG_NOMEM;
    }
    m->loop = loop;
    m->coordinators = coordinators;
    m->options = *options;
    m->record = *record;
    m->hooks = *hooks;
    m->random = random;
    m->identity = identity;
    if (m->record.node_uuid[0] == 0) {
        uint8_t bytes[16];
        struct uuid uuid;

        random_fill(random, bytes, sizeof bytes);
        uuid = uuid_v4(bytes);
        uuid_print(&uuid, m->record.node_uuid);
    }
    *membership = m;
    return 0;
}

/* What was under way has ended. True if the node closes, which then is over. */
static bool ended(struct membership *m)
{
    m->busy = false;
    if (m->closed == NULL)
        return false;
    loop_timer_close(m->timer);
    m->closed(m->closed_data);
    free(m);
    return true;
}

void membership_close(struct membership *m, void (*closed)(void *data), void *data)
{
    m->closed = closed;
    m->closed_data = data;
    loop_timer_stop(m->timer);
    if (!m->busy)
        ended(m);
}

static void fence(struct membership *m, int err, const char *sentence)
{
    if (m->over)
        return;
    m->over = true;
    loop_timer_stop(m->timer);
    m->hooks.fenced(m->hooks.data, err, sentence);
}

/* ---- registration ---- */

static void run_save(struct loop_work *work)
{
    struct membership *m = work->data;

    m->work_err = m->hooks.save(m->hooks.data, &m->record);
}

static void save_then(struct membership *m, void (*then)(struct loop_work *work))
{
    m->busy = true;
    m->work = (struct loop_work){.work = run_save, .done = then, .data = m};
    if (loop_work_start(m->loop, &m->work) != 0) {
        m->work_err = TG_NOMEM;
        then(&m->work);
    }
}

/* The disk is full, say: until the identity is written down, nothing is built on it. True if it is
 * to be tried again. */
static bool save_again(struct membership *m, void (*then)(struct loop_work *work))
{
    if (m->work_err == 0)
        return false;
    log_warn("membership", "register_retry err=%s reason=\"the node's identity cannot be written\"",
             tg_err_name(m->work_err));
    m->unsaved = then;
    loop_timer_start(m->timer, REGISTER_RETRY_MS, 0);
    return true;
}

static void pending_saved(struct loop_work *work)
{
    struct membership *m = work->data;

    if (!ended(m) && !save_again(m, pending_saved))
        send_registration(m);
}

static void make_nonce(struct membership *m)
{
    do
        m->record.pending_nonce = random_u64(m->random);
    while (m->record.pending_nonce == 0);
    save_then(m, pending_saved);
}

static void accepted_saved(struct loop_work *work)
{
    struct membership *m = work->data;

    if (ended(m) || save_again(m, accepted_saved))
        return;
    atomic_store(&m->identity->epoch, m->record.epoch);
    atomic_store(&m->identity->node, m->record.node);
    m->joined = true;
    log_info("membership", "joined node=%u epoch=%lu cluster=%s", m->record.node, m->record.epoch,
             m->record.cluster_uuid);
    m->busy = true; /* the hook may close: then this is over below */
    m->hooks.joined(m->hooks.data);
    if (!ended(m))
        loop_timer_start(m->timer, 0, 0);
}

/* The pending nonce of an earlier start turned out to be known: now one of this start's own. */
static void old_pending_saved(struct loop_work *work)
{
    struct membership *m = work->data;

    if (!ended(m) && !save_again(m, old_pending_saved))
        make_nonce(m);
}

/* Verdicts on who this node is; all others are about the moment. */
static bool is_final(int err)
{
    return err == TG_FENCED || err == TG_REFUSED || err == TG_DENIED || err == TG_INVALID ||
           err == TG_UNSUPPORTED;
}

/* An empty directory may come before its cluster; one that belongs to a cluster must not join
 * another. */
static bool is_too_early(const struct membership *m, int err, const char *sentence)
{
    return err == TG_REFUSED && m->record.cluster_uuid[0] == 0 &&
           strstr(sentence, "not formed") != NULL;
}

static void on_registered(void *data, const struct rpc_reply *reply)
{
    struct membership *m = data;
    struct msg_register_reply answer = {0};
    int err = reply->err;

    if (err == 0)
        err = msg_register_reply_decode(reply->head, &answer);
    if (ended(m))
        return;
    if (err == TG_CANCELED)
        return;
    if (is_too_early(m, err, reply->message)) {
        loop_timer_start(m->timer, NOT_FORMED_RETRY_MS, 0);
        return;
    }
    if (is_final(err)) {
        fence(m, err, reply->message);
        return;
    }
    if (err != 0) {
        log_warn("membership", "register_retry err=%s reason=%s", tg_err_name(err),
                 log_quote(reply->message));
        loop_timer_start(m->timer, REGISTER_RETRY_MS, 0);
        return;
    }
    bool earlier = m->clearing;
    m->clearing = false;
    m->options.rejoin = false; /* once is enough: it would undo what was proven since */
    m->record.nonce = m->record.pending_nonce;
    m->record.pending_nonce = 0;
    m->record.node = answer.node;
    m->record.epoch = answer.epoch;
    memcpy(m->record.cluster_uuid, answer.cluster_uuid, sizeof m->record.cluster_uuid);
    save_then(m, earlier ? old_pending_saved : accepted_saved);
}

static void send_registration(struct membership *m)
{
    struct msg_register message = {.wanted = m->options.wanted};
    struct buf head = BUF_INIT;

    memcpy(message.node_uuid, m->record.node_uuid, sizeof message.node_uuid);
    memcpy(message.cluster_uuid, m->record.cluster_uuid, sizeof message.cluster_uuid);
    message.previous_nonce = m->record.nonce;
    message.new_nonce = m->record.pending_nonce;
    message.rejoin = m->options.rejoin;
    memcpy(message.http, m->options.http, sizeof message.http);
    memcpy(message.rpc, m->options.rpc, sizeof message.rpc);
    msg_register_encode(&message, &head);
    m->busy = true;
    coordinator_client_call(m->coordinators, MSG_REGISTER, &head, REGISTER_TIMEOUT_MS, 0,
                            on_registered, m);
}

void membership_start(struct membership *m)
{
    m->clearing = m->record.pending_nonce != 0;
    if (m->clearing)
        send_registration(m);
    else
        make_nonce(m);
}

/* ---- heartbeats ---- */

static void next_heartbeat(struct membership *m)
{
    if (m->over)
        return;
    loop_timer_start(m->timer, m->hurry ? 0 : m->options.heartbeat_ms, 0);
    m->hurry = false;
}

static void on_heartbeat_answer(void *data, const struct rpc_reply *reply)
{
    struct membership *m = data;
    struct msg_heartbeat_reply answer;
    int err = reply->err;

    if (err == 0)
        err = msg_heartbeat_reply_decode(reply->head, &answer);
    if (m->closed != NULL) {
        if (err == 0)
            msg_heartbeat_reply_close(&answer);
        ended(m);
        return;
    }
    if (err == TG_FENCED) {
        m->busy = false;
        fence(m, err, reply->message);
        return;
    }
    if (err == 0) {
        if (answer.coordinator_count > 0)
            coordinator_client_learn(m->coordinators, answer.coordinators,
                                     answer.coordinator_count);
        m->hooks.answered(m->hooks.data, &answer); /* may close */
    } else
        log_warn("membership", "no_heartbeat_answer err=%s reason=%s", tg_err_name(err),
                 log_quote(reply->message));
    if (!ended(m))
        next_heartbeat(m);
}

static void fill_heartbeat(struct loop_work *work)
{
    struct membership *m = work->data;

    m->work_err = m->hooks.fill(m->hooks.data, &m->heartbeat);
}

static void heartbeat_filled(struct loop_work *work)
{
    struct membership *m = work->data;
    struct buf head = BUF_INIT;
    int err = m->work_err;

    if (err == 0)
        msg_heartbeat_encode(&m->heartbeat, &head);
    msg_heartbeat_close(&m->heartbeat);
    if (ended(m)) {
        buf_close(&head);
        return;
    }
    if (err != 0) {
        log_warn("membership", "heartbeat_not_filled err=%s", tg_err_name(err));
        next_heartbeat(m);
        return;
    }
    m->busy = true;
    coordinator_client_call(m->coordinators, MSG_HEARTBEAT, &head, HEARTBEAT_TIMEOUT_MS,
                            HEARTBEAT_ATTEMPT_MS, on_heartbeat_answer, m);
}

static void on_timer(void *data)
{
    struct membership *m = data;

    if (m->busy || m->over)
        return;
    if (m->unsaved != NULL) {
        void (*then)(struct loop_work *) = m->unsaved;

        m->unsaved = NULL;
        save_then(m, then);
        return;
    }
    if (!m->joined) {
        send_registration(m);
        return;
    }
    memset(&m->heartbeat, 0, sizeof m->heartbeat);
    m->heartbeat.node = m->record.node;
    m->heartbeat.epoch = m->record.epoch;
    m->busy = true;
    m->work = (struct loop_work){.work = fill_heartbeat, .done = heartbeat_filled, .data = m};
    if (loop_work_start(m->loop, &m->work) != 0) {
        m->work_err = TG_NOMEM;
        heartbeat_filled(&m->work);
    }
}

void membership_hurry(struct membership *m)
{
    if (m->busy)
        m->hurry = true;
    else if (m->joined && !m->over)
        loop_timer_start(m->timer, 0, 0);
}
