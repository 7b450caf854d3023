/* SPDX-License-Identifier: Apache-2.0 */
/* The disk half of the in-memory raft_io. */
#include "tests/lib/mem_raft_write.h"

#include <stdlib.h>

#include "common/base/check.h"

/* ---- disk: one request after the other ---- */

static void mem_write_next(struct mem_server *server);

void mem_write_op(struct mem_server *server, const struct mem_op *op, unsigned n)
{
    switch (op->kind) {
    case MEM_APPEND:
        for (unsigned k = 0; k < n; k++)
            mem_raft_disk_append(&server->disk, &op->entries[k]);
        break;
    case MEM_TRUNCATE:
        mem_raft_disk_truncate(&server->disk, op->index);
        break;
    case MEM_INSTALL:
        mem_raft_disk_put_snapshot(&server->disk, op->snapshot, 0);
        server->mem->stats.installs++;
        break;
    }
}

void mem_end_op(struct mem_op *op, int status)
{
    if (op->append != NULL)
        op->append->cb(op->append, status);
    if (op->put != NULL)
        op->put->cb(op->put, status);
    free(op);
}

struct mem_op *mem_take_op(struct mem_server *server)
{
    struct mem_op *op = server->ops;
    server->ops = op->next;
    if (server->ops == NULL)
        server->ops_end = &server->ops;
    return op;
}

/* Whether this request fails, or one has failed before. */
static bool mem_fails(struct mem_server *server)
{
    struct mem_raft *mem = server->mem;
    if (!server->failed && sim_world_chance(mem->world, mem->options.fault_permille)) {
        server->failed = true;
        mem->stats.faults++;
        sim_world_trace(mem->world, "raft disk fault server=%u", server->i + 1);
    }
    return server->failed;
}

static void mem_on_written(void *data)
{
    struct mem_server *server = mem_event_server(data);
    if (server == NULL)
        return;
    struct mem_op *op = server->ops;
    if (mem_fails(server)) {
        /* The request stays, and is cancelled when raft closes. */
        if (op->append != NULL)
            op->append->cb(op->append, RAFT_IOERR);
        if (op->put != NULL)
            op->put->cb(op->put, RAFT_IOERR);
        mem_after_event(server);
        return;
    }
    mem_take_op(server);
    server->writing = false;
    mem_write_op(server, op, op->n);
    mem_end_op(op, 0);
    mem_write_next(server);
    mem_after_event(server);
}

static void mem_write_next(struct mem_server *server)
{
    struct mem_raft_options *options = &server->mem->options;
    if (server->failed)
        return;
    while (server->ops != NULL && server->ops->kind == MEM_TRUNCATE && !server->writing) {
        struct mem_op *op = mem_take_op(server);
        mem_write_op(server, op, 0);
        mem_end_op(op, 0);
    }
    if (server->ops == NULL || server->writing)
        return;
    server->writing = true;
    uint64_t took =
        server->ops->kind == MEM_INSTALL
            ? mem_between(server->mem, options->snapshot_us_min, options->snapshot_us_max)
            : mem_between(server->mem, options->disk_us_min, options->disk_us_max);
    mem_later(server, took, mem_on_written);
}

static struct mem_op *mem_add_op(struct mem_server *server, enum mem_op_kind kind)
{
    struct mem_op *op = calloc(1, sizeof *op);
    TG_CHECK(op != NULL);
    op->kind = kind;
    *server->ops_end = op;
    server->ops_end = &op->next;
    return op;
}

int mem_append(struct raft_io *io, struct raft_io_append *request,
               const struct raft_entry entries[], unsigned n, raft_io_append_cb cb)
{
    struct mem_server *server = mem_of(io);
    struct mem_op *op = mem_add_op(server, MEM_APPEND);
    request->cb = cb;
    op->append = request;
    op->entries = entries;
    op->n = n;
    server->mem->stats.appends++;
    if (mem_fails(server))
        return RAFT_IOERR;
    mem_write_next(server);
    return 0;
}

int mem_truncate(struct raft_io *io, raft_index index)
{
    struct mem_server *server = mem_of(io);
    struct mem_op *op = mem_add_op(server, MEM_TRUNCATE);
    op->index = index;
    if (mem_fails(server))
        return RAFT_IOERR;
    mem_write_next(server);
    return 0;
}

int mem_set_term(struct raft_io *io, raft_term term)
{
    struct mem_server *server = mem_of(io);
    if (mem_fails(server))
        return RAFT_IOERR;
    server->disk.term = term;
    server->disk.vote = 0;
    return 0;
}

int mem_set_vote(struct raft_io *io, raft_id vote)
{
    struct mem_server *server = mem_of(io);
    if (mem_fails(server))
        return RAFT_IOERR;
    server->disk.vote = vote;
    return 0;
}

/* ---- requests with a timer of their own ---- */

static void mem_call_unlink(struct mem_call *call)
{
    if (call->prev != NULL)
        call->prev->next = call->next;
    else
        call->server->calls = call->next;
    if (call->next != NULL)
        call->next->prev = call->prev;
    call->server = NULL;
}

void mem_call_end(struct mem_call *call, int status)
{
    struct mem_server *server = call->server;
    bool ended = call->ended;
    mem_call_unlink(call);
    if (call->send != NULL)
        call->send->cb(call->send, status);
    if (call->put != NULL) {
        if (status == 0) {
            mem_raft_disk_put_snapshot(&server->disk, call->snapshot, call->trailing);
            server->mem->stats.snapshots++;
        }
        call->put->cb(call->put, status);
    }
    if (call->get != NULL)
        call->get->cb(call->get, status == 0 ? mem_raft_disk_get_snapshot(&server->disk) : NULL,
                      status);
    if (ended)
        free(call);
}

static void mem_on_call(void *data)
{
    struct mem_call *call = data;
    struct mem_server *server = call->server;
    if (server != NULL && call->put != NULL && mem_fails(server)) {
        /* The snapshot is cancelled when raft closes, which is due now. */
        call->put->cb(call->put, RAFT_IOERR);
        call->ended = true;
        mem_after_event(server);
        return;
    }
    if (server != NULL) {
        mem_call_end(call, 0);
        mem_after_event(server);
    }
    free(call);
}

struct mem_call *mem_add_call(struct mem_server *server, uint64_t low, uint64_t high)
{
    struct mem_call *call = calloc(1, sizeof *call);
    TG_CHECK(call != NULL);
    call->server = server;
    call->next = server->calls;
    if (call->next != NULL)
        call->next->prev = call;
    server->calls = call;
    sim_world_after(server->mem->world, mem_between(server->mem, low, high), mem_on_call, call,
                    free);
    return call;
}

int mem_snapshot_put(struct raft_io *io, unsigned trailing, struct raft_io_snapshot_put *request,
                     const struct raft_snapshot *snapshot, raft_io_snapshot_put_cb cb)
{
    struct mem_server *server = mem_of(io);
    const struct mem_raft_options *options = &server->mem->options;
    request->cb = cb;
    if (trailing == 0) {
        struct mem_op *op = mem_add_op(server, MEM_INSTALL);
        op->put = request;
        op->snapshot = snapshot;
        mem_write_next(server);
        return 0;
    }
    struct mem_call *call =
        mem_add_call(server, options->snapshot_us_min, options->snapshot_us_max);
    call->put = request;
    call->snapshot = snapshot;
    call->trailing = trailing;
    return 0;
}

int mem_snapshot_get(struct raft_io *io, struct raft_io_snapshot_get *request,
                     raft_io_snapshot_get_cb cb)
{
    struct mem_server *server = mem_of(io);
    const struct mem_raft_options *options = &server->mem->options;
    request->cb = cb;
    mem_add_call(server, options->disk_us_min, options->disk_us_max)->get = request;
    return 0;
}
