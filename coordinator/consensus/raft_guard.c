/* SPDX-License-Identifier: Apache-2.0 */
/* Holds back snapshots that would meet another one, mends messages, and lets no disk error pass. */
#include "coordinator/consensus/raft_guard.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "coordinator/consensus/raft_err.h"

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

/* ---- disk errors ---- */

static struct raft_guard *guard_of(const struct raft_io *io)
{
    return ((struct raft *)io->data)->data;
}

static int guard_fatal(struct raft_guard *guard, const char *what, int rc)
{
    char why[96];
    snprintf(why, sizeof why, "raft's disk failed: %s: %s", what, raft_err_name(rc));
    guard->fatal(guard->fatal_data, why);
    return 0;
}

static int guard_set_term(struct raft_io *io, raft_term term)
{
    int rc = guard_of(io)->io_set_term(io, term);
    return rc == 0 ? 0 : guard_fatal(guard_of(io), "term", rc);
}

static int guard_set_vote(struct raft_io *io, raft_id vote)
{
    int rc = guard_of(io)->io_set_vote(io, vote);
    return rc == 0 ? 0 : guard_fatal(guard_of(io), "vote", rc);
}

static int guard_truncate(struct raft_io *io, raft_index index)
{
    int rc = guard_of(io)->io_truncate(io, index);
    return rc == 0 ? 0 : guard_fatal(guard_of(io), "truncate", rc);
}

struct guard_append {
    struct guard_append *prev, *next;
    struct raft_guard *guard;
    struct raft_io_append inner;
    struct raft_io_append *outer; /* raft's */
    raft_time since;
};

static void guard_remember(struct guard_append *append)
{
    struct raft_guard *guard = append->guard;
    append->prev = guard->last_append;
    *(append->prev != NULL ? &append->prev->next : &guard->appends) = append;
    guard->last_append = append;
}

static void guard_forget(struct guard_append *append)
{
    struct raft_guard *guard = append->guard;
    *(append->prev != NULL ? &append->prev->next : &guard->appends) = append->next;
    *(append->next != NULL ? &append->next->prev : &guard->last_append) = append->prev;
    raft_free(append);
}

static bool guard_is_failure(int status)
{
    return status != 0 && status != RAFT_CANCELED;
}

static void guard_on_append(struct raft_io_append *inner, int status)
{
    struct guard_append *append = inner->data;
    if (guard_is_failure(status)) {
        guard_fatal(append->guard, "entries", status);
        return;
    }
    struct raft_io_append *outer = append->outer;
    guard_forget(append);
    outer->cb(outer, status);
}

static int guard_append(struct raft_io *io, struct raft_io_append *outer,
                        const struct raft_entry entries[], unsigned n, raft_io_append_cb cb)
{
    struct raft_guard *guard = guard_of(io);
    struct guard_append *append = raft_malloc(sizeof *append);
    int rc = append == NULL ? RAFT_NOMEM : 0;
    outer->cb = cb;
    if (rc == 0) {
        *append = (struct guard_append){
            .guard = guard, .inner = {.data = append}, .outer = outer, .since = io->time(io)};
        guard_remember(append);
        rc = guard->io_append(io, &append->inner, entries, n, guard_on_append);
    }
    return rc == 0 ? 0 : guard_fatal(guard, "entries", rc);
}

uint64_t raft_guard_append_ms(const struct raft_guard *guard)
{
    struct raft_io *io = guard->raft->io;
    return guard->appends == NULL ? 0 : io->time(io) - guard->appends->since;
}

struct guard_put {
    struct raft_guard *guard;
    struct raft_io_snapshot_put inner;
    struct raft_io_snapshot_put *outer; /* raft's */
};

static void guard_on_put(struct raft_io_snapshot_put *inner, int status)
{
    struct guard_put *put = inner->data;
    if (status == RAFT_IOERR) {
        guard_fatal(put->guard, "snapshot", status);
        return;
    }
    struct raft_io_snapshot_put *outer = put->outer;
    raft_free(put);
    outer->cb(outer, status);
}

static int guard_snapshot_put(struct raft_io *io, unsigned trailing,
                              struct raft_io_snapshot_put *outer,
                              const struct raft_snapshot *snapshot, raft_io_snapshot_put_cb cb)
{
    struct raft_guard *guard = guard_of(io);
    struct guard_put *put = raft_malloc(sizeof *put);
    if (put == NULL)
        return RAFT_NOMEM;
    outer->cb = cb;
    *put = (struct guard_put){.guard = guard, .inner = {.data = put}, .outer = outer};
    int rc = guard->io_snapshot_put(io, trailing, &put->inner, snapshot, guard_on_put);
    /* One that did not even begin may begin later. */
    if (rc != 0)
        raft_free(put);
    return rc;
}

static void guard_attach_disk(struct raft_guard *guard, struct raft_io *io)
{
    guard->io_set_term = io->set_term;
    guard->io_set_vote = io->set_vote;
    guard->io_append = io->append;
    guard->io_truncate = io->truncate;
    guard->io_snapshot_put = io->snapshot_put;
    io->set_term = guard_set_term;
    io->set_vote = guard_set_vote;
    io->append = guard_append;
    io->truncate = guard_truncate;
    io->snapshot_put = guard_snapshot_put;
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
    guard->io_send = raft->io->send;
    raft->io->send = guard_send;
    guard->sending_term = 0;
    guard_attach_disk(guard, raft->io);
    guard->appends = NULL;
    guard->last_append = NULL;
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
