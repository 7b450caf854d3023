/* SPDX-License-Identifier: Apache-2.0 */
/* Commands and batches to bytes. A command is its type, then an array of fields in a fixed order;
 * docs/formats.md has the table. */
#include "coordinator/state/command.h"

#include <stdlib.h>

#include "common/base/check.h"
#include "common/base/endian.h"
#include "common/base/msgpack.h"

bool request_key_equal(const struct request_key *a, const struct request_key *b)
{
    return a->node == b->node && a->epoch == b->epoch && a->request == b->request;
}

bool request_key_is_zero(const struct request_key *key)
{
    return key->node == 0 && key->epoch == 0 && key->request == 0;
}

void command_close(struct command *command)
{
    switch (command->type) {
    case COMMAND_CREATE_TABLE:
        schema_close(&command->create_table.schema);
        free(command->create_table.comment);
        command->create_table.comment = NULL;
        break;
    case COMMAND_LOAD_DONE:
        free(command->load_done.message.tablets);
        command->load_done.message.tablets = NULL;
        command->load_done.message.tablet_count = 0;
        break;
    case COMMAND_TXN_VISIBLE:
    case COMMAND_TXN_CONFIRM:
        for (uint32_t i = 0; i < command->visible.count; i++)
            free(command->visible.txns[i].confirmed);
        free(command->visible.txns);
        command->visible.txns = NULL;
        command->visible.count = 0;
        break;
    case COMMAND_FORGET:
        free(command->forget.txns);
        command->forget.txns = NULL;
        command->forget.count = 0;
        break;
    default:
        break; /* owns nothing */
    }
}

static void encode_key(const struct request_key *key, struct buf *out)
{
    mp_uint(out, key->node);
    mp_uint(out, key->epoch);
    mp_uint(out, key->request);
}

static void encode_register(const struct msg_register *message, struct buf *out)
{
    mp_array(out, 7);
    mp_uint(out, message->wanted);
    mp_str(out, message->node_uuid);
    mp_str(out, message->cluster_uuid);
    mp_uint(out, message->previous_nonce);
    mp_uint(out, message->new_nonce);
    mp_str(out, message->http);
    mp_str(out, message->rpc);
}

static void encode_create_table(const struct command_create_table *command, struct buf *out)
{
    bool has_key = !request_key_is_zero(&command->key);
    mp_array(out, has_key ? 11 + REQUEST_KEY_FIELDS : 11);
    mp_str(out, command->db);
    mp_str(out, command->table);
    mp_bool(out, command->if_not_exists);
    schema_encode(&command->schema, out);
    mp_array(out, command->distribution_count);
    for (uint32_t i = 0; i < command->distribution_count; i++)
        mp_uint(out, command->distribution[i]);
    mp_uint(out, command->bucket_count);
    mp_uint(out, command->replication);
    mp_bool(out, command->write_all);
    mp_bool(out, command->occ);
    if (command->comment != NULL)
        mp_str(out, command->comment);
    else
        mp_nil(out);
    mp_array(out, command->candidate_count);
    for (uint32_t i = 0; i < command->candidate_count; i++)
        mp_uint(out, command->candidates[i]);
    if (has_key)
        encode_key(&command->key, out);
}

static void encode_name(const struct command_name *command, struct buf *out)
{
    bool has_key = !request_key_is_zero(&command->key);
    mp_array(out, has_key ? 4 + REQUEST_KEY_FIELDS : 4);
    mp_str(out, command->db);
    mp_str(out, command->table);
    mp_bool(out, command->if_exists);
    mp_bool(out, command->force);
    if (has_key)
        encode_key(&command->key, out);
}

static void encode_begin(const struct command_begin *command, struct buf *out)
{
    mp_array(out, 9);
    encode_key(&command->key, out);
    mp_str(out, command->db);
    mp_str(out, command->table);
    mp_str(out, command->label);
    mp_str(out, command->user);
    mp_bool(out, command->two_phase);
    mp_uint(out, command->timeout_ms);
}

static void encode_load_start(const struct command_load_start *command, struct buf *out)
{
    mp_array(out, 6);
    encode_key(&command->key, out);
    mp_uint(out, command->txn);
    mp_str(out, command->db);
    mp_str(out, command->table);
}

/* wait_visible_ms is between the two programs and no part of the change. */
static void encode_load_done(const struct msg_load_done *message, struct buf *out)
{
    mp_array(out, 10);
    mp_uint(out, message->node);
    mp_uint(out, message->epoch);
    mp_uint(out, message->request_id);
    mp_uint(out, message->txn);
    mp_uint(out, message->rowset);
    mp_uint(out, message->placement_epoch);
    mp_uint(out, message->finish);
    mp_uint(out, message->rows);
    mp_uint(out, message->bytes);
    mp_array(out, message->tablet_count * COMMAND_REPORT_FIELDS);
    for (uint32_t i = 0; i < message->tablet_count; i++) {
        const struct load_report_tablet *tablet = &message->tablets[i];
        mp_uint(out, tablet->tablet);
        mp_uint(out, tablet->sealed);
        mp_uint(out, tablet->rows);
        mp_uint(out, tablet->bytes);
        mp_bin(out, tablet->digest.bytes, sizeof tablet->digest.bytes);
    }
}

static void encode_load_failed(const struct command_load_failed *command, struct buf *out)
{
    mp_array(out, 6);
    encode_key(&command->key, out);
    mp_uint(out, command->txn);
    mp_uint(out, command->rowset);
    mp_str(out, command->reason);
}

static void encode_finish(const struct command_finish *command, struct buf *out)
{
    mp_array(out, 8);
    mp_uint(out, command->txn);
    mp_uint(out, command->db);
    encode_key(&command->key, out);
    mp_uint(out, command->expect_state);
    mp_uint(out, command->expect_seq);
    mp_str(out, command->reason);
}

static void encode_visible(const struct command_visible *command, struct buf *out)
{
    mp_array(out, command->count * COMMAND_VISIBLE_FIELDS);
    for (uint32_t i = 0; i < command->count; i++) {
        const struct visible_txn *txn = &command->txns[i];
        mp_uint(out, txn->txn);
        mp_bool(out, txn->one_is_enough);
        mp_bin(out, txn->confirmed, txn->tablet_count);
    }
}

static void encode_behind(const struct command_behind *command, struct buf *out)
{
    mp_array(out, 3);
    mp_uint(out, command->tablet);
    mp_uint(out, command->node);
    mp_uint(out, command->txn);
}

static void encode_replica(const struct command_replica *command, struct buf *out)
{
    mp_array(out, 3);
    mp_uint(out, command->tablet);
    mp_uint(out, command->node);
    mp_uint(out, command->version);
}

static void encode_coordinator(const struct command_coordinator *command, struct buf *out)
{
    mp_array(out, 5);
    mp_uint(out, command->id);
    mp_uint(out, command->nonce);
    mp_str(out, command->raft);
    mp_str(out, command->rpc);
    mp_str(out, command->http);
}

static void encode_proven(const struct command_proven *command, struct buf *out)
{
    mp_array(out, 5);
    mp_uint(out, command->tablet);
    mp_uint(out, command->node);
    mp_uint(out, command->bound);
    mp_uint(out, command->version);
    mp_bin(out, command->chain.bytes, sizeof command->chain.bytes);
}

static void encode_lost(const struct command_lost *command, struct buf *out)
{
    mp_array(out, 2);
    mp_uint(out, command->tablet);
    mp_uint(out, command->kept);
}

static void encode_node(const struct command_node *command, struct buf *out)
{
    mp_array(out, 3);
    mp_uint(out, command->node);
    mp_uint(out, command->epoch);
    mp_bool(out, command->drain);
}

static void encode_move(const struct command_move *command, struct buf *out)
{
    mp_array(out, 3);
    mp_uint(out, command->tablet);
    mp_uint(out, command->node);
    mp_uint(out, command->placement_epoch);
}

static void encode_forget(const struct command_forget *command, struct buf *out)
{
    mp_array(out, command->count);
    for (uint32_t i = 0; i < command->count; i++)
        mp_uint(out, command->txns[i]);
}

static void encode_limits(const struct limits *limits, struct buf *out)
{
    mp_array(out, 3);
    mp_uint(out, limits->running_txns_per_db_max);
    mp_uint(out, limits->unpublished_per_table_max);
    mp_uint(out, limits->label_memory_max);
}

void command_encode(const struct command *command, struct buf *out)
{
    mp_uint(out, command->type);
    switch (command->type) {
    case COMMAND_CLUSTER_INIT:
        mp_array(out, 1);
        mp_str(out, command->cluster_init.uuid);
        return;
    case COMMAND_MEMBER_REGISTER:
    case COMMAND_MEMBER_REJOIN:
        encode_register(&command->member.message, out);
        return;
    case COMMAND_CREATE_TABLE:
        encode_create_table(&command->create_table, out);
        return;
    case COMMAND_CREATE_DB:
    case COMMAND_DROP_DB:
    case COMMAND_DROP_TABLE:
    case COMMAND_TRUNCATE_TABLE:
        encode_name(&command->name, out);
        return;
    case COMMAND_TXN_BEGIN:
        encode_begin(&command->begin, out);
        return;
    case COMMAND_SET_LIMITS:
        encode_limits(&command->limits.limits, out);
        return;
    case COMMAND_LOAD_START:
        encode_load_start(&command->load_start, out);
        return;
    case COMMAND_LOAD_DONE:
        encode_load_done(&command->load_done.message, out);
        return;
    case COMMAND_LOAD_FAILED:
        encode_load_failed(&command->load_failed, out);
        return;
    case COMMAND_TXN_PRECOMMIT:
    case COMMAND_TXN_COMMIT:
    case COMMAND_TXN_ABORT:
        encode_finish(&command->finish, out);
        return;
    case COMMAND_TXN_VISIBLE:
    case COMMAND_TXN_CONFIRM:
        encode_visible(&command->visible, out);
        return;
    case COMMAND_REPLICA_BEHIND:
        encode_behind(&command->behind, out);
        return;
    case COMMAND_REPLICA_LACKS:
    case COMMAND_REPLICA_CATCH:
    case COMMAND_REPLICA_HEALED:
        encode_replica(&command->replica, out);
        return;
    case COMMAND_REPLICA_PROVEN:
        encode_proven(&command->proven, out);
        return;
    case COMMAND_DECLARE_LOST:
        encode_lost(&command->lost, out);
        return;
    case COMMAND_FORGET:
        encode_forget(&command->forget, out);
        return;
    case COMMAND_COORDINATOR_FOUND:
    case COMMAND_COORDINATOR_ADD:
    case COMMAND_COORDINATOR_PROMOTE:
    case COMMAND_COORDINATOR_DROP:
    case COMMAND_COORDINATOR_GONE:
        encode_coordinator(&command->coordinator, out);
        return;
    case COMMAND_NODE_DRAIN:
    case COMMAND_NODE_DROP:
        encode_node(&command->node, out);
        return;
    case COMMAND_REPLICA_ADD:
    case COMMAND_REPLICA_REMOVE:
        encode_move(&command->move, out);
        return;
    }
    TG_UNREACHABLE();
}

/* byte 0: format · 1..3: zero · 4..7: count · 8..15: stamp · 16..23: elapsed delta, little-endian
 */
void batch_begin(const struct batch_header *header, struct buf *out)
{
    buf_append_u8(out, COMMAND_FORMAT);
    buf_append(out, "\0\0\0", 3);
    buf_append_u32le(out, header->count);
    buf_append_u64le(out, header->stamp_us);
    buf_append_u64le(out, header->elapsed_delta_ms);
}

void batch_end(struct buf *out)
{
    while (out->err == 0 && out->len % BATCH_ALIGN != 0)
        buf_append_u8(out, 0);
}

int batch_decode_header(struct cursor *cursor, struct batch_header *header)
{
    uint8_t format = cursor_u8(cursor);
    if (cursor->err == 0 && format != COMMAND_FORMAT) {
        cursor_fail(cursor, TG_UNSUPPORTED);
        return TG_UNSUPPORTED;
    }
    for (int i = 0; i < 3; i++) {
        if (cursor_u8(cursor) != 0)
            cursor_fail(cursor, TG_CORRUPT);
    }
    *header = (struct batch_header){.count = cursor_u32le(cursor)};
    header->stamp_us = cursor_u64le(cursor);
    header->elapsed_delta_ms = cursor_u64le(cursor);
    if (header->count > BATCH_COMMANDS_MAX)
        cursor_fail(cursor, TG_CORRUPT);
    return cursor->err;
}

int batch_decode_end(struct cursor *cursor)
{
    if (cursor_left(cursor) >= BATCH_ALIGN)
        cursor_fail(cursor, TG_CORRUPT);
    while (cursor_left(cursor) > 0) {
        if (cursor_u8(cursor) != 0)
            cursor_fail(cursor, TG_CORRUPT);
    }
    return cursor->err;
}
