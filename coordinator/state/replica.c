/* SPDX-License-Identifier: Apache-2.0 */
/* How a replica falls behind, is written to again, and is good again (DESIGN.md 2.4, rule 3).
 *
 *            missed a write it was to get, a publish, or lost data
 *      GOOD ───────────────────────────────────────────────────────▶ BEHIND ◀──┐
 *       ▲ │                                                            │       │ the same
 *       │ │ missed a load that was planned without it            CATCH │       │
 *       │ └───────────────────────────────────────────────────┐        ▼       │
 *       └──────────────────────────────────────────── HEALED ─┴──── CATCHING ──┘
 *
 * Under a steady load a replica would never be done if it had to have bound the last version at the
 * very moment of HEALED: there is always one more under way. So from CATCH on loads write to it
 * again, and HEALED asks only for the versions up to the last one that it lacks the rowsets of
 * (missed_version). What comes after that it holds, and it is published to it like to any good
 * replica: transactions await a catching replica for those versions, so their publish lists, and
 * what is staged for them, stay.
 *
 * Loads that began before CATCH do not write to it; when they commit, missed_version moves on. That
 * ends with the last of them, so it converges. For the same reason a replica that was good again
 * and misses only such a load is catching at once: were it just behind, loads that begin meanwhile
 * would leave it out as well, and so for ever. One that was to get a write and failed is behind:
 * it is not sent to until a clone has shown that it is there. */
#include <inttypes.h>

#include "coordinator/state/apply.h"

bool catalog_has_behind(const struct catalog *catalog, node_id node)
{
    for (const struct tablet *tablet = catalog->behind; tablet != NULL;
         tablet = tablet->behind_next) {
        int slot = tablet_slot(tablet, node);
        if (slot >= 0 && tablet->replicas[slot].behind)
            return true;
    }
    return false;
}

void replica_fall_behind(struct catalog *catalog, struct tablet *tablet, struct replica *replica,
                         version_t version)
{
    catalog->behind_count += !replica->behind;
    if (!replica->behind || version < replica->behind_version)
        replica->behind_version = version;
    replica->behind = true;
    replica->catching = false;
    replica->missed_version = 0;
    replica->missed_known = false;
    replica->missed_chain = (struct digest){0};
    replica->written_from = 0;
    catalog_note_behind(catalog, tablet);
}

/* It is catching, and lacks no more than what has touched the tablet up to now. */
static void set_missed(const struct tablet *tablet, struct replica *replica)
{
    replica->catching = true;
    replica->missed_version = tablet_last_touched(tablet);
    replica->missed_known = tablet->chain_known;
    replica->missed_chain = tablet->chain_known ? tablet->chain : (struct digest){0};
}

static uint32_t versions_above(const struct tablet *tablet, version_t version)
{
    uint32_t count = 0;
    while (count < tablet->touched_count &&
           tablet->touched[tablet->touched_count - 1 - count] > version &&
           count <= REPLICA_CATCHING_VERSIONS_MAX)
        count++;
    return count;
}

bool replica_missed(struct catalog *catalog, struct tablet *tablet, uint8_t sealed, uint8_t planned,
                    version_t version)
{
    bool changed = false;
    for (unsigned i = 0; i < tablet->replica_count; i++) {
        struct replica *replica = &tablet->replicas[i];
        if (replica->node == 0 || (replica->behind && !replica->catching))
            continue;
        if ((sealed >> i & 1) != 0 && !replica->catching)
            continue;
        if ((sealed >> i & 1) != 0) {
            /* What it wrote and cannot bind yet must not grow without end. */
            if (versions_above(tablet, replica->missed_version) <= REPLICA_CATCHING_VERSIONS_MAX)
                continue;
            replica_fall_behind(catalog, tablet, replica, version);
        } else if ((planned >> i & 1) != 0) {
            replica_fall_behind(catalog, tablet, replica, version);
        } else {
            rowset_id written_from = replica->written_from;
            replica_fall_behind(catalog, tablet, replica, version);
            set_missed(tablet, replica);
            replica->written_from = written_from;
        }
        changed = true;
    }
    return changed;
}

static int find_replica(const struct state *state, tablet_id id, node_id node,
                        struct tablet **tablet, struct replica **replica, struct tg_errmsg *msg)
{
    *tablet = catalog_tablet(&state->catalog, id);
    int slot = *tablet == NULL ? -1 : tablet_slot(*tablet, node);
    if (slot < 0)
        return tg_fail(msg, TG_NOT_FOUND, "participant %u has no replica of tablet %" PRIu64, node,
                       id);
    *replica = &(*tablet)->replicas[slot];
    return 0;
}

/* It said that it lacks what it should have: just behind, also if it was catching. */
static void lack(struct state *state, struct tablet *tablet, struct replica *replica,
                 version_t version, struct apply_result *result)
{
    result->repeated = replica->behind && !replica->catching && replica->behind_version <= version;
    if (result->repeated)
        return;
    replica_fall_behind(&state->catalog, tablet, replica, version);
    txn_finish_complete(state);
}

int replica_behind(struct state *state, const struct command_behind *command,
                   struct apply_result *result)
{
    struct tablet *tablet;
    struct replica *replica = NULL;
    int err = find_replica(state, command->tablet, command->node, &tablet, &replica, &result->msg);
    if (err != 0)
        return err;
    const struct txn *txn = txn_table_find(&state->txns, command->txn);
    if (txn == NULL)
        return txn_fail_not_found(command->txn, &result->msg);
    version_t version = txn_table_version(txn, tablet->table->id);
    if (version == 0 || tablet_need(tablet, version) != version)
        return tg_fail(&result->msg, TG_TXN_STATE,
                       "transaction [%" PRIu64 "] has no version of tablet %" PRIu64, txn->id,
                       tablet->id);
    lack(state, tablet, replica, version, result);
    return 0;
}

int replica_lacks(struct state *state, const struct command_replica *command,
                  struct apply_result *result)
{
    struct tablet *tablet;
    struct replica *replica = NULL;
    int err = find_replica(state, command->tablet, command->node, &tablet, &replica, &result->msg);
    if (err != 0)
        return err;
    if (command->version == 0 || tablet_need(tablet, command->version) != command->version)
        return tg_fail(&result->msg, TG_NOT_FOUND,
                       "version %" PRIu64 " did not touch tablet %" PRIu64, command->version,
                       tablet->id);
    lack(state, tablet, replica, command->version, result);
    return 0;
}

int replica_catch(struct state *state, const struct command_replica *command,
                  struct apply_result *result)
{
    struct tablet *tablet;
    struct replica *replica = NULL;
    int err = find_replica(state, command->tablet, command->node, &tablet, &replica, &result->msg);
    if (err != 0)
        return err;
    result->repeated = !replica->behind || replica->catching;
    if (result->repeated)
        return 0;
    set_missed(tablet, replica);
    replica->written_from = state->next_rowset;
    return 0;
}

static void heal(struct state *state, struct tablet *tablet, struct replica *replica)
{
    state->catalog.behind_count--;
    replica->behind = false;
    replica->catching = false;
    replica->joining = false;
    replica->behind_version = 0;
    replica->missed_version = 0;
    replica->missed_known = false;
    replica->missed_chain = (struct digest){0};
    catalog_note_behind(&state->catalog, tablet);
}

/* Where the log knows what the replica has to hold, it must hold just that: the digest goes over
 * all that it has bound up to a version behind the last one that it missed and before the next one,
 * so that it has nothing in between, either. Where the log does not know, the first replica to be
 * good again says what it is from then on. */
int replica_proven(struct state *state, const struct command_proven *command,
                   struct apply_result *result)
{
    struct tablet *tablet;
    struct replica *replica = NULL;
    int err = find_replica(state, command->tablet, command->node, &tablet, &replica, &result->msg);
    if (err != 0)
        return err;
    result->repeated = !replica->behind;
    if (result->repeated)
        return 0;
    if (!replica->catching || command->bound < replica->missed_version ||
        tablet_need(tablet, command->version) != replica->missed_version)
        return tg_fail(&result->msg, TG_STALE,
                       "participant %u has bound version %" PRIu64 " of tablet %" PRIu64
                       ", it lacks more",
                       command->node, command->bound, tablet->id);
    if (tablet_need(tablet, command->bound) != command->bound ||
        (replica->missed_known && !digest_equal(&command->chain, &replica->missed_chain)))
        return tg_fail(&result->msg, TG_DIGEST,
                       "participant %u holds other versions of tablet %" PRIu64
                       " up to version %" PRIu64 " than the log",
                       command->node, tablet->id, command->bound);
    if (!tablet->chain_known && replica->missed_version == tablet_last_touched(tablet)) {
        tablet->chain_known = true;
        tablet->chain = command->chain;
    }
    heal(state, tablet, replica);
    return 0;
}

int replica_healed(struct state *state, const struct command_replica *command,
                   struct apply_result *result)
{
    struct tablet *tablet;
    struct replica *replica = NULL;
    int err = find_replica(state, command->tablet, command->node, &tablet, &replica, &result->msg);
    if (err != 0)
        return err;
    result->repeated = !replica->behind;
    if (result->repeated)
        return 0;
    if (tablet_need(tablet, command->version) != command->version)
        return tg_fail(&result->msg, TG_INVALID,
                       "version %" PRIu64 " did not touch tablet %" PRIu64, command->version,
                       tablet->id);
    if (!replica->catching || command->version < replica->missed_version)
        return tg_fail(&result->msg, TG_STALE,
                       "participant %u has bound version %" PRIu64 " of tablet %" PRIu64
                       ", it lacks more",
                       command->node, command->version, tablet->id);
    heal(state, tablet, replica);
    return 0;
}
