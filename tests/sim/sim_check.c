/* SPDX-License-Identifier: Apache-2.0 */
/* The checks that go on while the cluster lives. */
#include "tests/sim/sim_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "tests/sim/sim_check_log.h"

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
    return check;
}

void sim_check_close(struct sim_check *check)
{
    for (uint32_t i = 0; i < check->table_count; i++)
        free(check->tables[i].versions);
    free(check->as_of);
    free(check->hashes);
    free(check);
}

struct check_table *sim_check_table(const struct sim_check *check, table_id id)
{
    for (uint32_t i = 0; i < check->table_count; i++)
        if (check->tables[i].id == id)
            return (struct check_table *)&check->tables[i];
    return NULL;
}

version_t sim_check_visible(const struct sim_check *check, table_id table)
{
    const struct check_table *found = sim_check_table(check, table);
    return found == NULL ? 0 : found->count;
}

/* ---- the log's word ---- */

static void take_rowsets(struct sim_check *check, const struct txn *txn, table_id table,
                         struct check_version *version)
{
    for (uint32_t i = 0; i < txn->load_count; i++)
        if (txn->loads[i].table == table) {
            if (version->rowset != 0)
                sim_net_fail(check->net, "transaction %lu has two loads into table %lu",
                             (unsigned long)txn->id, (unsigned long)table);
            version->rowset = txn->loads[i].rowset;
        }
}

static void take_version(struct sim_check *check, const struct state *state,
                         const struct table *table, struct check_table *kept, version_t number)
{
    const struct version_record *record = &table->versions[number - 1];
    struct check_version *version = &kept->versions[kept->count];
    const struct txn *txn = txn_table_find(&state->txns, record->txn);
    *version = (struct check_version){
        .time_us = record->time_us,
        .txn = record->txn,
        .truncate = record->action == VERSION_TRUNCATE,
    };
    if (record->time_us == 0 || record->txn == 0 ||
        (kept->count > 0 && record->time_us <= kept->versions[kept->count - 1].time_us))
        sim_net_fail(check->net, "%s: version %lu does not follow in time", table->name,
                     (unsigned long)number);
    for (version_t v = 0; v < kept->count; v++)
        if (kept->versions[v].txn == record->txn)
            sim_net_fail(check->net, "%s: transaction %lu has two versions", table->name,
                         (unsigned long)record->txn);
    if (txn == NULL)
        sim_net_fail(check->net, "%s: version %lu is of no transaction", table->name,
                     (unsigned long)number);
    else if (!version->truncate)
        take_rowsets(check, txn, table->id, version);
    kept->count++;
}

static void take_table(struct sim_check *check, const struct state *state,
                       const struct table *table)
{
    struct check_table *kept = sim_check_table(check, table->id);
    if (kept == NULL) {
        TG_CHECK(check->table_count < CHECK_TABLES_MAX);
        kept = &check->tables[check->table_count++];
        kept->id = table->id;
        kept->versions = calloc(CHECK_VERSIONS_MAX, sizeof *kept->versions);
        TG_CHECK(kept->versions != NULL);
    }
    TG_CHECK(table->visible < CHECK_VERSIONS_MAX);
    while (kept->count < table->visible)
        take_version(check, state, table, kept, kept->count + 1);
}

void sim_check_applied(struct sim_check *check, unsigned coordinator)
{
    uint64_t index = sim_coordinator_applied(check->coordinators[coordinator]);
    const struct state *state = sim_coordinator_state(check->coordinators[coordinator]);
    uint64_t hash = state_hash(state);
    TG_CHECK(index < CHECK_INDEXES_MAX);
    sim_world_trace(&check->net->world, "applied coordinator=%u index=%lu hash=%lx",
                    coordinator + 1, (unsigned long)index, (unsigned long)hash);
    if (check->hashes[index] == 0)
        check->hashes[index] = hash;
    else if (check->hashes[index] != hash)
        sim_net_fail(check->net, "coordinator %u has another state at index %lu", coordinator + 1,
                     (unsigned long)index);
    for (const struct table *table = state->catalog.tables; table != NULL; table = table->hh.next)
        take_table(check, state, table);
}

/* ---- acknowledgements ---- */

static void raise_floor(struct sim_floors *floors, table_id table, version_t version)
{
    for (uint32_t i = 0; i < floors->count; i++)
        if (floors->list[i].table == table) {
            if (floors->list[i].version < version)
                floors->list[i].version = version;
            return;
        }
    TG_CHECK(floors->count < CHECK_TABLES_MAX);
    floors->list[floors->count].table = table;
    floors->list[floors->count++].version = version;
}

void sim_check_acknowledged(struct sim_check *check, txn_id txn)
{
    bool known = false;
    for (uint32_t i = 0; i < check->table_count; i++)
        for (version_t v = 0; v < check->tables[i].count; v++)
            if (check->tables[i].versions[v].txn == txn) {
                raise_floor(&check->floors, check->tables[i].id, v + 1);
                known = true;
            }
    /* A table that was dropped in between is as good as visible. */
    if (!known)
        sim_world_trace(&check->net->world, "acknowledged without version txn=%lu",
                        (unsigned long)txn);
}

void sim_check_floors(const struct sim_check *check, struct sim_floors *floors)
{
    *floors = check->floors;
}

void sim_check_newest(struct sim_check *check, const struct sim_floors *begun, table_id table,
                      version_t version)
{
    for (uint32_t i = 0; i < begun->count; i++)
        if (begun->list[i].table == table && begun->list[i].version > version)
            sim_net_fail(check->net,
                         "a read of table %lu sees version %lu; %lu was acknowledged before it",
                         (unsigned long)table, (unsigned long)version,
                         (unsigned long)begun->list[i].version);
}

void sim_check_as_of(struct sim_check *check, table_id table, uint64_t us, version_t version)
{
    if (check->as_of_count == check->as_of_capacity) {
        check->as_of_capacity = check->as_of_capacity == 0 ? 64 : 2 * check->as_of_capacity;
        check->as_of = realloc(check->as_of, check->as_of_capacity * sizeof *check->as_of);
        TG_CHECK(check->as_of != NULL);
    }
    check->as_of[check->as_of_count++] = (struct check_as_of){table, us, version};
}

/* ---- what was read ---- */

void sim_check_rowsets(struct sim_check *check, const char *who, table_id table, tablet_id tablet,
                       bool changes, version_t after, version_t version,
                       const struct version_rowset *rowsets, uint32_t count)
{
    const struct check_table *kept = sim_check_table(check, table);
    version_t first = changes ? after : 0;
    uint32_t at = 0;
    if (kept == NULL || version > kept->count) {
        sim_net_fail(check->net, "%s: version %lu of table %lu is shown and was never visible", who,
                     (unsigned long)version, (unsigned long)table);
        return;
    }
    for (version_t v = version; v > 0 && !changes; v--)
        if (kept->versions[v - 1].truncate) {
            first = v;
            break;
        }
    for (version_t v = first + 1; v <= version; v++) {
        const struct check_version *expected = &kept->versions[v - 1];
        if (expected->rowset == 0)
            continue;
        if (at == count || rowsets[at].version != v || rowsets[at].rowset != expected->rowset) {
            sim_net_fail(
                check->net,
                "%s: tablet %lu of table %lu at version %lu (after %lu) should show rowset "
                "%lu of version %lu and shows %lu of %lu",
                who, (unsigned long)tablet, (unsigned long)table, (unsigned long)version,
                (unsigned long)after, (unsigned long)expected->rowset, (unsigned long)v,
                at < count ? (unsigned long)rowsets[at].rowset : 0,
                at < count ? (unsigned long)rowsets[at].version : 0);
            return;
        }
        at++;
    }
    if (at < count)
        sim_net_fail(check->net, "%s: tablet %lu of table %lu at version %lu shows rowset %lu too",
                     who, (unsigned long)tablet, (unsigned long)table, (unsigned long)version,
                     (unsigned long)rowsets[at].rowset);
}

void sim_check_versions(struct sim_check *check, const struct msg_read_point_reply *reply)
{
    const struct check_table *kept = sim_check_table(check, reply->table);
    if (kept == NULL || reply->version > kept->count ||
        reply->version_count != reply->version - reply->after) {
        sim_net_fail(check->net, "changes of table %lu after %lu: %u versions up to %lu",
                     (unsigned long)reply->table, (unsigned long)reply->after, reply->version_count,
                     (unsigned long)reply->version);
        return;
    }
    for (uint32_t i = 0; i < reply->version_count; i++) {
        const struct read_point_version *told = &reply->versions[i];
        const struct check_version *expected = &kept->versions[reply->after + i];
        if (told->version != reply->after + i + 1 || told->txn != expected->txn ||
            told->time_us != expected->time_us || told->replace != expected->truncate)
            sim_net_fail(check->net, "changes of table %lu: version %lu is told otherwise",
                         (unsigned long)reply->table, (unsigned long)told->version);
    }
}
