/* SPDX-License-Identifier: Apache-2.0 */
/* The insides of the in-memory raft_io that its two halves share: servers, and the requests on
 * their disks. */
#ifndef TG_TESTS_LIB_MEM_RAFT_WRITE_H
#define TG_TESTS_LIB_MEM_RAFT_WRITE_H

#include <raft.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/base/check.h"
#include "tests/lib/mem_raft_disk.h"
#include "tests/lib/mem_raft_io.h"
#include "tests/lib/sim_world.h"

enum mem_op_kind { MEM_APPEND, MEM_TRUNCATE, MEM_INSTALL };

struct mem_op {
    enum mem_op_kind kind;
    struct raft_io_append *append;
    struct raft_io_snapshot_put *put;
    const struct raft_entry *entries;
    unsigned n;
    raft_index index;
    const struct raft_snapshot *snapshot;
    struct mem_op *next;
};

/* A request that ends by a timer of its own: a sent message, a snapshot taken or read. */
struct mem_call {
    struct mem_server *server; /* NULL once it was cancelled */
    struct raft_io_send *send;
    struct raft_io_snapshot_put *put;
    struct raft_io_snapshot_get *get;
    const struct raft_snapshot *snapshot;
    unsigned trailing;
    bool ended; /* its timer is gone: whoever ends it frees it */
    struct mem_call *prev, *next;
};

struct mem_server {
    struct mem_raft *mem;
    unsigned i;
    struct raft_io io;
    struct mem_raft_disk disk;
    bool up;
    bool booted; /* raft has the io */
    bool failed; /* a request to its disk has failed */
    uint64_t generation;
    raft_id id;
    char address[16];
    raft_io_tick_cb tick;
    raft_io_recv_cb recv;
    unsigned tick_ms;
    raft_io_close_cb closed;
    struct mem_op *ops, **ops_end;
    bool writing;
    struct mem_call *calls;
    uint64_t arrives_us[MEM_RAFT_SERVERS_MAX]; /* of the last message to each peer */
};

struct mem_raft {
    struct sim_world *world;
    unsigned count;
    struct mem_raft_options options;
    struct mem_server servers[MEM_RAFT_SERVERS_MAX];
    bool cut[MEM_RAFT_SERVERS_MAX][MEM_RAFT_SERVERS_MAX];
    mem_raft_turn *turn;
    void *turn_data;
    struct mem_raft_stats stats;
};

/* An event of one life of a server. */
struct mem_event {
    struct mem_server *server;
    uint64_t generation;
};

static inline struct mem_server *mem_of(struct raft_io *io)
{
    return io->impl;
}

static inline void mem_after_event(struct mem_server *server)
{
    if (server->booted && server->mem->turn != NULL)
        server->mem->turn(server->mem->turn_data, server->i);
}

static inline uint64_t mem_between(struct mem_raft *mem, uint64_t low, uint64_t high)
{
    return sim_world_between(mem->world, low, high);
}

static inline void mem_later(struct mem_server *server, uint64_t delay_us, void (*run)(void *data))
{
    struct mem_event *event = malloc(sizeof *event);
    TG_CHECK(event != NULL);
    *event = (struct mem_event){server, server->generation};
    sim_world_after(server->mem->world, delay_us, run, event, free);
}

/* Frees the event; NULL if that life is over. */
static inline struct mem_server *mem_event_server(void *data)
{
    struct mem_event *event = data;
    struct mem_server *server = event->server;
    bool current = server->generation == event->generation;
    free(event);
    return current ? server : NULL;
}

/* ---- raft_io's disk calls ---- */
int mem_append(struct raft_io *io, struct raft_io_append *request,
               const struct raft_entry entries[], unsigned n, raft_io_append_cb cb);
int mem_truncate(struct raft_io *io, raft_index index);
int mem_set_term(struct raft_io *io, raft_term term);
int mem_set_vote(struct raft_io *io, raft_id vote);
int mem_snapshot_put(struct raft_io *io, unsigned trailing, struct raft_io_snapshot_put *request,
                     const struct raft_snapshot *snapshot, raft_io_snapshot_put_cb cb);
int mem_snapshot_get(struct raft_io *io, struct raft_io_snapshot_get *request,
                     raft_io_snapshot_get_cb cb);

/* ---- for crashes and sending ---- */
/* The first n entries of the request reach the disk. */
void mem_write_op(struct mem_server *server, const struct mem_op *op, unsigned n);
struct mem_op *mem_take_op(struct mem_server *server);
void mem_end_op(struct mem_op *op, int status); /* frees it */
/* A request that ends well after low to high microseconds unless mem_call_end comes first. */
struct mem_call *mem_add_call(struct mem_server *server, uint64_t low, uint64_t high);
void mem_call_end(struct mem_call *call, int status);

#endif
