/* SPDX-License-Identifier: Apache-2.0 */
/* Participants one by one: what they hold, whether they are on their way out, and the orders that
 * change that. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "coordinator/query/query_call.h"
#include "coordinator/state/move.h"

/* Replicas of one node, those of dropped tables not counted. */
struct holding {
    uint64_t replicas;
    uint64_t behind;
    uint64_t joining; /* of those that are behind */
    txn_id blocker;   /* what a replica that is to leave waits for, 0 if none does */
};

struct tablet_counts {
    uint64_t moving; /* have one replica more than they ask for, or one that joins */
    uint64_t low;    /* have fewer good ones than they ask for */
    txn_id blocker;  /* a transaction that the end of a move waits for, 0 if none does */
};

static bool is_alive(const struct query_call *call, node_id node)
{
    return health_is_alive(call->context.health, node, query_now_ms(call));
}

/* holdings: one for each member. */
static void count_holdings(const struct state *state, struct holding *holdings,
                           struct tablet_counts *counts)
{
    for (const struct tablet *tablet = state->catalog.tablets; tablet != NULL;
         tablet = tablet->hh.next) {
        if (tablet->table->dropped)
            continue;
        bool surplus = __builtin_popcount(tablet_all(tablet)) > tablet->table->replication;
        counts->moving += surplus || tablet_joining(tablet) != 0;
        counts->low += __builtin_popcount(tablet_good(tablet)) < tablet->table->replication;
        for (unsigned i = 0; i < tablet->replica_count; i++) {
            const struct replica *replica = &tablet->replicas[i];
            const struct member *member = members_find(&state->members, replica->node);

            if (member == NULL)
                continue;
            struct holding *holding = &holdings[member - state->members.list];
            holding->replicas++;
            holding->behind += replica->behind;
            holding->joining += replica->joining;
            if (surplus && tablet_joining(tablet) == 0 && holding->blocker == 0) {
                const struct txn *txn = move_blocker(state, tablet, i);
                holding->blocker = txn != NULL ? txn->id : 0;
                if (txn != NULL)
                    counts->blocker = txn->id;
            }
        }
    }
}

static const char *state_name(const struct member *member, uint64_t replicas)
{
    if (!member->draining)
        return "active";
    return replicas > 0 ? "draining" : "decommissioned";
}

static void print_node(const struct query_call *call, const struct member *member,
                       const struct holding *holding, struct json_writer *out)
{
    const struct health_node *seen = health_find(call->context.health, member->node);

    json_writer_object(out);
    json_writer_key(out, "id");
    json_writer_uint(out, member->node);
    json_writer_key(out, "http");
    json_writer_str(out, member->http);
    json_writer_key(out, "rpc");
    json_writer_str(out, member->rpc);
    json_writer_key(out, "alive");
    json_writer_bool(out, is_alive(call, member->node));
    json_writer_key(out, "silent_ms");
    json_writer_uint(out, health_silent_ms(call->context.health, member->node, query_now_ms(call)));
    json_writer_key(out, "state");
    json_writer_str(out, state_name(member, holding->replicas));
    json_writer_key(out, "tablets");
    json_writer_uint(out, holding->replicas);
    json_writer_key(out, "behind");
    json_writer_uint(out, holding->behind);
    json_writer_key(out, "joining");
    json_writer_uint(out, holding->joining);
    json_writer_key(out, "waits_for_txn");
    if (member->draining && holding->blocker != 0)
        json_writer_uint(out, holding->blocker);
    else
        json_writer_null(out);
    json_writer_key(out, "live_loads");
    json_writer_uint(out, seen != NULL ? seen->live_count : 0);
    json_writer_key(out, "disk_free_bytes");
    json_writer_uint(out, seen != NULL ? seen->disk_free_bytes : 0);
    json_writer_key(out, "disk_total_bytes");
    json_writer_uint(out, seen != NULL ? seen->disk_total_bytes : 0);
    json_writer_object_end(out);
}

int query_print_nodes(const struct query_call *call, struct json_writer *out, struct tg_errmsg *msg)
{
    const struct state *state = query_state(call);
    struct holding holdings[NODES_MAX] = {{0}};
    struct tablet_counts counts = {0};

    (void)msg;
    count_holdings(state, holdings, &counts);
    json_writer_object(out);
    json_writer_key(out, "nodes");
    json_writer_array(out);
    for (uint32_t i = 0; i < state->members.count; i++)
        print_node(call, &state->members.list[i], &holdings[i], out);
    json_writer_array_end(out);
    json_writer_key(out, "tablets_moving");
    json_writer_uint(out, counts.moving);
    json_writer_key(out, "moves_wait_for_txn");
    if (counts.blocker != 0)
        json_writer_uint(out, counts.blocker);
    else
        json_writer_null(out);
    json_writer_key(out, "tablets_low");
    json_writer_uint(out, counts.low);
    json_writer_key(out, "replicas_behind");
    json_writer_uint(out, state->catalog.behind_count);
    json_writer_object_end(out);
    return 0;
}

/* ---- orders ---- */

static void order_applied(struct consensus_request *request, int err,
                          const struct apply_result *result)
{
    struct query_call *call = request->data;
    struct buf json = BUF_INIT;
    struct json_writer out;

    if (err == 0)
        err = result->err;
    if (err != 0) {
        query_fail(call, err, result != NULL ? result->msg.text : "");
        return;
    }
    const struct state *state = query_state(call);
    const struct member *member = members_find(&state->members, result->node);
    json_writer_init(&out, &json, 0);
    json_writer_object(&out);
    json_writer_key(&out, "id");
    json_writer_uint(&out, result->node);
    json_writer_key(&out, "state");
    json_writer_str(&out, member == NULL ? "dropped"
                                         : state_name(member, move_replicas(state, member->node)));
    json_writer_object_end(&out);
    query_answer(call, &json);
}

/* Those that could take what the node has. */
static uint32_t count_takers(const struct query_call *call, node_id except)
{
    const struct members *members = &query_state(call)->members;
    uint32_t count = 0;

    for (uint32_t i = 0; i < members->count; i++)
        count += members->list[i].node != except && !members->list[i].draining &&
                 is_alive(call, members->list[i].node);
    return count;
}

static int check_decommission(const struct query_call *call, const struct member *member,
                              struct tg_errmsg *msg)
{
    const struct state *state = query_state(call);
    uint32_t active = members_active(&state->members, member->node);
    uint32_t takers = count_takers(call, member->node);

    if (member->draining)
        return 0;
    int err = move_check_drain(state, member->node, active, msg);
    if (err == 0 && move_check_drain(state, member->node, takers, NULL) != 0)
        err = tg_fail(msg, TG_REFUSED,
                      "only %" PRIu32 " of the %" PRIu32
                      " participants that would be left without participant %u are alive: too few "
                      "for a table's replication_num",
                      takers, active, member->node);
    return err;
}

/* Who is alive is drained first; a dead one's replicas are made anew from others. */
static int check_drop(const struct query_call *call, const struct member *member,
                      struct tg_errmsg *msg)
{
    const struct state *state = query_state(call);
    uint32_t replicas = move_replicas(state, member->node);

    if (replicas > 0 && is_alive(call, member->node))
        return tg_fail(msg, TG_REFUSED,
                       "participant %u is alive and has %" PRIu32
                       " replicas: decommission it, or stop it and wait until it counts as dead",
                       member->node, replicas);
    return move_check_drop(state, member->node, msg);
}

/* "decommission 3", "recommission 3", "drop 3". */
static int parse_order(struct query_call *call, const struct member **member,
                       struct command *command, struct tg_errmsg *msg)
{
    const char *text = buf_cstr(&call->text);
    char verb[16];
    unsigned node;
    char more;

    if (text == NULL)
        return TG_NOMEM;
    if (sscanf(text, "%15s %u%c", verb, &node, &more) != 2)
        return tg_fail(msg, TG_INVALID, "'%s' is not decommission, recommission or drop and an id",
                       text);
    *member = members_find(&query_state(call)->members, node);
    if (*member == NULL)
        return tg_fail(msg, TG_NOT_FOUND, "there is no participant %u", node);
    command->node = (struct command_node){.node = node, .epoch = (*member)->epoch};
    if (strcmp(verb, "drop") == 0) {
        command->type = COMMAND_NODE_DROP;
        return check_drop(call, *member, msg);
    }
    command->type = COMMAND_NODE_DRAIN;
    command->node.drain = strcmp(verb, "decommission") == 0;
    if (!command->node.drain && strcmp(verb, "recommission") != 0)
        return tg_fail(msg, TG_INVALID, "'%s' is not decommission, recommission or drop", verb);
    return command->node.drain ? check_decommission(call, *member, msg) : 0;
}

/* Behind a barrier, so that what is refused is refused by the newest state. */
static void order(struct consensus_request *request, int err, const struct apply_result *result)
{
    struct query_call *call = request->data;
    const struct member *member = NULL;
    struct command command = {0};
    struct tg_errmsg msg = {{0}};

    (void)result;
    if (err == 0)
        err = parse_order(call, &member, &command, &msg);
    if (err != 0) {
        query_fail(call, err, msg.text);
        return;
    }
    call->request.done = order_applied;
    consensus_propose(call->context.consensus, &command, &call->request);
}

void query_node_order(struct query_call *call)
{
    call->request.done = order;
    consensus_barrier(call->context.consensus, 0, &call->request);
}
