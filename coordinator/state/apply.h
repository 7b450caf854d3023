/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share while a command is applied; nobody outside includes it.
 *
 * An apply function checks everything first and returns 0 or an enum tg_err with a sentence in
 * result->msg; only then it changes the state. So a refused command has changed nothing. */
#ifndef TG_COORDINATOR_STATE_APPLY_H
#define TG_COORDINATOR_STATE_APPLY_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "coordinator/state/state.h"

/* Memory of the state. A coordinator that ran out of it in the middle of a command must end: the
 * others went on. */
static inline void *state_alloc(size_t count, size_t size)
{
    void *memory = calloc(count > 0 ? count : 1, size);
    TG_CHECK_MEMORY(memory != NULL);
    return memory;
}
static inline void *state_realloc(void *old, size_t count, size_t size)
{
    TG_CHECK(size == 0 || count <= SIZE_MAX / size);
    void *memory = realloc(old, count > 0 ? count * size : 1);
    TG_CHECK_MEMORY(memory != NULL);
    return memory;
}
static inline char *state_strdup(const char *text)
{
    char *copy = strdup(text);
    TG_CHECK_MEMORY(copy != NULL);
    return copy;
}

/* The next time of the batch: each is given out once, and is the closed timestamp from then on. */
uint64_t state_take_time(struct state *state);
/* Moves txn_low_water over everything that is final and confirmed. */
void state_raise_low_water(struct state *state);

/* ---- catalog ---- */
int catalog_create_db(struct state *state, const struct command_name *command,
                      struct apply_result *result);
int catalog_drop_db(struct state *state, const struct command_name *command,
                    struct apply_result *result);
int catalog_create_table(struct state *state, const struct command_create_table *command,
                         struct apply_result *result);
int catalog_drop_table(struct state *state, const struct command_name *command,
                       struct apply_result *result);
/* Database and table by name, or Doris's sentence. */
int catalog_find_db(const struct catalog *catalog, const char *name, struct database **found,
                    struct tg_errmsg *msg);
int catalog_find_table(const struct database *database, const char *name, struct table **found,
                       struct tg_errmsg *msg);
void catalog_close(struct catalog *catalog);
void catalog_add_database(struct catalog *catalog, struct database *database);
void catalog_add_table(struct catalog *catalog, struct table *table);
void catalog_add_tablet(struct catalog *catalog, struct tablet *tablet);
/* A transaction names the table, or does so no longer: the last one takes a dropped table along. */
void catalog_table_ref(struct table *table);
void catalog_table_unref(struct catalog *catalog, struct table *table);
/* Frees a table that is in no index (any more). */
void table_free(struct table *table);

/* ---- versions of a table ---- */
/* Gives out the next version. */
version_t table_add_version(struct table *table, const struct version_record *record);
void tablet_touch(struct tablet *tablet, version_t version);
/* The tablet is among catalog->behind if and only if a replica of it is behind. */
void catalog_note_behind(struct catalog *catalog, struct tablet *tablet);
static inline version_t tablet_last_touched(const struct tablet *tablet)
{
    return tablet->touched_count > 0 ? tablet->touched[tablet->touched_count - 1] : 0;
}

/* ---- replicas ---- */
/* A version was committed. sealed: slots that hold all of it; planned: slots that some load of it
 * was to write to and that do not hold it. Replicas that lack it are behind from now on. True if
 * one fell behind, or is awaited no longer. */
bool replica_missed(struct catalog *catalog, struct tablet *tablet, uint8_t sealed, uint8_t planned,
                    version_t version);
/* Slots that the plan of the load with that rowset had, of those who hold them now: of it they must
 * hold the rowset, and only their words on it count. */
uint8_t tablet_planned(const struct tablet *tablet, rowset_id rowset);
int replica_behind(struct state *state, const struct command_behind *command,
                   struct apply_result *result);
int replica_lacks(struct state *state, const struct command_replica *command,
                  struct apply_result *result);
int replica_catch(struct state *state, const struct command_replica *command,
                  struct apply_result *result);
int replica_healed(struct state *state, const struct command_replica *command,
                   struct apply_result *result);
int replica_proven(struct state *state, const struct command_proven *command,
                   struct apply_result *result);
int replica_declare_lost(struct state *state, const struct command_lost *command,
                         struct apply_result *result);
/* Behind, or still so: the first version that it lacks only goes down. */
void replica_fall_behind(struct catalog *catalog, struct tablet *tablet, struct replica *replica,
                         version_t version);
/* Nothing that the node holds counts any more before it is compared: its directory was lost, or is
 * an old one. */
void replica_unproven(struct state *state, node_id node);
/* Slots whose node has lost what it sealed of that rowset. */
uint8_t replica_lost_slots(const struct state *state, const struct tablet *tablet,
                           rowset_id rowset);

/* ---- statements ---- */
void statements_add(struct statements *statements, const struct request_key *key,
                    const struct apply_result *result);
void statements_encode(const struct statements *statements, struct buf *out);
void statements_decode(struct cursor *cursor, struct statements *statements);

/* ---- placement ---- */
/* Puts the replicas of `table`'s buckets on the candidates (distinct members, at least
 * table->replication of them); the tablets are new and empty. */
void placement_spread(uint64_t *turn, const node_id *candidates, uint32_t count,
                      struct table *table);

/* ---- moves of replicas, and nodes that leave ---- */
int move_add(struct state *state, const struct command_move *command, struct apply_result *result);
int move_remove(struct state *state, const struct command_move *command,
                struct apply_result *result);
int move_drain(struct state *state, const struct command_node *command,
               struct apply_result *result);
int move_drop(struct state *state, const struct command_node *command, struct apply_result *result);

/* ---- members ---- */
/* Takes a member off the list, for good. */
void members_remove(struct members *members, node_id node);
/* rejoin: whatever is in its directory, the participant takes its old place, and has to prove what
 * it holds. */
int members_register(struct state *state, const struct command_register *command, bool rejoin,
                     struct apply_result *result);

/* ---- coordinators ---- */
int coordinators_found(struct state *state, const struct command_coordinator *command,
                       struct apply_result *result);
int coordinators_add(struct state *state, const struct command_coordinator *command,
                     struct apply_result *result);
int coordinators_promote(struct state *state, const struct command_coordinator *command,
                         struct apply_result *result);
int coordinators_drop(struct state *state, const struct command_coordinator *command,
                      struct apply_result *result);
int coordinators_gone(struct state *state, const struct command_coordinator *command,
                      struct apply_result *result);

/* ---- transactions: the table ---- */
void txn_table_close(struct txn_table *txns);
/* A new PREPARE transaction with the next id; the database counts it. */
struct txn *txn_table_create(struct state *state, struct database *database, const char *label,
                             const char *user);
/* Puts a complete transaction into the indexes (not into a list). */
void txn_table_add(struct txn_table *txns, struct txn *txn);
void txn_table_forget(struct txn_table *txns, struct txn *txn); /* from the finished list: frees */
void txn_free(struct txn *txn);
const char *txn_table_user(struct txn_table *txns, const char *name);
/* load_index: which of its loads, TXN_NO_LOAD for a begin without one. Zero keys are not kept. */
#define TXN_NO_LOAD UINT32_MAX
void txn_table_add_request(struct txn_table *txns, const struct request_key *key, struct txn *txn,
                           uint32_t load_index);
void txn_table_add_fence(struct txn_table *txns, const struct request_key *key);
/* Fences of older registrations of that node go. */
void txn_table_drop_fences(struct txn_table *txns, node_id node, uint64_t epoch);
void txn_list_append(struct txn_list *list, struct txn *txn);
void txn_list_remove(struct txn_list *list, struct txn *txn);
/* Bytes that a finished record counts for; the same on every machine. */
uint64_t txn_record_bytes(const struct txn *txn);
/* Appends a final transaction to the finished list. */
void txn_table_add_finished(struct txn_table *txns, struct txn *txn);
/* ---- transactions: finished ones, kept encoded (txn_shelf.c) ---- */
/* The transaction was just appended to the finished list. */
void txn_shelf_add(struct txn_table *txns, struct txn *txn);
/* It is about to leave that list. */
void txn_shelf_remove(struct txn_table *txns, struct txn *txn);
/* All finished transactions in their order, one after another. */
void txn_shelves_encode(const struct txn_table *txns, struct buf *out);
void txn_shelves_close(struct txn_table *txns);

/* ---- transactions: commands ---- */
int txn_begin(struct state *state, const struct command_begin *command,
              struct apply_result *result);
int txn_load_start(struct state *state, const struct command_load_start *command,
                   struct apply_result *result);
int txn_load_done(struct state *state, const struct command_load_done *command,
                  struct apply_result *result);
int txn_load_failed(struct state *state, const struct command_load_failed *command,
                    struct apply_result *result);
int txn_precommit(struct state *state, const struct command_finish *command,
                  struct apply_result *result);
int txn_commit(struct state *state, const struct command_finish *command,
               struct apply_result *result);
int txn_abort(struct state *state, const struct command_finish *command,
              struct apply_result *result);
int txn_visible(struct state *state, const struct command_visible *command,
                struct apply_result *result);
int txn_confirm(struct state *state, const struct command_visible *command,
                struct apply_result *result);
int txn_truncate(struct state *state, const struct command_name *command,
                 struct apply_result *result);
int txn_forget(struct state *state, const struct command_forget *command,
               struct apply_result *result);

/* ---- transactions: shared steps ---- */
/* Appends a load; the transaction's first load of a table also takes the table in. */
struct txn_load *txn_add_load(struct state *state, struct txn *txn, struct table *table,
                              const struct request_key *key);
/* Refuses a further transaction on a table with too many COMMITTED ones (rule 16). */
int txn_check_unpublished(const struct state *state, const struct table *table,
                          struct tg_errmsg *msg);
/* A request from a participant must come from its valid registration. */
int txn_check_epoch(const struct state *state, const struct request_key *key,
                    struct tg_errmsg *msg);
/* What stands against a commit besides the transaction's own state: dropped tables, and for
 * tables with concurrency = occ somebody else's write. */
int txn_check_tables(const struct state *state, const struct txn *txn, struct tg_errmsg *msg);
int txn_check_conflicts(const struct state *state, const struct txn *txn, struct tg_errmsg *msg);
/* Each tablet needs its write quorum of replicas that hold all loads of the transaction there and
 * are not behind by now. Its tables exist (txn_check_tables). */
int txn_check_quorum(const struct state *state, const struct txn *txn, struct tg_errmsg *msg);
/* At least one replica holds each load's part of each tablet, as far as the log knows. */
int txn_check_copies(const struct txn *txn, struct tg_errmsg *msg);
/* The chain of the tablet goes on with what the transaction wrote there. */
void txn_chain_add(const struct txn *txn, const struct txn_publish_tablet *publish,
                   struct tablet *tablet);
/* Doris's sentence on too few good replicas. good: bits of the replicas that count. */
int txn_fail_quorum(const struct txn *txn, const struct tablet *tablet, uint8_t good,
                    struct tg_errmsg *msg);
void txn_set_precommitted(struct state *state, struct txn *txn);
/* Versions for every table and the publish list, in one step. */
void txn_set_committed(struct state *state, struct txn *txn, const struct request_key *key);
void txn_set_aborted(struct state *state, struct txn *txn, const struct request_key *key,
                     const char *reason);
/* The transaction says what it is in the result. */
void txn_report(const struct txn *txn, struct apply_result *result);
/* A dropped table counts as published: the transactions that waited for it alone are complete. */
void txn_table_gone(struct state *state, struct table *table);
/* Puts a final transaction, which is on no list, on the finished one and frees what only publishing
 * needed. */
void txn_set_finished(struct state *state, struct txn *txn);
/* The same for one that is on the publishing list, if every replica that can has bound it; or for
 * all of them. */
bool txn_finish_if_complete(struct state *state, struct txn *txn);
void txn_finish_complete(struct state *state);
/* The sentences for a transaction that cannot be committed any more, which connectors match. */
int txn_fail_not_found(txn_id txn, struct tg_errmsg *msg);
int txn_fail_state(const struct txn *txn, struct tg_errmsg *msg);

/* ---- snapshot parts ---- */
/* Formats that are read; the last one is written. 1 had no catching replicas, 2 no statements, 3 no
 * coordinators, 4 no chains and nothing lost, 5 no joining replicas and no members on their way
 * out. */
enum {
    SNAPSHOT_FORMAT_V1 = 1,
    SNAPSHOT_FORMAT_V2 = 2,
    SNAPSHOT_FORMAT_V3 = 3,
    SNAPSHOT_FORMAT_V4 = 4,
    SNAPSHOT_FORMAT_V5 = 5,
    SNAPSHOT_FORMAT = 6
};
void catalog_encode(const struct catalog *catalog, struct buf *out);
int catalog_decode(struct cursor *cursor, uint32_t format, struct catalog *catalog);
void txn_encode(const struct txn *txn, struct buf *out);
void txn_table_encode(const struct txn_table *txns, struct buf *out);
int txn_table_decode(struct cursor *cursor, uint32_t format, struct state *state);

#endif
