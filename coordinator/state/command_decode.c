/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to commands. Everything is checked here that apply relies on: lengths, final zeros, known
 * numbers. */
#include <stdlib.h>
#include <string.h>

#include "common/base/msgpack.h"
#include "coordinator/state/command.h"

enum { COMMENT_MAX = BATCH_BYTES_MAX }; /* bytes of a table's comment: as long as a batch can be */

/* A number of 0..max that an enum may take. */
static unsigned read_enum(struct cursor *cursor, unsigned max)
{
    return (unsigned)mp_read_uint_max(cursor, max);
}

static void *read_list(struct cursor *cursor, uint32_t count, size_t size)
{
    void *list = cursor->err != 0 ? NULL : calloc(count > 0 ? count : 1, size);
    if (list == NULL)
        cursor_fail(cursor, TG_NOMEM);
    return list;
}

static void read_key(struct cursor *cursor, struct request_key *key)
{
    key->node = (node_id)mp_read_uint_max(cursor, UINT32_MAX);
    key->epoch = mp_read_uint(cursor);
    key->request = mp_read_uint(cursor);
}

#define READ_CSTR(cursor, field) mp_read_cstr(cursor, field, sizeof(field))

static void decode_register(struct cursor *cursor, struct msg_register *message)
{
    mp_expect_array(cursor, 7);
    message->wanted = (node_id)mp_read_uint_max(cursor, UINT32_MAX);
    READ_CSTR(cursor, message->node_uuid);
    READ_CSTR(cursor, message->cluster_uuid);
    message->previous_nonce = mp_read_uint(cursor);
    message->new_nonce = mp_read_uint(cursor);
    READ_CSTR(cursor, message->http);
    READ_CSTR(cursor, message->rpc);
}

/* The key of a statement came later than these commands: it stands at their end, or not at all. */
static bool read_has_key(struct cursor *cursor, uint32_t fields)
{
    uint32_t count = mp_read_array(cursor, fields + REQUEST_KEY_FIELDS);
    if (count != fields && count != fields + REQUEST_KEY_FIELDS)
        cursor_fail(cursor, TG_CORRUPT);
    return count == fields + REQUEST_KEY_FIELDS;
}

static void decode_create_table(struct cursor *cursor, struct command_create_table *command)
{
    schema_init(&command->schema);
    bool has_key = read_has_key(cursor, 11);
    READ_CSTR(cursor, command->db);
    READ_CSTR(cursor, command->table);
    command->if_not_exists = mp_read_bool(cursor);
    int err = cursor->err != 0 ? 0 : schema_decode(cursor, &command->schema);
    if (err != 0)
        cursor_fail(cursor, err);
    command->distribution_count =
        mp_read_array(cursor, sizeof command->distribution / sizeof command->distribution[0]);
    for (uint32_t i = 0; i < command->distribution_count; i++)
        command->distribution[i] = (uint32_t)mp_read_uint_max(cursor, COLUMNS_MAX);
    command->bucket_count = (uint32_t)mp_read_uint_max(cursor, UINT32_MAX);
    command->replication = (uint8_t)mp_read_uint_max(cursor, UINT8_MAX);
    command->write_all = mp_read_bool(cursor);
    command->occ = mp_read_bool(cursor);
    if (cursor->err == 0 && !mp_read_nil(cursor)) {
        struct slice text = mp_read_str(cursor, COMMENT_MAX);
        if (text.len > 0 && memchr(text.data, 0, text.len) != NULL)
            cursor_fail(cursor, TG_CORRUPT);
        command->comment = cursor->err == 0 ? strndup((const char *)text.data, text.len) : NULL;
        if (cursor->err == 0 && command->comment == NULL)
            cursor_fail(cursor, TG_NOMEM);
    }
    command->candidate_count = mp_read_array(cursor, NODES_MAX);
    for (uint32_t i = 0; i < command->candidate_count; i++)
        command->candidates[i] = (node_id)mp_read_uint_max(cursor, UINT32_MAX);
    if (has_key)
        read_key(cursor, &command->key);
}

static void decode_name(struct cursor *cursor, struct command_name *command)
{
    bool has_key = read_has_key(cursor, 4);
    READ_CSTR(cursor, command->db);
    READ_CSTR(cursor, command->table);
    command->if_exists = mp_read_bool(cursor);
    command->force = mp_read_bool(cursor);
    if (has_key)
        read_key(cursor, &command->key);
}

static void decode_begin(struct cursor *cursor, struct command_begin *command)
{
    mp_expect_array(cursor, 9);
    read_key(cursor, &command->key);
    READ_CSTR(cursor, command->db);
    READ_CSTR(cursor, command->table);
    READ_CSTR(cursor, command->label);
    READ_CSTR(cursor, command->user);
    command->two_phase = mp_read_bool(cursor);
    command->timeout_ms = mp_read_uint(cursor);
}

static void decode_limits(struct cursor *cursor, struct limits *limits)
{
    mp_expect_array(cursor, 3);
    limits->running_txns_per_db_max = (uint32_t)mp_read_uint_max(cursor, UINT32_MAX);
    limits->unpublished_per_table_max = (uint32_t)mp_read_uint_max(cursor, UINT32_MAX);
    limits->label_memory_max = mp_read_uint(cursor);
}

static void decode_load_start(struct cursor *cursor, struct command_load_start *command)
{
    mp_expect_array(cursor, 6);
    read_key(cursor, &command->key);
    command->txn = mp_read_uint(cursor);
    READ_CSTR(cursor, command->db);
    READ_CSTR(cursor, command->table);
}

/* A flat array holds `fields` items for each thing; the count of things. */
static uint32_t read_groups(struct cursor *cursor, uint32_t fields)
{
    uint32_t items = mp_read_array(cursor, BATCH_BYTES_MAX);
    if (items % fields != 0)
        cursor_fail(cursor, TG_CORRUPT);
    return cursor->err != 0 ? 0 : items / fields;
}

static void decode_load_done(struct cursor *cursor, struct msg_load_done *message)
{
    mp_expect_array(cursor, 10);
    message->node = (node_id)mp_read_uint_max(cursor, UINT32_MAX);
    message->epoch = mp_read_uint(cursor);
    message->request_id = mp_read_uint(cursor);
    message->txn = mp_read_uint(cursor);
    message->rowset = mp_read_uint(cursor);
    message->placement_epoch = mp_read_uint(cursor);
    message->finish = (enum load_finish)read_enum(cursor, LOAD_FINISH_COMMIT);
    message->rows = mp_read_uint(cursor);
    message->bytes = mp_read_uint(cursor);
    uint32_t count = read_groups(cursor, COMMAND_REPORT_FIELDS);
    message->tablets = read_list(cursor, count, sizeof *message->tablets);
    for (uint32_t i = 0; cursor->err == 0 && i < count; i++) {
        struct load_report_tablet *tablet = &message->tablets[i];
        tablet->tablet = mp_read_uint(cursor);
        tablet->sealed = (uint8_t)mp_read_uint_max(cursor, UINT8_MAX);
        tablet->rows = mp_read_uint(cursor);
        tablet->bytes = mp_read_uint(cursor);
        struct slice digest = mp_read_bin(cursor, sizeof tablet->digest.bytes);
        if (digest.len != sizeof tablet->digest.bytes)
            cursor_fail(cursor, TG_CORRUPT);
        else
            memcpy(tablet->digest.bytes, digest.data, digest.len);
        message->tablet_count = i + 1;
    }
}

static void decode_load_failed(struct cursor *cursor, struct command_load_failed *command)
{
    mp_expect_array(cursor, 6);
    read_key(cursor, &command->key);
    command->txn = mp_read_uint(cursor);
    command->rowset = mp_read_uint(cursor);
    READ_CSTR(cursor, command->reason);
}

static void decode_finish(struct cursor *cursor, struct command_finish *command)
{
    mp_expect_array(cursor, 8);
    command->txn = mp_read_uint(cursor);
    command->db = mp_read_uint(cursor);
    read_key(cursor, &command->key);
    command->expect_state = (enum txn_state)read_enum(cursor, TXN_PRECOMMITTED);
    command->expect_seq = mp_read_uint(cursor);
    READ_CSTR(cursor, command->reason);
}

static void decode_visible(struct cursor *cursor, struct command_visible *command)
{
    uint32_t count = read_groups(cursor, COMMAND_VISIBLE_FIELDS);
    command->txns = read_list(cursor, count, sizeof *command->txns);
    for (uint32_t i = 0; cursor->err == 0 && i < count; i++) {
        struct visible_txn *txn = &command->txns[i];
        txn->txn = mp_read_uint(cursor);
        txn->one_is_enough = mp_read_bool(cursor);
        struct slice bits = mp_read_bin(cursor, BATCH_BYTES_MAX);
        txn->confirmed = read_list(cursor, (uint32_t)bits.len, 1);
        if (cursor->err == 0 && bits.len > 0)
            memcpy(txn->confirmed, bits.data, bits.len);
        txn->tablet_count = (uint32_t)bits.len;
        command->count = i + 1;
    }
}

static void decode_behind(struct cursor *cursor, struct command_behind *command)
{
    mp_expect_array(cursor, 3);
    command->tablet = mp_read_uint(cursor);
    command->node = (node_id)mp_read_uint_max(cursor, UINT32_MAX);
    command->txn = mp_read_uint(cursor);
}

static void decode_replica(struct cursor *cursor, struct command_replica *command)
{
    mp_expect_array(cursor, 3);
    command->tablet = mp_read_uint(cursor);
    command->node = (node_id)mp_read_uint_max(cursor, UINT32_MAX);
    command->version = mp_read_uint(cursor);
}

static void decode_proven(struct cursor *cursor, struct command_proven *command)
{
    mp_expect_array(cursor, 5);
    command->tablet = mp_read_uint(cursor);
    command->node = (node_id)mp_read_uint_max(cursor, UINT32_MAX);
    command->bound = mp_read_uint(cursor);
    command->version = mp_read_uint(cursor);
    struct slice chain = mp_read_bin(cursor, sizeof command->chain.bytes);
    if (chain.len == sizeof command->chain.bytes)
        memcpy(command->chain.bytes, chain.data, chain.len);
    else
        cursor_fail(cursor, TG_CORRUPT);
}

static void decode_lost(struct cursor *cursor, struct command_lost *command)
{
    mp_expect_array(cursor, 2);
    command->tablet = mp_read_uint(cursor);
    command->kept = mp_read_uint(cursor);
}

static void decode_node(struct cursor *cursor, struct command_node *command)
{
    mp_expect_array(cursor, 3);
    command->node = (node_id)mp_read_uint_max(cursor, UINT32_MAX);
    command->epoch = mp_read_uint(cursor);
    command->drain = mp_read_bool(cursor);
}

static void decode_move(struct cursor *cursor, struct command_move *command)
{
    mp_expect_array(cursor, 3);
    command->tablet = mp_read_uint(cursor);
    command->node = (node_id)mp_read_uint_max(cursor, UINT32_MAX);
    command->placement_epoch = mp_read_uint(cursor);
}

static void decode_forget(struct cursor *cursor, struct command_forget *command)
{
    uint32_t count = mp_read_array(cursor, BATCH_BYTES_MAX);
    command->txns = read_list(cursor, count, sizeof *command->txns);
    for (uint32_t i = 0; cursor->err == 0 && i < count; i++) {
        command->txns[i] = mp_read_uint(cursor);
        command->count = i + 1;
    }
}

static void decode_coordinator(struct cursor *cursor, struct command_coordinator *command)
{
    mp_expect_array(cursor, 5);
    command->id = mp_read_uint_max(cursor, UINT32_MAX);
    command->nonce = mp_read_uint(cursor);
    READ_CSTR(cursor, command->raft);
    READ_CSTR(cursor, command->rpc);
    READ_CSTR(cursor, command->http);
}

static void decode_fields(struct cursor *cursor, struct command *command)
{
    switch (command->type) {
    case COMMAND_CLUSTER_INIT:
        mp_expect_array(cursor, 1);
        READ_CSTR(cursor, command->cluster_init.uuid);
        return;
    case COMMAND_MEMBER_REGISTER:
    case COMMAND_MEMBER_REJOIN:
        decode_register(cursor, &command->member.message);
        return;
    case COMMAND_CREATE_TABLE:
        decode_create_table(cursor, &command->create_table);
        return;
    case COMMAND_CREATE_DB:
    case COMMAND_DROP_DB:
    case COMMAND_DROP_TABLE:
    case COMMAND_TRUNCATE_TABLE:
        decode_name(cursor, &command->name);
        return;
    case COMMAND_TXN_BEGIN:
        decode_begin(cursor, &command->begin);
        return;
    case COMMAND_SET_LIMITS:
        decode_limits(cursor, &command->limits.limits);
        return;
    case COMMAND_LOAD_START:
        decode_load_start(cursor, &command->load_start);
        return;
    case COMMAND_LOAD_DONE:
        decode_load_done(cursor, &command->load_done.message);
        return;
    case COMMAND_LOAD_FAILED:
        decode_load_failed(cursor, &command->load_failed);
        return;
    case COMMAND_TXN_PRECOMMIT:
    case COMMAND_TXN_COMMIT:
    case COMMAND_TXN_ABORT:
        decode_finish(cursor, &command->finish);
        return;
    case COMMAND_TXN_VISIBLE:
    case COMMAND_TXN_CONFIRM:
        decode_visible(cursor, &command->visible);
        return;
    case COMMAND_REPLICA_BEHIND:
        decode_behind(cursor, &command->behind);
        return;
    case COMMAND_REPLICA_LACKS:
    case COMMAND_REPLICA_CATCH:
    case COMMAND_REPLICA_HEALED:
        decode_replica(cursor, &command->replica);
        return;
    case COMMAND_REPLICA_PROVEN:
        decode_proven(cursor, &command->proven);
        return;
    case COMMAND_DECLARE_LOST:
        decode_lost(cursor, &command->lost);
        return;
    case COMMAND_FORGET:
        decode_forget(cursor, &command->forget);
        return;
    case COMMAND_COORDINATOR_FOUND:
    case COMMAND_COORDINATOR_ADD:
    case COMMAND_COORDINATOR_PROMOTE:
    case COMMAND_COORDINATOR_DROP:
    case COMMAND_COORDINATOR_GONE:
        decode_coordinator(cursor, &command->coordinator);
        return;
    case COMMAND_NODE_DRAIN:
    case COMMAND_NODE_DROP:
        decode_node(cursor, &command->node);
        return;
    case COMMAND_REPLICA_ADD:
    case COMMAND_REPLICA_REMOVE:
        decode_move(cursor, &command->move);
        return;
    }
    cursor_fail(cursor, TG_UNSUPPORTED);
}

int command_decode(struct cursor *cursor, struct command *command)
{
    memset(command, 0, sizeof *command);
    command->type = (enum command_type)mp_read_uint_max(cursor, UINT16_MAX);
    if (cursor->err == 0)
        decode_fields(cursor, command);
    if (cursor->err != 0) {
        command_close(command);
        memset(command, 0, sizeof *command);
    }
    return cursor->err;
}
