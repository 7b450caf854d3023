/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a configuration of one behind the end of a log, with nothing running. */
#include "coordinator/consensus/raft_recover.h"

#include <raft.h>
#include <raft/uv.h>
#include <string.h>

#include "common/base/log.h"
#include "common/net/loop.h"
#include "coordinator/consensus/raft_dir.h"
#include "coordinator/consensus/raft_err.h"

/* ---- a transport that speaks to nobody, a state machine that is never fed ---- */

static int mute_init(struct raft_uv_transport *transport, raft_id id, const char *address)
{
    (void)transport;
    (void)id;
    (void)address;
    return 0;
}

static int mute_listen(struct raft_uv_transport *transport, raft_uv_accept_cb cb)
{
    (void)transport;
    (void)cb;
    return 0;
}

static int mute_connect(struct raft_uv_transport *transport, struct raft_uv_connect *request,
                        raft_id id, const char *address, raft_uv_connect_cb cb)
{
    (void)transport;
    (void)request;
    (void)id;
    (void)address;
    (void)cb;
    return RAFT_NOCONNECTION;
}

static void mute_close(struct raft_uv_transport *transport, raft_uv_transport_close_cb cb)
{
    cb(transport);
}

static int mute_apply(struct raft_fsm *fsm, const struct raft_buffer *buf, void **result)
{
    (void)fsm;
    (void)buf;
    *result = NULL;
    return 0;
}

static int mute_snapshot(struct raft_fsm *fsm, struct raft_buffer *bufs[], unsigned *n_bufs)
{
    (void)fsm;
    (void)bufs;
    (void)n_bufs;
    return RAFT_BUSY;
}

static int mute_restore(struct raft_fsm *fsm, struct raft_buffer *buf)
{
    (void)fsm;
    (void)buf;
    return RAFT_CORRUPT;
}

/* ---- the log ---- */

static void free_loaded(struct raft_snapshot *snapshot, struct raft_entry *entries, size_t count)
{
    const void *batch = NULL;
    for (size_t i = 0; i < count; i++)
        if (entries[i].batch != batch) {
            batch = entries[i].batch;
            raft_free(entries[i].batch);
        }
    raft_free(entries);
    if (snapshot == NULL)
        return;
    for (unsigned i = 0; i < snapshot->n_bufs; i++)
        raft_free(snapshot->bufs[i].base);
    raft_free(snapshot->bufs);
    raft_configuration_close(&snapshot->configuration);
    raft_free(snapshot);
}

static int look(struct raft_recover *recover, struct raft_io *io, struct tg_errmsg *msg)
{
    struct raft_snapshot *snapshot = NULL;
    struct raft_entry *entries = NULL;
    raft_term term = 0;
    raft_id voted_for = 0;
    raft_index start = 0;
    size_t count = 0;
    int rc = io->load(io, &term, &voted_for, &snapshot, &start, &entries, &count);
    if (rc != 0)
        return tg_fail(msg, raft_err(rc), "the log in %s cannot be read: %s (%s)", recover->dir,
                       io->errmsg, raft_err_name(rc));
    recover->term = term;
    recover->last_index = start + count - 1;
    if (count > 0)
        recover->last_term = entries[count - 1].term;
    else if (snapshot != NULL)
        recover->last_term = snapshot->term;
    free_loaded(snapshot, entries, count);
    return recover->last_term > 0 ? 0 : tg_fail(msg, TG_REFUSED, "%s holds no entry", recover->dir);
}

static int rewrite(const struct raft_recover *recover, struct raft *raft, struct tg_errmsg *msg)
{
    struct raft_configuration configuration;
    raft_configuration_init(&configuration);
    int rc = raft_configuration_add(&configuration, recover->id, recover->address, RAFT_VOTER);
    if (rc == 0)
        rc = raft_recover(raft, &configuration);
    raft_configuration_close(&configuration);
    if (rc != 0)
        return tg_fail(msg, raft_err(rc), "raft cannot rewrite %s: %s (%s)", recover->dir,
                       raft->io->errmsg, raft_err_name(rc));
    log_info("raft", "recovered alone id=%lu dir=%s index=%lu", (unsigned long)recover->id,
             recover->dir, (unsigned long)recover->last_index + 1);
    return 0;
}

static void on_closed(struct raft *raft)
{
    raft_uv_close(raft->io);
    *(bool *)raft->data = true;
}

int raft_recover_alone(struct raft_recover *recover, struct tg_errmsg *msg)
{
    struct raft_uv_transport transport = {.version = 1,
                                          .init = mute_init,
                                          .listen = mute_listen,
                                          .connect = mute_connect,
                                          .close = mute_close};
    struct raft_fsm fsm = {
        .version = 1, .apply = mute_apply, .snapshot = mute_snapshot, .restore = mute_restore};
    static struct raft raft; /* large */
    struct raft_io io = {0};
    struct raft_dir dir;
    struct loop *loop = NULL;
    bool closed = false;
    int err = raft_dir_look(recover->dir, &dir, msg);

    if (err == 0 && dir.kind != RAFT_DIR_COMPLETE)
        err = tg_fail(msg, TG_REFUSED, "%s holds no log to go on from", recover->dir);
    if (err == 0)
        err = loop_open(&loop, msg);
    if (err != 0)
        return err;
    int rc = raft_uv_init(&io, loop_uv(loop), recover->dir, &transport);
    if (rc == 0) {
        raft_uv_set_auto_recovery(&io, false);
        memset(&raft, 0, sizeof raft);
        rc = raft_init(&raft, &io, &fsm, recover->id, recover->address);
        if (rc != 0)
            raft_uv_close(&io);
    }
    if (rc != 0) {
        loop_close(loop);
        return tg_fail(msg, raft_err(rc), "raft cannot use %s: %s (%s)", recover->dir, io.errmsg,
                       raft_err_name(rc));
    }
    raft.data = &closed;
    err = look(recover, &io, msg);
    if (err == 0 && recover->write)
        err = rewrite(recover, &raft, msg);
    raft_close(&raft, on_closed);
    while (!closed)
        uv_run(loop_uv(loop), UV_RUN_ONCE);
    loop_close(loop);
    return err;
}
