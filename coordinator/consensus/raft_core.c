/* SPDX-License-Identifier: Apache-2.0 */
/* Drives the raft library: proves leadership, sends batches, tells outcomes. */
#include "coordinator/consensus/raft_core.h"

#include <stdio.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/failpoint.h"
#include "common/base/log.h"
#include "common/base/mutant.h"
#include "coordinator/consensus/raft_err.h"

enum { CORE_LAST_ROUNDS_MAX = 16 /* for callers that propose again when told of the end */ };

static struct proposer_time core_time(const struct raft_core *core)
{
    return (struct proposer_time){clock_wall_us(core->options.clock),
                                  clock_monotonic_us(core->options.clock)};
}

static void core_wake(struct raft_core *core)
{
    core->options.wake(core->options.data);
}

static void core_fatal(struct raft_core *core, const char *why)
{
    if (core->failed)
        return;
    core->failed = true;
    log_error("raft", "fatal: %s", why);
    core->options.fatal(core->options.data, why);
}

/* ---- what the rest of the coordinator calls ---- */

static struct raft_core *core_of(const struct consensus *consensus)
{
    return (struct raft_core *)(uintptr_t)consensus;
}

static void core_propose(struct consensus *consensus, const struct command *command,
                         struct consensus_request *request)
{
    struct raft_core *core = core_of(consensus);
    proposer_add_command(&core->proposer, command, request);
    core_wake(core);
}

static void core_add_barrier(struct consensus *consensus, uint64_t closes_us,
                             struct consensus_request *request)
{
    struct raft_core *core = core_of(consensus);
    proposer_add_barrier(&core->proposer, closes_us, core_time(core), request);
    core_wake(core);
}

static bool core_is_leader(const struct consensus *consensus)
{
    return core_of(consensus)->role == CORE_LEADS;
}

static uint64_t core_leader(const struct consensus *consensus)
{
    struct raft_core *core = core_of(consensus);
    raft_id id = 0;
    const char *address = NULL;
    if (core->attached && !core->closed)
        raft_leader(&core->raft, &id, &address);
    return id;
}

static uint64_t core_term(const struct consensus *consensus)
{
    const struct raft_core *core = core_of(consensus);
    return core->attached && !core->closed ? raft_current_term(&core->raft) : core->lead_term;
}

static uint64_t core_applied_index(const struct consensus *consensus)
{
    return core_of(consensus)->raft.last_applied;
}

static const struct state *core_state(const struct consensus *consensus)
{
    return &core_of(consensus)->state;
}

static uint64_t core_now_us(const struct consensus *consensus)
{
    const struct raft_core *core = core_of(consensus);
    return proposer_now_us(&core->proposer, core->state.stamp_us, core_time(core));
}

static uint64_t core_elapsed_ms(const struct consensus *consensus)
{
    const struct raft_core *core = core_of(consensus);
    return core->state.elapsed_ms + proposer_elapsed_ms(&core->proposer, core_time(core));
}

static const struct consensus_ops core_ops = {
    .propose = core_propose,
    .barrier = core_add_barrier,
    .is_leader = core_is_leader,
    .leader = core_leader,
    .term = core_term,
    .applied_index = core_applied_index,
    .state = core_state,
    .now_us = core_now_us,
    .elapsed_ms = core_elapsed_ms,
    .servers = raft_members_servers,
    .step = raft_members_step,
    .transfer = raft_members_transfer,
};

/* ---- what the state machine asks ---- */

static struct apply_result *core_results(void *data, uint64_t index, uint32_t *results_max)
{
    struct raft_core *core = data;
    for (uint32_t i = 0; i < PROPOSER_WINDOW_MAX; i++) {
        struct raft_core_entry *entry = &core->entries[i];
        /* If another leader's entry took this index, raft ends ours as lost, and nobody looks at
         * the results. */
        if (entry->busy && entry->batch != NULL && entry->apply.index == index) {
            *results_max = entry->batch->commands.count;
            return entry->batch->results;
        }
    }
    *results_max = 0;
    return NULL;
}

static void core_on_broken(void *data, const char *why)
{
    core_fatal(data, why);
}

static void core_on_step(struct raft *raft)
{
    core_wake(raft_core_of(raft));
}

/* ---- life ---- */

int raft_core_init(struct raft_core *core, const struct raft_core_options *options)
{
    memset(core, 0, sizeof *core);
    core->consensus.ops = &core_ops;
    core->options = *options;
    int err = state_init(&core->state);
    if (err != 0)
        return err;
    proposer_init(&core->proposer, options->window);
    raft_fsm_init(&core->shell, &core->state, options->snapshot_bytes);
    if (options->snapshot_entries != 0)
        core->shell.snapshot_entries = options->snapshot_entries;
    core->shell.raft = &core->raft;
    core->shell.results = core_results;
    core->shell.fatal = core_on_broken;
    core->shell.data = core;
    for (uint32_t i = 0; i < PROPOSER_WINDOW_MAX; i++)
        core->entries[i].core = core;
    return 0;
}

int raft_core_attach(struct raft_core *core, struct raft_io *io, struct tg_errmsg *msg)
{
    const struct raft_core_options *options = &core->options;
    memset(&core->raft, 0, sizeof core->raft);
    core->raft.data = &core->guard;
    int rc = raft_init(&core->raft, io, &core->shell.fsm, options->id, options->address);
    if (rc != 0)
        return tg_fail(msg, raft_err(rc), "raft cannot use its directory: %s (%s)",
                       raft_errmsg(&core->raft), raft_err_name(rc));
    core->attached = true;
    raft_set_election_timeout(&core->raft, options->election_timeout_ms);
    raft_set_heartbeat_timeout(&core->raft, options->heartbeat_ms);
    raft_set_install_snapshot_timeout(&core->raft, options->install_snapshot_timeout_ms);
    raft_set_pre_vote(&core->raft, true);
    raft_set_max_catch_up_rounds(&core->raft, 20);
    raft_set_max_catch_up_round_duration(&core->raft, CORE_CATCH_UP_ROUND_MS);
    raft_set_snapshot_threshold(&core->raft, RAFT_FSM_SNAPSHOT_ENTRIES_MAX);
    core->raft.legacy.step_cb = core_on_step;
    core->guard.fatal = core_on_broken;
    core->guard.fatal_data = core;
    raft_guard_attach(&core->guard, &core->raft);
    return 0;
}

int raft_core_start(struct raft_core *core, struct tg_errmsg *msg)
{
    int rc = raft_start(&core->raft);
    if (rc != 0)
        return tg_fail(msg, raft_err(rc), "raft cannot start from its directory: %s (%s)",
                       raft_errmsg(&core->raft), raft_err_name(rc));
    core->shell.started = true;
    core_wake(core);
    return 0;
}

/* ---- leading ---- */

static enum consensus_clock core_clock(const struct raft_core *core, struct proposer_time now)
{
    return core->options.clock_state != NULL ? core->options.clock_state(core->options.data, now)
                                             : CONSENSUS_CLOCK_GOOD;
}

void raft_core_shed(struct raft_core *core, const char *why)
{
    uint64_t now_us = core_time(core).monotonic_us;
    if (core->transferring || now_us < core->shed_after_us ||
        raft_state(&core->raft) != RAFT_LEADER)
        return;
    log_warn("raft", "sheds the leadership why=%s", why);
    core->shed_after_us = now_us + CORE_TRANSFER_PAUSE_MS * UINT64_C(1000);
    raft_core_transfer(core, 0, NULL, NULL);
}

static void core_lose(struct raft_core *core)
{
    log_info("raft", "leadership lost term=%lu", (unsigned long)core->lead_term);
    core->role = CORE_FOLLOWS;
    for (uint32_t i = 0; i < PROPOSER_WINDOW_MAX; i++)
        core->entries[i].batch = NULL;
    proposer_lose(&core->proposer);
}

static void core_on_barrier(struct raft_barrier *barrier, int status)
{
    struct raft_core *core = barrier->data;
    core->barrier_busy = false;
    core_wake(core);
    core->proven = status == 0 && !core->closed && core->role == CORE_PROVES &&
                   core->lead_term == raft_current_term(&core->raft);
}

/* The clock is looked at last: it must be good for the very time that is stamped. */
static void core_lead(struct raft_core *core)
{
    struct proposer_time now = core_time(core);
    enum consensus_clock clock = core_clock(core, now);
    if (clock == CONSENSUS_CLOCK_UNKNOWN &&
        now.monotonic_us - core->elected_us < CORE_CLOCK_WAIT_MS * UINT64_C(1000))
        return;
    core->role = CORE_LEADS;
    core->times_led++;
    proposer_lead(&core->proposer, core->state.stamp_us, core_time(core));
    log_info("raft", "leads id=%lu term=%lu applied=%lu", (unsigned long)core->options.id,
             (unsigned long)core->lead_term, (unsigned long)core->raft.last_applied);
}

/* Leading counts once an entry of the own term, behind everything older, was applied here. */
static void core_prove(struct raft_core *core)
{
    bool again = core->lead_term == raft_current_term(&core->raft);
    core->lead_term = raft_current_term(&core->raft);
    core->barrier.data = core;
    int rc = raft_barrier(&core->raft, &core->barrier, core_on_barrier);
    if (rc != 0) {
        /* A transfer is under way, or the disks of a majority are full: the next turn tries again.
         */
        if (!again)
            log_warn("raft", "elected but cannot lead term=%lu code=%s",
                     (unsigned long)core->lead_term, raft_err_name(rc));
        return;
    }
    core->barrier_busy = true;
    core->proven = false;
    core->elected_us = core_time(core).monotonic_us;
    core->role = CORE_PROVES;
}

static void core_observe(struct raft_core *core)
{
    enum raft_state state = raft_state(&core->raft);
    if (state == RAFT_UNAVAILABLE) {
        core_fatal(core, "raft is unavailable after an internal error");
        return;
    }
    bool ahead = core_clock(core, core_time(core)) == CONSENSUS_CLOCK_AHEAD;
    bool leads = state == RAFT_LEADER && !ahead;
    if (state == RAFT_LEADER && ahead)
        raft_core_shed(core, "the clock is ahead of the others'");
    if (core->role != CORE_FOLLOWS && (!leads || raft_current_term(&core->raft) != core->lead_term))
        core_lose(core);
    if (core->role == CORE_FOLLOWS && leads && !core->barrier_busy)
        core_prove(core);
    if (core->role == CORE_PROVES && core->proven)
        core_lead(core);
}

/* ---- proposing ---- */

static void core_on_apply(struct raft_apply *apply, int status, void *result)
{
    struct raft_core_entry *entry = apply->data;
    struct raft_core *core = entry->core;
    (void)result;
    entry->busy = false;
    if (entry->batch != NULL) {
        if (status == 0)
            proposer_applied(&core->proposer, entry->batch, core->state.stamp_us);
        else
            proposer_failed(&core->proposer, entry->batch);
        entry->batch = NULL;
    }
    core_wake(core);
}

static struct raft_core_entry *core_free_entry(struct raft_core *core)
{
    for (uint32_t i = 0; i < core->options.window; i++)
        if (!core->entries[i].busy)
            return &core->entries[i];
    return NULL;
}

/* True if the error says that the entry is certainly not in the log and the buffer still ours. */
static bool core_is_refusal(int rc)
{
    return rc == RAFT_NOTLEADER || rc == RAFT_NOSPACE || rc == RAFT_MALFORMED;
}

static void core_send(struct raft_core *core, struct raft_core_entry *entry,
                      struct proposer_batch *batch, const struct buf *bytes)
{
    struct raft_buffer buffer = {.base = raft_malloc(bytes->len), .len = bytes->len};
    if (buffer.base == NULL) {
        proposer_refused(&core->proposer, batch, TG_NOMEM);
        return;
    }
    memcpy(buffer.base, bytes->data, bytes->len);
    entry->busy = true;
    entry->batch = batch;
    entry->apply.data = entry;
    int rc = raft_apply(&core->raft, &entry->apply, &buffer, 1, core_on_apply);
    if (rc == 0) {
        FAILPOINT("coord.commit_proposed");
        if (MUTANT(2)) { /* told before anybody else has it */
            proposer_applied(&core->proposer, batch, core->state.stamp_us);
            entry->batch = NULL;
        }
        return;
    }
    entry->busy = false;
    entry->batch = NULL;
    if (core_is_refusal(rc)) {
        raft_free(buffer.base);
        proposer_refused(&core->proposer, batch, raft_err(rc));
        return;
    }
    /* Whether raft kept the buffer, and whether a peer got the entry, nobody can say. */
    proposer_failed(&core->proposer, batch);
    char why[128];
    snprintf(why, sizeof why, "raft failed to append: %s", raft_err_name(rc));
    core_fatal(core, why);
}

static void core_flush(struct raft_core *core)
{
    struct buf bytes = BUF_INIT;
    while (core->role == CORE_LEADS && !core->failed) {
        struct raft_core_entry *entry = core_free_entry(core);
        if (entry == NULL)
            break;
        buf_clear(&bytes);
        struct proposer_time now = core_time(core);
        if (core_clock(core, now) == CONSENSUS_CLOCK_AHEAD) {
            core_wake(core);
            break;
        }
        struct proposer_batch *batch = proposer_next(&core->proposer, now, &bytes);
        if (batch == NULL)
            break;
        core_send(core, entry, batch, &bytes);
    }
    buf_close(&bytes);
}

static void core_tell(struct raft_core *core)
{
    const struct consensus_observer *observer = &core->options.observer;
    bool more = proposer_deliver(&core->proposer);
    bool leads = core->role == CORE_LEADS;
    if (leads != core->told_leads) {
        core->told_leads = leads;
        if (observer->leadership != NULL)
            observer->leadership(observer->data, leads);
        more = true;
    }
    if (core->shell.applied) {
        core->shell.applied = false;
        if (observer->applied != NULL)
            observer->applied(observer->data);
    }
    if (more)
        core_wake(core);
}

void raft_core_turn(struct raft_core *core)
{
    if (core->attached && !core->closed && core->shell.started && !core->failed) {
        raft_guard_turn(&core->guard);
        core_observe(core);
    }
    core_tell(core);
    if (core->attached && !core->closed && core->shell.started)
        core_flush(core);
    /* What was refused while flushing is told in the next turn. */
    if (core->proposer.finished.count > 0)
        core_wake(core);
}

uint64_t raft_core_due_us(const struct raft_core *core)
{
    return core->role == CORE_LEADS ? proposer_due_us(&core->proposer) : 0;
}

void raft_core_set_room(struct raft_core *core, enum proposer_room room)
{
    proposer_set_room(&core->proposer, room);
}

uint64_t raft_core_flight_us(const struct raft_core *core)
{
    uint64_t oldest = 0;
    for (uint32_t i = 0; i < PROPOSER_WINDOW_MAX; i++) {
        const struct proposer_batch *batch = &core->proposer.batches[i];
        if (batch->state == BATCH_IN_FLIGHT && (oldest == 0 || batch->proposed_us < oldest))
            oldest = batch->proposed_us;
    }
    return oldest == 0 ? 0 : clock_monotonic_us(core->options.clock) - oldest;
}

void raft_core_shut(struct raft_core *core, raft_close_cb closed)
{
    TG_CHECK(core->attached && !core->closed);
    core->closed = true;
    raft_guard_detach(&core->guard);
    raft_close(&core->raft, closed);
    if (core->role != CORE_FOLLOWS)
        core_lose(core);
    else
        proposer_lose(&core->proposer);
    /* Those who are told may propose once more: that is refused, and told too. */
    for (int i = 0; i < CORE_LAST_ROUNDS_MAX && !proposer_is_idle(&core->proposer); i++)
        core_tell(core);
    core_tell(core);
}

void raft_core_close(struct raft_core *core)
{
    TG_CHECK(!core->attached || core->closed);
    proposer_lose(&core->proposer);
    for (int i = 0; i < CORE_LAST_ROUNDS_MAX && !proposer_is_idle(&core->proposer); i++)
        proposer_deliver(&core->proposer);
    proposer_close(&core->proposer);
    state_close(&core->state);
}
