/* SPDX-License-Identifier: Apache-2.0 */
/* Participants as this leader has heard them. */
#include "coordinator/cluster/health.h"

#include <stdlib.h>
#include <string.h>

void health_init(struct health *health, uint64_t lease_ms, uint64_t now_ms)
{
    memset(health, 0, sizeof *health);
    health->lease_ms = lease_ms;
    health->since_ms = now_ms;
}

void health_close(struct health *health)
{
    for (uint32_t i = 0; i < health->count; i++) {
        free(health->nodes[i].live);
        free(health->nodes[i].damaged);
    }
    health->count = 0;
}

void health_reset(struct health *health, uint64_t now_ms)
{
    health_close(health);
    health->since_ms = now_ms;
}

const struct health_node *health_find(const struct health *health, node_id node)
{
    for (uint32_t i = 0; i < health->count; i++)
        if (health->nodes[i].node == node)
            return &health->nodes[i];
    return NULL;
}

void health_keep_members(struct health *health, const struct members *members)
{
    for (uint32_t i = 0; i < health->count;) {
        struct health_node *node = &health->nodes[i];

        if (members_find(members, node->node) != NULL) {
            i++;
            continue;
        }
        free(node->live);
        free(node->damaged);
        *node = health->nodes[--health->count];
    }
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

int health_heard(struct health *health, struct msg_heartbeat *message, uint64_t now_ms)
{
    struct health_node *node = (struct health_node *)health_find(health, message->node);

    if (node == NULL) {
        if (health->count == NODES_MAX)
            return TG_LIMIT;
        node = &health->nodes[health->count++];
        memset(node, 0, sizeof *node);
        node->node = message->node;
    }
    free(node->live);
    node->live = message->live;
    node->live_count = message->live_count;
    message->live = NULL;
    message->live_count = 0;
    if (node->live_count > 0)
        qsort(node->live, node->live_count, sizeof *node->live, by_value);
    free(node->damaged);
    node->damaged = message->damaged;
    node->damaged_count = message->damaged_count;
    message->damaged = NULL;
    message->damaged_count = 0;
    node->epoch = message->epoch;
    node->heard_ms = now_ms;
    node->doubtful = false;
    node->request_high = message->request_high;
    node->disk_free_bytes = message->disk_free_bytes;
    node->disk_total_bytes = message->disk_total_bytes;
    return 0;
}

struct damaged_version *health_take_damaged(struct health *health, node_id id, uint32_t *count)
{
    struct health_node *node = (struct health_node *)health_find(health, id);

    *count = 0;
    if (node == NULL)
        return NULL;
    struct damaged_version *damaged = node->damaged;
    *count = node->damaged_count;
    node->damaged = NULL;
    node->damaged_count = 0;
    return damaged;
}

uint64_t health_silent_ms(const struct health *health, node_id node, uint64_t now_ms)
{
    const struct health_node *n = health_find(health, node);

    return now_ms - (n != NULL ? n->heard_ms : health->since_ms);
}

bool health_is_alive(const struct health *health, node_id node, uint64_t now_ms)
{
    return health_silent_ms(health, node, now_ms) <= health->lease_ms;
}

void health_doubt(struct health *health, node_id node)
{
    struct health_node *n = (struct health_node *)health_find(health, node);

    if (n != NULL)
        n->doubtful = true;
}

bool health_is_reachable(const struct health *health, node_id node, uint64_t now_ms)
{
    const struct health_node *n = health_find(health, node);

    return health_is_alive(health, node, now_ms) && (n == NULL || !n->doubtful);
}

bool health_load_is_lost(const struct health *health, const struct members *members,
                         const struct request_key *key, uint64_t now_ms)
{
    const struct health_node *node = health_find(health, key->node);

    if (!members_is_current(members, key->node, key->epoch) ||
        !health_is_alive(health, key->node, now_ms))
        return true;
    if (node == NULL || node->epoch != key->epoch || key->request > node->request_high)
        return false;
    return node->live_count == 0 || bsearch(&key->request, node->live, node->live_count,
                                            sizeof *node->live, by_value) == NULL;
}

static bool must_stop(const struct state *state, const struct msg_heartbeat *message,
                      uint64_t request)
{
    struct request_key key = {message->node, message->epoch, request};
    const struct txn *txn = txn_table_find_request(&state->txns, &key);

    return txn != NULL && txn->state == TXN_ABORTED;
}

/* Ids are never used twice, so one that was given out and is unknown belongs to a table that is
 * gone. */
static bool is_dropped(const struct state *state, tablet_id id)
{
    return id < state->next_tablet && catalog_tablet(&state->catalog, id) == NULL;
}

/* It moved away, or the clone of a move that was given up is left. */
static bool is_retired(const struct state *state, tablet_id id, node_id node)
{
    const struct tablet *tablet = catalog_tablet(&state->catalog, id);

    return tablet != NULL && tablet_slot(tablet, node) < 0;
}

bool health_has_retired(const struct state *state, const struct msg_heartbeat *message)
{
    for (uint32_t i = 0; i < message->tablet_count; i++)
        if (is_retired(state, message->tablets[i], message->node))
            return true;
    return false;
}

int health_answer(const struct state *state, const struct msg_heartbeat *message, bool proven,
                  struct msg_heartbeat_reply *reply)
{
    memset(reply, 0, sizeof *reply);
    reply->dead = calloc(message->staged_count + 1, sizeof *reply->dead);
    reply->stopped = calloc(message->live_count + 1, sizeof *reply->stopped);
    reply->dropped = calloc(message->tablet_count + 1, sizeof *reply->dropped);
    if (reply->dead == NULL || reply->stopped == NULL || reply->dropped == NULL) {
        msg_heartbeat_reply_close(reply);
        return TG_NOMEM;
    }
    bool may_be_clone =
        message->staged_count > 0 && catalog_has_behind(&state->catalog, message->node);
    for (uint32_t i = 0; i < message->staged_count; i++)
        if (state_staged_is_dead(state, message->staged[i], may_be_clone))
            reply->dead[reply->dead_count++] = message->staged[i];
    for (uint32_t i = 0; i < message->live_count; i++)
        if (must_stop(state, message, message->live[i]))
            reply->stopped[reply->stopped_count++] = message->live[i];
    for (uint32_t i = 0; i < message->tablet_count; i++)
        if (is_dropped(state, message->tablets[i]) ||
            (proven && is_retired(state, message->tablets[i], message->node)))
            reply->dropped[reply->dropped_count++] = message->tablets[i];
    reply->txn_low_water = state->txn_low_water;
    reply->closed_us = state->stamp_us;
    for (uint32_t i = 0; i < state->coordinators.count; i++)
        if (state->coordinators.list[i].standing == COORDINATOR_VOTES)
            memcpy(reply->coordinators[reply->coordinator_count++], state->coordinators.list[i].rpc,
                   ADDRESS_BYTES);
    return 0;
}
