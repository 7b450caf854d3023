/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_TXN_BEGIN and its plan: codecs. */
#include "common/proto/msg_txn.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/msgpack.h"
#include "common/proto/codec.h"

enum { BEGIN_FIELDS = 10, BEGIN_REPLY_FIELDS = 12, PLAN_TABLET_FIELDS = 5, PLAN_NODE_FIELDS = 2 };

void msg_txn_begin_encode(const struct msg_txn_begin *message, struct buf *out)
{
    codec_begin(out, BEGIN_FIELDS);
    mp_uint(out, message->node);
    mp_uint(out, message->epoch);
    mp_uint(out, message->request_id);
    mp_str(out, message->db);
    mp_str(out, message->table);
    mp_str(out, message->label);
    mp_str(out, message->user);
    mp_uint(out, message->join);
    mp_bool(out, message->two_phase);
    mp_uint(out, message->timeout_ms);
}

int msg_txn_begin_decode(struct slice head, struct msg_txn_begin *message)
{
    struct cursor cursor;
    memset(message, 0, sizeof *message);
    codec_open(&cursor, head, BEGIN_FIELDS);
    message->node = codec_read_u32(&cursor);
    message->epoch = mp_read_uint(&cursor);
    message->request_id = mp_read_uint(&cursor);
    mp_read_cstr(&cursor, message->db, sizeof message->db);
    mp_read_cstr(&cursor, message->table, sizeof message->table);
    mp_read_cstr(&cursor, message->label, sizeof message->label);
    mp_read_cstr(&cursor, message->user, sizeof message->user);
    message->join = mp_read_uint(&cursor);
    message->two_phase = mp_read_bool(&cursor);
    message->timeout_ms = mp_read_uint(&cursor);
    return cursor_finish(&cursor);
}

/* The transaction's label in front of the plan. */
enum { BEGIN_LABEL_FIELDS = 1 };

void msg_txn_begin_reply_init(struct msg_txn_begin_reply *reply)
{
    memset(reply, 0, sizeof *reply);
    schema_init(&reply->schema);
}

void msg_txn_begin_reply_encode(const struct msg_txn_begin_reply *reply, struct buf *out)
{
    codec_begin(out, BEGIN_REPLY_FIELDS + BEGIN_LABEL_FIELDS);
    mp_uint(out, reply->txn);
    mp_uint(out, (uint64_t)reply->state);
    mp_uint(out, reply->rowset);
    mp_uint(out, reply->load_no);
    mp_uint(out, reply->table);
    mp_uint(out, reply->placement_epoch);
    mp_uint(out, reply->timeout_ms);
    mp_bool(out, reply->write_all);
    mp_str(out, reply->label);
    /* A refusal (the label is used) has no plan, so no schema either. */
    if (reply->schema.column_count == 0)
        mp_nil(out);
    else
        schema_encode(&reply->schema, out);
    mp_array(out, reply->bucket_count);
    for (uint32_t i = 0; i < reply->bucket_count; i++) {
        const struct load_plan_tablet *tablet = &reply->tablets[i];
        mp_array(out, PLAN_TABLET_FIELDS);
        mp_uint(out, tablet->tablet);
        codec_write_nodes(out, tablet->replicas, tablet->replica_count);
        mp_uint(out, tablet->behind);
        mp_uint(out, tablet->catching);
        mp_uint(out, tablet->quorum);
    }
    codec_write_u32s(out, reply->distribution, reply->distribution_count);
    mp_array(out, reply->node_count);
    for (uint32_t i = 0; i < reply->node_count; i++) {
        mp_array(out, PLAN_NODE_FIELDS);
        mp_uint(out, reply->nodes[i].node);
        mp_str(out, reply->nodes[i].rpc);
    }
}

static void read_plan(struct cursor *cursor, struct msg_txn_begin_reply *reply)
{
    reply->tablets =
        codec_read_list(cursor, BUCKETS_MAX, sizeof *reply->tablets, &reply->bucket_count);
    for (uint32_t i = 0; i < reply->bucket_count && cursor->err == 0; i++) {
        struct load_plan_tablet *tablet = &reply->tablets[i];
        mp_expect_array(cursor, PLAN_TABLET_FIELDS);
        tablet->tablet = mp_read_uint(cursor);
        tablet->replica_count = codec_read_nodes(cursor, tablet->replicas);
        tablet->behind = (uint8_t)mp_read_uint_max(cursor, (1u << tablet->replica_count) - 1);
        tablet->catching = (uint8_t)mp_read_uint_max(cursor, tablet->behind);
        tablet->quorum = (uint8_t)mp_read_uint_max(cursor, REPLICAS_MAX);
        if ((tablet->catching & ~tablet->behind) != 0)
            cursor_fail(cursor, TG_CORRUPT);
    }
    reply->distribution = codec_read_u32s(cursor, COLUMNS_MAX, &reply->distribution_count);
    for (uint32_t i = 0; i < reply->distribution_count; i++) {
        if (reply->distribution[i] >= reply->schema.column_count)
            cursor_fail(cursor, TG_CORRUPT);
    }
    reply->nodes = codec_read_list(cursor, NODES_MAX, sizeof *reply->nodes, &reply->node_count);
    for (uint32_t i = 0; i < reply->node_count && cursor->err == 0; i++) {
        mp_expect_array(cursor, PLAN_NODE_FIELDS);
        reply->nodes[i].node = codec_read_u32(cursor);
        mp_read_cstr(cursor, reply->nodes[i].rpc, sizeof reply->nodes[i].rpc);
    }
}

int msg_txn_begin_reply_decode(struct slice head, struct msg_txn_begin_reply *reply)
{
    struct cursor cursor;
    msg_txn_begin_reply_init(reply);
    codec_open(&cursor, head, BEGIN_REPLY_FIELDS + BEGIN_LABEL_FIELDS);
    reply->txn = mp_read_uint(&cursor);
    reply->state = (enum txn_state)mp_read_uint_max(&cursor, TXN_PRECOMMITTED);
    reply->rowset = mp_read_uint(&cursor);
    reply->load_no = codec_read_u32(&cursor);
    reply->table = mp_read_uint(&cursor);
    reply->placement_epoch = mp_read_uint(&cursor);
    reply->timeout_ms = mp_read_uint(&cursor);
    reply->write_all = mp_read_bool(&cursor);
    mp_read_cstr(&cursor, reply->label, sizeof reply->label);
    if (cursor.err == 0 && !mp_read_nil(&cursor)) {
        int err = schema_decode(&cursor, &reply->schema);
        if (err != 0)
            cursor_fail(&cursor, err);
    }
    if (cursor.err == 0)
        read_plan(&cursor, reply);
    int err = cursor_finish(&cursor);
    if (err != 0)
        msg_txn_begin_reply_close(reply);
    return err;
}

void msg_txn_begin_reply_close(struct msg_txn_begin_reply *reply)
{
    schema_close(&reply->schema);
    free(reply->tablets);
    free(reply->distribution);
    free(reply->nodes);
    msg_txn_begin_reply_init(reply);
}
