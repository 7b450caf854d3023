/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_READ_POINT: codecs. */
#include "common/proto/msg_read.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/msgpack.h"
#include "common/proto/codec.h"

enum {
    POINT_FIELDS = 6,
    BOUND_FIELDS = 2,
    POINT_REPLY_FIELDS = 9,
    TABLET_FIELDS = 4,
    NODE_FIELDS = 3,
    VERSION_FIELDS = 4
};

static void write_bound(struct buf *out, struct read_bound bound)
{
    mp_array(out, BOUND_FIELDS);
    mp_uint(out, (uint64_t)bound.at);
    mp_uint(out, bound.value);
}

static struct read_bound read_bound(struct cursor *cursor)
{
    struct read_bound bound;
    mp_expect_array(cursor, BOUND_FIELDS);
    bound.at = (enum read_at)mp_read_uint_max(cursor, READ_TIME);
    bound.value = mp_read_uint(cursor);
    return bound;
}

void msg_read_point_encode(const struct msg_read_point *message, struct buf *out)
{
    codec_begin(out, POINT_FIELDS);
    mp_str(out, message->db);
    mp_str(out, message->table);
    write_bound(out, message->bound);
    mp_bool(out, message->with_changes);
    write_bound(out, message->after);
    mp_bool(out, message->local);
}

int msg_read_point_decode(struct slice head, struct msg_read_point *message)
{
    struct cursor cursor;
    memset(message, 0, sizeof *message);
    codec_open(&cursor, head, POINT_FIELDS);
    mp_read_cstr(&cursor, message->db, sizeof message->db);
    mp_read_cstr(&cursor, message->table, sizeof message->table);
    message->bound = read_bound(&cursor);
    message->with_changes = mp_read_bool(&cursor);
    message->after = read_bound(&cursor);
    message->local = mp_read_bool(&cursor);
    return cursor_finish(&cursor);
}

void msg_read_point_reply_init(struct msg_read_point_reply *reply)
{
    memset(reply, 0, sizeof *reply);
    schema_init(&reply->schema);
}

void msg_read_point_reply_encode(const struct msg_read_point_reply *reply, struct buf *out)
{
    codec_begin(out, POINT_REPLY_FIELDS);
    mp_uint(out, reply->table);
    mp_uint(out, reply->version);
    mp_uint(out, reply->time_us);
    mp_uint(out, reply->after);
    schema_encode(&reply->schema, out);
    codec_write_u32s(out, reply->distribution, reply->distribution_count);
    mp_array(out, reply->tablet_count);
    for (uint32_t i = 0; i < reply->tablet_count; i++) {
        const struct read_point_tablet *tablet = &reply->tablets[i];
        mp_array(out, TABLET_FIELDS);
        mp_uint(out, tablet->tablet);
        mp_uint(out, tablet->need);
        mp_uint(out, tablet->ready);
        codec_write_nodes(out, tablet->replicas, tablet->replica_count);
    }
    mp_array(out, reply->node_count);
    for (uint32_t i = 0; i < reply->node_count; i++) {
        mp_array(out, NODE_FIELDS);
        mp_uint(out, reply->nodes[i].node);
        mp_uint(out, reply->nodes[i].epoch);
        mp_str(out, reply->nodes[i].rpc);
    }
    mp_array(out, reply->version_count);
    for (uint32_t i = 0; i < reply->version_count; i++) {
        const struct read_point_version *version = &reply->versions[i];
        mp_array(out, VERSION_FIELDS);
        mp_uint(out, version->version);
        mp_uint(out, version->time_us);
        mp_uint(out, version->txn);
        mp_bool(out, version->replace);
    }
}

static void read_places(struct cursor *cursor, struct msg_read_point_reply *reply)
{
    reply->tablets =
        codec_read_list(cursor, BUCKETS_MAX, sizeof *reply->tablets, &reply->tablet_count);
    for (uint32_t i = 0; i < reply->tablet_count && cursor->err == 0; i++) {
        struct read_point_tablet *tablet = &reply->tablets[i];
        mp_expect_array(cursor, TABLET_FIELDS);
        tablet->tablet = mp_read_uint(cursor);
        tablet->need = mp_read_uint(cursor);
        tablet->ready = (uint8_t)mp_read_uint_max(cursor, REPLICAS_MAX);
        tablet->replica_count = codec_read_nodes(cursor, tablet->replicas);
        if (tablet->ready > tablet->replica_count)
            cursor_fail(cursor, TG_CORRUPT);
    }
    reply->nodes = codec_read_list(cursor, NODES_MAX, sizeof *reply->nodes, &reply->node_count);
    for (uint32_t i = 0; i < reply->node_count && cursor->err == 0; i++) {
        mp_expect_array(cursor, NODE_FIELDS);
        reply->nodes[i].node = codec_read_u32(cursor);
        reply->nodes[i].epoch = mp_read_uint(cursor);
        mp_read_cstr(cursor, reply->nodes[i].rpc, sizeof reply->nodes[i].rpc);
    }
}

static void read_versions(struct cursor *cursor, struct msg_read_point_reply *reply)
{
    reply->versions =
        codec_read_list(cursor, READ_VERSIONS_MAX, sizeof *reply->versions, &reply->version_count);
    for (uint32_t i = 0; i < reply->version_count && cursor->err == 0; i++) {
        struct read_point_version *version = &reply->versions[i];
        mp_expect_array(cursor, VERSION_FIELDS);
        version->version = mp_read_uint(cursor);
        version->time_us = mp_read_uint(cursor);
        version->txn = mp_read_uint(cursor);
        version->replace = mp_read_bool(cursor);
    }
}

int msg_read_point_reply_decode(struct slice head, struct msg_read_point_reply *reply)
{
    struct cursor cursor;
    msg_read_point_reply_init(reply);
    codec_open(&cursor, head, POINT_REPLY_FIELDS);
    reply->table = mp_read_uint(&cursor);
    reply->version = mp_read_uint(&cursor);
    reply->time_us = mp_read_uint(&cursor);
    reply->after = mp_read_uint(&cursor);
    if (cursor.err == 0)
        cursor_fail(&cursor, schema_decode(&cursor, &reply->schema));
    if (cursor.err == 0) {
        reply->distribution = codec_read_u32s(&cursor, COLUMNS_MAX, &reply->distribution_count);
        for (uint32_t i = 0; i < reply->distribution_count; i++) {
            if (reply->distribution[i] >= reply->schema.column_count)
                cursor_fail(&cursor, TG_CORRUPT);
        }
        read_places(&cursor, reply);
        read_versions(&cursor, reply);
    }
    int err = cursor_finish(&cursor);
    if (err != 0)
        msg_read_point_reply_close(reply);
    return err;
}

void msg_read_point_reply_close(struct msg_read_point_reply *reply)
{
    schema_close(&reply->schema);
    free(reply->distribution);
    free(reply->tablets);
    free(reply->nodes);
    free(reply->versions);
    msg_read_point_reply_init(reply);
}
