/* SPDX-License-Identifier: Apache-2.0 */
/* Applies the log to the state and turns the state into snapshots and back. */
#include "coordinator/consensus/raft_fsm.h"

#include <limits.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/endian.h"
#include "common/base/failpoint.h"
#include "common/base/log.h"
#include "coordinator/consensus/batch.h"
#include "coordinator/consensus/raft_guard.h"

enum {
    SNAPSHOT_MAGIC = 0x4e534754, /* "TGSN" */
    SNAPSHOT_HEADER_BYTES = 24,
    SNAPSHOT_FOOTER_BYTES = 8,
    SNAPSHOT_NEVER = INT_MAX /* a threshold in entries that is not reached */
};

/* ---- snapshots as bytes ---- */

int raft_fsm_encode_snapshot(const struct state *state, uint64_t index, struct buf *out)
{
    TG_CHECK(out->len == 0);
    buf_append_u32le(out, SNAPSHOT_MAGIC);
    buf_append_u32le(out, RAFT_FSM_SNAPSHOT_FORMAT);
    buf_append_u64le(out, index);
    buf_append_u64le(out, 0);
    state_encode(state, out);
    if (out->err != 0)
        return out->err;
    if (out->len > RAFT_FSM_SNAPSHOT_BYTES_MAX)
        return TG_TOO_LARGE;
    store_u64le(out->data + 16, out->len - SNAPSHOT_HEADER_BYTES);
    buf_append_u64le(out, checksum64(out->data, out->len));
    return out->err;
}

static int raft_fsm_check_snapshot(struct slice bytes, struct slice *body, uint64_t *index,
                                   struct tg_errmsg *msg)
{
    if (bytes.len < SNAPSHOT_HEADER_BYTES + SNAPSHOT_FOOTER_BYTES)
        return tg_fail(msg, TG_CORRUPT, "a snapshot of %zu bytes is too short", bytes.len);
    if (load_u32le(bytes.data) != SNAPSHOT_MAGIC)
        return tg_fail(msg, TG_CORRUPT, "this is no snapshot");
    uint32_t format = load_u32le(bytes.data + 4);
    if (format != RAFT_FSM_SNAPSHOT_FORMAT)
        return tg_fail(msg, TG_UNSUPPORTED, "unknown snapshot format %u", format);
    uint64_t length = load_u64le(bytes.data + 16);
    size_t room = bytes.len - SNAPSHOT_HEADER_BYTES - SNAPSHOT_FOOTER_BYTES;
    /* A backend may hand over the file's padding too. */
    if (length > room)
        return tg_fail(msg, TG_CORRUPT, "a snapshot is cut off: %lu of %lu bytes",
                       (unsigned long)room, (unsigned long)length);
    size_t guarded = SNAPSHOT_HEADER_BYTES + (size_t)length;
    if (load_u64le(bytes.data + guarded) != checksum64(bytes.data, guarded))
        return tg_fail(msg, TG_CORRUPT, "a snapshot's checksum does not match");
    *index = load_u64le(bytes.data + 8);
    *body = slice_of(bytes.data + SNAPSHOT_HEADER_BYTES, (size_t)length);
    return 0;
}

int raft_fsm_decode_snapshot(struct slice bytes, struct state *state, uint64_t *index,
                             struct tg_errmsg *msg)
{
    struct slice body;
    int err = raft_fsm_check_snapshot(bytes, &body, index, msg);
    if (err != 0)
        return err;
    struct state fresh;
    err = state_init(&fresh);
    if (err != 0)
        return tg_fail(msg, err, "%s", tg_err_sentence(err));
    err = state_decode(&fresh, body, msg);
    if (err != 0) {
        state_close(&fresh);
        return err;
    }
    state_close(state);
    *state = fresh;
    return 0;
}

/* ---- the library's callbacks ---- */

static void raft_fsm_break(struct raft_fsm_shell *shell, const char *why)
{
    shell->broken = true;
    shell->fatal(shell->data, why);
}

/* raft counts in entries; we count bytes, and let it snapshot at its next event by a threshold of
 * one. */
static void raft_fsm_arm_snapshot(struct raft_fsm_shell *shell, uint64_t index)
{
    bool due = shell->bytes_since_snapshot >= shell->snapshot_bytes ||
               index - shell->snapshot_index >= shell->snapshot_entries;
    raft_set_snapshot_threshold(shell->raft, due ? 1 : SNAPSHOT_NEVER);
}

static void raft_fsm_begin_interval(struct raft_fsm_shell *shell, uint64_t index)
{
    shell->bytes_since_snapshot = 0;
    shell->snapshot_index = index;
    raft_set_snapshot_threshold(shell->raft, SNAPSHOT_NEVER);
}

static int raft_fsm_apply(struct raft_fsm *fsm, const struct raft_buffer *buf, void **result)
{
    struct raft_fsm_shell *shell = fsm->data;
    *result = NULL;
    if (shell->broken)
        return 0;
    /* The library advances its own count after this call. */
    uint64_t index = raft_last_applied(shell->raft) + 1;
    uint32_t results_max = 0;
    uint32_t count = 0;
    struct apply_result *results = shell->results(shell->data, index, &results_max);
    struct tg_errmsg msg = {""};
    int err = batch_apply(shell->state, slice_of(buf->base, buf->len), results, results_max, &count,
                          &msg);
    if (err != 0) {
        tg_wrap(&msg, err, "log index %lu", (unsigned long)index);
        raft_fsm_break(shell, msg.text);
        return 0;
    }
    shell->applied = true;
    shell->entries_applied++;
    shell->bytes_applied += buf->len;
    shell->bytes_since_snapshot += buf->len;
    raft_fsm_arm_snapshot(shell, index);
    return 0;
}

static int raft_fsm_snapshot(struct raft_fsm *fsm, struct raft_buffer *bufs[], unsigned *n_bufs)
{
    struct raft_fsm_shell *shell = fsm->data;
    if (shell->broken || !raft_guard_may_snapshot(shell->raft))
        return RAFT_BUSY;
    uint64_t index = raft_last_applied(shell->raft);
    uint64_t entries = index - shell->snapshot_index;
    /* Back to the older of the two snapshots that stay, so that both can be started from. */
    uint64_t trailing = 2 * entries;
    if (trailing < RAFT_FSM_TRAILING_MIN)
        trailing = RAFT_FSM_TRAILING_MIN;
    if (trailing > RAFT_FSM_TRAILING_MAX)
        trailing = RAFT_FSM_TRAILING_MAX;
    if (trailing < entries)
        trailing = entries;
    raft_fsm_begin_interval(shell, index);

    struct buf bytes = BUF_INIT;
    int err = raft_fsm_encode_snapshot(shell->state, index, &bytes);
    struct raft_buffer *list = err == 0 ? raft_malloc(sizeof *list) : NULL;
    if (list == NULL) {
        log_error("raft", "no snapshot index=%lu bytes=%zu error=%s", (unsigned long)index,
                  bytes.len, tg_err_name(err == 0 ? TG_NOMEM : err));
        buf_close(&bytes);
        return err == TG_TOO_LARGE ? RAFT_TOOBIG : RAFT_NOMEM;
    }
    /* Freed by the library; its heap is malloc's. */
    list->base = buf_take(&bytes, &list->len);
    *bufs = list;
    *n_bufs = 1;
    raft_set_snapshot_trailing(shell->raft, (unsigned)trailing);
    shell->snapshots_taken++;
    log_info("raft", "snapshot index=%lu bytes=%zu entries=%lu trailing=%lu", (unsigned long)index,
             list->len, (unsigned long)entries, (unsigned long)trailing);
    FAILPOINT("snapshot.mid_write");
    return 0;
}

/* At the start a failure is returned and refuses to start; later the library would go on with the
 * old state, so it ends the process. The buffer is the library's unless this succeeds. */
static int raft_fsm_restore(struct raft_fsm *fsm, struct raft_buffer *buf)
{
    struct raft_fsm_shell *shell = fsm->data;
    struct tg_errmsg msg = {""};
    uint64_t index = 0;
    int err = raft_fsm_decode_snapshot(slice_of(buf->base, buf->len), shell->state, &index, &msg);
    if (err != 0) {
        tg_wrap(&msg, err, "restore a snapshot");
        if (shell->started)
            raft_fsm_break(shell, msg.text);
        else
            log_error("raft", "%s", msg.text);
        return RAFT_CORRUPT;
    }
    log_info("raft", "restored index=%lu bytes=%zu", (unsigned long)index, buf->len);
    shell->applied = true;
    shell->snapshots_restored++;
    raft_fsm_begin_interval(shell, index);
    FAILPOINT("snapshot.installed_before_segment_delete");
    raft_free(buf->base);
    return 0;
}

void raft_fsm_init(struct raft_fsm_shell *shell, struct state *state, uint64_t snapshot_bytes)
{
    memset(shell, 0, sizeof *shell);
    shell->state = state;
    shell->snapshot_bytes = snapshot_bytes;
    shell->snapshot_entries = RAFT_FSM_SNAPSHOT_ENTRIES_MAX;
    shell->fsm.version = 1;
    shell->fsm.data = shell;
    shell->fsm.apply = raft_fsm_apply;
    shell->fsm.snapshot = raft_fsm_snapshot;
    shell->fsm.restore = raft_fsm_restore;
}
