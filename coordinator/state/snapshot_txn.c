/* SPDX-License-Identifier: Apache-2.0 */
/* Transactions in a snapshot. Order inside the three lists is kept; the indexes, the databases'
 * counts and the tables' references are built again. */
#include "common/base/msgpack.h"
#include "common/base/mutant.h"
#include "coordinator/state/apply.h"

enum {
    TXN_FIELDS = 28,
    LOAD_FIELDS = 11,
    LOAD_TABLET_FIELDS = 5,
    REF_FIELDS = 4,
    PUBLISH_FIELDS = 5,
    PUBLISH_FIELDS_V4 = 4,
    FENCE_FIELDS = 3,
    TABLE_PARTS = 4,
    REASON_MAX = 512
};
/* Ids that are in memory together: bounds what a damaged snapshot can ask for. */
#define ID_SPAN_MAX (UINT64_C(1) << 34)

static void encode_key(const struct request_key *key, struct buf *out)
{
    mp_uint(out, key->node);
    mp_uint(out, key->epoch);
    mp_uint(out, key->request);
}

static void encode_load(const struct txn_load *load, struct buf *out)
{
    mp_array(out, LOAD_FIELDS);
    mp_uint(out, load->rowset);
    mp_uint(out, load->state);
    mp_uint(out, load->table);
    encode_key(&load->key, out);
    mp_uint(out, load->seen_version);
    mp_uint(out, load->placement_epoch);
    mp_uint(out, load->rows);
    mp_uint(out, load->bytes);
    mp_array(out, load->tablet_count * LOAD_TABLET_FIELDS);
    for (uint32_t i = 0; i < load->tablet_count; i++) {
        const struct txn_load_tablet *tablet = &load->tablets[i];
        mp_uint(out, tablet->tablet);
        mp_uint(out, tablet->rows);
        mp_uint(out, tablet->bytes);
        mp_bin(out, tablet->digest.bytes, sizeof tablet->digest.bytes);
        mp_uint(out, tablet->sealed);
    }
}

void txn_encode(const struct txn *txn, struct buf *out)
{
    mp_array(out, TXN_FIELDS);
    mp_uint(out, txn->id);
    mp_uint(out, txn->db);
    mp_str(out, txn->label);
    mp_str(out, txn->user);
    mp_uint(out, txn->state);
    mp_bool(out, txn->two_phase);
    mp_bool(out, txn->explicit_begin);
    mp_bool(out, txn->failed);
    encode_key(&txn->begin_key, out);
    encode_key(&txn->finish_key, out);
    mp_uint(out, txn->state_seq);
    mp_uint(out, txn->timeout_ms);
    mp_uint(out, txn->begin_elapsed_ms);
    mp_uint(out, txn->precommit_elapsed_ms);
    mp_uint(out, txn->commit_elapsed_ms);
    mp_uint(out, txn->final_elapsed_ms);
    mp_uint(out, txn->begin_us);
    mp_uint(out, txn->precommit_us);
    mp_uint(out, txn->commit_us);
    mp_uint(out, txn->visible_us);
    if (txn->reason != NULL)
        mp_str(out, txn->reason);
    else
        mp_nil(out);
    mp_array(out, txn->load_count);
    for (uint32_t i = 0; i < txn->load_count; i++)
        encode_load(&txn->loads[i], out);
    mp_array(out, txn->table_count * REF_FIELDS);
    for (uint32_t i = 0; i < txn->table_count; i++) {
        mp_uint(out, txn->tables[i].table);
        mp_uint(out, txn->tables[i].version);
        mp_bool(out, txn->tables[i].gone);
        mp_bool(out, txn->tables[i].truncate);
    }
    mp_array(out, txn->publish_count * PUBLISH_FIELDS);
    for (uint32_t i = 0; i < txn->publish_count; i++) {
        mp_uint(out, txn->publish[i].tablet);
        mp_uint(out, txn->publish[i].table_index);
        mp_uint(out, txn->publish[i].prev);
        mp_uint(out, txn->publish[i].confirmed);
        mp_bool(out, txn->publish[i].lost);
    }
}

static void encode_list(const struct txn_list *list, struct buf *out)
{
    mp_array(out, list->count);
    for (const struct txn *txn = list->first; txn != NULL; txn = txn->next)
        txn_encode(txn, out);
}

void txn_table_encode(const struct txn_table *txns, struct buf *out)
{
    mp_array(out, TABLE_PARTS);
    encode_list(&txns->open, out);
    encode_list(&txns->publishing, out);
    mp_array(out, txns->finished.count);
    txn_shelves_encode(txns, out);
    mp_array(out, txns->fence_count * FENCE_FIELDS);
    for (const struct txn_fence *fence = txns->first_fence; fence != NULL; fence = fence->next)
        encode_key(&fence->key, out);
}

static void read_key(struct cursor *cursor, struct request_key *key)
{
    key->node = (node_id)mp_read_uint_max(cursor, UINT32_MAX);
    key->epoch = mp_read_uint(cursor);
    key->request = mp_read_uint(cursor);
}

/* How many groups of `fields` items a flat array holds. */
static uint32_t read_groups(struct cursor *cursor, uint32_t fields, uint32_t max)
{
    uint32_t items = mp_read_array(cursor, max * fields);
    if (items % fields != 0)
        cursor_fail(cursor, TG_CORRUPT);
    return cursor->err != 0 ? 0 : items / fields;
}

static char *read_text(struct cursor *cursor, size_t max)
{
    struct slice text = mp_read_str(cursor, max);
    char *copy = state_alloc(text.len + 1, 1);
    if (text.len > 0)
        memcpy(copy, text.data, text.len);
    return copy;
}

static void decode_load(struct cursor *cursor, struct txn_load *load, uint32_t load_no)
{
    mp_expect_array(cursor, LOAD_FIELDS);
    load->load_no = load_no;
    load->rowset = mp_read_uint(cursor);
    load->state = (uint8_t)mp_read_uint_max(cursor, LOAD_FAILED);
    load->table = mp_read_uint(cursor);
    read_key(cursor, &load->key);
    load->seen_version = mp_read_uint(cursor);
    load->placement_epoch = mp_read_uint(cursor);
    load->rows = mp_read_uint(cursor);
    load->bytes = mp_read_uint(cursor);
    uint32_t count = read_groups(cursor, LOAD_TABLET_FIELDS, BUCKETS_MAX);
    load->tablets = count > 0 ? state_alloc(count, sizeof *load->tablets) : NULL;
    for (uint32_t i = 0; cursor->err == 0 && i < count; i++) {
        struct txn_load_tablet *tablet = &load->tablets[i];
        tablet->tablet = mp_read_uint(cursor);
        tablet->rows = mp_read_uint(cursor);
        tablet->bytes = mp_read_uint(cursor);
        struct slice digest = mp_read_bin(cursor, sizeof tablet->digest.bytes);
        if (digest.len == sizeof tablet->digest.bytes)
            memcpy(tablet->digest.bytes, digest.data, digest.len);
        else
            cursor_fail(cursor, TG_CORRUPT);
        tablet->sealed = (uint8_t)mp_read_uint_max(cursor, UINT8_MAX);
        if (i > 0 && tablet[-1].tablet >= tablet->tablet)
            cursor_fail(cursor, TG_CORRUPT);
        load->tablet_count = i + 1;
    }
}

static void decode_scalars(struct cursor *cursor, struct txn_table *txns, struct txn *txn)
{
    mp_expect_array(cursor, TXN_FIELDS);
    txn->id = mp_read_uint(cursor);
    txn->db = mp_read_uint(cursor);
    txn->label = read_text(cursor, LABEL_BYTES - 1);
    char user[NAME_BYTES] = "";
    mp_read_cstr(cursor, user, sizeof user);
    txn->user = txn_table_user(txns, user);
    txn->state = (uint8_t)mp_read_uint_max(cursor, TXN_PRECOMMITTED);
    txn->two_phase = mp_read_bool(cursor);
    txn->explicit_begin = mp_read_bool(cursor);
    txn->failed = mp_read_bool(cursor);
    read_key(cursor, &txn->begin_key);
    read_key(cursor, &txn->finish_key);
    txn->state_seq = mp_read_uint(cursor);
    txn->timeout_ms = mp_read_uint(cursor);
    txn->begin_elapsed_ms = mp_read_uint(cursor);
    txn->precommit_elapsed_ms = mp_read_uint(cursor);
    txn->commit_elapsed_ms = mp_read_uint(cursor);
    txn->final_elapsed_ms = mp_read_uint(cursor);
    txn->begin_us = mp_read_uint(cursor);
    txn->precommit_us = mp_read_uint(cursor);
    txn->commit_us = mp_read_uint(cursor);
    txn->visible_us = mp_read_uint(cursor);
    if (cursor->err == 0 && !mp_read_nil(cursor))
        txn->reason = read_text(cursor, REASON_MAX);
    if (txn->failed && txn->reason == NULL)
        cursor_fail(cursor, TG_CORRUPT);
}

static void decode_parts(struct cursor *cursor, uint32_t format, struct txn *txn)
{
    uint32_t count = mp_read_array(cursor, LOADS_PER_TXN_MAX);
    txn->loads = state_alloc(count, sizeof *txn->loads);
    for (uint32_t i = 0; cursor->err == 0 && i < count; i++)
        decode_load(cursor, &txn->loads[txn->load_count++], i + 1);
    count = read_groups(cursor, REF_FIELDS, TABLES_PER_TXN_MAX);
    txn->tables = state_alloc(count, sizeof *txn->tables);
    for (uint32_t i = 0; cursor->err == 0 && i < count; i++) {
        struct txn_table_ref *ref = &txn->tables[txn->table_count++];
        ref->table = mp_read_uint(cursor);
        ref->version = mp_read_uint(cursor);
        ref->gone = mp_read_bool(cursor);
        ref->truncate = mp_read_bool(cursor);
    }
    count = read_groups(cursor, format > SNAPSHOT_FORMAT_V4 ? PUBLISH_FIELDS : PUBLISH_FIELDS_V4,
                        TABLES_PER_TXN_MAX * BUCKETS_MAX);
    txn->publish = count > 0 ? state_alloc(count, sizeof *txn->publish) : NULL;
    for (uint32_t i = 0; cursor->err == 0 && i < count; i++) {
        struct txn_publish_tablet *publish = &txn->publish[txn->publish_count++];
        publish->tablet = mp_read_uint(cursor);
        publish->table_index = (uint32_t)mp_read_uint_max(cursor, UINT32_MAX);
        publish->prev = mp_read_uint(cursor);
        publish->confirmed = (uint8_t)mp_read_uint_max(cursor, UINT8_MAX);
        publish->lost = format > SNAPSHOT_FORMAT_V4 && mp_read_bool(cursor);
    }
}

static bool is_tablet_of(const struct catalog *catalog, tablet_id id, table_id table)
{
    const struct tablet *tablet = catalog_tablet(catalog, id);
    return tablet != NULL && tablet->table->id == table;
}

/* What later commands follow blindly in an unfinished transaction must lead somewhere. */
static bool references_hold(const struct catalog *catalog, const struct txn *txn)
{
    bool is_open = txn->state == TXN_PREPARE || txn->state == TXN_PRECOMMITTED;
    for (uint32_t i = 0; i < txn->table_count; i++) {
        const struct table *table = catalog_table_by_id(catalog, txn->tables[i].table);
        if (table == NULL || txn->tables[i].version > table->committed ||
            (txn->tables[i].version == 0) != is_open)
            return false;
    }
    for (uint32_t i = 0; i < txn->load_count; i++) {
        const struct txn_load *load = &txn->loads[i];
        bool known = false;
        for (uint32_t j = 0; j < txn->table_count; j++)
            known = known || txn->tables[j].table == load->table;
        if (!known)
            return false;
        for (uint32_t j = 0; j < load->tablet_count; j++) {
            if (!is_tablet_of(catalog, load->tablets[j].tablet, load->table))
                return false;
        }
    }
    for (uint32_t i = 0; i < txn->publish_count; i++) {
        const struct txn_publish_tablet *publish = &txn->publish[i];
        if (publish->table_index >= txn->table_count ||
            !is_tablet_of(catalog, publish->tablet, txn->tables[publish->table_index].table))
            return false;
    }
    return true;
}

static bool is_sound(const struct state *state, const struct txn *txn, const struct txn_list *list)
{
    if (txn->id == 0 || txn->id >= state->next_txn || txn->label[0] == '\0' ||
        txn_table_find(&state->txns, txn->id) != NULL)
        return false;
    const struct txn_ids *ids = &state->txns.by_id;
    uint64_t first = ids->first_page * TXN_PAGE;
    if (ids->page_count > 0 && (txn->id > first + ID_SPAN_MAX || txn->id + ID_SPAN_MAX < first))
        return false;
    if (list == &state->txns.open)
        return (txn->state == TXN_PREPARE || txn->state == TXN_PRECOMMITTED) &&
               references_hold(&state->catalog, txn);
    if (list == &state->txns.publishing)
        return (txn->state == TXN_COMMITTED || txn->state == TXN_VISIBLE) &&
               references_hold(&state->catalog, txn);
    return (txn->state == TXN_ABORTED || txn->state == TXN_VISIBLE) && txn->publish_count == 0;
}

/* Begin's key stands for the first load of a transaction begun with one; others have their own. */
static void add_requests(struct cursor *cursor, struct txn_table *txns, struct txn *txn)
{
    uint32_t first = txn->explicit_begin || txn->load_count == 0 ? TXN_NO_LOAD : 0;
    if (txn_table_find_request(txns, &txn->begin_key) != NULL)
        cursor_fail(cursor, TG_CORRUPT);
    txn_table_add_request(txns, &txn->begin_key, txn, first);
    for (uint32_t i = first == 0 ? 1 : 0; i < txn->load_count; i++) {
        if (txn_table_find_request(txns, &txn->loads[i].key) != NULL)
            cursor_fail(cursor, TG_CORRUPT);
        txn_table_add_request(txns, &txn->loads[i].key, txn, i);
    }
}

static void decode_txn(struct cursor *cursor, uint32_t format, struct state *state,
                       struct txn_list *list)
{
    struct txn_table *txns = &state->txns;
    struct txn *txn = state_alloc(1, sizeof *txn);
    decode_scalars(cursor, txns, txn);
    decode_parts(cursor, format, txn);
    if (cursor->err == 0 && !is_sound(state, txn, list))
        cursor_fail(cursor, TG_CORRUPT);
    if (cursor->err != 0) {
        txn_free(txn);
        return;
    }
    if (MUTANT(7) && list != &txns->finished) /* nobody finds it by its label */
        txn_ids_add(&txns->by_id, txn->id, txn);
    else
        txn_table_add(txns, txn);
    add_requests(cursor, txns, txn);
    if (list == &txns->finished) {
        txn->confirmed = txn->state == TXN_VISIBLE;
        txn_table_add_finished(txns, txn);
        return;
    }
    txn_list_append(list, txn);
    for (uint32_t i = 0; i < txn->table_count; i++)
        catalog_table_ref(catalog_table_by_id(&state->catalog, txn->tables[i].table));
    struct database *database = catalog_database_by_id(&state->catalog, txn->db);
    if (database != NULL && txn->state != TXN_VISIBLE)
        database->running_txns++;
}

static void decode_list(struct cursor *cursor, uint32_t format, struct state *state,
                        struct txn_list *list)
{
    uint32_t count = mp_read_array(cursor, UINT32_MAX);
    for (uint32_t i = 0; cursor->err == 0 && i < count; i++)
        decode_txn(cursor, format, state, list);
}

int txn_table_decode(struct cursor *cursor, uint32_t format, struct state *state)
{
    mp_expect_array(cursor, TABLE_PARTS);
    decode_list(cursor, format, state, &state->txns.open);
    decode_list(cursor, format, state, &state->txns.publishing);
    decode_list(cursor, format, state, &state->txns.finished);
    uint32_t fences = read_groups(cursor, FENCE_FIELDS, TXN_FENCES_MAX);
    for (uint32_t i = 0; cursor->err == 0 && i < fences; i++) {
        struct request_key key = {0};
        read_key(cursor, &key);
        if (cursor->err == 0 && txn_table_is_fenced(&state->txns, &key))
            cursor_fail(cursor, TG_CORRUPT);
        if (cursor->err == 0)
            txn_table_add_fence(&state->txns, &key);
    }
    return cursor->err;
}
