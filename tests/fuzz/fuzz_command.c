/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as commands of the raft log, or as a snapshot: decoded and applied, or refused; never a
 * crash, and the state keeps its invariants. The first byte says which. */
#include <stddef.h>
#include <stdint.h>

#include "common/base/check.h"
#include "coordinator/state/command.h"
#include "coordinator/state/state.h"
#include "tests/lib/state_builder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FUZZ_COMMANDS_MAX = 200 };

/* What comes out of its own snapshot is the same. */
static void check_snapshot(const struct state *state)
{
    struct buf bytes = BUF_INIT;
    struct state again;
    state_encode(state, &bytes);
    TG_CHECK(bytes.err == 0 && state_init(&again) == 0);
    TG_CHECK(state_decode(&again, slice_of(bytes.data, bytes.len), NULL) == 0);
    TG_CHECK(state_hash(&again) == state_hash(state));
    state_close(&again);
    buf_close(&bytes);
}

static void apply_commands(struct cursor *cursor)
{
    struct state_builder builder;
    state_builder_init(&builder);
    state_builder_members(&builder, 1, 3);
    TG_CHECK(state_builder_db(&builder, "d") == 0);
    struct state_builder_table table = {.db = "d", .table = "t", .buckets = 2, .replication = 3};
    TG_CHECK(state_builder_table(&builder, &table) == 0);
    builder.state.limits.label_keep_ms = 0;

    for (int i = 0; i < FUZZ_COMMANDS_MAX && cursor_left(cursor) > 0; i++) {
        struct command command;
        if (command_decode(cursor, &command) != 0)
            break;
        struct buf bytes = BUF_INIT;
        command_encode(&command, &bytes);
        TG_CHECK(bytes.err == 0);
        buf_close(&bytes);
        struct apply_result result;
        state_apply(&builder.state, &command, &result);
        TG_CHECK(result.err <= 0);
        command_close(&command);
    }
    state_builder_check(&builder.state);
    check_snapshot(&builder.state);
    state_builder_close(&builder);
}

static void read_snapshot(struct slice bytes)
{
    struct state state;
    TG_CHECK(state_init(&state) == 0);
    if (state_decode(&state, bytes, NULL) == 0)
        check_snapshot(&state);
    state_close(&state);
}

static void read_batch(struct cursor *cursor)
{
    struct batch_header header;
    if (batch_decode_header(cursor, &header) != 0)
        return;
    struct command command;
    for (uint32_t i = 0; i < header.count && command_decode(cursor, &command) == 0; i++)
        command_close(&command);
    (void)batch_decode_end(cursor);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct cursor cursor;
    cursor_init(&cursor, data + 1, size - 1);
    if (data[0] == 'c')
        apply_commands(&cursor);
    else if (data[0] == 's')
        read_snapshot(slice_of(data + 1, size - 1));
    else
        read_batch(&cursor);
    return 0;
}
