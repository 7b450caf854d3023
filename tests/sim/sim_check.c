/* SPDX-License-Identifier: Apache-2.0 */
/* The checks. */
#include "tests/sim/sim_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"

enum { CHECK_INDEXES_MAX = 1 << 16, CHECK_VERSIONS_MAX = 1 << 14 };

struct sim_check {
    struct sim_net *net;
    struct sim_coordinator **coordinators;
    struct sim_participant *participants;
    uint64_t *hashes;               /* by log index, 0: not seen */
    uint64_t *contents[SIM_TABLES]; /* by version: what a read of it gave first */
};

struct sim_check *sim_check_open(struct sim_net *net, struct sim_coordinator **coordinators,
                                 struct sim_participant *participants)
{
    struct sim_check *check = calloc(1, sizeof *check);
    TG_CHECK(check != NULL);
    check->net = net;
    check->coordinators = coordinators;
    check->participants = participants;
    check->hashes = calloc(CHECK_INDEXES_MAX, sizeof *check->hashes);
    TG_CHECK(check->hashes != NULL);
    for (unsigned i = 0; i < SIM_TABLES; i++) {
        check->contents[i] = calloc(CHECK_VERSIONS_MAX, sizeof *check->contents[i]);
        TG_CHECK(check->contents[i] != NULL);
    }
    return check;
}

void sim_check_close(struct sim_check *check)
{
    for (unsigned i = 0; i < SIM_TABLES; i++)
        free(check->contents[i]);
    free(check->hashes);
    free(check);
}

/* ---- at every applied batch ---- */

void sim_check_applied(struct sim_check *check, unsigned coordinator)
{
    uint64_t index = sim_coordinator_applied(check->coordinators[coordinator]);
    uint64_t hash = state_hash(sim_coordinator_state(check->coordinators[coordinator]));
    TG_CHECK(index < CHECK_INDEXES_MAX);
    sim_world_trace(&check->net->world, "applied coordinator=%u index=%lu hash=%lx",
                    coordinator + 1, (unsigned long)index, (unsigned long)hash);
    if (check->hashes[index] == 0)
        check->hashes[index] = hash;
    else if (check->hashes[index] != hash)
        sim_net_fail(check->net, "coordinator %u has another state at index %lu", coordinator + 1,
                     (unsigned long)index);
}

/* ---- reads ---- */

static struct table *check_table(const struct state *state, unsigned i)
{
    char name[8];
    struct database *database = catalog_database(&state->catalog, "db");
    snprintf(name, sizeof name, "t%u", i);
    return database == NULL ? NULL : catalog_table(database, name);
}

static int check_tablet_slot(const struct tablet *tablet, node_id node)
{
    for (int i = 0; i < tablet->replica_count; i++)
        if (tablet->replicas[i].node == node)
            return i;
    return -1;
}

/* The rowsets of one tablet at a version, from a replica that may be asked. False if none answers
 * now. */
static bool check_read_tablet(struct sim_check *check, const struct tablet *tablet,
                              version_t version, struct version_view *view)
{
    unsigned first = (unsigned)sim_world_below(&check->net->world, SIM_PARTICIPANTS);
    version_t need = tablet_need(tablet, version);
    for (unsigned k = 0; k < SIM_PARTICIPANTS; k++) {
        const struct sim_participant *participant =
            &check->participants[(first + k) % SIM_PARTICIPANTS];
        int slot = check_tablet_slot(tablet, participant->node);
        const struct version_map *map = sim_participant_map(participant, tablet->id);
        static const struct version_view empty;
        if (!participant->up || slot < 0)
            continue;
        if (tablet->replicas[slot].behind && tablet->replicas[slot].behind_version <= version)
            continue;
        if (map == NULL && need == 0) {
            *view = empty;
            return true;
        }
        if (map != NULL && version_map_at(map, version, need, view) == 0)
            return true;
    }
    return false;
}

/* Every tablet of the table shows the same loads: each load wrote a row into each of them. */
static void check_read_table(struct sim_check *check, const struct table *table, unsigned number,
                             version_t version)
{
    uint64_t content[2] = {1, version};
    for (uint32_t bucket = 0; bucket < table->bucket_count; bucket++) {
        struct version_view view;
        if (!check_read_tablet(check, table->tablets[bucket], version, &view)) {
            check->net->result->refused_reads++;
            return;
        }
        uint64_t loads[2] = {2, view.count};
        for (uint32_t i = 0; i < view.count; i++) {
            if (view.rowsets[i].version > version)
                sim_net_fail(check->net, "a read of t%u at %lu shows version %lu", number,
                             (unsigned long)version, (unsigned long)view.rowsets[i].version);
            uint64_t next[3] = {loads[0], view.rowsets[i].rowset, view.rowsets[i].version};
            loads[0] = checksum64(next, sizeof next);
        }
        uint64_t of_tablet = checksum64(loads, sizeof loads);
        if (bucket == 0)
            content[0] = of_tablet;
        else if (content[0] != of_tablet)
            sim_net_fail(check->net, "t%u at version %lu is torn: bucket %u differs", number,
                         (unsigned long)version, bucket);
    }
    uint64_t hash = checksum64(content, sizeof content);
    check->net->result->reads++;
    TG_CHECK(version < CHECK_VERSIONS_MAX);
    if (check->contents[number][version] == 0)
        check->contents[number][version] = hash;
    else if (check->contents[number][version] != hash)
        sim_net_fail(check->net, "t%u at version %lu reads differently than before", number,
                     (unsigned long)version);
}

void sim_check_read(struct sim_check *check)
{
    unsigned coordinator = (unsigned)sim_world_below(&check->net->world, SIM_COORDINATORS);
    unsigned number = (unsigned)sim_world_below(&check->net->world, SIM_TABLES);
    const struct state *state = sim_coordinator_state(check->coordinators[coordinator]);
    if (state == NULL)
        return;
    const struct table *table = check_table(state, number);
    if (table == NULL || table->visible == 0)
        return;
    check_read_table(check, table, number, table->visible);
    check_read_table(check, table, number,
                     sim_world_between(&check->net->world, 0, table->visible));
}

/* ---- the end ---- */

bool sim_check_is_at_rest(const struct sim_check *check)
{
    uint64_t index = 0;
    for (unsigned i = 0; i < SIM_COORDINATORS; i++) {
        const struct state *state = sim_coordinator_state(check->coordinators[i]);
        if (state == NULL || state->txns.open.first != NULL ||
            state->txns.publishing.first != NULL || state->catalog.behind_count > 0)
            return false;
        if (i == 0)
            index = sim_coordinator_applied(check->coordinators[i]);
        else if (sim_coordinator_applied(check->coordinators[i]) != index)
            return false;
    }
    return true;
}

static void check_versions(struct sim_check *check, const struct table *table, unsigned number)
{
    uint64_t last_us = 0;
    if (table->committed != table->visible)
        sim_net_fail(check->net, "t%u: version %lu is committed and %lu visible", number,
                     (unsigned long)table->committed, (unsigned long)table->visible);
    for (version_t v = 1; v <= table->visible; v++) {
        const struct version_record *record = &table->versions[v - 1];
        if (record->time_us <= last_us || record->txn == 0)
            sim_net_fail(check->net, "t%u: version %lu does not follow in time", number,
                         (unsigned long)v);
        last_us = record->time_us;
        for (version_t w = 1; w < v; w++)
            if (table->versions[w - 1].txn == record->txn)
                sim_net_fail(check->net, "t%u: transaction %lu has two versions", number,
                             (unsigned long)record->txn);
        check_read_table(check, table, number, v);
    }
    check->net->result->versions += table->visible;
}

/* Every replica is good and holds the same, version for version. */
static void check_replicas(struct sim_check *check, const struct table *table)
{
    for (uint32_t bucket = 0; table->visible > 0 && bucket < table->bucket_count; bucket++) {
        const struct tablet *tablet = table->tablets[bucket];
        struct digest first = {{0}};
        for (unsigned i = 0; i < tablet->replica_count; i++) {
            const struct version_map *map =
                sim_participant_map(&check->participants[tablet->replicas[i].node - 1], tablet->id);
            struct digest chain = {{0}};
            if (tablet->replicas[i].behind)
                sim_net_fail(check->net, "tablet %lu is behind at participant %u in the end",
                             (unsigned long)tablet->id, tablet->replicas[i].node);
            if (map != NULL)
                TG_CHECK(version_map_chain(map, UINT64_MAX, &chain) == 0);
            if (i == 0)
                first = chain;
            else if (!digest_equal(&first, &chain))
                sim_net_fail(check->net, "tablet %lu differs between participants %u and %u",
                             (unsigned long)tablet->id, tablet->replicas[0].node,
                             tablet->replicas[i].node);
        }
    }
}

/* True if the table shows the rowset at its newest version. */
static bool check_shows(struct sim_check *check, const struct table *table, rowset_id rowset)
{
    for (uint32_t bucket = 0; bucket < table->bucket_count; bucket++) {
        struct version_view view;
        if (!check_read_tablet(check, table->tablets[bucket], table->visible, &view)) {
            sim_net_fail(check->net, "bucket %u of table %s cannot be read in the end", bucket,
                         table->name);
            return false;
        }
        for (uint32_t i = 0; i < view.count; i++)
            if (view.rowsets[i].rowset == rowset)
                return true;
    }
    return false;
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
    if (history->kind == SIM_ABORT || history->kind == SIM_SILENT || history->kind == SIM_FAILS) {
        if (outcome == TXN_VISIBLE)
            sim_net_fail(check->net, "%s was never committed and is visible", history->label);
    }
    bool all = true;
    bool any = false;
    for (unsigned i = 0; i < SIM_TABLES; i++) {
        if (history->rowsets[i] == 0)
            continue;
        bool shown = check_shows(check, check_table(state, i), history->rowsets[i]);
        any = any || shown;
        all = all && shown;
    }
    if (any && !all)
        sim_net_fail(check->net, "%s shows in one table and not in the other", history->label);
    if (any != (outcome == TXN_VISIBLE) && history->txn != 0)
        sim_net_fail(check->net, "%s is %s and its rows are %s", history->label,
                     txn_state_name(outcome), any ? "there" : "missing");
}

/* Why a cluster does not come to rest. */
static void check_unrest(struct sim_check *check)
{
    const struct state *state = sim_coordinator_state(check->coordinators[0]);
    char text[256] = "";
    size_t at = 0;
    for (const struct tablet *tablet = state == NULL ? NULL : state->catalog.tablets;
         tablet != NULL && at + 64 < sizeof text; tablet = tablet->hh.next)
        if (tablet_behind(tablet) != 0)
            at += (size_t)snprintf(text + at, sizeof text - at, " %lu behind=%x catching=%x",
                                   (unsigned long)tablet->id, tablet_behind(tablet),
                                   tablet_catching(tablet));
    sim_net_fail(check->net,
                 "the cluster does not come to rest: %u open, %u publishing, first txn %lu; "
                 "tablets:%s",
                 state == NULL ? 0 : state->txns.open.count,
                 state == NULL ? 0 : state->txns.publishing.count,
                 state == NULL || state->txns.publishing.first == NULL
                     ? 0
                     : (unsigned long)state->txns.publishing.first->id,
                 text);
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
    const struct state *state = sim_coordinator_state(check->coordinators[0]);
    for (unsigned i = 1; i < SIM_COORDINATORS; i++)
        if (state_hash(sim_coordinator_state(check->coordinators[i])) != state_hash(state))
            sim_net_fail(check->net, "coordinators 1 and %u differ in the end", i + 1);
    for (unsigned i = 0; i < SIM_TABLES; i++) {
        check_versions(check, check_table(state, i), i);
        check_replicas(check, check_table(state, i));
    }
    for (uint32_t i = 0; i < count; i++) {
        check_history(check, state, &history[i]);
        const struct txn *txn = txn_table_find(&state->txns, history[i].txn);
        result->visible += txn != NULL && txn->state == TXN_VISIBLE;
        result->committed += (history[i].told & TOLD_COMMITTED) != 0;
        result->aborted += (history[i].told & TOLD_ABORTED) != 0;
        result->unknown += history[i].told == TOLD_NOTHING;
    }
    result->loads = count;
}
