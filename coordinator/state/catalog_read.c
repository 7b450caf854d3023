/* SPDX-License-Identifier: Apache-2.0 */
/* What the catalog knows about versions: which there are, what a read of one needs, and who can
 * answer it. */
#include <inttypes.h>

#include "coordinator/state/apply.h"

#include "common/base/mutant.h"

enum { FUTURE_US = 500000 }; /* a reader's clock may be ahead by this much */

version_t table_add_version(struct table *table, const struct version_record *record)
{
    if (table->committed == table->version_capacity) {
        uint64_t capacity = table->version_capacity > 0 ? table->version_capacity * 2 : 8;
        table->versions = state_realloc(table->versions, capacity, sizeof *table->versions);
        table->version_capacity = capacity;
    }
    table->versions[table->committed] = *record;
    return ++table->committed;
}

void tablet_touch(struct tablet *tablet, version_t version)
{
    if (tablet->touched_count == tablet->touched_capacity) {
        uint32_t capacity = tablet->touched_capacity > 0 ? tablet->touched_capacity * 2 : 4;
        tablet->touched = state_realloc(tablet->touched, capacity, sizeof *tablet->touched);
        tablet->touched_capacity = capacity;
    }
    TG_CHECK(tablet_last_touched(tablet) < version);
    tablet->touched[tablet->touched_count++] = version;
}

version_t tablet_need(const struct tablet *tablet, version_t at)
{
    uint32_t low = 0; /* touched below low are ≤ at, from high on they are above */
    uint32_t high = tablet->touched_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (tablet->touched[middle] <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 ? 0 : tablet->touched[low - 1];
}

version_t table_version_at(const struct table *table, uint64_t us)
{
    version_t low = 0; /* versions up to low are complete at us, those above high are not */
    version_t high = table->visible;
    while (low < high) {
        version_t middle = low + (high - low + 1) / 2;
        if (table->versions[middle - 1].time_us + MUTANT(18) <= us)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

uint8_t tablet_all(const struct tablet *tablet)
{
    uint8_t all = 0;
    for (unsigned i = 0; i < tablet->replica_count && i < REPLICAS_MAX; i++)
        all |= (uint8_t)((unsigned)(tablet->replicas[i].node != 0) << i);
    return all;
}

uint8_t tablet_good(const struct tablet *tablet)
{
    return (uint8_t)(tablet_all(tablet) & (unsigned)~tablet_behind(tablet));
}

uint8_t tablet_joining(const struct tablet *tablet)
{
    uint8_t joining = 0;
    for (unsigned i = 0; i < tablet->replica_count && i < REPLICAS_MAX; i++)
        joining |= (uint8_t)((unsigned)tablet->replicas[i].joining << i);
    return joining;
}

uint8_t tablet_behind(const struct tablet *tablet)
{
    uint8_t behind = 0;
    for (unsigned i = 0; i < tablet->replica_count && i < REPLICAS_MAX; i++)
        behind |= (uint8_t)((unsigned)tablet->replicas[i].behind << i);
    return behind;
}

uint8_t tablet_catching(const struct tablet *tablet)
{
    uint8_t catching = 0;
    for (unsigned i = 0; i < tablet->replica_count && i < REPLICAS_MAX; i++)
        catching |= (uint8_t)((unsigned)tablet->replicas[i].catching << i);
    return catching;
}

uint8_t tablet_awaited(const struct tablet *tablet, version_t version)
{
    uint8_t awaited = 0;
    for (unsigned i = 0; i < tablet->replica_count && i < REPLICAS_MAX; i++) {
        const struct replica *replica = &tablet->replicas[i];
        bool awaits =
            replica->node != 0 &&
            (!replica->behind || (replica->catching && version > replica->missed_version));
        awaited |= (uint8_t)((unsigned)awaits << i);
    }
    return awaited;
}

uint8_t tablet_published_to(const struct tablet *tablet)
{
    uint8_t all = tablet_all(tablet);
    uint8_t good = (uint8_t)(all & ~tablet_behind(tablet));
    return good != 0 ? good : all;
}

static uint32_t majority(const struct tablet *tablet)
{
    return tablet->table->replication / 2u + 1;
}

uint32_t tablet_write_quorum(const struct tablet *tablet)
{
    if (!tablet->table->write_all)
        return majority(tablet);
    unsigned there = tablet_all(tablet) & (unsigned)~tablet_joining(tablet);
    uint32_t count = (uint32_t)__builtin_popcount(there);
    return count < tablet->table->replication ? count : tablet->table->replication;
}

bool tablet_published(const struct tablet *tablet, uint8_t confirmed, bool one_is_enough)
{
    unsigned good = confirmed & tablet_good(tablet);
    uint32_t needed = one_is_enough ? 1 : majority(tablet);
    return (uint32_t)__builtin_popcount(good) >= needed;
}

int tablet_slot(const struct tablet *tablet, node_id node)
{
    for (int i = 0; i < tablet->replica_count; i++) {
        if (node != 0 && tablet->replicas[i].node == node)
            return i;
    }
    return -1;
}

/* One end of a read. A time before the table's creation has no answer, except as the exclusive
 * lower end of a range of changes: nothing happened before, so everything is meant. */
static int resolve(const struct state *state, const struct table *table, struct read_bound bound,
                   bool is_lower_end, uint64_t now_us, version_t *version, struct tg_errmsg *msg)
{
    switch (bound.at) {
    case READ_LATEST:
        *version = table->visible;
        return 0;
    case READ_VERSION:
        if (bound.value > table->visible)
            return tg_fail(msg, TG_NOT_YET,
                           "version %" PRIu64 " of table %s does not exist yet, the newest is "
                           "%" PRIu64,
                           bound.value, table->name, table->visible);
        *version = bound.value;
        return 0;
    case READ_TIME:
        if (bound.value > now_us && bound.value - now_us > FUTURE_US)
            return tg_fail(msg, TG_FUTURE,
                           "the time %" PRIu64 " us lies %" PRIu64 " us in the future", bound.value,
                           bound.value - now_us);
        if (bound.value > (MUTANT(17) ? now_us : state->stamp_us))
            return tg_fail(msg, TG_NOT_YET,
                           "the time %" PRIu64 " us is not closed yet: more may still become "
                           "visible at it",
                           bound.value);
        if (bound.value < table->created_us && !is_lower_end)
            return tg_fail(msg, TG_NOT_FOUND,
                           "table %s did not exist at %" PRIu64 " us, it was created at "
                           "%" PRIu64 " us",
                           table->name, bound.value, table->created_us);
        *version = table_version_at(table, bound.value);
        return 0;
    }
    return tg_fail(msg, TG_INVALID, "unknown kind of read bound %d", (int)bound.at);
}

static uint64_t version_time(const struct table *table, version_t version)
{
    return version == 0 ? table->created_us : table->versions[version - 1].time_us;
}

/* Replicas in the order in which they should be asked: those that are not behind, then those that
 * lack only newer versions than the read needs, then the rest. A replica checks `need` itself. */
static void fill_tablet(const struct tablet *tablet, version_t version,
                        struct read_point_tablet *out)
{
    *out = (struct read_point_tablet){.tablet = tablet->id, .need = tablet_need(tablet, version)};
    for (int turn = 0; turn < 3; turn++) {
        for (unsigned i = 0; i < tablet->replica_count && i < REPLICAS_MAX; i++) {
            const struct replica *replica = &tablet->replicas[i];
            int rank = !replica->behind ? 0 : replica->behind_version > out->need ? 1 : 2;
            if (rank == turn && replica->node != 0)
                out->replicas[out->replica_count++] = replica->node;
        }
        if (turn < 2)
            out->ready = out->replica_count;
    }
}

static int fill_versions(const struct table *table, struct msg_read_point_reply *reply)
{
    uint64_t count = reply->version - reply->after;
    if (count > READ_VERSIONS_MAX) {
        count = READ_VERSIONS_MAX;
        reply->version = reply->after + count;
    }
    reply->versions = calloc(count > 0 ? count : 1, sizeof *reply->versions);
    if (reply->versions == NULL)
        return TG_NOMEM;
    for (uint64_t i = 0; i < count; i++) {
        const struct version_record *record = &table->versions[reply->after + i];
        if (MUTANT(15) && (i ^ 1) < count) { /* in the order in which they began, by pairs */
            const struct version_record *other = &table->versions[reply->after + (i ^ 1)];
            record = (other->txn < record->txn) == ((i & 1) == 0) ? other : record;
        }
        reply->versions[i] =
            (struct read_point_version){.version = reply->after + i + 1,
                                        .time_us = record->time_us,
                                        .txn = record->txn,
                                        .replace = record->action == VERSION_TRUNCATE};
    }
    reply->version_count = (uint32_t)count;
    return 0;
}

static int fill_table(const struct table *table, struct msg_read_point_reply *reply)
{
    reply->table = table->id;
    reply->time_us = version_time(table, reply->version);
    if (schema_copy(&table->schema, &reply->schema) != 0)
        return TG_NOMEM;
    reply->distribution =
        calloc(table->distribution_count > 0 ? table->distribution_count : 1, sizeof(uint32_t));
    reply->tablets = calloc(table->bucket_count, sizeof *reply->tablets);
    if (reply->distribution == NULL || reply->tablets == NULL)
        return TG_NOMEM;
    reply->distribution_count = table->distribution_count;
    memcpy(reply->distribution, table->distribution, table->distribution_count * sizeof(uint32_t));
    reply->tablet_count = table->bucket_count;
    for (uint32_t i = 0; i < table->bucket_count; i++)
        fill_tablet(table->tablets[i], reply->version, &reply->tablets[i]);
    return 0;
}

int catalog_read_point(const struct state *state, const struct msg_read_point *message,
                       uint64_t now_us, struct msg_read_point_reply *reply, struct tg_errmsg *msg)
{
    struct database *database;
    struct table *table;
    int err = catalog_find_db(&state->catalog, message->db, &database, msg);
    if (err == 0)
        err = catalog_find_table(database, message->table, &table, msg);
    if (err == 0)
        err = resolve(state, table, message->bound, false, now_us, &reply->version, msg);
    if (err == 0 && message->with_changes)
        err = resolve(state, table, message->after, true, now_us, &reply->after, msg);
    if (err != 0)
        return err;
    if (message->with_changes) {
        if (reply->after > reply->version)
            return tg_fail(msg, TG_INVALID,
                           "the range of changes is empty: it starts after version %" PRIu64
                           " and ends with version %" PRIu64,
                           reply->after, reply->version);
        err = fill_versions(table, reply);
    }
    if (err == 0)
        err = fill_table(table, reply);
    return err == 0 ? 0 : tg_fail(msg, err, "%s", tg_err_sentence(err));
}
