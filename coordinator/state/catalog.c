/* SPDX-License-Identifier: Apache-2.0 */
/* Databases and tables: finding, creating and dropping them. */
#include "coordinator/state/catalog.h"

#include <inttypes.h>
#include <utlist.h>

#include "coordinator/state/apply.h"

struct database *catalog_database(const struct catalog *catalog, const char *name)
{
    struct database *found;
    HASH_FIND(hh, catalog->databases, name, strlen(name), found);
    return found;
}

struct database *catalog_database_by_id(const struct catalog *catalog, db_id id)
{
    struct database *found;
    HASH_FIND(hh_id, catalog->databases_by_id, &id, sizeof id, found);
    return found;
}

struct table *catalog_table(const struct database *database, const char *name)
{
    struct table *found;
    HASH_FIND(hh_name, database->tables, name, strlen(name), found);
    return found;
}

struct table *catalog_table_by_id(const struct catalog *catalog, table_id id)
{
    struct table *found;
    HASH_FIND(hh, catalog->tables, &id, sizeof id, found);
    return found;
}

struct tablet *catalog_tablet(const struct catalog *catalog, tablet_id id)
{
    struct tablet *found;
    HASH_FIND(hh, catalog->tablets, &id, sizeof id, found);
    return found;
}

int catalog_find_db(const struct catalog *catalog, const char *name, struct database **found,
                    struct tg_errmsg *msg)
{
    *found = catalog_database(catalog, name);
    if (*found == NULL)
        return tg_fail(msg, TG_NOT_FOUND, "unknown database, database=%s", name);
    return 0;
}

int catalog_find_table(const struct database *database, const char *name, struct table **found,
                       struct tg_errmsg *msg)
{
    *found = catalog_table(database, name);
    if (*found == NULL)
        return tg_fail(msg, TG_NOT_FOUND, "table not found, tableName=%s", name);
    return 0;
}

void catalog_add_database(struct catalog *catalog, struct database *database)
{
    HASH_ADD_KEYPTR(hh, catalog->databases, database->name, strlen(database->name), database);
    HASH_ADD(hh_id, catalog->databases_by_id, id, sizeof database->id, database);
}

/* Dropped tables have no name in their database any more. */
void catalog_add_table(struct catalog *catalog, struct table *table)
{
    HASH_ADD(hh, catalog->tables, id, sizeof table->id, table);
    struct database *database = catalog_database_by_id(catalog, table->db);
    if (!table->dropped)
        HASH_ADD_KEYPTR(hh_name, database->tables, table->name, strlen(table->name), table);
}

void catalog_add_tablet(struct catalog *catalog, struct tablet *tablet)
{
    HASH_ADD(hh, catalog->tablets, id, sizeof tablet->id, tablet);
    catalog->behind_count += (uint32_t)__builtin_popcount(tablet_behind(tablet));
    catalog_note_behind(catalog, tablet);
}

void catalog_note_behind(struct catalog *catalog, struct tablet *tablet)
{
    bool is_listed = tablet->behind_prev != NULL;
    if (is_listed == (tablet_behind(tablet) != 0))
        return;
    if (is_listed)
        DL_DELETE2(catalog->behind, tablet, behind_prev, behind_next);
    else
        DL_APPEND2(catalog->behind, tablet, behind_prev, behind_next);
    if (is_listed)
        tablet->behind_prev = tablet->behind_next = NULL;
}

void table_free(struct table *table)
{
    for (uint32_t i = 0; table->tablets != NULL && i < table->bucket_count; i++) {
        if (table->tablets[i] != NULL)
            free(table->tablets[i]->touched);
        free(table->tablets[i]);
    }
    free(table->tablets);
    free(table->versions);
    free(table->distribution);
    free(table->comment);
    schema_close(&table->schema);
    free(table);
}

static void remove_table(struct catalog *catalog, struct table *table)
{
    for (uint32_t i = 0; i < table->bucket_count; i++) {
        catalog->behind_count -= (uint32_t)__builtin_popcount(tablet_behind(table->tablets[i]));
        if (table->tablets[i]->behind_prev != NULL)
            DL_DELETE2(catalog->behind, table->tablets[i], behind_prev, behind_next);
        HASH_DELETE(hh, catalog->tablets, table->tablets[i]);
    }
    HASH_DELETE(hh, catalog->tables, table);
    table_free(table);
}

void catalog_table_ref(struct table *table)
{
    table->txn_refs++;
}

void catalog_table_unref(struct catalog *catalog, struct table *table)
{
    TG_CHECK(table->txn_refs > 0);
    if (--table->txn_refs == 0 && table->dropped)
        remove_table(catalog, table);
}

/* Also for what a failed decode left: then not every tablet is in the index. */
void catalog_close(struct catalog *catalog)
{
    struct database *database;
    struct database *next_database;
    HASH_ITER(hh, catalog->databases, database, next_database)
    HASH_CLEAR(hh_name, database->tables);
    HASH_CLEAR(hh, catalog->tablets);
    struct table *table;
    struct table *next_table;
    HASH_ITER(hh, catalog->tables, table, next_table)
    {
        HASH_DELETE(hh, catalog->tables, table);
        table_free(table);
    }
    HASH_CLEAR(hh_id, catalog->databases_by_id);
    HASH_ITER(hh, catalog->databases, database, next_database)
    {
        HASH_DELETE(hh, catalog->databases, database);
        free(database);
    }
    *catalog = (struct catalog){0};
}

int catalog_create_db(struct state *state, const struct command_name *command,
                      struct apply_result *result)
{
    struct catalog *catalog = &state->catalog;
    if (command->db[0] == '\0')
        return tg_fail(&result->msg, TG_INVALID, "a database needs a name");
    if (catalog_database(catalog, command->db) != NULL) {
        result->repeated = true;
        if (command->if_exists)
            return 0;
        return tg_fail(&result->msg, TG_EXISTS, "Can't create database '%s'; database exists",
                       command->db);
    }
    if (HASH_CNT(hh, catalog->databases) >= DATABASES_MAX)
        return tg_fail(&result->msg, TG_LIMIT,
                       "there are %d databases already, more is not allowed", DATABASES_MAX);

    struct database *database = state_alloc(1, sizeof *database);
    database->id = state->next_db++;
    memcpy(database->name, command->db, sizeof database->name);
    database->created_us = result->time_us = state_take_time(state);
    catalog_add_database(catalog, database);
    return 0;
}

static void drop_table(struct state *state, struct database *database, struct table *table)
{
    HASH_DELETE(hh_name, database->tables, table);
    table->dropped = true;
    catalog_table_ref(table); /* holds it while its waiting transactions let go of it */
    txn_table_gone(state, table);
    catalog_table_unref(&state->catalog, table);
}

int catalog_drop_db(struct state *state, const struct command_name *command,
                    struct apply_result *result)
{
    struct catalog *catalog = &state->catalog;
    struct database *database = catalog_database(catalog, command->db);
    if (database == NULL) {
        result->repeated = true;
        if (command->if_exists)
            return 0;
        return tg_fail(&result->msg, TG_NOT_FOUND,
                       "Can't drop database '%s'; database doesn't exist", command->db);
    }
    if (database->tables != NULL && !command->force)
        return tg_fail(&result->msg, TG_REFUSED,
                       "Can't drop database '%s'; it still has %u tables: drop them first, or say "
                       "DROP DATABASE %s FORCE",
                       command->db, HASH_CNT(hh_name, database->tables), command->db);

    result->time_us = state_take_time(state);
    struct table *table;
    struct table *next;
    HASH_ITER(hh_name, database->tables, table, next)
    drop_table(state, database, table);
    HASH_DELETE(hh_id, catalog->databases_by_id, database);
    HASH_DELETE(hh, catalog->databases, database);
    free(database);
    return 0;
}

/* The candidates that are members and not on their way out, each once. */
static uint32_t known_candidates(const struct state *state,
                                 const struct command_create_table *command,
                                 node_id known[NODES_MAX])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < command->candidate_count && i < NODES_MAX; i++) {
        const struct member *member = members_find(&state->members, command->candidates[i]);
        bool is_new = member != NULL && !member->draining;
        for (uint32_t j = 0; j < count; j++)
            is_new = is_new && known[j] != command->candidates[i];
        if (is_new)
            known[count++] = command->candidates[i];
    }
    return count;
}

static int check_table(const struct state *state, const struct command_create_table *command,
                       uint32_t available, struct tg_errmsg *msg)
{
    if (command->table[0] == '\0' || command->schema.column_count == 0)
        return tg_fail(msg, TG_INVALID, "a table needs a name and columns");
    if (command->bucket_count == 0 || command->bucket_count > BUCKETS_MAX)
        return tg_fail(msg, TG_INVALID, "the number of buckets must be in 1..%d, it is %u",
                       BUCKETS_MAX, command->bucket_count);
    if (command->replication == 0 || command->replication > REPLICATION_MAX)
        return tg_fail(msg, TG_INVALID, "replication_num must be in 1..%d, it is %u",
                       REPLICATION_MAX, command->replication);
    for (uint32_t i = 0; i < command->distribution_count; i++) {
        if (command->distribution[i] >= command->schema.column_count)
            return tg_fail(msg, TG_INVALID, "a distribution column does not exist");
    }
    if (available < command->replication)
        return tg_fail(msg, TG_REFUSED,
                       "Failed to find enough backend, please check the replication num, "
                       "replication num: %u, available backends: %u",
                       command->replication, available);
    if (HASH_CNT(hh, state->catalog.tables) >= TABLES_MAX ||
        HASH_CNT(hh, state->catalog.tablets) + command->bucket_count > TABLETS_MAX)
        return tg_fail(msg, TG_LIMIT, "the cluster may have %d tables and %d tablets, not more",
                       TABLES_MAX, TABLETS_MAX);
    return 0;
}

static struct table *build_table(struct state *state, const struct database *database,
                                 const struct command_create_table *command)
{
    struct table *table = state_alloc(1, sizeof *table);
    table->id = state->next_table++;
    table->db = database->id;
    memcpy(table->name, command->table, sizeof table->name);
    schema_init(&table->schema);
    TG_CHECK_MEMORY(schema_copy(&command->schema, &table->schema) == 0);
    table->comment = command->comment != NULL ? state_strdup(command->comment) : NULL;
    table->distribution_count = command->distribution_count;
    table->distribution = state_alloc(command->distribution_count, sizeof *table->distribution);
    memcpy(table->distribution, command->distribution,
           command->distribution_count * sizeof *table->distribution);
    table->bucket_count = command->bucket_count;
    table->replication = command->replication;
    table->write_all = command->write_all;
    table->occ = command->occ;
    table->partition = state->next_partition++;
    table->created_us = state_take_time(state);
    table->placement_epoch = 1;
    table->tablets = state_alloc(table->bucket_count, sizeof(struct tablet *));
    for (uint32_t i = 0; i < table->bucket_count; i++) {
        struct tablet *tablet = state_alloc(1, sizeof *tablet);
        tablet->id = state->next_tablet++;
        tablet->table = table;
        tablet->bucket = i;
        tablet->chain_known = true;
        table->tablets[i] = tablet;
    }
    return table;
}

int catalog_create_table(struct state *state, const struct command_create_table *command,
                         struct apply_result *result)
{
    struct database *database;
    int err = catalog_find_db(&state->catalog, command->db, &database, &result->msg);
    if (err != 0)
        return err;
    struct table *table = catalog_table(database, command->table);
    if (table != NULL) {
        result->repeated = true;
        result->table = table->id;
        if (command->if_not_exists)
            return 0;
        return tg_fail(&result->msg, TG_EXISTS, "Table '%s' already exists", command->table);
    }
    node_id candidates[NODES_MAX];
    uint32_t available = known_candidates(state, command, candidates);
    err = check_table(state, command, available, &result->msg);
    if (err != 0)
        return err;

    table = build_table(state, database, command);
    placement_spread(&state->members.placement_turn, candidates, available, table);
    catalog_add_table(&state->catalog, table);
    for (uint32_t i = 0; i < table->bucket_count; i++)
        catalog_add_tablet(&state->catalog, table->tablets[i]);
    result->table = table->id;
    result->time_us = table->created_us;
    return 0;
}

int catalog_drop_table(struct state *state, const struct command_name *command,
                       struct apply_result *result)
{
    struct database *database;
    int err = catalog_find_db(&state->catalog, command->db, &database, &result->msg);
    if (err != 0)
        return err;
    struct table *table = catalog_table(database, command->table);
    if (table == NULL) {
        result->repeated = true;
        if (command->if_exists)
            return 0;
        return tg_fail(&result->msg, TG_NOT_FOUND, "Unknown table '%s'", command->table);
    }
    result->table = table->id;
    result->time_us = state_take_time(state);
    drop_table(state, database, table);
    return 0;
}
