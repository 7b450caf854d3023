/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to a begin. */
#include "coordinator/txn/txn_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_node(const struct state *state, node_id node, struct msg_txn_begin_reply *reply)
{
    const struct member *member = members_find(&state->members, node);

    for (uint32_t i = 0; i < reply->node_count; i++)
        if (reply->nodes[i].node == node)
            return;
    struct load_plan_node *added = &reply->nodes[reply->node_count++];
    added->node = node;
    snprintf(added->rpc, sizeof added->rpc, "%s", member != NULL ? member->rpc : "");
}

static int fill_tablets(const struct state *state, const struct table *table,
                        struct msg_txn_begin_reply *reply)
{
    reply->tablets = calloc(table->bucket_count, sizeof *reply->tablets);
    reply->nodes = calloc(NODES_MAX, sizeof *reply->nodes);
    reply->distribution = calloc(table->distribution_count, sizeof *reply->distribution);
    if (reply->tablets == NULL || reply->nodes == NULL || reply->distribution == NULL)
        return TG_NOMEM;
    reply->bucket_count = table->bucket_count;
    for (uint32_t i = 0; i < table->bucket_count; i++) {
        const struct tablet *tablet = table->tablets[i];
        struct load_plan_tablet *plan = &reply->tablets[i];

        plan->tablet = tablet->id;
        plan->replica_count = tablet->replica_count;
        plan->behind = tablet_behind(tablet);
        plan->catching = tablet_catching(tablet);
        plan->quorum = (uint8_t)tablet_write_quorum(tablet);
        for (uint8_t r = 0; r < tablet->replica_count; r++) {
            plan->replicas[r] = tablet->replicas[r].node;
            if (plan->replicas[r] == 0)
                plan->behind |= (uint8_t)(1u << r);
            else
                add_node(state, tablet->replicas[r].node, reply);
        }
    }
    reply->distribution_count = table->distribution_count;
    memcpy(reply->distribution, table->distribution,
           table->distribution_count * sizeof *reply->distribution);
    return 0;
}

int txn_plan_fill(const struct state *state, const struct txn *txn, rowset_id rowset,
                  struct msg_txn_begin_reply *reply)
{
    const struct txn_load *load = txn_find_load(txn, rowset);
    const struct table *table =
        load != NULL ? catalog_table_by_id(&state->catalog, load->table) : NULL;

    if (table == NULL || table->dropped)
        return TG_NOT_FOUND;
    reply->txn = txn->id;
    reply->state = (enum txn_state)txn->state;
    reply->rowset = rowset;
    reply->load_no = load->load_no;
    reply->table = table->id;
    reply->placement_epoch = load->placement_epoch;
    reply->timeout_ms = txn->timeout_ms;
    reply->write_all = table->write_all;
    snprintf(reply->label, sizeof reply->label, "%s", txn->label != NULL ? txn->label : "");
    int err = schema_copy(&table->schema, &reply->schema);
    return err != 0 ? err : fill_tablets(state, table, reply);
}
