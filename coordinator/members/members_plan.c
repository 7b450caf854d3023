/* SPDX-License-Identifier: Apache-2.0 */
/* Raft's configuration beside the replicated list. */
#include "coordinator/members/members_plan.h"

#include <stddef.h>

static const struct consensus_server *find_server(const struct consensus_servers *servers,
                                                  uint64_t id)
{
    for (uint32_t i = 0; i < servers->count; i++)
        if (servers->list[i].id == id)
            return &servers->list[i];
    return NULL;
}

static struct members_plan propose(enum command_type command, uint64_t id)
{
    return (struct members_plan){.act = MEMBERS_PROPOSE, .id = id, .command = command};
}

static struct members_plan step(enum consensus_step which, uint64_t id)
{
    return (struct members_plan){.act = MEMBERS_STEP, .id = id, .step = which};
}

static struct members_plan rest(void)
{
    return (struct members_plan){.act = MEMBERS_REST};
}

static struct members_plan join(const struct consensus_servers *servers,
                                const struct consensus_server *server, uint64_t id)
{
    if (server == NULL)
        return step(CONSENSUS_STEP_ADD, id);
    if (server->role == CONSENSUS_SPARE)
        return step(CONSENSUS_STEP_STANDBY, id);
    if (server->role == CONSENSUS_STANDBY && server->match_index > 0 &&
        server->match_index + MEMBERS_LAG_MAX >= servers->last_index)
        return propose(COMMAND_COORDINATOR_PROMOTE, id);
    return rest();
}

static struct members_plan look_at(const struct coordinator_record *record,
                                   const struct consensus_servers *servers, uint64_t self)
{
    const struct consensus_server *server = find_server(servers, record->id);

    switch (record->standing) {
    case COORDINATOR_JOINS:
        return join(servers, server, record->id);
    case COORDINATOR_VOTES:
        if (server == NULL)
            return propose(COMMAND_COORDINATOR_GONE, record->id);
        if (server->role != CONSENSUS_VOTER)
            return step(server->role == CONSENSUS_SPARE ? CONSENSUS_STEP_STANDBY
                                                        : CONSENSUS_STEP_VOTER,
                        record->id);
        return rest();
    case COORDINATOR_LEAVES:
        if (server == NULL)
            return propose(COMMAND_COORDINATOR_GONE, record->id);
        if (record->id == self)
            return (struct members_plan){.act = MEMBERS_TRANSFER, .id = self};
        return step(CONSENSUS_STEP_REMOVE, record->id);
    }
    return rest();
}

struct members_plan members_plan(const struct coordinators *coordinators,
                                 const struct consensus_servers *servers, uint64_t self)
{
    if (servers->changing || servers->count == 0)
        return rest();
    uint64_t unknown = 0;
    /* In the order of ids: who sees the list in between must not find itself left out. */
    for (uint32_t i = 0; i < servers->count; i++)
        if (coordinators_find(coordinators, servers->list[i].id) == NULL &&
            (unknown == 0 || servers->list[i].id < unknown))
            unknown = servers->list[i].id;
    if (unknown != 0)
        return propose(COMMAND_COORDINATOR_FOUND, unknown);
    for (uint32_t i = 0; i < coordinators->count; i++) {
        struct members_plan plan = look_at(&coordinators->list[i], servers, self);
        if (plan.act != MEMBERS_REST)
            return plan;
    }
    return rest();
}

static bool is_alive(const struct members_alive *alive, uint64_t id)
{
    for (uint32_t i = 0; i < alive->count; i++)
        if (alive->ids[i] == id)
            return true;
    return false;
}

int members_may_drop(const struct consensus_servers *servers, const struct members_alive *alive,
                     uint64_t id, struct tg_errmsg *msg)
{
    uint32_t left = 0;
    uint32_t living = 0;
    const struct consensus_server *leaving = find_server(servers, id);

    if (leaving == NULL || leaving->role != CONSENSUS_VOTER)
        return 0;
    for (uint32_t i = 0; i < servers->count; i++) {
        const struct consensus_server *server = &servers->list[i];
        if (server->role != CONSENSUS_VOTER || server->id == id)
            continue;
        left++;
        living += is_alive(alive, server->id);
    }
    if (living * 2 > left)
        return 0;
    return tg_fail(
        msg, TG_REFUSED,
        "without coordinator %lu only %u of the %u others that vote would be alive, which "
        "is no majority: bring one back, or drop a dead one first",
        (unsigned long)id, living, left);
}

enum members_entry members_may_start(const struct coordinators *coordinators, uint64_t id,
                                     uint64_t nonce, struct tg_errmsg *msg)
{
    const struct coordinator_record *record = coordinators_find(coordinators, id);

    if (record == NULL && id >= coordinators->next_id)
        return MEMBERS_ENTRY_WAIT;
    if (record != NULL && record->nonce == nonce && nonce != 0 &&
        record->standing == COORDINATOR_JOINS)
        return MEMBERS_ENTRY_START;
    tg_fail(msg, TG_REFUSED,
            "coordinator id %lu was given before, and the data directory here is not the one that "
            "had it: %sjoin under a fresh id (the next free one is %lu)",
            (unsigned long)id,
            record != NULL ? "drop it from the cluster (tidegate coordinator drop) and " : "",
            (unsigned long)coordinators->next_id);
    return MEMBERS_ENTRY_REFUSED;
}
