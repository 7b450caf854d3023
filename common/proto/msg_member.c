/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_REGISTER and MSG_HEARTBEAT: codecs. */
#include "common/proto/msg_member.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/msgpack.h"
#include "common/proto/codec.h"

enum {
    REGISTER_FIELDS = 8,
    REGISTER_REPLY_FIELDS = 3,
    HEARTBEAT_FIELDS = 9,
    DAMAGED_FIELDS = 2,
    HEARTBEAT_REPLY_FIELDS = 7
};

void msg_register_encode(const struct msg_register *message, struct buf *out)
{
    codec_begin(out, REGISTER_FIELDS);
    mp_uint(out, message->wanted);
    mp_str(out, message->node_uuid);
    mp_str(out, message->cluster_uuid);
    mp_uint(out, message->previous_nonce);
    mp_uint(out, message->new_nonce);
    mp_str(out, message->http);
    mp_str(out, message->rpc);
    mp_bool(out, message->rejoin);
}

int msg_register_decode(struct slice head, struct msg_register *message)
{
    struct cursor cursor;
    memset(message, 0, sizeof *message);
    codec_open(&cursor, head, REGISTER_FIELDS);
    message->wanted = codec_read_u32(&cursor);
    mp_read_cstr(&cursor, message->node_uuid, sizeof message->node_uuid);
    mp_read_cstr(&cursor, message->cluster_uuid, sizeof message->cluster_uuid);
    message->previous_nonce = mp_read_uint(&cursor);
    message->new_nonce = mp_read_uint(&cursor);
    mp_read_cstr(&cursor, message->http, sizeof message->http);
    mp_read_cstr(&cursor, message->rpc, sizeof message->rpc);
    message->rejoin = mp_read_bool(&cursor);
    return cursor_finish(&cursor);
}

void msg_register_reply_encode(const struct msg_register_reply *reply, struct buf *out)
{
    codec_begin(out, REGISTER_REPLY_FIELDS);
    mp_uint(out, reply->node);
    mp_uint(out, reply->epoch);
    mp_str(out, reply->cluster_uuid);
}

int msg_register_reply_decode(struct slice head, struct msg_register_reply *reply)
{
    struct cursor cursor;
    memset(reply, 0, sizeof *reply);
    codec_open(&cursor, head, REGISTER_REPLY_FIELDS);
    reply->node = codec_read_u32(&cursor);
    reply->epoch = mp_read_uint(&cursor);
    mp_read_cstr(&cursor, reply->cluster_uuid, sizeof reply->cluster_uuid);
    return cursor_finish(&cursor);
}

void msg_heartbeat_encode(const struct msg_heartbeat *message, struct buf *out)
{
    codec_begin(out, HEARTBEAT_FIELDS);
    mp_uint(out, message->node);
    mp_uint(out, message->epoch);
    mp_uint(out, message->request_high);
    codec_write_ids(out, message->live, message->live_count);
    codec_write_ids(out, message->staged, message->staged_count);
    codec_write_ids(out, message->tablets, message->tablet_count);
    mp_uint(out, message->disk_free_bytes);
    mp_uint(out, message->disk_total_bytes);
    mp_array(out, message->damaged_count);
    for (uint32_t i = 0; i < message->damaged_count; i++) {
        mp_array(out, DAMAGED_FIELDS);
        mp_uint(out, message->damaged[i].tablet);
        mp_uint(out, message->damaged[i].version);
    }
}

int msg_heartbeat_decode(struct slice head, struct msg_heartbeat *message)
{
    struct cursor cursor;
    memset(message, 0, sizeof *message);
    codec_open(&cursor, head, HEARTBEAT_FIELDS);
    message->node = codec_read_u32(&cursor);
    message->epoch = mp_read_uint(&cursor);
    message->request_high = mp_read_uint(&cursor);
    message->live = codec_read_ids(&cursor, HEARTBEAT_LIVE_MAX, &message->live_count);
    message->staged = codec_read_ids(&cursor, HEARTBEAT_STAGED_MAX, &message->staged_count);
    message->tablets = codec_read_ids(&cursor, HEARTBEAT_TABLETS_MAX, &message->tablet_count);
    message->disk_free_bytes = mp_read_uint(&cursor);
    message->disk_total_bytes = mp_read_uint(&cursor);
    message->damaged = codec_read_list(&cursor, HEARTBEAT_DAMAGED_MAX, sizeof *message->damaged,
                                       &message->damaged_count);
    for (uint32_t i = 0; i < message->damaged_count; i++) {
        mp_expect_array(&cursor, DAMAGED_FIELDS);
        message->damaged[i].tablet = mp_read_uint(&cursor);
        message->damaged[i].version = mp_read_uint(&cursor);
    }
    int err = cursor_finish(&cursor);
    if (err != 0)
        msg_heartbeat_close(message);
    return err;
}

void msg_heartbeat_close(struct msg_heartbeat *message)
{
    free(message->live);
    free(message->staged);
    free(message->tablets);
    free(message->damaged);
    memset(message, 0, sizeof *message);
}

void msg_heartbeat_reply_encode(const struct msg_heartbeat_reply *reply, struct buf *out)
{
    codec_begin(out, HEARTBEAT_REPLY_FIELDS);
    codec_write_ids(out, reply->dead, reply->dead_count);
    codec_write_ids(out, reply->stopped, reply->stopped_count);
    codec_write_ids(out, reply->dropped, reply->dropped_count);
    mp_uint(out, reply->txn_low_water);
    mp_uint(out, reply->closed_us);
    mp_uint(out, reply->closed_position);
    mp_array(out, reply->coordinator_count);
    for (uint32_t i = 0; i < reply->coordinator_count; i++)
        mp_str(out, reply->coordinators[i]);
}

int msg_heartbeat_reply_decode(struct slice head, struct msg_heartbeat_reply *reply)
{
    struct cursor cursor;
    memset(reply, 0, sizeof *reply);
    codec_open(&cursor, head, HEARTBEAT_REPLY_FIELDS);
    reply->dead = codec_read_ids(&cursor, HEARTBEAT_STAGED_MAX, &reply->dead_count);
    reply->stopped = codec_read_ids(&cursor, HEARTBEAT_LIVE_MAX, &reply->stopped_count);
    reply->dropped = codec_read_ids(&cursor, HEARTBEAT_TABLETS_MAX, &reply->dropped_count);
    reply->txn_low_water = mp_read_uint(&cursor);
    reply->closed_us = mp_read_uint(&cursor);
    reply->closed_position = mp_read_uint(&cursor);
    reply->coordinator_count = mp_read_array(&cursor, COORDINATORS_MAX);
    for (uint32_t i = 0; cursor.err == 0 && i < reply->coordinator_count; i++)
        mp_read_cstr(&cursor, reply->coordinators[i], ADDRESS_BYTES);
    int err = cursor_finish(&cursor);
    if (err != 0)
        msg_heartbeat_reply_close(reply);
    return err;
}

void msg_heartbeat_reply_close(struct msg_heartbeat_reply *reply)
{
    free(reply->dead);
    free(reply->stopped);
    free(reply->dropped);
    memset(reply, 0, sizeof *reply);
}
