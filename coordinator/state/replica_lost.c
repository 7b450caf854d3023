/* SPDX-License-Identifier: Apache-2.0 */
/* What is no longer there: a participant whose directory was lost or is an old one, and versions of
 * which no copy is left (DESIGN.md 2.4, rules 4 and 13). */
#include <inttypes.h>

#include "coordinator/state/apply.h"

uint8_t replica_lost_slots(const struct state *state, const struct tablet *tablet, rowset_id rowset)
{
    uint8_t lost = 0;
    for (unsigned i = 0; i < tablet->replica_count; i++) {
        const struct member *member = members_find(&state->members, tablet->replicas[i].node);
        lost |= (uint8_t)((unsigned)(member != NULL && rowset < member->lost_below) << i);
    }
    return lost;
}

/* ---- a participant that has to prove what it holds ---- */

/* Loads that are done and not bound yet: the node's word that it holds them is void. */
static void forget_seals(const struct state *state, struct txn_list *list, node_id node)
{
    for (struct txn *txn = list->first; txn != NULL; txn = txn->next) {
        for (uint32_t i = 0; i < txn->load_count; i++) {
            struct txn_load *load = &txn->loads[i];
            for (uint32_t j = 0; j < load->tablet_count; j++) {
                const struct tablet *tablet =
                    catalog_tablet(&state->catalog, load->tablets[j].tablet);
                int slot = tablet != NULL ? tablet_slot(tablet, node) : -1;
                if (slot >= 0)
                    load->tablets[j].sealed &= (uint8_t) ~(1u << slot);
            }
        }
        for (uint32_t i = 0; i < txn->publish_count; i++) {
            const struct tablet *tablet = catalog_tablet(&state->catalog, txn->publish[i].tablet);
            int slot = tablet != NULL ? tablet_slot(tablet, node) : -1;
            if (slot >= 0)
                txn->publish[i].confirmed &= (uint8_t) ~(1u << slot);
        }
    }
}

/* A tablet that nothing has touched yet lacks nothing. But loads that run know the node as it was:
 * what they have not sealed here is missed like by one that they were not to write to. */
void replica_unproven(struct state *state, node_id node)
{
    for (struct tablet *tablet = state->catalog.tablets; tablet != NULL; tablet = tablet->hh.next) {
        int slot = tablet_slot(tablet, node);
        if (slot < 0)
            continue;
        if (tablet->touched_count > 0)
            replica_fall_behind(&state->catalog, tablet, &tablet->replicas[slot],
                                tablet->touched[0]);
        else
            tablet->replicas[slot].written_from = state->next_rowset;
    }
    forget_seals(state, &state->txns.open, node);
    forget_seals(state, &state->txns.publishing, node);
    txn_finish_complete(state);
}

/* ---- versions of which no copy is left ---- */

static struct txn_publish_tablet *publish_of(struct txn *txn, tablet_id tablet)
{
    for (uint32_t i = 0; txn != NULL && i < txn->publish_count; i++) {
        if (txn->publish[i].tablet == tablet)
            return &txn->publish[i];
    }
    return NULL;
}

/* A version that is not visible yet can still be bound if each of its rowsets lies sealed
 * somewhere. */
static bool can_be_bound(const struct txn *txn, tablet_id tablet)
{
    if (txn->state != TXN_COMMITTED)
        return false;
    for (uint32_t i = 0; i < txn->load_count; i++) {
        const struct txn_load *load = &txn->loads[i];
        for (uint32_t j = 0; j < load->tablet_count; j++) {
            if (load->tablets[j].tablet == tablet && load->tablets[j].sealed == 0)
                return false;
        }
    }
    return true;
}

/* Goes through the versions above `kept`: those that are lost are taken out of the tablet's, the
 * others move behind the last one that stays. */
static uint32_t take_out(struct state *state, struct tablet *tablet, version_t kept)
{
    uint32_t end = 0;
    uint32_t lost = 0;
    while (end < tablet->touched_count && tablet->touched[end] <= kept)
        end++;
    for (uint32_t i = end; i < tablet->touched_count; i++) {
        version_t version = tablet->touched[i];
        struct version_record *record = &tablet->table->versions[version - 1];
        struct txn *txn = txn_table_find(&state->txns, record->txn);
        struct txn_publish_tablet *publish = publish_of(txn, tablet->id);
        if (publish != NULL && can_be_bound(txn, tablet->id)) {
            publish->prev = end > 0 ? tablet->touched[end - 1] : 0;
            tablet->touched[end++] = version;
            txn_chain_add(txn, publish, tablet);
            continue;
        }
        record->lost = true;
        lost++;
        if (publish != NULL)
            publish->lost = true;
    }
    tablet->touched_count = end;
    return lost;
}

int replica_declare_lost(struct state *state, const struct command_lost *command,
                         struct apply_result *result)
{
    struct tablet *tablet = catalog_tablet(&state->catalog, command->tablet);
    if (tablet == NULL || tablet->table->dropped)
        return tg_fail(&result->msg, TG_NOT_FOUND, "there is no tablet %" PRIu64, command->tablet);
    for (unsigned i = 0; i < tablet->replica_count; i++) {
        if (tablet->replicas[i].node != 0 && !tablet->replicas[i].behind)
            return tg_fail(&result->msg, TG_REFUSED,
                           "participant %u has a good copy of tablet %" PRIu64
                           ": nothing is lost that it has",
                           tablet->replicas[i].node, tablet->id);
    }
    if (tablet_need(tablet, command->kept) != command->kept)
        return tg_fail(&result->msg, TG_NOT_FOUND,
                       "version %" PRIu64 " did not touch tablet %" PRIu64, command->kept,
                       tablet->id);
    result->table = tablet->table->id;
    result->repeated = tablet_last_touched(tablet) == command->kept;
    if (result->repeated)
        return 0;
    struct digest before = tablet->chain;
    tablet->chain = (struct digest){0};
    result->repeated = take_out(state, tablet, command->kept) == 0;
    if (result->repeated) {
        tablet->chain = before;
        return 0;
    }
    /* What it was up to `kept` is not known, unless that is nothing. */
    tablet->chain_known = command->kept == 0;
    for (unsigned i = 0; i < tablet->replica_count; i++) {
        if (tablet->replicas[i].node == 0)
            continue;
        replica_fall_behind(&state->catalog, tablet, &tablet->replicas[i],
                            command->kept > 0 ? command->kept : 1);
    }
    txn_finish_complete(state);
    return 0;
}
