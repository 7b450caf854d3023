/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_COORDINATOR's codec. */
#include "common/proto/msg_coordinator.h"

#include <string.h>

#include "common/base/err.h"
#include "common/base/msgpack.h"
#include "common/proto/codec.h"

enum { ORDER_FIELDS = 6, REPLY_FIELDS = 6, FARE_FIELDS = 7, ROLE_MAX = 3 };

void msg_coordinator_encode(const struct msg_coordinator *message, struct buf *out)
{
    codec_begin(out, ORDER_FIELDS);
    mp_uint(out, (uint64_t)message->order);
    mp_uint(out, message->id);
    mp_uint(out, message->nonce);
    mp_str(out, message->raft);
    mp_str(out, message->rpc);
    mp_str(out, message->http);
}

int msg_coordinator_decode(struct slice head, struct msg_coordinator *message)
{
    struct cursor cursor;
    memset(message, 0, sizeof *message);
    codec_open(&cursor, head, ORDER_FIELDS);
    message->order = (enum coordinator_order)mp_read_uint_max(&cursor, COORDINATOR_ORDER_JOIN);
    message->id = mp_read_uint_max(&cursor, UINT32_MAX);
    message->nonce = mp_read_uint(&cursor);
    mp_read_cstr(&cursor, message->raft, sizeof message->raft);
    mp_read_cstr(&cursor, message->rpc, sizeof message->rpc);
    mp_read_cstr(&cursor, message->http, sizeof message->http);
    return cursor_finish(&cursor);
}

/* A clock's difference travels as its size and its sign. */
void msg_coordinator_reply_encode(const struct msg_coordinator_reply *reply, struct buf *out)
{
    codec_begin(out, REPLY_FIELDS);
    mp_bool(out, reply->admitted);
    mp_uint(out, reply->leader);
    mp_uint(out, reply->last_index);
    mp_str(out, reply->cluster_uuid);
    coordinator_infos_encode(&reply->coordinators, out);
    mp_array(out, reply->coordinators.count);
    for (uint32_t i = 0; i < reply->coordinators.count; i++) {
        const struct coordinator_fare *fare = &reply->fares[i];
        bool behind = fare->ahead_us < 0;
        mp_array(out, FARE_FIELDS);
        mp_uint(out, fare->role);
        mp_bool(out, fare->alive);
        mp_uint(out, fare->match_index);
        mp_bool(out, behind);
        mp_uint(out, behind ? -(uint64_t)fare->ahead_us : (uint64_t)fare->ahead_us);
        mp_uint(out, (uint64_t)fare->room);
        mp_uint(out, fare->disk_free_bytes);
    }
}

int msg_coordinator_reply_decode(struct slice head, struct msg_coordinator_reply *reply)
{
    struct cursor cursor;
    memset(reply, 0, sizeof *reply);
    codec_open(&cursor, head, REPLY_FIELDS);
    reply->admitted = mp_read_bool(&cursor);
    reply->leader = mp_read_uint(&cursor);
    reply->last_index = mp_read_uint(&cursor);
    mp_read_cstr(&cursor, reply->cluster_uuid, sizeof reply->cluster_uuid);
    coordinator_infos_decode(&cursor, &reply->coordinators);
    mp_expect_array(&cursor, cursor.err == 0 ? reply->coordinators.count : 0);
    for (uint32_t i = 0; cursor.err == 0 && i < reply->coordinators.count; i++) {
        struct coordinator_fare *fare = &reply->fares[i];
        mp_expect_array(&cursor, FARE_FIELDS);
        fare->role = (uint32_t)mp_read_uint_max(&cursor, ROLE_MAX);
        fare->alive = mp_read_bool(&cursor);
        fare->match_index = mp_read_uint(&cursor);
        bool behind = mp_read_bool(&cursor);
        int64_t size = (int64_t)mp_read_uint_max(&cursor, INT64_MAX);
        fare->ahead_us = behind ? -size : size;
        fare->room = (enum status_room)mp_read_uint_max(&cursor, STATUS_ROOM_NONE);
        fare->disk_free_bytes = mp_read_uint(&cursor);
    }
    return cursor_finish(&cursor);
}
