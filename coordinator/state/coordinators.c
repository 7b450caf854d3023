/* SPDX-License-Identifier: Apache-2.0 */
/* Who is a coordinator: one change at a time, ids never twice. */
#include "coordinator/state/coordinators.h"

#include "coordinator/state/apply.h"

const struct coordinator_record *coordinators_find(const struct coordinators *coordinators,
                                                   uint64_t id)
{
    for (uint32_t i = 0; i < coordinators->count; i++)
        if (coordinators->list[i].id == id)
            return &coordinators->list[i];
    return NULL;
}

const struct coordinator_record *coordinators_changing(const struct coordinators *coordinators)
{
    for (uint32_t i = 0; i < coordinators->count; i++)
        if (coordinators->list[i].standing != COORDINATOR_VOTES)
            return &coordinators->list[i];
    return NULL;
}

bool coordinators_is_gone(const struct coordinators *coordinators, uint64_t id)
{
    return id < coordinators->next_id && coordinators_find(coordinators, id) == NULL;
}

static uint32_t voters(const struct coordinators *coordinators)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < coordinators->count; i++)
        count += coordinators->list[i].standing == COORDINATOR_VOTES;
    return count;
}

static void insert(struct coordinators *coordinators, const struct command_coordinator *command,
                   enum coordinator_standing standing)
{
    uint32_t at = coordinators->count;
    while (at > 0 && coordinators->list[at - 1].id > command->id)
        at--;
    memmove(&coordinators->list[at + 1], &coordinators->list[at],
            (coordinators->count - at) * sizeof coordinators->list[0]);
    struct coordinator_record *record = &coordinators->list[at];
    *record = (struct coordinator_record){
        .id = command->id, .standing = standing, .nonce = command->nonce};
    memcpy(record->raft, command->raft, sizeof record->raft);
    memcpy(record->rpc, command->rpc, sizeof record->rpc);
    memcpy(record->http, command->http, sizeof record->http);
    coordinators->count++;
    coordinators->changes++;
    if (coordinators->next_id <= command->id)
        coordinators->next_id = command->id + 1;
}

static int check_room(const struct coordinators *coordinators, struct tg_errmsg *msg)
{
    if (coordinators->count < COORDINATORS_MAX)
        return 0;
    return tg_fail(msg, TG_LIMIT, "the cluster has %d coordinators already", COORDINATORS_MAX);
}

/* Two changes at once could need two majorities that do not meet. */
static int check_rest(const struct coordinators *coordinators, uint64_t but, struct tg_errmsg *msg)
{
    const struct coordinator_record *busy = coordinators_changing(coordinators);
    if (busy == NULL || busy->id == but)
        return 0;
    return tg_fail(msg, TG_REFUSED, "coordinator %lu is still %s: one change at a time",
                   (unsigned long)busy->id,
                   busy->standing == COORDINATOR_JOINS ? "joining" : "leaving");
}

static int check_addresses(const struct coordinators *coordinators,
                           const struct command_coordinator *command, struct tg_errmsg *msg)
{
    if (command->raft[0] == '\0' || command->rpc[0] == '\0' || command->http[0] == '\0')
        return tg_fail(msg, TG_INVALID, "a coordinator needs a raft, an RPC and an HTTP address");
    for (uint32_t i = 0; i < coordinators->count; i++) {
        const struct coordinator_record *other = &coordinators->list[i];
        if (strcmp(other->raft, command->raft) == 0 || strcmp(other->rpc, command->rpc) == 0 ||
            strcmp(other->http, command->http) == 0)
            return tg_fail(msg, TG_EXISTS,
                           "coordinator %lu has one of these addresses: drop it first",
                           (unsigned long)other->id);
    }
    return 0;
}

int coordinators_found(struct state *state, const struct command_coordinator *command,
                       struct apply_result *result)
{
    if (command->id == 0 || command->id >= UINT32_MAX)
        return tg_fail(&result->msg, TG_INVALID, "a coordinator's id is between 1 and %u",
                       UINT32_MAX - 1);
    if (coordinators_find(&state->coordinators, command->id) != NULL) {
        result->repeated = true;
        return 0;
    }
    int err = check_room(&state->coordinators, &result->msg);
    if (err == 0)
        insert(&state->coordinators, command, COORDINATOR_VOTES);
    return err;
}

int coordinators_add(struct state *state, const struct command_coordinator *command,
                     struct apply_result *result)
{
    struct coordinators *coordinators = &state->coordinators;
    const struct coordinator_record *known = coordinators_find(coordinators, command->id);
    if (known != NULL && known->nonce == command->nonce && command->nonce != 0 &&
        known->standing != COORDINATOR_LEAVES) {
        result->repeated = true;
        return 0;
    }
    if (command->id >= UINT32_MAX || command->nonce == 0)
        return tg_fail(&result->msg, TG_INVALID, "a coordinator joins with an id and a nonce");
    if (command->id < coordinators->next_id || command->id == 0)
        return tg_fail(
            &result->msg, TG_EXISTS,
            "coordinator id %lu was given before and is never given again: the next free "
            "one is %lu",
            (unsigned long)command->id, (unsigned long)coordinators->next_id);
    int err = check_rest(coordinators, 0, &result->msg);
    if (err == 0)
        err = check_addresses(coordinators, command, &result->msg);
    if (err == 0)
        err = check_room(coordinators, &result->msg);
    if (err == 0)
        insert(coordinators, command, COORDINATOR_JOINS);
    return err;
}

static int find(struct state *state, uint64_t id, struct coordinator_record **record,
                struct tg_errmsg *msg)
{
    *record = (struct coordinator_record *)coordinators_find(&state->coordinators, id);
    return *record != NULL ? 0
                           : tg_fail(msg, TG_NOT_FOUND, "the cluster has no coordinator %lu",
                                     (unsigned long)id);
}

int coordinators_promote(struct state *state, const struct command_coordinator *command,
                         struct apply_result *result)
{
    struct coordinator_record *record;
    int err = find(state, command->id, &record, &result->msg);
    if (err != 0)
        return err;
    if (record->standing == COORDINATOR_LEAVES)
        return tg_fail(&result->msg, TG_STALE, "coordinator %lu is leaving",
                       (unsigned long)command->id);
    result->repeated = record->standing == COORDINATOR_VOTES;
    if (!result->repeated)
        state->coordinators.changes++;
    record->standing = COORDINATOR_VOTES;
    return 0;
}

int coordinators_drop(struct state *state, const struct command_coordinator *command,
                      struct apply_result *result)
{
    struct coordinator_record *record;
    if (coordinators_is_gone(&state->coordinators, command->id)) {
        result->repeated = true;
        return 0;
    }
    int err = find(state, command->id, &record, &result->msg);
    if (err == 0)
        err = check_rest(&state->coordinators, command->id, &result->msg);
    if (err != 0)
        return err;
    if (record->standing == COORDINATOR_VOTES && voters(&state->coordinators) == 1)
        return tg_fail(&result->msg, TG_REFUSED, "coordinator %lu is the only one that votes",
                       (unsigned long)command->id);
    result->repeated = record->standing == COORDINATOR_LEAVES;
    if (!result->repeated)
        state->coordinators.changes++;
    record->standing = COORDINATOR_LEAVES;
    return 0;
}

int coordinators_gone(struct state *state, const struct command_coordinator *command,
                      struct apply_result *result)
{
    struct coordinators *coordinators = &state->coordinators;
    struct coordinator_record *record;
    if (coordinators_is_gone(coordinators, command->id)) {
        result->repeated = true;
        return 0;
    }
    int err = find(state, command->id, &record, &result->msg);
    if (err != 0)
        return err;
    size_t behind = (size_t)(coordinators->list + coordinators->count - (record + 1));
    memmove(record, record + 1, behind * sizeof *record);
    coordinators->count--;
    coordinators->changes++;
    memset(&coordinators->list[coordinators->count], 0, sizeof *record);
    return 0;
}
