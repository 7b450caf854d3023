/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of a cluster at rest. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "participant/store/lmdb_txn.h"
#include "participant/store/rowset_drop.h"
#include "participant/store/store_internal.h"
#include "participant/store/store_keys.h"
#include "tests/sim/sim_check_end.h"
#include "tests/sim/sim_check_log.h"
#include "tests/sim/sim_client.h"

static const struct state *newest_state(const struct sim_check *check)
{
    struct sim_coordinator *newest = sim_coordinator_newest(check->coordinators);
    return newest == NULL ? NULL : sim_coordinator_state(newest);
}

/* Those of the list have applied as much as the newest. */
static bool have_applied_all(const struct sim_check *check, const struct state *state)
{
    struct sim_coordinator *newest = sim_coordinator_newest(check->coordinators);
    const struct coordinators *list = &state->coordinators;
    for (uint32_t i = 0; i < list->count; i++) {
        struct sim_coordinator *coordinator = check->coordinators[list->list[i].id - 1];
        if (sim_coordinator_state(coordinator) == NULL ||
            sim_coordinator_applied(coordinator) != sim_coordinator_applied(newest))
            return false;
    }
    return list->count > 0;
}

bool sim_check_is_at_rest(const struct sim_check *check)
{
    const struct state *state = newest_state(check);
    return state != NULL && state->txns.open.first == NULL &&
           state->txns.publishing.first == NULL && state->catalog.behind_count == 0 &&
           coordinators_changing(&state->coordinators) == NULL && have_applied_all(check, state);
}

/* The tablets whose replicas are behind, into the trace. */
static void trace_behind(struct sim_check *check, const struct state *state)
{
    for (const struct tablet *tablet = state->catalog.tablets; tablet != NULL;
         tablet = tablet->hh.next)
        for (unsigned i = 0; tablet_behind(tablet) != 0 && i < tablet->replica_count; i++) {
            const struct replica *replica = &tablet->replicas[i];
            sim_world_trace(
                &check->net->world,
                "tablet=%lu node=%u behind=%d catching=%d behind_version=%lu missed=%lu "
                "written_from=%lu bound=%lu touched=%lu",
                (unsigned long)tablet->id, replica->node, replica->behind, replica->catching,
                (unsigned long)replica->behind_version, (unsigned long)replica->missed_version,
                (unsigned long)replica->written_from,
                (unsigned long)tablet_set_last(check->participants[replica->node - 1].tablets,
                                               tablet->id),
                tablet->touched_count == 0
                    ? 0
                    : (unsigned long)tablet->touched[tablet->touched_count - 1]);
        }
    for (const struct txn *txn = state->txns.publishing.first; txn != NULL; txn = txn->next) {
        sim_world_trace(&check->net->world, "publishing txn=%lu state=%s", (unsigned long)txn->id,
                        txn_state_name((enum txn_state)txn->state));
        for (uint32_t i = 0; i < txn->publish_count; i++)
            sim_world_trace(&check->net->world, "  tablet=%lu version=%lu prev=%lu confirmed=%x",
                            (unsigned long)txn->publish[i].tablet,
                            (unsigned long)txn->tables[txn->publish[i].table_index].version,
                            (unsigned long)txn->publish[i].prev, txn->publish[i].confirmed);
        for (uint32_t i = 0; i < txn->load_count; i++)
            for (uint32_t k = 0; k < txn->loads[i].tablet_count; k++)
                sim_world_trace(&check->net->world, "  load rowset=%lu tablet=%lu sealed=%x",
                                (unsigned long)txn->loads[i].rowset,
                                (unsigned long)txn->loads[i].tablets[k].tablet,
                                txn->loads[i].tablets[k].sealed);
    }
}

/* Why a cluster does not come to rest. */
static void check_unrest(struct sim_check *check)
{
    const struct state *state = newest_state(check);
    char text[256] = "";
    size_t at = 0;
    if (state == NULL) {
        sim_net_fail(check->net, "no coordinator comes up");
        return;
    }
    for (const struct tablet *tablet = state->catalog.tablets;
         tablet != NULL && at + 64 < sizeof text; tablet = tablet->hh.next)
        if (tablet_behind(tablet) != 0)
            at += (size_t)snprintf(text + at, sizeof text - at, " %lu behind=%x catching=%x",
                                   (unsigned long)tablet->id, tablet_behind(tablet),
                                   tablet_catching(tablet));
    trace_behind(check, state);
    const struct coordinator_record *changing = coordinators_changing(&state->coordinators);
    if (changing != NULL)
        at += (size_t)snprintf(text + at, sizeof text - at, "; coordinator %lu is %d",
                               (unsigned long)changing->id, changing->standing);
    sim_net_fail(
        check->net,
        "the cluster does not come to rest: %u open, %u publishing, first txn %lu; "
        "tablets:%s",
        state->txns.open.count, state->txns.publishing.count,
        state->txns.publishing.first == NULL ? 0 : (unsigned long)state->txns.publishing.first->id,
        text);
}

/* Every replica holds the same, version for version. */
static void check_replicas(struct sim_check *check, const struct table *table)
{
    for (uint32_t bucket = 0; bucket < table->bucket_count; bucket++) {
        const struct tablet *tablet = table->tablets[bucket];
        struct digest first = {{0}};
        for (unsigned i = 0; i < tablet->replica_count; i++) {
            struct version_map map;
            struct digest chain;
            tablet_set_share(check->participants[tablet->replicas[i].node - 1].tablets, tablet->id,
                             &map);
            TG_CHECK(version_map_chain(&map, UINT64_MAX, &chain) == 0);
            version_map_close(&map);
            if (i == 0)
                first = chain;
            else if (!digest_equal(&first, &chain))
                sim_net_fail(check->net, "tablet %lu differs between participants %u and %u",
                             (unsigned long)tablet->id, tablet->replicas[0].node,
                             tablet->replicas[i].node);
        }
    }
}

static void check_as_of(struct sim_check *check)
{
    for (uint32_t i = 0; i < check->as_of_count; i++) {
        const struct check_as_of *read = &check->as_of[i];
        const struct check_table *table = sim_check_table(check, read->table);
        version_t expected = 0;
        for (version_t v = 1; table != NULL && v <= table->count; v++)
            if (table->versions[v - 1].time_us <= read->us)
                expected = v;
        if (expected != read->version)
            sim_net_fail(check->net, "table %lu as of %lu was version %lu and should be %lu",
                         (unsigned long)read->table, (unsigned long)read->us,
                         (unsigned long)read->version, (unsigned long)expected);
    }
}

/* ---- clients ---- */

static version_t floor_of(const struct sim_floors *floors, table_id table)
{
    for (uint32_t i = 0; i < floors->count; i++)
        if (floors->list[i].table == table)
            return floors->list[i].version;
    return 0;
}

/* What was acknowledged before somebody asked to commit lies before it. */
static void check_order(struct sim_check *check, const struct sim_history *history)
{
    for (uint32_t i = 0; i < check->table_count && history->txn != 0; i++)
        for (version_t v = 1; v <= check->tables[i].count; v++)
            if (check->tables[i].versions[v - 1].txn == history->txn &&
                v <= floor_of(&history->floors, check->tables[i].id))
                sim_net_fail(check->net,
                             "%s became version %lu, and a later one had been acknowledged before",
                             history->label, (unsigned long)v);
}

static void check_history(struct sim_check *check, const struct state *state,
                          const struct sim_history *history)
{
    const struct txn *txn = history->txn != 0 ? txn_table_find(&state->txns, history->txn) : NULL;
    enum txn_state outcome = txn == NULL ? TXN_UNKNOWN : (enum txn_state)txn->state;
    if ((history->told & TOLD_COMMITTED) != 0 && outcome != TXN_VISIBLE)
        sim_net_fail(check->net, "%s was told committed and is %s", history->label,
                     txn_state_name(outcome));
    if ((history->told & TOLD_ABORTED) != 0 && history->txn != 0 && outcome != TXN_ABORTED &&
        outcome != TXN_UNKNOWN)
        sim_net_fail(check->net, "%s was told aborted and is %s", history->label,
                     txn_state_name(outcome));
    if (history->commit_us == 0 && !history->borrowed && outcome == TXN_VISIBLE)
        sim_net_fail(check->net, "%s was never committed and is visible", history->label);
    if (!history->borrowed)
        check_order(check, history);
}

static void check_labels(struct sim_check *check, const struct state *state,
                         const struct sim_history *history, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = i + 1; k < count; k++) {
            if (history[i].label_number != history[k].label_number)
                continue;
            const struct txn *one = txn_table_find(&state->txns, history[i].txn);
            const struct txn *other = txn_table_find(&state->txns, history[k].txn);
            if (one != NULL && other != NULL && one != other && one->state == TXN_VISIBLE &&
                other->state == TXN_VISIBLE)
                sim_net_fail(check->net, "%s is visible twice: transactions %lu and %lu",
                             history[i].label, (unsigned long)one->id, (unsigned long)other->id);
        }
}

void sim_check_end(struct sim_check *check, const struct sim_clients *clients)
{
    uint32_t count;
    const struct sim_history *history = sim_clients_history(clients, &count);
    struct cluster_sim_result *result = check->net->result;
    if (!sim_check_is_at_rest(check)) {
        check_unrest(check);
        return;
    }
    const struct state *state = newest_state(check);
    for (uint32_t i = 0; i < state->coordinators.count; i++) {
        uint64_t id = state->coordinators.list[i].id;
        if (state_hash(sim_coordinator_state(check->coordinators[id - 1])) != state_hash(state))
            sim_net_fail(check->net, "coordinator %lu differs in the end", (unsigned long)id);
    }
    for (const struct table *table = state->catalog.tables; table != NULL; table = table->hh.next) {
        if (table->committed != table->visible)
            sim_net_fail(check->net, "%s: version %lu is committed and %lu visible", table->name,
                         (unsigned long)table->committed, (unsigned long)table->visible);
        check_replicas(check, table);
        result->versions += table->visible;
    }
    check_as_of(check);
    check_labels(check, state, history, count);
    for (uint32_t i = 0; i < count; i++) {
        check_history(check, state, &history[i]);
        const struct txn *txn = txn_table_find(&state->txns, history[i].txn);
        result->visible += txn != NULL && txn->state == TXN_VISIBLE;
        result->committed += (history[i].told & TOLD_COMMITTED) != 0;
        result->aborted += (history[i].told & TOLD_ABORTED) != 0;
        result->refused += history[i].told == TOLD_REFUSED;
        result->left += history[i].kind == SIM_SILENT && history[i].told == TOLD_NOTHING;
        result->unknown += history[i].kind != SIM_SILENT && history[i].told == TOLD_NOTHING;
    }
    result->loads = count;
}

/* ---- nothing is left over ---- */

static const struct tablet *final_tablet(const struct sim_check *check, tablet_id id)
{
    const struct state *state = newest_state(check);
    const struct tablet *tablet = catalog_tablet(&state->catalog, id);
    return tablet != NULL && !tablet->table->dropped ? tablet : NULL;
}

static bool is_bound(const struct sim_check *check, struct sim_participant *participant,
                     tablet_id tablet, rowset_id rowset)
{
    struct version_map map;
    struct version_view view;
    bool found = false;
    if (final_tablet(check, tablet) == NULL)
        return false;
    tablet_set_share(participant->tablets, tablet, &map);
    version_t last = version_map_last(&map);
    if (last > 0 && version_map_between(&map, 0, last, 0, &view) == 0)
        for (uint32_t i = 0; i < view.count && !found; i++)
            found = view.rowsets[i].rowset == rowset;
    version_map_close(&map);
    return found;
}

/* Keys begin with tablet and rowset. */
static void check_keys(struct sim_check *check, struct sim_participant *participant,
                       struct lmdb_env *env, MDB_dbi database, const char *what)
{
    struct lmdb_txn txn;
    struct lmdb_cursor cursor;
    TG_CHECK(lmdb_txn_read(env, &txn) == 0);
    if (lmdb_cursor_open(&cursor, &txn, database)) {
        while (lmdb_cursor_next(&cursor)) {
            uint64_t key[2];
            TG_CHECK(store_key_parse(slice_of(cursor.key.data, sizeof key), 2, key) == 0);
            if (!is_bound(check, participant, key[0], key[1]))
                sim_net_fail(
                    check->net,
                    "participant %u keeps a %s of rowset %lu tablet %lu that nothing binds",
                    participant->node, what, (unsigned long)key[1], (unsigned long)key[0]);
        }
        lmdb_cursor_close(&cursor);
    }
    lmdb_txn_abort(&txn);
}

static void check_leaks_of(struct sim_check *check, struct sim_participant *participant)
{
    struct store *store = participant->store;
    txn_id staged[4];
    uint32_t count;
    tablet_id tablets[CHECK_TABLES_MAX * SIM_BUCKETS];
    TG_CHECK(rowset_drop_list(store, 0, staged, 4, &count) == 0);
    if (count > 0)
        sim_net_fail(check->net, "participant %u still has staged rowsets of transaction %lu",
                     participant->node, (unsigned long)staged[0]);
    count = tablet_set_list(participant->tablets, 0, tablets, CHECK_TABLES_MAX * SIM_BUCKETS);
    for (uint32_t i = 0; i < count; i++)
        if (final_tablet(check, tablets[i]) == NULL)
            sim_net_fail(check->net, "participant %u still has tablet %lu, which was dropped",
                         participant->node, (unsigned long)tablets[i]);
    check_keys(check, participant, &store->meta, store->db_rowset, "record");
    for (int i = 0; i < BLOCK_CLASSES; i++)
        check_keys(check, participant, &store->blocks[i], store->db_block[i], "block");
}

void sim_check_leaks(struct sim_check *check)
{
    for (unsigned i = 0; i < SIM_PARTICIPANTS; i++)
        check_leaks_of(check, &check->participants[i]);
}
