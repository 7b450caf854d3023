/* SPDX-License-Identifier: Apache-2.0 */
/* raft's disk and network in memory, on the fake time of a sim_world: delays, loss, repetition,
 * one-way cuts, crashes that lose what was not yet written. For the raft library's own raft_io
 * interface (0.22).
 *
 * The disk writes its requests one after the other. A crash keeps those that were finished and, of
 * the one under way, any part of its entries (as a torn write would). Messages from one server to
 * another arrive in order unless a repetition is drawn. */
#ifndef TG_TESTS_LIB_MEM_RAFT_IO_H
#define TG_TESTS_LIB_MEM_RAFT_IO_H

#include <raft.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/lib/sim_world.h"

enum { MEM_RAFT_SERVERS_MAX = 8 };

struct mem_raft_options {
    uint64_t delay_us_min, delay_us_max; /* of a message */
    unsigned loss_permille;
    unsigned repeat_permille;
    uint64_t disk_us_min, disk_us_max;         /* of a write */
    uint64_t snapshot_us_min, snapshot_us_max; /* of writing a snapshot */
    unsigned fault_permille;                   /* of requests to the disk: see mem_raft_failed */
};
void mem_raft_options_init(struct mem_raft_options *options);

struct mem_raft;

/* count servers with ids 1..count, addresses "1".."count", whose disks are empty. The options may
 * be changed at any time. */
struct mem_raft *mem_raft_open(struct sim_world *world, unsigned count,
                               const struct mem_raft_options *options);
void mem_raft_close(struct mem_raft *mem); /* all servers must be down */
struct mem_raft_options *mem_raft_options(struct mem_raft *mem);

/* Called after everything that happened to server i: a message, a tick, a finished write. */
typedef void mem_raft_turn(void *data, unsigned i);
void mem_raft_set_turn(struct mem_raft *mem, mem_raft_turn *turn, void *data);

/* Makes the server's backend for a fresh struct raft: hand it to raft_init. */
struct raft_io *mem_raft_boot(struct mem_raft *mem, unsigned i);
/* From now on nothing reaches the disk and no message leaves or arrives: call raft_close next; its
 * callback comes with a later event, and then the server may be booted again. A crash keeps what
 * was written by now. */
void mem_raft_crash(struct mem_raft *mem, unsigned i);

/* A request to the server's disk has failed: nothing reaches it any more, and no message leaves or
 * arrives. Its process must end: crash it in the turn in which this is seen. What the failed request
 * was to write is there in part, or not. */
bool mem_raft_failed(const struct mem_raft *mem, unsigned i);

/* Messages of from to to vanish while cut. */
void mem_raft_cut(struct mem_raft *mem, unsigned from, unsigned to, bool cut);
void mem_raft_heal(struct mem_raft *mem); /* all cuts */

/* Calls the callbacks of requests that raft has completed (what libuv's backend does in each turn
 * of its loop). */
void mem_raft_fire(struct raft *raft);

/* What is durable on server i's disk. */
uint64_t mem_raft_last_index(const struct mem_raft *mem, unsigned i);

struct mem_raft_stats {
    uint64_t messages, lost, repeated, cut, appends, snapshots, installs, crashes, entries_lost,
        faults;
};
const struct mem_raft_stats *mem_raft_stats(const struct mem_raft *mem);

#endif
