/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas that move between participants, and participants that leave.
 *
 * A move is two commands, with a repair between them. REPLICA_ADD gives the tablet one replica more
 * than the table asks for: behind from zero, so it counts for nothing (rule 3), and it is cloned
 * like any other that is behind. Once it is good, REPLICA_REMOVE takes the old one out, if that
 * costs nothing: enough others are good, and no transaction begun under an older placement still
 * needs it (rule 17). Quorums stay those of replication_num all the time.
 *
 * Reports, publishing and clients' plans name replicas by slot. So nobody changes his slot; who
 * leaves frees it, and his bits go from all unfinished transactions. A report planned with him may
 * still come, when somebody else holds the slot already: it is not counted for loads that began
 * before the new one was written to (tablet_planned). */
#include <inttypes.h>

#include "coordinator/state/apply.h"
#include "coordinator/state/move.h"

/* ---- slots ---- */

static void clear_bits(struct txn *txn, tablet_id tablet, unsigned slot)
{
    for (uint32_t i = 0; i < txn->load_count; i++)
        for (uint32_t j = 0; j < txn->loads[i].tablet_count; j++)
            if (txn->loads[i].tablets[j].tablet == tablet)
                txn->loads[i].tablets[j].sealed &= (uint8_t) ~(1u << slot);
    for (uint32_t i = 0; i < txn->publish_count; i++)
        if (txn->publish[i].tablet == tablet)
            txn->publish[i].confirmed &= (uint8_t) ~(1u << slot);
}

/* Nothing that was said of who held the slot is true of who holds it next. */
static void clear_slot(struct state *state, const struct tablet *tablet, unsigned slot)
{
    for (struct txn *txn = state->txns.open.first; txn != NULL; txn = txn->next)
        clear_bits(txn, tablet->id, slot);
    for (struct txn *txn = state->txns.publishing.first; txn != NULL; txn = txn->next)
        clear_bits(txn, tablet->id, slot);
}

static void count_move(struct state *state, struct tablet *tablet)
{
    tablet->table->placement_epoch++;
    state->catalog.moves++;
}

/* Frees a slot. */
static void leave(struct state *state, struct tablet *tablet, unsigned slot)
{
    state->catalog.behind_count -= tablet->replicas[slot].behind;
    tablet->replicas[slot] = (struct replica){0};
    catalog_note_behind(&state->catalog, tablet);
    while (tablet->replica_count > 1 && tablet->replicas[tablet->replica_count - 1].node == 0)
        tablet->replica_count--;
    clear_slot(state, tablet, slot);
    count_move(state, tablet);
}

/* ---- ADD ---- */

static int find_tablet(const struct state *state, const struct command_move *command,
                       struct tablet **tablet, struct tg_errmsg *msg)
{
    *tablet = catalog_tablet(&state->catalog, command->tablet);
    if (*tablet == NULL || (*tablet)->table->dropped)
        return tg_fail(msg, TG_NOT_FOUND, "there is no tablet %" PRIu64, command->tablet);
    return 0;
}

static int check_epoch(const struct tablet *tablet, const struct command_move *command,
                       struct tg_errmsg *msg)
{
    if (tablet->table->placement_epoch != command->placement_epoch)
        return tg_fail(
            msg, TG_STALE, "table %s has placement epoch %" PRIu64 " by now, not %" PRIu64,
            tablet->table->name, tablet->table->placement_epoch, command->placement_epoch);
    return 0;
}

int move_add(struct state *state, const struct command_move *command, struct apply_result *result)
{
    struct tg_errmsg *msg = &result->msg;
    struct tablet *tablet;
    int err = find_tablet(state, command, &tablet, msg);
    if (err == 0)
        err = check_epoch(tablet, command, msg);
    if (err != 0)
        return err;
    const struct member *member = members_find(&state->members, command->node);
    if (member == NULL || member->draining)
        return tg_fail(msg, TG_REFUSED, "participant %u %s", command->node,
                       member == NULL ? "is not registered" : "is on its way out");
    if (tablet_slot(tablet, command->node) >= 0)
        return tg_fail(msg, TG_EXISTS, "participant %u has a replica of tablet %" PRIu64 " already",
                       command->node, tablet->id);
    unsigned slot = 0;
    while (slot < tablet->replica_count && tablet->replicas[slot].node != 0)
        slot++;
    if (tablet_joining(tablet) != 0 || slot == REPLICAS_MAX ||
        __builtin_popcount(tablet_all(tablet)) > tablet->table->replication)
        return tg_fail(
            msg, TG_LIMIT, "tablet %" PRIu64 " has %d replicas for replication_num %u already",
            tablet->id, __builtin_popcount(tablet_all(tablet)), tablet->table->replication);

    tablet->replicas[slot] = (struct replica){
        .node = command->node, .behind = true, .joining = true, .behind_version = 1};
    if (slot == tablet->replica_count)
        tablet->replica_count++;
    state->catalog.behind_count++;
    catalog_note_behind(&state->catalog, tablet);
    clear_slot(state, tablet, slot);
    count_move(state, tablet);
    return 0;
}

/* ---- REMOVE ---- */

static int count(unsigned slots)
{
    return __builtin_popcount(slots);
}

/* Whether the load would have fewer copies, or fewer to write to, without the slot. */
static bool load_needs(const struct txn_load *load, const struct tablet *tablet, unsigned slot)
{
    unsigned bit = 1u << slot;
    unsigned others = tablet_good(tablet) & ~bit;
    if (load->table != tablet->table->id || load->state == LOAD_FAILED)
        return false;
    if (load->state == LOAD_RUNNING) {
        unsigned planned = tablet_planned(tablet, load->rowset);
        return (planned & tablet_good(tablet) & bit) != 0 &&
               count(planned & others) < tablet->table->replication;
    }
    for (uint32_t i = 0; i < load->tablet_count; i++)
        if (load->tablets[i].tablet == tablet->id)
            return (load->tablets[i].sealed & bit) != 0 &&
                   count(load->tablets[i].sealed & others) < tablet->table->replication;
    return false;
}

const struct txn *move_blocker(const struct state *state, const struct tablet *tablet,
                               unsigned slot)
{
    for (const struct txn *txn = state->txns.open.first; txn != NULL; txn = txn->next)
        for (uint32_t i = 0; i < txn->load_count; i++)
            if (load_needs(&txn->loads[i], tablet, slot))
                return txn;
    return NULL;
}

/* What is COMMITTED every good replica has or gets; so of those only the number counts. */
static int check_remove(const struct state *state, const struct tablet *tablet, unsigned slot,
                        struct tg_errmsg *msg)
{
    const struct replica *replica = &tablet->replicas[slot];
    unsigned others = tablet_good(tablet) & ~(1u << slot);
    if (replica->joining)
        return 0;
    if (count(others) < tablet->table->replication)
        return tg_fail(msg, TG_REFUSED,
                       "tablet %" PRIu64 " has %d good replicas without participant %u, it needs "
                       "%u",
                       tablet->id, count(others), replica->node, tablet->table->replication);
    const struct txn *txn = move_blocker(state, tablet, slot);
    if (txn != NULL)
        return tg_fail(msg, TG_BUSY,
                       "transaction [%" PRIu64 "], begun under an older placement, needs the "
                       "replica of tablet %" PRIu64 " on participant %u",
                       txn->id, tablet->id, replica->node);
    return 0;
}

int move_remove(struct state *state, const struct command_move *command,
                struct apply_result *result)
{
    struct tablet *tablet;
    int err = find_tablet(state, command, &tablet, &result->msg);
    if (err != 0)
        return err;
    int slot = tablet_slot(tablet, command->node);
    result->repeated = slot < 0;
    if (slot < 0)
        return 0;
    err = check_epoch(tablet, command, &result->msg);
    if (err == 0)
        err = check_remove(state, tablet, (unsigned)slot, &result->msg);
    if (err != 0)
        return err;
    leave(state, tablet, (unsigned)slot);
    txn_finish_complete(state);
    return 0;
}

/* ---- nodes ---- */

static int find_member(struct state *state, node_id node, struct member **member,
                       struct tg_errmsg *msg)
{
    *member = (struct member *)members_find(&state->members, node);
    if (*member == NULL)
        return tg_fail(msg, TG_NOT_FOUND, "there is no participant %u", node);
    return 0;
}

int move_check_drain(const struct state *state, node_id node, uint32_t left, struct tg_errmsg *msg)
{
    if (left == 0)
        return tg_fail(msg, TG_REFUSED, "no participant would be left without participant %u",
                       node);
    for (const struct table *table = state->catalog.tables; table != NULL; table = table->hh.next)
        if (!table->dropped && table->replication > left)
            return tg_fail(msg, TG_REFUSED,
                           "table %s has replication_num %u, and only %u participants would be "
                           "left without participant %u",
                           table->name, table->replication, left, node);
    return 0;
}

int move_drain(struct state *state, const struct command_node *command, struct apply_result *result)
{
    struct member *member;
    int err = find_member(state, command->node, &member, &result->msg);
    if (err != 0)
        return err;
    result->node = member->node;
    result->repeated = member->draining == command->drain;
    if (result->repeated)
        return 0;
    if (command->drain)
        err = move_check_drain(state, member->node, members_active(&state->members, member->node),
                               &result->msg);
    if (err != 0)
        return err;
    member->draining = command->drain;
    return 0;
}

/* Data that only the replica in this slot has would be lost without it. */
static int check_loss(const struct state *state, const struct tablet *tablet, unsigned slot,
                      struct tg_errmsg *msg)
{
    unsigned bit = 1u << slot;
    node_id node = tablet->replicas[slot].node;
    if (tablet->table->dropped || tablet->replicas[slot].joining)
        return 0;
    if ((tablet_good(tablet) & ~bit) == 0)
        return tg_fail(msg, TG_REFUSED,
                       "tablet %" PRIu64 " of table %s would be left without a good replica: "
                       "participant %u has the last one",
                       tablet->id, tablet->table->name, node);
    for (const struct txn *txn = state->txns.open.first; txn != NULL; txn = txn->next)
        for (uint32_t i = 0; i < txn->load_count; i++)
            for (uint32_t j = 0; j < txn->loads[i].tablet_count; j++) {
                const struct txn_load_tablet *load = &txn->loads[i].tablets[j];
                if (load->tablet == tablet->id && (load->sealed & bit) != 0 &&
                    (load->sealed & ~bit & tablet_all(tablet)) == 0)
                    return tg_fail(msg, TG_REFUSED,
                                   "participant %u has the only copy of what transaction "
                                   "[%" PRIu64 "] wrote into tablet %" PRIu64
                                   ": commit or abort it first",
                                   node, txn->id, tablet->id);
            }
    return 0;
}

int move_check_drop(const struct state *state, node_id node, struct tg_errmsg *msg)
{
    for (const struct tablet *tablet = state->catalog.tablets; tablet != NULL;
         tablet = tablet->hh.next) {
        int slot = tablet_slot(tablet, node);
        int err = slot < 0 ? 0 : check_loss(state, tablet, (unsigned)slot, msg);
        if (err != 0)
            return err;
    }
    return 0;
}

uint32_t move_replicas(const struct state *state, node_id node)
{
    uint32_t replicas = 0;
    for (const struct tablet *tablet = state->catalog.tablets; tablet != NULL;
         tablet = tablet->hh.next)
        replicas += !tablet->table->dropped && tablet_slot(tablet, node) >= 0;
    return replicas;
}

int move_drop(struct state *state, const struct command_node *command, struct apply_result *result)
{
    struct member *member;
    int err = find_member(state, command->node, &member, &result->msg);
    if (err == 0 && member->epoch != command->epoch)
        err = tg_fail(&result->msg, TG_STALE, "participant %u has registered again meanwhile",
                      command->node);
    if (err == 0)
        err = move_check_drop(state, command->node, &result->msg);
    if (err != 0)
        return err;
    result->node = command->node;
    for (struct tablet *tablet = state->catalog.tablets; tablet != NULL; tablet = tablet->hh.next) {
        int slot = tablet_slot(tablet, command->node);
        if (slot >= 0)
            leave(state, tablet, (unsigned)slot);
    }
    txn_table_drop_fences(&state->txns, command->node, UINT64_MAX);
    members_remove(&state->members, command->node);
    txn_finish_complete(state);
    return 0;
}
