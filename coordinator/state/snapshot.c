/* SPDX-License-Identifier: Apache-2.0 */
/* The whole state to bytes and back: its numbers and members here, catalog and transactions in
 * files of their own. What can be derived (indexes, counts, references) is not written but built
 * again. docs/formats.md has the table. */
#include "common/base/msgpack.h"
#include "coordinator/state/apply.h"

enum {
    SNAPSHOT_PARTS = 7,
    SNAPSHOT_PARTS_V3 = 6,
    SNAPSHOT_PARTS_V2 = 5,
    HEAD_FIELDS = 14,
    LIMIT_FIELDS = 6,
    MEMBER_FIELDS = 9,
    MEMBER_FIELDS_V5 = 8,
    MEMBER_FIELDS_V4 = 7,
    COORDINATOR_FIELDS = 6
};

static void encode_head(const struct state *state, struct buf *out)
{
    mp_array(out, HEAD_FIELDS + LIMIT_FIELDS);
    mp_str(out, state->cluster_uuid);
    mp_uint(out, state->feature_level);
    mp_uint(out, state->seq);
    mp_uint(out, state->stamp_us);
    mp_uint(out, state->batch_next_us);
    mp_uint(out, state->elapsed_ms);
    mp_uint(out, state->txn_low_water);
    mp_uint(out, state->next_db);
    mp_uint(out, state->next_table);
    mp_uint(out, state->next_partition);
    mp_uint(out, state->next_tablet);
    mp_uint(out, state->next_txn);
    mp_uint(out, state->next_rowset);
    mp_uint(out, state->members.next_epoch);
    mp_uint(out, state->limits.running_txns_per_db_max);
    mp_uint(out, state->limits.unpublished_per_table_max);
    mp_uint(out, state->limits.label_memory_max);
    mp_uint(out, state->limits.label_keep_ms);
    mp_uint(out, state->limits.precommit_timeout_ms);
    mp_uint(out, state->limits.prepare_timeout_ms);
}

static void decode_head(struct cursor *cursor, struct state *state)
{
    mp_expect_array(cursor, HEAD_FIELDS + LIMIT_FIELDS);
    mp_read_cstr(cursor, state->cluster_uuid, sizeof state->cluster_uuid);
    state->feature_level = (uint32_t)mp_read_uint_max(cursor, UINT32_MAX);
    state->seq = mp_read_uint(cursor);
    state->stamp_us = mp_read_uint(cursor);
    state->batch_next_us = mp_read_uint(cursor);
    state->elapsed_ms = mp_read_uint(cursor);
    state->txn_low_water = mp_read_uint(cursor);
    state->next_db = mp_read_uint(cursor);
    state->next_table = mp_read_uint(cursor);
    state->next_partition = mp_read_uint(cursor);
    state->next_tablet = mp_read_uint(cursor);
    state->next_txn = mp_read_uint(cursor);
    state->next_rowset = mp_read_uint(cursor);
    state->members.next_epoch = mp_read_uint(cursor);
    state->limits.running_txns_per_db_max = (uint32_t)mp_read_uint_max(cursor, UINT32_MAX);
    state->limits.unpublished_per_table_max = (uint32_t)mp_read_uint_max(cursor, UINT32_MAX);
    state->limits.label_memory_max = mp_read_uint(cursor);
    state->limits.label_keep_ms = mp_read_uint(cursor);
    state->limits.precommit_timeout_ms = mp_read_uint(cursor);
    state->limits.prepare_timeout_ms = mp_read_uint(cursor);
    if (state->txn_low_water > state->next_txn)
        cursor_fail(cursor, TG_CORRUPT);
}

static void encode_members(const struct members *members, struct buf *out)
{
    mp_array(out, members->count + 2);
    mp_uint(out, members->placement_turn);
    mp_uint(out, members->dropped_high);
    for (uint32_t i = 0; i < members->count; i++) {
        const struct member *member = &members->list[i];
        mp_array(out, MEMBER_FIELDS);
        mp_uint(out, member->node);
        mp_uint(out, member->epoch);
        mp_uint(out, member->nonce);
        mp_str(out, member->uuid);
        mp_str(out, member->http);
        mp_str(out, member->rpc);
        mp_uint(out, member->registered_us);
        mp_uint(out, member->lost_below);
        mp_bool(out, member->draining);
    }
}

static void decode_members(struct cursor *cursor, uint32_t format, struct members *members)
{
    bool old = format <= SNAPSHOT_FORMAT_V5;
    uint32_t head = old ? 1 : 2;
    uint32_t items = mp_read_array(cursor, NODES_MAX + head);
    if (items < head)
        cursor_fail(cursor, TG_CORRUPT);
    members->placement_turn = mp_read_uint(cursor);
    if (!old)
        members->dropped_high = (node_id)mp_read_uint_max(cursor, UINT32_MAX - 1);
    for (uint32_t i = head; cursor->err == 0 && i < items; i++) {
        struct member *member = &members->list[members->count];
        mp_expect_array(cursor, format <= SNAPSHOT_FORMAT_V4   ? MEMBER_FIELDS_V4
                                : format <= SNAPSHOT_FORMAT_V5 ? MEMBER_FIELDS_V5
                                                               : MEMBER_FIELDS);
        member->node = (node_id)mp_read_uint_max(cursor, UINT32_MAX);
        member->epoch = mp_read_uint(cursor);
        member->nonce = mp_read_uint(cursor);
        mp_read_cstr(cursor, member->uuid, sizeof member->uuid);
        mp_read_cstr(cursor, member->http, sizeof member->http);
        mp_read_cstr(cursor, member->rpc, sizeof member->rpc);
        member->registered_us = mp_read_uint(cursor);
        member->lost_below = format > SNAPSHOT_FORMAT_V4 ? mp_read_uint(cursor) : 0;
        member->draining = !old && mp_read_bool(cursor);
        if (members->count > 0 && member[-1].node >= member->node)
            cursor_fail(cursor, TG_CORRUPT);
        members->count++;
    }
}

static void encode_coordinators(const struct coordinators *coordinators, struct buf *out)
{
    mp_array(out, coordinators->count + 2);
    mp_uint(out, coordinators->next_id);
    mp_uint(out, coordinators->changes);
    for (uint32_t i = 0; i < coordinators->count; i++) {
        const struct coordinator_record *record = &coordinators->list[i];
        mp_array(out, COORDINATOR_FIELDS);
        mp_uint(out, record->id);
        mp_uint(out, (uint64_t)record->standing);
        mp_uint(out, record->nonce);
        mp_str(out, record->raft);
        mp_str(out, record->rpc);
        mp_str(out, record->http);
    }
}

static void decode_coordinators(struct cursor *cursor, struct coordinators *coordinators)
{
    uint32_t items = mp_read_array(cursor, COORDINATORS_MAX + 2);
    if (items < 2)
        cursor_fail(cursor, TG_CORRUPT);
    coordinators->next_id = mp_read_uint_max(cursor, UINT32_MAX);
    coordinators->changes = mp_read_uint(cursor);
    for (uint32_t i = 2; cursor->err == 0 && i < items; i++) {
        struct coordinator_record *record = &coordinators->list[coordinators->count];
        mp_expect_array(cursor, COORDINATOR_FIELDS);
        record->id = mp_read_uint_max(cursor, UINT32_MAX);
        record->standing = (enum coordinator_standing)mp_read_uint_max(cursor, COORDINATOR_LEAVES);
        record->nonce = mp_read_uint(cursor);
        mp_read_cstr(cursor, record->raft, sizeof record->raft);
        mp_read_cstr(cursor, record->rpc, sizeof record->rpc);
        mp_read_cstr(cursor, record->http, sizeof record->http);
        if (record->standing == 0 || record->id >= coordinators->next_id ||
            (coordinators->count > 0 && record[-1].id >= record->id))
            cursor_fail(cursor, TG_CORRUPT);
        coordinators->count++;
    }
}

void state_encode(const struct state *state, struct buf *out)
{
    mp_array(out, SNAPSHOT_PARTS);
    mp_uint(out, SNAPSHOT_FORMAT);
    encode_head(state, out);
    encode_members(&state->members, out);
    catalog_encode(&state->catalog, out);
    txn_table_encode(&state->txns, out);
    statements_encode(&state->statements, out);
    encode_coordinators(&state->coordinators, out);
}

static uint32_t parts_of(uint64_t format)
{
    return format <= SNAPSHOT_FORMAT_V2   ? SNAPSHOT_PARTS_V2
           : format <= SNAPSHOT_FORMAT_V3 ? SNAPSHOT_PARTS_V3
                                          : SNAPSHOT_PARTS;
}

int state_decode(struct state *state, struct slice bytes, struct tg_errmsg *msg)
{
    struct cursor cursor;
    cursor_init(&cursor, bytes.data, bytes.len);
    uint32_t parts = mp_read_array(&cursor, UINT16_MAX);
    uint64_t format = mp_read_uint(&cursor);
    if (cursor.err == 0 &&
        (format < SNAPSHOT_FORMAT_V1 || format > SNAPSHOT_FORMAT || parts != parts_of(format)))
        return tg_fail(msg, TG_UNSUPPORTED,
                       "the snapshot has format %llu, this program knows %d to %d",
                       (unsigned long long)format, SNAPSHOT_FORMAT_V1, SNAPSHOT_FORMAT);
    decode_head(&cursor, state);
    if (cursor.err == 0)
        decode_members(&cursor, (uint32_t)format, &state->members);
    if (cursor.err == 0)
        cursor_fail(&cursor, catalog_decode(&cursor, (uint32_t)format, &state->catalog));
    if (cursor.err == 0)
        cursor_fail(&cursor, txn_table_decode(&cursor, (uint32_t)format, state));
    if (cursor.err == 0 && format > SNAPSHOT_FORMAT_V2)
        statements_decode(&cursor, &state->statements);
    if (cursor.err == 0 && format > SNAPSHOT_FORMAT_V3)
        decode_coordinators(&cursor, &state->coordinators);
    int err = cursor_finish(&cursor);
    if (err != 0)
        return tg_fail(msg, err, "the snapshot cannot be read at byte %zu: %s", cursor.at,
                       tg_err_sentence(err));
    return 0;
}

uint64_t state_hash(const struct state *state)
{
    struct buf bytes = BUF_INIT;
    state_encode(state, &bytes);
    TG_CHECK_MEMORY(bytes.err == 0);
    uint64_t hash = checksum64(bytes.data, bytes.len);
    buf_close(&bytes);
    return hash;
}
