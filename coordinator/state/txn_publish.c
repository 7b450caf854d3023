/* SPDX-License-Identifier: Apache-2.0 */
/* COMMITTED: the versions of all tables in one step, what publishing has to bind, and which
 * replicas are behind from then on. And the end of a transaction, when nothing is left to do for
 * it. */
#include <inttypes.h>
#include <stdio.h>

#include "common/model/version_chain.h"
#include "coordinator/state/apply.h"

#include "common/base/mutant.h"

static void add_publish(struct txn *txn, uint32_t table_index, struct tablet *tablet,
                        version_t version)
{
    struct txn_publish_tablet *publish = &txn->publish[txn->publish_count++];
    *publish = (struct txn_publish_tablet){
        .tablet = tablet->id, .table_index = table_index, .prev = tablet_last_touched(tablet)};
    tablet_touch(tablet, version);
    txn_chain_add(txn, publish, tablet);
}

static int compare_tablet(const void *key, const void *element)
{
    tablet_id tablet = *(const tablet_id *)key;
    tablet_id other = ((const struct txn_load_tablet *)element)->tablet;
    return (tablet > other) - (tablet < other);
}

static const struct txn_load_tablet *load_part(const struct txn_load *load, tablet_id tablet)
{
    return load->tablet_count == 0 ? NULL
                                   : bsearch(&tablet, load->tablets, load->tablet_count,
                                             sizeof *load->tablets, compare_tablet);
}

void txn_chain_add(const struct txn *txn, const struct txn_publish_tablet *publish,
                   struct tablet *tablet)
{
    const struct txn_table_ref *ref = &txn->tables[publish->table_index];
    struct chain_version version = {
        .version = ref->version, .prev = publish->prev, .txn = txn->id, .replace = ref->truncate};
    for (uint32_t i = 0; i < txn->load_count; i++)
        version.rowset_count += load_part(&txn->loads[i], tablet->id) != NULL;
    version_chain_add(&tablet->chain, &version);
    for (uint32_t i = 0; i < txn->load_count; i++) {
        const struct txn_load_tablet *part = load_part(&txn->loads[i], tablet->id);
        if (part != NULL)
            version_chain_add_rowset(&tablet->chain, txn->loads[i].rowset, &part->digest);
    }
}

int txn_check_copies(const struct txn *txn, struct tg_errmsg *msg)
{
    for (uint32_t i = 0; i < txn->load_count; i++) {
        const struct txn_load *load = &txn->loads[i];
        for (uint32_t j = 0; j < load->tablet_count; j++) {
            if (load->tablets[j].sealed == 0)
                return tg_fail(msg, TG_QUORUM,
                               "every copy of what transaction [%" PRIu64
                               "] wrote into tablet %" PRIu64 " is lost: it can only be aborted",
                               txn->id, load->tablets[j].tablet);
        }
    }
    return 0;
}

/* What the loads of a transaction did to one bucket. */
struct written {
    bool any;
    uint8_t sealed;  /* slots that hold every load's rowset */
    uint8_t planned; /* slots that a load was to write to and that do not hold its rowset */
};

uint8_t tablet_planned(const struct tablet *tablet, rowset_id rowset)
{
    uint8_t planned = 0;
    for (unsigned i = 0; i < tablet->replica_count; i++) {
        const struct replica *replica = &tablet->replicas[i];
        bool had = replica->node != 0 && rowset >= replica->written_from;
        planned |= (uint8_t)((unsigned)had << i);
    }
    return planned;
}

/* Per bucket what was written. Returns how many buckets got rows, and the rows. */
static uint32_t gather(const struct state *state, const struct txn *txn, const struct table *table,
                       struct written *written, uint64_t *rows)
{
    uint32_t count = 0;
    *rows = 0;
    memset(written, 0, table->bucket_count * sizeof *written);
    for (uint32_t i = 0; i < txn->load_count; i++) {
        const struct txn_load *load = &txn->loads[i];
        if (load->table != table->id)
            continue;
        *rows += load->rows;
        for (uint32_t j = 0; j < load->tablet_count; j++) {
            const struct tablet *tablet = catalog_tablet(&state->catalog, load->tablets[j].tablet);
            struct written *w = &written[tablet->bucket];
            uint8_t sealed = load->tablets[j].sealed;
            count += !w->any;
            w->sealed = w->any ? w->sealed & sealed : sealed;
            w->planned |= (uint8_t)(tablet_planned(tablet, load->rowset) & (unsigned)~sealed);
            w->any = true;
        }
    }
    return count;
}

int txn_fail_quorum(const struct txn *txn, const struct tablet *tablet, uint8_t good,
                    struct tg_errmsg *msg)
{
    char detail[REPLICAS_MAX * 48] = "";
    size_t at = 0;
    for (unsigned i = 0; i < tablet->replica_count; i++) {
        if (tablet->replicas[i].node == 0)
            continue;
        int n = snprintf(detail + at, sizeof detail - at, "%sparticipant %u %s",
                         at == 0 ? "" : ", ", tablet->replicas[i].node,
                         (good >> i & 1) != 0         ? "succeeded"
                         : tablet->replicas[i].behind ? "is behind"
                                                      : "failed");
        at += (size_t)n < sizeof detail - at ? (size_t)n : sizeof detail - 1 - at;
    }
    return tg_fail(msg, TG_QUORUM,
                   "Failed to commit txn %" PRIu64 ", cause tablet %" PRIu64
                   " succ replica num %d < load required replica num %u. table %s, partition: "
                   "[id=%" PRIu64 "], this tablet detail: %s",
                   txn->id, tablet->id, __builtin_popcount(good), tablet_write_quorum(tablet),
                   tablet->table->name, tablet->table->partition, detail);
}

int txn_check_quorum(const struct state *state, const struct txn *txn, struct tg_errmsg *msg)
{
    for (uint32_t i = 0; i < txn->table_count; i++) {
        const struct table *table = catalog_table_by_id(&state->catalog, txn->tables[i].table);
        struct written written[BUCKETS_MAX];
        uint64_t rows;
        gather(state, txn, table, written, &rows);
        for (uint32_t j = 0; j < table->bucket_count; j++) {
            const struct tablet *tablet = table->tablets[j];
            uint8_t good = (uint8_t)(written[j].sealed & ~tablet_behind(tablet));
            if (written[j].any && (uint32_t)__builtin_popcount(good) < tablet_write_quorum(tablet))
                return txn_fail_quorum(txn, tablet, good, msg);
        }
    }
    return 0;
}

static bool commit_table(struct state *state, struct txn *txn, uint32_t table_index)
{
    struct txn_table_ref *ref = &txn->tables[table_index];
    struct table *table = catalog_table_by_id(&state->catalog, ref->table);
    struct written buckets[BUCKETS_MAX];
    uint64_t rows;
    uint32_t written = gather(state, txn, table, buckets, &rows);
    ref->version = table_add_version(table, &(struct version_record){.commit_us = txn->commit_us,
                                                                     .txn = txn->id,
                                                                     .rows = rows,
                                                                     .action = VERSION_LOAD});
    if (MUTANT(10))
        ref->version = table_add_version(table, &(struct version_record){.txn = txn->id});
    bool marked = false;
    txn->publish =
        state_realloc(txn->publish, txn->publish_count + (size_t)written, sizeof *txn->publish);
    for (uint32_t i = 0; written > 0 && i < table->bucket_count; i++) {
        if (!buckets[i].any)
            continue;
        add_publish(txn, table_index, table->tablets[i], ref->version);
        marked = replica_missed(&state->catalog, table->tablets[i], buckets[i].sealed,
                                buckets[i].planned, ref->version) ||
                 marked;
    }
    return marked;
}

/* True once no replica is left that could still bind something of it. */
static bool is_complete(const struct state *state, const struct txn *txn)
{
    if (txn->state != TXN_VISIBLE)
        return false;
    for (uint32_t i = 0; i < txn->publish_count; i++) {
        const struct txn_publish_tablet *publish = &txn->publish[i];
        if (txn->tables[publish->table_index].gone || publish->lost)
            continue;
        const struct tablet *tablet = catalog_tablet(&state->catalog, publish->tablet);
        uint8_t awaited = tablet_awaited(tablet, txn->tables[publish->table_index].version);
        if ((publish->confirmed & awaited) != awaited)
            return false;
    }
    return true;
}

void txn_set_finished(struct state *state, struct txn *txn)
{
    struct database *database = catalog_database_by_id(&state->catalog, txn->db);
    if (txn->state == TXN_ABORTED) {
        txn->final_elapsed_ms = state->elapsed_ms;
        if (database != NULL)
            database->running_txns--;
    }
    txn->confirmed = txn->state == TXN_VISIBLE;
    for (uint32_t i = 0; i < txn->load_count; i++) {
        free(txn->loads[i].tablets);
        txn->loads[i].tablets = NULL;
        txn->loads[i].tablet_count = 0;
    }
    free(txn->publish);
    txn->publish = NULL;
    txn->publish_count = 0;
    for (uint32_t i = 0; i < txn->table_count; i++) {
        struct table *table = catalog_table_by_id(&state->catalog, txn->tables[i].table);
        catalog_table_unref(&state->catalog, table);
    }
    txn_table_add_finished(&state->txns, txn);
}

bool txn_finish_if_complete(struct state *state, struct txn *txn)
{
    if (!is_complete(state, txn))
        return false;
    txn_list_remove(&state->txns.publishing, txn);
    txn_set_finished(state, txn);
    return true;
}

/* After replicas fell behind or a table went: those that waited for nothing else are complete. */
void txn_finish_complete(struct state *state)
{
    for (struct txn *txn = state->txns.publishing.first, *next; txn != NULL; txn = next) {
        next = txn->next;
        txn_finish_if_complete(state, txn);
    }
}

void txn_table_gone(struct state *state, struct table *table)
{
    for (struct txn *txn = state->txns.publishing.first; txn != NULL; txn = txn->next) {
        for (uint32_t i = 0; i < txn->table_count; i++) {
            if (txn->tables[i].table == table->id)
                txn->tables[i].gone = true;
        }
    }
    txn_finish_complete(state);
}

void txn_set_committed(struct state *state, struct txn *txn, const struct request_key *key)
{
    TG_CHECK(txn_state_may_move(txn->state, TXN_COMMITTED));
    txn->state = TXN_COMMITTED;
    txn->state_seq = state->seq;
    txn->commit_elapsed_ms = state->elapsed_ms;
    txn->commit_us = state_take_time(state);
    if (key != NULL)
        txn->finish_key = *key;
    bool marked = false;
    for (uint32_t i = 0; i < txn->table_count; i++)
        marked = commit_table(state, txn, i) || marked;
    txn_list_remove(&state->txns.open, txn);
    txn_list_append(&state->txns.publishing, txn);
    if (marked)
        txn_finish_complete(state);
}

/* A label that nobody has. Clients may use the plain form themselves. */
static void truncate_label(const struct state *state, db_id db, char label[LABEL_BYTES])
{
    txn_id id = state->next_txn;
    snprintf(label, LABEL_BYTES, "truncate_%" PRIu64, id);
    for (unsigned i = 2; txn_table_find_label(&state->txns, db, label) != NULL; i++)
        snprintf(label, LABEL_BYTES, "truncate_%" PRIu64 "_%u", id, i);
}

int txn_truncate(struct state *state, const struct command_name *command,
                 struct apply_result *result)
{
    struct database *database;
    struct table *table = NULL;
    int err = catalog_find_db(&state->catalog, command->db, &database, &result->msg);
    if (err != 0)
        return err;
    err = catalog_find_table(database, command->table, &table, &result->msg);
    if (err != 0) {
        result->repeated = command->if_exists;
        return command->if_exists ? 0 : err;
    }
    err = txn_check_unpublished(state, table, &result->msg);
    if (err != 0)
        return err;

    char label[LABEL_BYTES];
    truncate_label(state, database->id, label);
    struct txn *txn = txn_table_create(state, database, label, "");
    txn->state = TXN_COMMITTED;
    txn->commit_us = txn->begin_us;
    txn->commit_elapsed_ms = state->elapsed_ms;
    txn->timeout_ms = state->limits.prepare_timeout_ms;
    txn->tables = state_alloc(1, sizeof *txn->tables);
    txn->table_count = 1;
    catalog_table_ref(table);
    version_t version = table_add_version(
        table, &(struct version_record){
                   .commit_us = txn->commit_us, .txn = txn->id, .action = VERSION_TRUNCATE});
    txn->tables[0] =
        (struct txn_table_ref){.table = table->id, .version = version, .truncate = true};
    txn->publish = state_alloc(table->bucket_count, sizeof *txn->publish);
    for (uint32_t i = 0; i < table->bucket_count; i++)
        add_publish(txn, 0, table->tablets[i], version);
    txn_list_remove(&state->txns.open, txn);
    txn_list_append(&state->txns.publishing, txn);
    txn_report(txn, result);
    result->table = table->id;
    result->time_us = txn->commit_us;
    return 0;
}
