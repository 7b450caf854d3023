/* SPDX-License-Identifier: Apache-2.0 */
/* Holds back snapshots that would meet another one. */
#include "coordinator/consensus/raft_guard.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"

static void guard_drop(struct raft_message *message)
{
    raft_configuration_close(&message->install_snapshot.conf);
    raft_free(message->install_snapshot.data.base);
}

static void guard_hold(struct raft_guard *guard, const struct raft_message *message)
{
    if (guard->holding)
        guard_drop(&guard->held);
    guard->held = *message;
    snprintf(guard->held_address, sizeof guard->held_address, "%s", message->server_address);
    guard->held.server_address = guard->held_address;
    guard->holding = true;
}

/* Lets a message begin behind the own snapshot if it begins where the log no longer reaches. */
static void guard_advance(const struct raft *raft, struct raft_append_entries *args)
{
    raft_index snapshot = raft->trail.snapshot.index;
    if (args->prev_log_index >= snapshot || args->prev_log_index > raft->trail.offset ||
        args->term < raft->current_term)
        return;
    unsigned known = args->n_entries;
    if (snapshot - args->prev_log_index < known)
        known = (unsigned)(snapshot - args->prev_log_index);
    args->prev_log_index = snapshot;
    args->prev_log_term = raft->trail.snapshot.term;
    args->n_entries -= known;
    if (args->n_entries > 0) {
        memmove(args->entries, args->entries + known, args->n_entries * sizeof *args->entries);
    } else if (known > 0) {
        raft_free(args->entries[0].batch);
        raft_free(args->entries);
        args->entries = NULL;
    }
}

static void guard_recv(struct raft_io *io, struct raft_message *message)
{
    struct raft *raft = io->data;
    struct raft_guard *guard = raft->data;
    if (message->type == RAFT_APPEND_ENTRIES && !raft->legacy.closing) {
        struct raft_append_entries *args = &message->append_entries;
        if (raft->trail.snapshot.index > 0 && !raft->snapshot.installing)
            guard_advance(raft, args);
        if (args->leader_commit > args->prev_log_index + args->n_entries)
            args->leader_commit = args->prev_log_index + args->n_entries;
    }
    if (message->type != RAFT_INSTALL_SNAPSHOT || raft->legacy.closing)
        guard->recv(io, message);
    else if (raft->snapshot.installing || raft->legacy.snapshot_install)
        guard_drop(message);
    else if (raft->legacy.snapshot_taking)
        guard_hold(guard, message);
    else
        guard->recv(io, message);
}

static int guard_start(struct raft_io *io, unsigned msecs, raft_io_tick_cb tick,
                       raft_io_recv_cb recv)
{
    struct raft_guard *guard = ((struct raft *)io->data)->data;
    guard->recv = recv;
    return guard->io_start(io, msecs, tick, guard_recv);
}

/* ---- reading a snapshot ---- */

struct guard_get {
    struct raft_guard *guard;
    struct raft_io_snapshot_get inner;
    struct raft_io_snapshot_get *outer; /* raft's */
};

static void guard_on_snapshot(struct raft_io_snapshot_get *inner, struct raft_snapshot *snapshot,
                              int status)
{
    struct guard_get *get = inner->data;
    struct raft_io_snapshot_get *outer = get->outer;
    struct raft_guard *guard = get->guard;
    raft_free(get);
    if (status == 0) {
        guard->sending_term = snapshot->term;
        outer->cb(outer, snapshot, status);
        guard->sending_term = 0;
        return;
    }
    /* data is the request as raft allocated it; nothing else hangs on it yet. */
    log_warn("raft", "a snapshot could not be read for a follower code=%d", status);
    raft_free(outer->data);
}

static int guard_snapshot_get(struct raft_io *io, struct raft_io_snapshot_get *outer,
                              raft_io_snapshot_get_cb cb)
{
    struct raft_guard *guard = ((struct raft *)io->data)->data;
    struct guard_get *get = raft_malloc(sizeof *get);
    if (get == NULL)
        return RAFT_NOMEM;
    outer->cb = cb;
    get->guard = guard;
    get->outer = outer;
    get->inner.data = get;
    int rc = guard->io_snapshot_get(io, &get->inner, guard_on_snapshot);
    if (rc != 0)
        raft_free(get);
    return rc;
}

/* ---- writing a snapshot ---- */

struct guard_put {
    struct raft_guard *guard;
    struct raft_io_snapshot_put inner;
    struct raft_io_snapshot_put *outer; /* raft's */
};

static void guard_on_put(struct raft_io_snapshot_put *inner, int status)
{
    struct guard_put *put = inner->data;
    struct raft_io_snapshot_put *outer = put->outer;
    struct raft_guard *guard = put->guard;
    raft_free(put);
    if (status == RAFT_IOERR && guard->broken != NULL)
        guard->broken(guard->broken_data, "raft's snapshot cannot be written");
    outer->cb(outer, status);
}

static int guard_snapshot_put(struct raft_io *io, unsigned trailing,
                              struct raft_io_snapshot_put *outer,
                              const struct raft_snapshot *snapshot, raft_io_snapshot_put_cb cb)
{
    struct raft_guard *guard = ((struct raft *)io->data)->data;
    struct guard_put *put = raft_malloc(sizeof *put);
    if (put == NULL)
        return RAFT_NOMEM;
    outer->cb = cb;
    put->guard = guard;
    put->outer = outer;
    put->inner.data = put;
    int rc = guard->io_snapshot_put(io, trailing, &put->inner, snapshot, guard_on_put);
    if (rc != 0)
        raft_free(put);
    return rc;
}

static int guard_send(struct raft_io *io, struct raft_io_send *request,
                      const struct raft_message *message, raft_io_send_cb cb)
{
    struct raft_guard *guard = ((struct raft *)io->data)->data;
    /* raft's own memory, which it does not look at again. */
    if (message->type == RAFT_INSTALL_SNAPSHOT && guard->sending_term != 0)
        ((struct raft_message *)(uintptr_t)message)->install_snapshot.last_term =
            guard->sending_term;
    return guard->io_send(io, request, message, cb);
}

static int guard_append(struct raft_io *io, struct raft_io_append *request,
                        const struct raft_entry entries[], unsigned n, raft_io_append_cb cb)
{
    struct raft_guard *guard = ((struct raft *)io->data)->data;
    int rc = guard->io_append(io, request, entries, n, cb);
    if (rc != 0 && guard->broken != NULL)
        guard->broken(guard->broken_data, "raft's log cannot be written");
    return rc;
}

void raft_guard_attach(struct raft_guard *guard, struct raft *raft)
{
    guard->raft = raft;
    guard->io_start = raft->io->start;
    guard->recv = NULL;
    guard->holding = false;
    raft->io->start = guard_start;
    guard->io_snapshot_get = raft->io->snapshot_get;
    raft->io->snapshot_get = guard_snapshot_get;
    guard->io_snapshot_put = raft->io->snapshot_put;
    raft->io->snapshot_put = guard_snapshot_put;
    guard->io_send = raft->io->send;
    raft->io->send = guard_send;
    guard->sending_term = 0;
    guard->io_append = raft->io->append;
    raft->io->append = guard_append;
}

void raft_guard_turn(struct raft_guard *guard)
{
    if (!guard->holding || guard->raft->legacy.snapshot_taking)
        return;
    guard->holding = false;
    guard_recv(guard->raft->io, &guard->held);
}

void raft_guard_detach(struct raft_guard *guard)
{
    if (guard->holding)
        guard_drop(&guard->held);
    guard->holding = false;
}
