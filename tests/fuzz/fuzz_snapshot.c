/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a snapshot of the coordinators' state: refused, or a state that keeps its invariants
 * and comes out of its own snapshot again. A first byte of 'f' means the file with its head and
 * checksum, else the state inside. */
#include <stdint.h>

#include "common/base/check.h"
#include "coordinator/consensus/raft_fsm.h"
#include "coordinator/state/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_again(const struct state *state)
{
    struct buf bytes = BUF_INIT;
    struct state again;
    uint64_t index = 0;
    TG_CHECK(raft_fsm_encode_snapshot(state, 7, &bytes) == 0 && state_init(&again) == 0);
    TG_CHECK(raft_fsm_decode_snapshot(slice_of(bytes.data, bytes.len), &again, &index, NULL) == 0);
    TG_CHECK(index == 7 && state_hash(&again) == state_hash(state));
    state_close(&again);
    buf_close(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct state state;
    struct tg_errmsg msg;
    uint64_t index;
    if (size == 0)
        return 0;
    TG_CHECK(state_init(&state) == 0);
    struct slice bytes = slice_of(data + 1, size - 1);
    int err = data[0] == 'f' ? raft_fsm_decode_snapshot(bytes, &state, &index, &msg)
                             : state_decode(&state, bytes, &msg);
    if (err == 0)
        check_again(&state);
    state_close(&state);
    return 0;
}
