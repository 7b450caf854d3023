/* SPDX-License-Identifier: Apache-2.0 */
/* Who may be a participant: identity of a data directory, proven by the nonce of its last start. */
#include "coordinator/state/members.h"

#include "coordinator/state/apply.h"

const struct member *members_find(const struct members *members, node_id node)
{
    uint32_t low = 0;
    uint32_t high = members->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (members->list[middle].node < node)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == members->count || members->list[low].node != node)
        return NULL;
    return &members->list[low];
}

bool members_is_current(const struct members *members, node_id node, uint64_t epoch)
{
    const struct member *member = members_find(members, node);
    return member != NULL && member->epoch == epoch;
}

static struct member *find_uuid(struct members *members, const char *uuid)
{
    for (uint32_t i = 0; i < members->count; i++) {
        if (strcmp(members->list[i].uuid, uuid) == 0)
            return &members->list[i];
    }
    return NULL;
}

uint32_t members_active(const struct members *members, node_id except)
{
    uint32_t active = 0;
    for (uint32_t i = 0; i < members->count; i++)
        active += !members->list[i].draining && members->list[i].node != except;
    return active;
}

/* The smallest id that nobody has or had. */
static node_id free_id(const struct members *members)
{
    node_id node = members->dropped_high + 1;
    for (uint32_t i = 0; i < members->count; i++)
        node += members->list[i].node == node;
    return node;
}

void members_remove(struct members *members, node_id node)
{
    struct member *member = (struct member *)members_find(members, node);
    TG_CHECK(member != NULL);
    uint32_t place = (uint32_t)(member - members->list);
    members->count--;
    memmove(member, member + 1, (members->count - place) * sizeof *member);
    memset(&members->list[members->count], 0, sizeof *member);
    if (node > members->dropped_high)
        members->dropped_high = node;
}

static struct member *insert(struct members *members, node_id node)
{
    uint32_t at = members->count;
    while (at > 0 && members->list[at - 1].node > node)
        at--;
    memmove(&members->list[at + 1], &members->list[at],
            (members->count - at) * sizeof members->list[0]);
    members->count++;
    members->list[at] = (struct member){.node = node};
    return &members->list[at];
}

static int check_new(const struct state *state, const struct msg_register *message,
                     struct tg_errmsg *msg)
{
    if (message->cluster_uuid[0] != '\0')
        return tg_fail(msg, TG_REFUSED,
                       "this cluster does not know node %s, although its directory names the "
                       "cluster: start it with an empty directory",
                       message->node_uuid);
    if (message->wanted != 0 && members_find(&state->members, message->wanted) != NULL)
        return tg_fail(msg, TG_REFUSED,
                       "participant id %u belongs to another data directory: if that one is lost, "
                       "start with --rejoin, and its data is fetched from the other participants",
                       message->wanted);
    if (state->members.count == NODES_MAX)
        return tg_fail(msg, TG_LIMIT, "the cluster has %d participants already", NODES_MAX);
    return 0;
}

/* The one who presents the nonce that the log holds started from the newest copy of the directory.
 * A second process on it, or a copy made earlier, presents an older one. */
static int check_known(const struct member *member, const struct msg_register *message,
                       struct tg_errmsg *msg)
{
    if (message->wanted != 0 && message->wanted != member->node)
        return tg_fail(msg, TG_REFUSED, "this data directory belongs to participant %u, not to %u",
                       member->node, message->wanted);
    if (message->previous_nonce != member->nonce && message->new_nonce != member->nonce)
        return tg_fail(msg, TG_FENCED,
                       "another process registered as participant %u with this data directory, "
                       "or the directory is an old copy: if the right one is lost, start with "
                       "--rejoin, and what differs is fetched from the other participants",
                       member->node);
    return 0;
}

/* Whatever the directory is, an empty or an old one: who it replaces must be clear. */
static int check_rejoin(const struct state *state, const struct member *by_uuid,
                        const struct msg_register *message, const struct member **old,
                        struct tg_errmsg *msg)
{
    *old = by_uuid;
    if (by_uuid != NULL && message->wanted != 0 && message->wanted != by_uuid->node)
        return check_known(by_uuid, message, msg);
    if (by_uuid != NULL)
        return 0;
    if (message->wanted == 0)
        return tg_fail(msg, TG_REFUSED,
                       "the cluster does not know this data directory: say which participant it is "
                       "to replace (participant_id)");
    *old = members_find(&state->members, message->wanted);
    return *old != NULL ? 0 : check_new(state, message, msg);
}

int members_register(struct state *state, const struct command_register *command, bool rejoin,
                     struct apply_result *result)
{
    const struct msg_register *message = &command->message;
    struct members *members = &state->members;
    if (state->cluster_uuid[0] == '\0')
        return tg_fail(&result->msg, TG_REFUSED, "the cluster is not formed yet");
    if (message->cluster_uuid[0] != '\0' && strcmp(message->cluster_uuid, state->cluster_uuid) != 0)
        return tg_fail(&result->msg, TG_REFUSED,
                       "this data directory belongs to cluster %s, this is cluster %s",
                       message->cluster_uuid, state->cluster_uuid);
    if (message->node_uuid[0] == '\0' || message->new_nonce == 0)
        return tg_fail(&result->msg, TG_INVALID, "a registration needs a node uuid and a nonce");

    struct member *member = find_uuid(members, message->node_uuid);
    bool repeated = member != NULL && message->new_nonce == member->nonce;
    const struct member *old = member;
    int err = rejoin && !repeated ? check_rejoin(state, member, message, &old, &result->msg)
              : member == NULL    ? check_new(state, message, &result->msg)
                                  : check_known(member, message, &result->msg);
    if (err != 0)
        return err;

    if (repeated) {
        result->repeated = true;
        result->node = member->node;
        result->epoch = member->epoch;
        return 0;
    }
    if (old == NULL)
        old = insert(members, message->wanted != 0 ? message->wanted : free_id(members));
    member = &members->list[old - members->list];
    memcpy(member->uuid, message->node_uuid, sizeof member->uuid);
    if (rejoin) {
        member->lost_below = state->next_rowset;
        replica_unproven(state, member->node);
    }
    member->epoch = members->next_epoch++;
    member->nonce = message->new_nonce;
    memcpy(member->http, message->http, sizeof member->http);
    memcpy(member->rpc, message->rpc, sizeof member->rpc);
    member->registered_us = result->time_us = state_take_time(state);
    txn_table_drop_fences(&state->txns, member->node, member->epoch);
    result->node = member->node;
    result->epoch = member->epoch;
    return 0;
}
