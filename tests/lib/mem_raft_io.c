/* SPDX-License-Identifier: Apache-2.0 */
/* raft_io on fake time. */
#include "tests/lib/mem_raft_io.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "tests/lib/mem_raft_message.h"
#include "tests/lib/mem_raft_write.h"

/* A message on its way. */
struct mem_letter {
    struct mem_server *from, *to;
    struct raft_message message;
};

void mem_raft_options_init(struct mem_raft_options *options)
{
    memset(options, 0, sizeof *options);
    options->delay_us_min = 200;
    options->delay_us_max = 3000;
    options->disk_us_min = 100;
    options->disk_us_max = 2000;
    options->snapshot_us_min = 1000;
    options->snapshot_us_max = 50000;
}

/* ---- network ---- */

static void mem_letter_drop(void *data)
{
    struct mem_letter *letter = data;
    mem_raft_message_close(&letter->message);
    free(letter);
}

static void mem_on_arrival(void *data)
{
    struct mem_letter *letter = data;
    struct mem_server *to = letter->to;
    struct mem_raft *mem = to->mem;
    if (!to->up || to->failed || to->recv == NULL || mem->cut[letter->from->i][to->i]) {
        mem->stats.cut++;
        mem_letter_drop(letter);
        return;
    }
    letter->message.server_id = letter->from->id;
    letter->message.server_address = letter->from->address;
    to->recv(&to->io, &letter->message);
    free(letter);
    mem_after_event(to);
}

static void mem_post(struct mem_server *from, struct mem_server *to,
                     const struct raft_message *message, bool in_order)
{
    struct mem_raft *mem = from->mem;
    struct mem_letter *letter = calloc(1, sizeof *letter);
    TG_CHECK(letter != NULL);
    letter->from = from;
    letter->to = to;
    mem_raft_message_copy(&letter->message, message);
    uint64_t at =
        mem->world->now_us + mem_between(mem, mem->options.delay_us_min, mem->options.delay_us_max);
    if (in_order) {
        if (at <= from->arrives_us[to->i])
            at = from->arrives_us[to->i] + 1;
        from->arrives_us[to->i] = at;
    }
    sim_world_after(mem->world, at - mem->world->now_us, mem_on_arrival, letter, mem_letter_drop);
}

static int mem_send(struct raft_io *io, struct raft_io_send *request,
                    const struct raft_message *message, raft_io_send_cb cb)
{
    struct mem_server *server = mem_of(io);
    struct mem_raft *mem = server->mem;
    TG_CHECK(message->server_id >= 1 && message->server_id <= mem->count);
    struct mem_server *to = &mem->servers[message->server_id - 1];
    request->cb = cb;
    mem_add_call(server, 10, 100)->send = request;
    mem->stats.messages++;
    if (mem->cut[server->i][to->i] || server->failed) {
        mem->stats.cut++;
    } else if (sim_world_chance(mem->world, mem->options.loss_permille)) {
        mem->stats.lost++;
    } else {
        mem_post(server, to, message, true);
        if (sim_world_chance(mem->world, mem->options.repeat_permille)) {
            mem->stats.repeated++;
            mem_post(server, to, message, false);
        }
    }
    return 0;
}

/* ---- life ---- */

static void mem_on_tick(void *data)
{
    struct mem_server *server = mem_event_server(data);
    if (server == NULL)
        return;
    mem_later(server, server->tick_ms * 1000ULL, mem_on_tick);
    server->tick(&server->io);
    mem_after_event(server);
}

static int mem_init(struct raft_io *io, raft_id id, const char *address)
{
    struct mem_server *server = mem_of(io);
    server->id = id;
    snprintf(server->address, sizeof server->address, "%s", address);
    return 0;
}

static int mem_load(struct raft_io *io, raft_term *term, raft_id *vote,
                    struct raft_snapshot **snapshot, raft_index *start_index,
                    struct raft_entry *entries[], size_t *n)
{
    struct mem_server *server = mem_of(io);
    *term = server->disk.term;
    *vote = server->disk.vote;
    mem_raft_disk_load(&server->disk, snapshot, start_index, entries, n);
    return 0;
}

static int mem_start(struct raft_io *io, unsigned msecs, raft_io_tick_cb tick, raft_io_recv_cb recv)
{
    struct mem_server *server = mem_of(io);
    server->tick = tick;
    server->recv = recv;
    server->tick_ms = msecs;
    mem_later(server, mem_between(server->mem, 1, msecs * 1000ULL), mem_on_tick);
    return 0;
}

static int mem_bootstrap(struct raft_io *io, const struct raft_configuration *configuration)
{
    struct mem_server *server = mem_of(io);
    if (server->disk.term != 0 || server->disk.count != 0)
        return RAFT_CANTBOOTSTRAP;
    struct raft_entry entry = {.term = 1, .type = RAFT_CHANGE};
    int rc = raft_configuration_encode(configuration, &entry.buf);
    if (rc != 0)
        return rc;
    server->disk.term = 1;
    mem_raft_disk_append(&server->disk, &entry);
    raft_free(entry.buf.base);
    return 0;
}

static int mem_recover(struct raft_io *io, const struct raft_configuration *configuration)
{
    (void)io;
    (void)configuration;
    return RAFT_INVALID;
}

static raft_time mem_time(struct raft_io *io)
{
    return mem_of(io)->mem->world->now_us / 1000;
}

static int mem_random(struct raft_io *io, int min, int max)
{
    return min + (int)sim_world_below(mem_of(io)->mem->world, (uint64_t)(max - min) + 1);
}

void mem_raft_crash(struct mem_raft *mem, unsigned i)
{
    struct mem_server *server = &mem->servers[i];
    TG_CHECK(server->up);
    /* What was under way is on the disk in part. */
    if (server->writing && server->ops->kind == MEM_APPEND)
        mem_write_op(server, server->ops,
                     (unsigned)sim_world_below(mem->world, server->ops->n + 1ULL));
    for (const struct mem_op *op = server->ops; op != NULL; op = op->next)
        mem->stats.entries_lost += op->n;
    server->up = false;
    server->generation++;
    mem->stats.crashes++;
}

static void mem_on_closed(void *data)
{
    struct mem_server *server = mem_event_server(data);
    TG_CHECK(server != NULL);
    server->booted = false;
    server->closed(&server->io);
}

static void mem_close(struct raft_io *io, raft_io_close_cb cb)
{
    struct mem_server *server = mem_of(io);
    if (server->up)
        mem_raft_crash(server->mem, server->i);
    while (server->ops != NULL)
        mem_end_op(mem_take_op(server), RAFT_CANCELED);
    while (server->calls != NULL)
        mem_call_end(server->calls, RAFT_CANCELED);
    server->closed = cb;
    mem_later(server, 1, mem_on_closed);
}

struct raft_io *mem_raft_boot(struct mem_raft *mem, unsigned i)
{
    struct mem_server *server = &mem->servers[i];
    TG_CHECK(!server->up && !server->booted);
    server->generation++;
    server->up = true;
    server->booted = true;
    server->writing = false;
    server->failed = false;
    server->recv = NULL;
    server->tick = NULL;
    memset(&server->io, 0, sizeof server->io);
    server->io.version = 2;
    server->io.capacity = UINT16_MAX;
    server->io.impl = server;
    server->io.init = mem_init;
    server->io.close = mem_close;
    server->io.load = mem_load;
    server->io.start = mem_start;
    server->io.bootstrap = mem_bootstrap;
    server->io.recover = mem_recover;
    server->io.set_term = mem_set_term;
    server->io.set_vote = mem_set_vote;
    server->io.send = mem_send;
    server->io.append = mem_append;
    server->io.truncate = mem_truncate;
    server->io.snapshot_put = mem_snapshot_put;
    server->io.snapshot_get = mem_snapshot_get;
    server->io.time = mem_time;
    server->io.random = mem_random;
    return &server->io;
}

struct mem_raft *mem_raft_open(struct sim_world *world, unsigned count,
                               const struct mem_raft_options *options)
{
    struct mem_raft *mem = calloc(1, sizeof *mem);
    TG_CHECK(mem != NULL && count >= 1 && count <= MEM_RAFT_SERVERS_MAX);
    mem->world = world;
    mem->count = count;
    mem->options = *options;
    for (unsigned i = 0; i < count; i++) {
        struct mem_server *server = &mem->servers[i];
        server->mem = mem;
        server->i = i;
        server->ops_end = &server->ops;
        mem_raft_disk_init(&server->disk);
    }
    return mem;
}

void mem_raft_close(struct mem_raft *mem)
{
    for (unsigned i = 0; i < mem->count; i++) {
        TG_CHECK(!mem->servers[i].booted);
        mem_raft_disk_close(&mem->servers[i].disk);
    }
    free(mem);
}

struct mem_raft_options *mem_raft_options(struct mem_raft *mem)
{
    return &mem->options;
}

void mem_raft_set_turn(struct mem_raft *mem, mem_raft_turn *turn, void *data)
{
    mem->turn = turn;
    mem->turn_data = data;
}

void mem_raft_cut(struct mem_raft *mem, unsigned from, unsigned to, bool cut)
{
    mem->cut[from][to] = cut;
}

void mem_raft_heal(struct mem_raft *mem)
{
    memset(mem->cut, 0, sizeof mem->cut);
}

bool mem_raft_failed(const struct mem_raft *mem, unsigned i)
{
    return mem->servers[i].up && mem->servers[i].failed;
}

uint64_t mem_raft_last_index(const struct mem_raft *mem, unsigned i)
{
    const struct mem_raft_disk *disk = &mem->servers[i].disk;
    uint64_t last = disk->first + disk->count - 1;
    return last > disk->snapshot.index ? last : disk->snapshot.index;
}

const struct mem_raft_stats *mem_raft_stats(const struct mem_raft *mem)
{
    return &mem->stats;
}

/* raft keeps completed requests on a list of its own until its backend calls them; the list is of
 * the classic kind, two pointers to the neighbours' two pointers. */
void mem_raft_fire(struct raft *raft)
{
    void **head = raft->legacy.requests;
    while (head[0] != (void *)head) {
        void **node = head[0];
        void **next = node[0];
        head[0] = next;
        next[1] = head;
        struct raft_apply *request =
            (struct raft_apply *)((char *)node - offsetof(struct raft_apply, queue));
        switch (request->type) {
        case RAFT_COMMAND:
            request->cb(request, request->status, request->result);
            break;
        case RAFT_BARRIER: {
            struct raft_barrier *barrier = (struct raft_barrier *)request;
            barrier->cb(barrier, barrier->status);
            break;
        }
        case RAFT_CHANGE: {
            struct raft_change *change = (struct raft_change *)request;
            change->cb(change, change->status);
            break;
        }
        default: {
            /* There are no others but transfers. */
            struct raft_transfer *transfer = (struct raft_transfer *)request;
            transfer->cb(transfer);
            break;
        }
        }
    }
}
