/* SPDX-License-Identifier: Apache-2.0 */
/* Raft's configuration looked at and changed, and the leadership handed over. */
#include <string.h>

#include "common/base/log.h"
#include "coordinator/consensus/raft_core.h"
#include "coordinator/consensus/raft_err.h"

static struct raft_core *members_core(const struct consensus *consensus)
{
    return (struct raft_core *)(uintptr_t)consensus;
}

static bool members_may(const struct raft_core *core)
{
    return core->attached && !core->closed && core->shell.started;
}

static enum consensus_role members_role(int role)
{
    switch (role) {
    case RAFT_VOTER:
        return CONSENSUS_VOTER;
    case RAFT_STANDBY:
        return CONSENSUS_STANDBY;
    default:
        return CONSENSUS_SPARE;
    }
}

void raft_members_servers(const struct consensus *consensus, struct consensus_servers *servers)
{
    struct raft_core *core = members_core(consensus);
    memset(servers, 0, sizeof *servers);
    if (!members_may(core))
        return;
    const struct raft_configuration *configuration = &core->raft.configuration;
    bool leads = raft_state(&core->raft) == RAFT_LEADER;
    servers->last_index = raft_last_index(&core->raft);
    servers->changing = core->raft.legacy.change != NULL ||
                        core->raft.configuration_uncommitted_index != 0 ||
                        (leads && core->raft.leader_state.promotee_id != 0);
    for (unsigned i = 0; i < configuration->n && servers->count < COORDINATORS_MAX; i++) {
        struct consensus_server *server = &servers->list[servers->count++];
        raft_index match = 0;
        server->id = configuration->servers[i].id;
        server->role = members_role(configuration->servers[i].role);
        if (leads && raft_match_index(&core->raft, server->id, &match) == 0)
            server->match_index = match;
    }
}

static void members_on_changed(struct raft_change *change, int status)
{
    struct raft_core *core = change->data;
    if (status == 0)
        log_info("raft", "configuration changed servers=%u", core->raft.configuration.n);
    else
        log_warn("raft", "a change of the configuration did not come about code=%s",
                 raft_err_name(status));
    core->shell.applied = true; /* whoever waits for it looks again */
    core->options.wake(core->options.data);
}

int raft_members_step(struct consensus *consensus, enum consensus_step step, uint64_t id,
                      const char *address)
{
    struct raft_core *core = members_core(consensus);
    struct consensus_servers servers;
    int rc = 0;
    if (core->role != CORE_LEADS || !members_may(core))
        return TG_NOT_LEADER;
    raft_members_servers(consensus, &servers);
    if (servers.changing || core->transferring)
        return TG_BUSY;
    core->change.data = core;
    switch (step) {
    case CONSENSUS_STEP_ADD:
        rc = raft_add(&core->raft, &core->change, id, address, members_on_changed);
        break;
    case CONSENSUS_STEP_STANDBY:
        rc = raft_assign(&core->raft, &core->change, id, RAFT_STANDBY, members_on_changed);
        break;
    case CONSENSUS_STEP_VOTER:
        rc = raft_assign(&core->raft, &core->change, id, RAFT_VOTER, members_on_changed);
        break;
    case CONSENSUS_STEP_REMOVE:
        rc = raft_remove(&core->raft, &core->change, id, members_on_changed);
        break;
    }
    /* After a refusal raft_assign leaves its request where the next change would find it. */
    if (rc != 0)
        core->raft.legacy.change = NULL;
    log_info("raft", "change step=%d id=%lu address=%s code=%s", (int)step, (unsigned long)id,
             address != NULL ? address : "", raft_err_name(rc));
    core->options.wake(core->options.data);
    return rc == 0 ? 0 : raft_err(rc);
}

/* ---- handing over ---- */

static void members_on_transferred(struct raft_transfer *transfer)
{
    struct raft_core *core = transfer->data;
    void (*done)(void *data, int err) = core->transfer_done;
    raft_id leader = 0;
    const char *address = NULL;
    core->transferring = false;
    core->transfer_done = NULL;
    if (!core->closed)
        raft_leader(&core->raft, &leader, &address);
    log_info("raft", "transfer ended leader=%lu", (unsigned long)leader);
    core->options.wake(core->options.data);
    if (done != NULL)
        done(core->transfer_data, leader != 0 && leader != core->options.id ? 0 : TG_UNREACHABLE);
}

/* The one that has most of the log, those first that are fit. */
static uint64_t members_fittest(struct raft_core *core)
{
    struct consensus_servers servers;
    const struct consensus_server *best = NULL;
    bool best_fits = false;
    raft_members_servers(&core->consensus, &servers);
    for (uint32_t i = 0; i < servers.count; i++) {
        const struct consensus_server *server = &servers.list[i];
        if (server->role != CONSENSUS_VOTER || server->id == core->options.id)
            continue;
        bool fits = core->options.fit == NULL || core->options.fit(core->options.data, server->id);
        if (best == NULL || (fits && !best_fits) ||
            (fits == best_fits && server->match_index > best->match_index)) {
            best = server;
            best_fits = fits;
        }
    }
    return best != NULL ? best->id : 0;
}

void raft_core_transfer(struct raft_core *core, uint64_t id, void (*done)(void *data, int err),
                        void *data)
{
    int err = TG_NOT_LEADER;
    if (members_may(core) && raft_state(&core->raft) == RAFT_LEADER) {
        uint64_t to = id != 0 ? id : members_fittest(core);
        err = core->transferring ? TG_BUSY : to == 0 ? TG_NOT_FOUND : 0;
        core->transfer.data = core;
        if (err == 0) {
            int rc = raft_transfer(&core->raft, &core->transfer, to, members_on_transferred);
            err = rc == 0 ? 0 : rc == RAFT_BADID ? TG_NOT_FOUND : raft_err(rc);
            log_info("raft", "transfer to=%lu code=%s", (unsigned long)to, raft_err_name(rc));
        }
        if (err == 0) {
            core->transferring = true;
            core->transfer_done = done;
            core->transfer_data = data;
            return;
        }
    }
    if (done != NULL)
        done(data, err);
}

static void members_note(void *data, int err)
{
    *(int *)data = err;
}

int raft_members_transfer(struct consensus *consensus, uint64_t id)
{
    struct raft_core *core = members_core(consensus);
    int err = 0;
    raft_core_transfer(core, id, members_note, &err);
    /* Whoever was promised the end is not told: err lives in this call only. */
    if (core->transfer_data == &err)
        core->transfer_done = NULL;
    return err;
}
