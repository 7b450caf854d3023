/* SPDX-License-Identifier: Apache-2.0 */
/* log_replay DIR UNTIL: applies a coordinator's log from its first entry to entry UNTIL in a fresh
 * state and prints the state's hash. DIR is a copy of a raft directory without snapshots, since
 * reading it changes it. */
#include <inttypes.h>
#include <raft.h>
#include <raft/uv.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "coordinator/consensus/batch.h"
#include "coordinator/state/state.h"

/* A coordinator applies what a majority has; its own disk may follow a moment later. */
enum { LOG_IS_SHORT = 3 };

static int no_init(struct raft_uv_transport *transport, raft_id id, const char *address)
{
    (void)transport;
    (void)id;
    (void)address;
    return 0;
}

static int no_listen(struct raft_uv_transport *transport, raft_uv_accept_cb cb)
{
    (void)transport;
    (void)cb;
    return 0;
}

static int apply(struct state *state, const struct raft_entry *entry, uint64_t index)
{
    struct tg_errmsg msg = {{0}};
    uint32_t count;

    if (entry->type != RAFT_COMMAND)
        return 0;
    int err = batch_apply(state, slice_of(entry->buf.base, entry->buf.len), NULL, 0, &count, &msg);
    if (err != 0)
        fprintf(stderr, "entry %" PRIu64 ": %s %s\n", index, tg_err_name(err), msg.text);
    return err;
}

int main(int argc, char **argv)
{
    static struct raft_uv_transport transport = {
        .version = 1, .init = no_init, .listen = no_listen};
    static struct raft_io io;
    static struct state state;
    uv_loop_t loop;
    raft_term term;
    raft_id voted_for;
    raft_index first;
    struct raft_snapshot *snapshot = NULL;
    struct raft_entry *entries = NULL;
    size_t count = 0;

    if (argc != 3) {
        fprintf(stderr, "usage: log_replay DIR UNTIL\n");
        return 2;
    }
    uint64_t until = strtoull(argv[2], NULL, 10);
    if (uv_loop_init(&loop) != 0 || state_init(&state) != 0 ||
        raft_uv_init(&io, &loop, argv[1], &transport) != 0 || io.init(&io, 1, "127.0.0.1:1") != 0 ||
        io.load(&io, &term, &voted_for, &snapshot, &first, &entries, &count) != 0) {
        fprintf(stderr, "%s cannot be read: %s\n", argv[1], io.errmsg);
        return 1;
    }
    if (snapshot != NULL || first != 1) {
        fprintf(stderr, "the log begins with a snapshot or at %" PRIu64 "\n", (uint64_t)first);
        return 1;
    }
    if (count < until) {
        fprintf(stderr, "the log ends with entry %zu\n", count);
        return LOG_IS_SHORT;
    }
    for (uint64_t i = 0; i < until; i++)
        if (apply(&state, &entries[i], i + 1) != 0)
            return 1;
    printf("%016" PRIx64 "\n", state_hash(&state));
    return 0;
}
