/* SPDX-License-Identifier: Apache-2.0 */
/* Databases, tables, tablets and versions in a snapshot. */
#include "common/base/msgpack.h"
#include "coordinator/state/apply.h"

enum {
    DATABASE_FIELDS = 3,
    TABLE_FIELDS = 19,
    TABLET_FIELDS = 4,
    TABLET_FIELDS_V4 = 3,
    REPLICA_FIELDS = 6,
    REPLICA_FIELDS_V4 = 5,
    REPLICA_FIELDS_V1 = 3, /* node, behind or not, the first version that it lacks */
    VERSION_FIELDS = 6,
    VERSION_FIELDS_V4 = 5,
    COMMENT_MAX = BATCH_BYTES_MAX
};

/* What a replica is, as a snapshot says it. */
enum {
    STANDING_GOOD = 0,
    STANDING_BEHIND = 1,
    STANDING_CATCHING = 2,
    STANDING_JOINING = 3, /* behind, and never was good */
    STANDING_JOINING_CATCHING = 4
};

static unsigned standing_of(const struct replica *replica)
{
    if (replica->joining)
        return replica->catching ? STANDING_JOINING_CATCHING : STANDING_JOINING;
    return replica->catching ? STANDING_CATCHING
           : replica->behind ? STANDING_BEHIND
                             : STANDING_GOOD;
}

/* Nothing where the chain is not known. */
static void encode_chain(bool known, const struct digest *chain, struct buf *out)
{
    if (known)
        mp_bin(out, chain->bytes, sizeof chain->bytes);
    else
        mp_nil(out);
}

static void encode_tablet(const struct tablet *tablet, struct buf *out)
{
    mp_array(out, TABLET_FIELDS);
    mp_uint(out, tablet->id);
    mp_array(out, tablet->replica_count * (uint32_t)REPLICA_FIELDS);
    for (unsigned i = 0; i < tablet->replica_count; i++) {
        const struct replica *replica = &tablet->replicas[i];
        mp_uint(out, replica->node);
        mp_uint(out, standing_of(replica));
        mp_uint(out, replica->behind_version);
        mp_uint(out, replica->missed_version);
        mp_uint(out, replica->written_from);
        encode_chain(replica->missed_known, &replica->missed_chain, out);
    }
    mp_array(out, tablet->touched_count);
    for (uint32_t i = 0; i < tablet->touched_count; i++)
        mp_uint(out, tablet->touched[i]);
    encode_chain(tablet->chain_known, &tablet->chain, out);
}

static void encode_table(const struct table *table, struct buf *out)
{
    mp_array(out, TABLE_FIELDS);
    mp_uint(out, table->id);
    mp_uint(out, table->db);
    mp_str(out, table->name);
    schema_encode(&table->schema, out);
    if (table->comment != NULL)
        mp_str(out, table->comment);
    else
        mp_nil(out);
    mp_array(out, table->distribution_count);
    for (uint32_t i = 0; i < table->distribution_count; i++)
        mp_uint(out, table->distribution[i]);
    mp_uint(out, table->bucket_count);
    mp_uint(out, table->replication);
    mp_bool(out, table->write_all);
    mp_bool(out, table->occ);
    mp_bool(out, table->dropped);
    mp_uint(out, table->partition);
    mp_uint(out, table->created_us);
    mp_uint(out, table->placement_epoch);
    mp_array(out, table->bucket_count);
    for (uint32_t i = 0; i < table->bucket_count; i++)
        encode_tablet(table->tablets[i], out);
    mp_uint(out, table->committed);
    mp_uint(out, table->visible);
    mp_uint(out, table->row_estimate);
    mp_array(out, (uint32_t)table->committed * VERSION_FIELDS);
    for (version_t i = 0; i < table->committed; i++) {
        const struct version_record *version = &table->versions[i];
        mp_uint(out, version->time_us);
        mp_uint(out, version->commit_us);
        mp_uint(out, version->txn);
        mp_uint(out, version->rows);
        mp_uint(out, version->action);
        mp_bool(out, version->lost);
    }
}

void catalog_encode(const struct catalog *catalog, struct buf *out)
{
    mp_array(out, 2);
    mp_array(out, HASH_CNT(hh, catalog->databases));
    for (const struct database *database = catalog->databases; database != NULL;
         database = database->hh.next) {
        mp_array(out, DATABASE_FIELDS);
        mp_uint(out, database->id);
        mp_str(out, database->name);
        mp_uint(out, database->created_us);
    }
    mp_array(out, HASH_CNT(hh, catalog->tables));
    for (const struct table *table = catalog->tables; table != NULL; table = table->hh.next)
        encode_table(table, out);
}

static void decode_database(struct cursor *cursor, struct catalog *catalog)
{
    struct database *database = state_alloc(1, sizeof *database);
    mp_expect_array(cursor, DATABASE_FIELDS);
    database->id = mp_read_uint(cursor);
    mp_read_cstr(cursor, database->name, sizeof database->name);
    database->created_us = mp_read_uint(cursor);
    if (cursor->err == 0 && (catalog_database_by_id(catalog, database->id) != NULL ||
                             catalog_database(catalog, database->name) != NULL))
        cursor_fail(cursor, TG_CORRUPT);
    if (cursor->err != 0)
        free(database);
    else
        catalog_add_database(catalog, database);
}

static void decode_chain(struct cursor *cursor, uint32_t format, bool *known, struct digest *chain)
{
    *known = false;
    if (format <= SNAPSHOT_FORMAT_V4 || mp_read_nil(cursor))
        return;
    struct slice bytes = mp_read_bin(cursor, sizeof chain->bytes);
    *known = bytes.len == sizeof chain->bytes;
    if (*known)
        memcpy(chain->bytes, bytes.data, bytes.len);
    else
        cursor_fail(cursor, TG_CORRUPT);
}

static void decode_replica(struct cursor *cursor, uint32_t format, struct replica *replica)
{
    replica->node = (node_id)mp_read_uint_max(cursor, UINT32_MAX);
    if (format == SNAPSHOT_FORMAT_V1) {
        replica->behind = mp_read_bool(cursor);
        replica->behind_version = mp_read_uint(cursor);
        return;
    }
    uint64_t standing = mp_read_uint_max(
        cursor, format <= SNAPSHOT_FORMAT_V5 ? STANDING_CATCHING : STANDING_JOINING_CATCHING);
    replica->behind = standing != STANDING_GOOD;
    replica->catching = standing == STANDING_CATCHING || standing == STANDING_JOINING_CATCHING;
    replica->joining = standing >= STANDING_JOINING;
    replica->behind_version = mp_read_uint(cursor);
    replica->missed_version = mp_read_uint(cursor);
    replica->written_from = mp_read_uint(cursor);
    decode_chain(cursor, format, &replica->missed_known, &replica->missed_chain);
    /* A slot that nobody holds. */
    if (replica->node == 0 && (replica->behind || replica->behind_version != 0 ||
                               replica->missed_version != 0 || replica->written_from != 0))
        cursor_fail(cursor, TG_CORRUPT);
}

/* As many replicas as a tablet can have, each on a node of its own. */
static bool is_placed(const struct tablet *tablet)
{
    int there = __builtin_popcount(tablet_all(tablet));
    for (unsigned i = 0; i < tablet->replica_count; i++)
        if (tablet->replicas[i].node != 0 &&
            tablet_slot(tablet, tablet->replicas[i].node) != (int)i)
            return false;
    return (there > 0 || tablet->table->dropped) && there <= tablet->table->replication + 1;
}

static void decode_replicas(struct cursor *cursor, uint32_t format, struct tablet *tablet)
{
    uint32_t fields = format == SNAPSHOT_FORMAT_V1   ? REPLICA_FIELDS_V1
                      : format <= SNAPSHOT_FORMAT_V4 ? REPLICA_FIELDS_V4
                                                     : REPLICA_FIELDS;
    uint32_t items = mp_read_array(cursor, REPLICAS_MAX * fields);
    if (items == 0 || items % fields != 0)
        cursor_fail(cursor, TG_CORRUPT);
    for (uint32_t i = 0; cursor->err == 0 && i < items / fields; i++)
        decode_replica(cursor, format, &tablet->replicas[tablet->replica_count++]);
    if (cursor->err == 0 && !is_placed(tablet))
        cursor_fail(cursor, TG_CORRUPT);
}

static void decode_touched(struct cursor *cursor, struct tablet *tablet)
{
    uint32_t count = mp_read_array(cursor, UINT32_MAX);
    if (cursor->err != 0)
        return;
    tablet->touched = state_alloc(count, sizeof *tablet->touched);
    tablet->touched_capacity = count;
    for (uint32_t i = 0; cursor->err == 0 && i < count; i++) {
        version_t version = mp_read_uint(cursor);
        if (version <= tablet_last_touched(tablet))
            cursor_fail(cursor, TG_CORRUPT);
        tablet->touched[tablet->touched_count++] = version;
    }
}

static void decode_tablets(struct cursor *cursor, uint32_t format, const struct catalog *catalog,
                           struct table *table)
{
    mp_expect_array(cursor, table->bucket_count);
    if (cursor->err != 0)
        return;
    table->tablets = state_alloc(table->bucket_count, sizeof(struct tablet *));
    for (uint32_t i = 0; cursor->err == 0 && i < table->bucket_count; i++) {
        struct tablet *tablet = table->tablets[i] = state_alloc(1, sizeof *tablet);
        tablet->table = table;
        tablet->bucket = i;
        mp_expect_array(cursor, format > SNAPSHOT_FORMAT_V4 ? TABLET_FIELDS : TABLET_FIELDS_V4);
        tablet->id = mp_read_uint(cursor);
        decode_replicas(cursor, format, tablet);
        decode_touched(cursor, tablet);
        decode_chain(cursor, format, &tablet->chain_known, &tablet->chain);
        if (cursor->err == 0 && (catalog_tablet(catalog, tablet->id) != NULL ||
                                 (i > 0 && table->tablets[i - 1]->id >= tablet->id)))
            cursor_fail(cursor, TG_CORRUPT);
    }
}

static void decode_versions(struct cursor *cursor, uint32_t format, struct table *table)
{
    uint32_t fields = format > SNAPSHOT_FORMAT_V4 ? VERSION_FIELDS : VERSION_FIELDS_V4;
    uint64_t committed = mp_read_uint_max(cursor, UINT32_MAX / VERSION_FIELDS);
    table->visible = mp_read_uint_max(cursor, committed);
    table->row_estimate = mp_read_uint(cursor);
    mp_expect_array(cursor, (uint32_t)committed * fields);
    uint64_t last_us = 0;
    for (version_t i = 0; cursor->err == 0 && i < committed; i++) {
        struct version_record record = {.time_us = mp_read_uint(cursor)};
        record.commit_us = mp_read_uint(cursor);
        record.txn = mp_read_uint(cursor);
        record.rows = mp_read_uint(cursor);
        record.action = (uint8_t)mp_read_uint_max(cursor, VERSION_TRUNCATE);
        record.lost = format > SNAPSHOT_FORMAT_V4 && mp_read_bool(cursor);
        table_add_version(table, &record);
        if (i < table->visible && record.time_us <= last_us)
            cursor_fail(cursor, TG_CORRUPT);
        last_us = record.time_us;
    }
    for (uint32_t i = 0; cursor->err == 0 && i < table->bucket_count; i++) {
        if (tablet_last_touched(table->tablets[i]) > table->committed)
            cursor_fail(cursor, TG_CORRUPT);
    }
}

static void decode_properties(struct cursor *cursor, struct table *table)
{
    table->id = mp_read_uint(cursor);
    table->db = mp_read_uint(cursor);
    mp_read_cstr(cursor, table->name, sizeof table->name);
    int err = cursor->err != 0 ? 0 : schema_decode(cursor, &table->schema);
    if (err != 0)
        cursor_fail(cursor, err);
    if (cursor->err == 0 && !mp_read_nil(cursor)) {
        struct slice text = mp_read_str(cursor, COMMENT_MAX);
        table->comment = state_alloc(text.len + 1, 1);
        if (text.len > 0)
            memcpy(table->comment, text.data, text.len);
    }
    uint32_t count = mp_read_array(cursor, COLUMNS_MAX);
    table->distribution = state_alloc(count, sizeof *table->distribution);
    for (uint32_t i = 0; cursor->err == 0 && i < count; i++) {
        table->distribution[i] = (uint32_t)mp_read_uint_max(cursor, COLUMNS_MAX);
        if (table->distribution[i] >= table->schema.column_count)
            cursor_fail(cursor, TG_CORRUPT);
        table->distribution_count = i + 1;
    }
    table->bucket_count = (uint32_t)mp_read_uint_max(cursor, BUCKETS_MAX);
    table->replication = (uint8_t)mp_read_uint_max(cursor, REPLICATION_MAX);
    table->write_all = mp_read_bool(cursor);
    table->occ = mp_read_bool(cursor);
    table->dropped = mp_read_bool(cursor);
    table->partition = mp_read_uint(cursor);
    table->created_us = mp_read_uint(cursor);
    table->placement_epoch = mp_read_uint(cursor);
}

static bool fits_catalog(const struct catalog *catalog, const struct table *table)
{
    if (catalog_table_by_id(catalog, table->id) != NULL)
        return false;
    const struct database *database = catalog_database_by_id(catalog, table->db);
    return table->dropped || (database != NULL && catalog_table(database, table->name) == NULL);
}

static void decode_table(struct cursor *cursor, uint32_t format, struct catalog *catalog)
{
    struct table *table = state_alloc(1, sizeof *table);
    schema_init(&table->schema);
    mp_expect_array(cursor, TABLE_FIELDS);
    decode_properties(cursor, table);
    decode_tablets(cursor, format, catalog, table);
    if (cursor->err == 0)
        decode_versions(cursor, format, table);
    if (cursor->err == 0 && !fits_catalog(catalog, table))
        cursor_fail(cursor, TG_CORRUPT);
    if (cursor->err != 0) {
        table_free(table);
        return;
    }
    catalog_add_table(catalog, table);
    for (uint32_t i = 0; i < table->bucket_count; i++)
        catalog_add_tablet(catalog, table->tablets[i]);
}

int catalog_decode(struct cursor *cursor, uint32_t format, struct catalog *catalog)
{
    mp_expect_array(cursor, 2);
    uint32_t databases = mp_read_array(cursor, DATABASES_MAX);
    for (uint32_t i = 0; cursor->err == 0 && i < databases; i++)
        decode_database(cursor, catalog);
    uint32_t tables = mp_read_array(cursor, TABLES_MAX);
    for (uint32_t i = 0; cursor->err == 0 && i < tables; i++)
        decode_table(cursor, format, catalog);
    return cursor->err;
}
