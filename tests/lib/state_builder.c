/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a replicated state for tests, command by command. */
#include "tests/lib/state_builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"

#define BUILDER_START_US UINT64_C(1700000000000000)

static void copy_text(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from);
}
#define SET(field, text) copy_text(field, sizeof(field), text)

/* Decodes and applies one batch; `last` (may be NULL) gets the last result. */
static void apply_batch(struct state *state, struct slice batch, struct apply_result *last)
{
    struct cursor cursor;
    cursor_init(&cursor, batch.data, batch.len);
    struct batch_header header;
    TG_CHECK(batch_decode_header(&cursor, &header) == 0);
    TG_CHECK(state_begin_batch(state, &header) == 0);
    for (uint32_t i = 0; i < header.count; i++) {
        struct command command;
        struct apply_result result;
        TG_CHECK(command_decode(&cursor, &command) == 0);
        state_apply(state, &command, &result);
        command_close(&command);
        if (last != NULL)
            *last = result;
    }
    TG_CHECK(batch_decode_end(&cursor) == 0);
}

static void run_batch(struct state_builder *builder, const struct command *command,
                      uint64_t elapsed_ms)
{
    builder->now_us += 1000 + elapsed_ms * 1000;
    if (builder->now_us <= builder->state.stamp_us)
        builder->now_us = builder->state.stamp_us + 1;
    struct batch_header header = {.stamp_us = builder->now_us,
                                  .elapsed_delta_ms = elapsed_ms,
                                  .count = command != NULL ? 1 : 0};
    struct buf batch = BUF_INIT;
    batch_begin(&header, &batch);
    if (command != NULL)
        command_encode(command, &batch);
    batch_end(&batch);
    TG_CHECK(batch.err == 0 && batch.len % BATCH_ALIGN == 0);
    buf_append_u64le(&builder->log, batch.len);
    buf_append(&builder->log, batch.data, batch.len);
    apply_batch(&builder->state, slice_of(batch.data, batch.len), &builder->last);
    buf_close(&batch);
}

int state_builder_apply(struct state_builder *builder, const struct command *command)
{
    run_batch(builder, command, 0);
    return builder->last.err;
}

void state_builder_elapse(struct state_builder *builder, uint64_t ms)
{
    run_batch(builder, NULL, ms);
}

void state_builder_replay(struct slice log, struct state *state)
{
    struct cursor cursor;
    cursor_init(&cursor, log.data, log.len);
    while (cursor_left(&cursor) > 0) {
        uint64_t len = cursor_u64le(&cursor);
        apply_batch(state, cursor_bytes(&cursor, len), NULL);
    }
    TG_CHECK(cursor_finish(&cursor) == 0);
}

void state_builder_restore(struct state_builder *builder)
{
    struct buf bytes = BUF_INIT;
    state_encode(&builder->state, &bytes);
    struct state restored;
    struct tg_errmsg msg;
    TG_CHECK(state_init(&restored) == 0);
    int err = state_decode(&restored, slice_of(bytes.data, bytes.len), &msg);
    if (err != 0)
        fprintf(stderr, "%s\n", msg.text);
    TG_CHECK(err == 0);
    state_close(&builder->state);
    builder->state = restored;
    buf_close(&bytes);
}

void state_builder_init(struct state_builder *builder)
{
    memset(builder, 0, sizeof *builder);
    TG_CHECK(state_init(&builder->state) == 0);
    builder->now_us = BUILDER_START_US;
    builder->next_request = 1;
    builder->next_nonce = 1;
    struct command command = {.type = COMMAND_CLUSTER_INIT};
    SET(command.cluster_init.uuid, "00000000-0000-4000-8000-00000000c1c1");
    TG_CHECK(state_builder_apply(builder, &command) == 0);
}

void state_builder_close(struct state_builder *builder)
{
    state_close(&builder->state);
    buf_close(&builder->log);
}

void state_builder_members(struct state_builder *builder, node_id first, node_id last)
{
    for (node_id node = first; node <= last; node++) {
        struct command command = {.type = COMMAND_MEMBER_REGISTER};
        struct msg_register *message = &command.member.message;
        message->wanted = node;
        message->new_nonce = builder->next_nonce++;
        snprintf(message->node_uuid, sizeof message->node_uuid, "00000000-0000-4000-8000-%012u",
                 node);
        snprintf(message->http, sizeof message->http, "127.0.0.1:%u", 8039 + node);
        snprintf(message->rpc, sizeof message->rpc, "127.0.0.1:%u", 8059 + node);
        TG_CHECK(state_builder_apply(builder, &command) == 0);
    }
}

uint64_t state_builder_epoch(const struct state_builder *builder, node_id node)
{
    const struct member *member = members_find(&builder->state.members, node);
    return member == NULL ? 0 : member->epoch;
}

int state_builder_name(struct state_builder *builder, enum command_type type, const char *db,
                       const char *table, bool if_exists, bool force)
{
    struct command command = {.type = type};
    SET(command.name.db, db);
    SET(command.name.table, table != NULL ? table : "");
    command.name.if_exists = if_exists;
    command.name.force = force;
    return state_builder_apply(builder, &command);
}

int state_builder_db(struct state_builder *builder, const char *db)
{
    return state_builder_name(builder, COMMAND_CREATE_DB, db, NULL, false, false);
}

int state_builder_table(struct state_builder *builder, const struct state_builder_table *table)
{
    struct command command = {.type = COMMAND_CREATE_TABLE};
    struct command_create_table *create = &command.create_table;
    SET(create->db, table->db);
    SET(create->table, table->table);
    schema_init(&create->schema);
    struct schema_column key = {.type = {.kind = TYPE_INT}, .nullable = true, .is_key = true};
    SET(key.name, "k");
    struct schema_column value = {.type = {.kind = TYPE_VARCHAR, .length = 20}, .nullable = true};
    SET(value.name, "v");
    TG_CHECK(schema_add_column(&create->schema, &key, NULL) == 0);
    TG_CHECK(schema_add_column(&create->schema, &value, NULL) == 0);
    create->distribution_count = 1;
    create->bucket_count = table->buckets;
    create->replication = table->replication;
    create->write_all = table->write_all;
    create->occ = table->occ;
    const struct members *members = &builder->state.members;
    for (uint32_t i = 0; i < members->count; i++)
        create->candidates[create->candidate_count++] = members->list[i].node;
    int err = state_builder_apply(builder, &command);
    command_close(&command);
    return err;
}

struct table *state_builder_find(struct state_builder *builder, const char *db, const char *table)
{
    struct database *database = catalog_database(&builder->state.catalog, db);
    return database == NULL ? NULL : catalog_table(database, table);
}

static struct request_key fresh_key(struct state_builder *builder, node_id node)
{
    return (struct request_key){.node = node,
                                .epoch = node != 0 ? state_builder_epoch(builder, node)
                                                   : 0x1122334455667788,
                                .request = builder->next_request++};
}

int state_builder_begin(struct state_builder *builder, node_id node, const char *db,
                        const char *table, const char *label, bool two_phase)
{
    struct command command = {.type = COMMAND_TXN_BEGIN};
    command.begin.key = fresh_key(builder, node);
    SET(command.begin.db, db);
    SET(command.begin.table, table != NULL ? table : "");
    SET(command.begin.label, label);
    SET(command.begin.user, "root");
    command.begin.two_phase = two_phase;
    command.begin.timeout_ms = 600000;
    return state_builder_apply(builder, &command);
}

int state_builder_load_start(struct state_builder *builder, node_id node, txn_id txn,
                             const char *db, const char *table)
{
    struct command command = {.type = COMMAND_LOAD_START};
    command.load_start.key = fresh_key(builder, node);
    command.load_start.txn = txn;
    SET(command.load_start.db, db);
    SET(command.load_start.table, table);
    return state_builder_apply(builder, &command);
}

int state_builder_done(struct state_builder *builder, txn_id id, rowset_id rowset, uint64_t buckets,
                       uint8_t sealed)
{
    struct command command = {.type = COMMAND_LOAD_DONE};
    struct msg_load_done *message = &command.load_done.message;
    message->txn = id;
    message->rowset = rowset;
    const struct txn *txn = txn_table_find(&builder->state.txns, id);
    const struct txn_load *load = txn == NULL ? NULL : txn_find_load(txn, rowset);
    const struct table *table =
        load == NULL ? NULL : catalog_table_by_id(&builder->state.catalog, load->table);
    struct load_report_tablet reports[64] = {0};
    if (load != NULL) {
        message->node = load->key.node;
        message->epoch = load->key.epoch;
        message->request_id = load->key.request;
        message->placement_epoch = load->placement_epoch;
        message->finish = txn->explicit_begin ? LOAD_FINISH_NONE
                          : txn->two_phase    ? LOAD_FINISH_PRECOMMIT
                                              : LOAD_FINISH_COMMIT;
    }
    for (uint32_t i = 0; table != NULL && i < table->bucket_count && i < 64; i++) {
        if ((buckets >> i & 1) == 0)
            continue;
        struct load_report_tablet *report = &reports[message->tablet_count++];
        report->tablet = table->tablets[i]->id;
        report->sealed = sealed & tablet_all(table->tablets[i]);
        report->rows = 10;
        report->bytes = 100;
        report->digest.bytes[0] = (uint8_t)rowset;
        message->rows += report->rows;
        message->bytes += report->bytes;
    }
    message->tablets = reports;
    return state_builder_apply(builder, &command);
}

int state_builder_failed(struct state_builder *builder, txn_id id, rowset_id rowset,
                         const char *reason)
{
    struct command command = {.type = COMMAND_LOAD_FAILED};
    const struct txn *txn = txn_table_find(&builder->state.txns, id);
    const struct txn_load *load = txn == NULL ? NULL : txn_find_load(txn, rowset);
    if (load != NULL)
        command.load_failed.key = load->key;
    command.load_failed.txn = id;
    command.load_failed.rowset = rowset;
    SET(command.load_failed.reason, reason);
    return state_builder_apply(builder, &command);
}

int state_builder_finish(struct state_builder *builder, enum command_type type, txn_id txn)
{
    struct command command = {.type = type};
    command.finish.txn = txn;
    command.finish.key = fresh_key(builder, 0);
    SET(command.finish.reason, "User Abort");
    return state_builder_apply(builder, &command);
}

int state_builder_publish(struct state_builder *builder, enum command_type type, txn_id id,
                          uint8_t confirmed)
{
    const struct txn *txn = txn_table_find(&builder->state.txns, id);
    uint32_t count = txn != NULL ? txn->publish_count : 0;
    uint8_t *bits = malloc(count + 1u);
    TG_CHECK(bits != NULL);
    memset(bits, confirmed, count + 1u);
    struct visible_txn named = {.txn = id, .tablet_count = count, .confirmed = bits};
    struct command command = {.type = type};
    command.visible = (struct command_visible){.count = 1, .txns = &named};
    int err = state_builder_apply(builder, &command);
    free(bits);
    return err;
}

int state_builder_forget(struct state_builder *builder, txn_id txn)
{
    struct command command = {.type = COMMAND_FORGET};
    command.forget = (struct command_forget){.count = 1, .txns = &txn};
    return state_builder_apply(builder, &command);
}

txn_id state_builder_load(struct state_builder *builder, const char *db, const char *table,
                          const char *label)
{
    TG_CHECK(builder->state.members.count > 0);
    node_id node = builder->state.members.list[0].node;
    TG_CHECK(state_builder_begin(builder, node, db, table, label, false) == 0);
    txn_id txn = builder->last.txn;
    TG_CHECK(state_builder_done(builder, txn, builder->last.rowset, UINT64_MAX, 7) == 0);
    TG_CHECK(state_builder_publish(builder, COMMAND_TXN_VISIBLE, txn, 7) == 0);
    return txn;
}

/* ---- invariants ---- */

static void check_table(const struct state *state, const struct table *table)
{
    TG_CHECK(table->visible <= table->committed);
    uint64_t last_us = 0;
    for (version_t v = 1; v <= table->committed; v++) {
        const struct version_record *record = &table->versions[v - 1];
        if (v <= table->visible) {
            TG_CHECK(record->time_us > last_us && record->time_us <= state->stamp_us);
            last_us = record->time_us;
        } else {
            /* Committed and not visible: its transaction is there and says the same. */
            const struct txn *txn = txn_table_find(&state->txns, record->txn);
            TG_CHECK(record->time_us == 0 || table->dropped);
            TG_CHECK(table->dropped || (txn != NULL && txn->state == TXN_COMMITTED &&
                                        txn_table_version(txn, table->id) == v));
        }
    }
    for (uint32_t i = 0; i < table->bucket_count; i++) {
        const struct tablet *tablet = table->tablets[i];
        TG_CHECK(tablet->table == table && tablet->bucket == i);
        TG_CHECK(catalog_tablet(&state->catalog, tablet->id) == tablet);
        for (uint32_t j = 0; j < tablet->touched_count; j++) {
            TG_CHECK(tablet->touched[j] <= table->committed);
            TG_CHECK(j == 0 || tablet->touched[j - 1] < tablet->touched[j]);
        }
        TG_CHECK(table->dropped || tablet_all(tablet) != 0);
        TG_CHECK(__builtin_popcount(tablet_all(tablet)) <= table->replication + 1);
        TG_CHECK(__builtin_popcount(tablet_joining(tablet)) <= 1);
        for (uint32_t j = 0; j < tablet->replica_count; j++) {
            const struct replica *replica = &tablet->replicas[j];
            TG_CHECK(replica->node != 0 || (!replica->behind && !replica->catching));
            if (replica->node == 0)
                continue;
            TG_CHECK(members_find(&state->members, replica->node) != NULL);
            TG_CHECK(tablet_slot(tablet, replica->node) == (int)j);
            TG_CHECK(replica->behind || !replica->joining);
            TG_CHECK(replica->behind == (replica->behind_version != 0));
            TG_CHECK(replica->behind || !replica->catching);
            TG_CHECK((replica->missed_version != 0) <= replica->catching);
            TG_CHECK(!replica->catching || replica->joining || tablet->touched_count == 0 ||
                     replica->behind_version <= replica->missed_version);
        }
    }
}

struct tally {
    uint32_t running;
    uint32_t refs;
};

static uint32_t tally_list(const struct txn_list *list, db_id db, table_id table,
                           struct tally *tally)
{
    uint32_t count = 0;
    for (const struct txn *txn = list->first; txn != NULL; txn = txn->next) {
        count++;
        TG_CHECK(txn->next == NULL ? list->last == txn : txn->next->prev == txn);
        if (txn->db == db && !txn_state_is_final(txn->state))
            tally->running++;
        for (uint32_t i = 0; i < txn->table_count; i++)
            tally->refs += txn->tables[i].table == table;
    }
    return count;
}

static void check_txn(const struct state *state, const struct txn *txn)
{
    TG_CHECK(txn_table_find(&state->txns, txn->id) == txn);
    TG_CHECK(txn->id < state->next_txn);
    bool is_over = txn->state == TXN_ABORTED || txn->confirmed;
    TG_CHECK(is_over || txn->id >= state->txn_low_water);
    /* One live transaction a label. */
    uint32_t live = 0;
    const struct txn *same = txn_table_find_label(&state->txns, txn->db, txn->label);
    bool found = false;
    for (; same != NULL; same = same->same_label) {
        TG_CHECK(same->db == txn->db && strcmp(same->label, txn->label) == 0);
        TG_CHECK(same->same_label == NULL || same->same_label->id < same->id);
        live += same->state != TXN_ABORTED;
        found = found || same == txn;
    }
    TG_CHECK(found && live <= 1);
    for (uint32_t i = 0; i < txn->load_count; i++) {
        const struct txn_load *load = txn_table_find_request_load(&state->txns, &txn->loads[i].key);
        TG_CHECK(load == &txn->loads[i]);
    }
}

void state_builder_check(const struct state *state)
{
    const struct txn_list *lists[] = {&state->txns.open, &state->txns.publishing,
                                      &state->txns.finished};
    for (int i = 0; i < 3; i++) {
        for (const struct txn *txn = lists[i]->first; txn != NULL; txn = txn->next)
            check_txn(state, txn);
    }
    for (const struct database *db = state->catalog.databases; db != NULL; db = db->hh.next) {
        struct tally tally = {0};
        for (int i = 0; i < 3; i++)
            TG_CHECK(tally_list(lists[i], db->id, 0, &tally) == lists[i]->count);
        TG_CHECK(tally.running == db->running_txns);
    }
    for (const struct table *table = state->catalog.tables; table != NULL; table = table->hh.next) {
        struct tally tally = {0};
        tally_list(&state->txns.open, 0, table->id, &tally);
        tally_list(&state->txns.publishing, 0, table->id, &tally);
        TG_CHECK(tally.refs == table->txn_refs);
        TG_CHECK(!table->dropped || table->txn_refs > 0);
        check_table(state, table);
    }
    TG_CHECK(state->txn_low_water <= state->next_txn);
}
