/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_STATUS: its answer's codec. */
#include "common/proto/msg_status.h"

#include <string.h>

#include "common/base/err.h"
#include "common/base/msgpack.h"
#include "common/proto/codec.h"

enum { STATUS_FIELDS = 15, INFO_FIELDS = 5, STANDING_MAX = 3 };

void coordinator_infos_encode(const struct coordinator_infos *infos, struct buf *out)
{
    mp_array(out, infos->count + 1);
    mp_uint(out, infos->next_id);
    for (uint32_t i = 0; i < infos->count; i++) {
        const struct coordinator_info *info = &infos->list[i];
        mp_array(out, INFO_FIELDS);
        mp_uint(out, info->id);
        mp_uint(out, info->standing);
        mp_str(out, info->raft);
        mp_str(out, info->rpc);
        mp_str(out, info->http);
    }
}

void coordinator_infos_decode(struct cursor *cursor, struct coordinator_infos *infos)
{
    uint32_t items = mp_read_array(cursor, COORDINATORS_MAX + 1);
    infos->count = 0;
    if (items == 0)
        cursor_fail(cursor, TG_CORRUPT);
    infos->next_id = mp_read_uint(cursor);
    for (uint32_t i = 1; cursor->err == 0 && i < items; i++) {
        struct coordinator_info *info = &infos->list[infos->count++];
        mp_expect_array(cursor, INFO_FIELDS);
        info->id = mp_read_uint(cursor);
        info->standing = (uint32_t)mp_read_uint_max(cursor, STANDING_MAX);
        mp_read_cstr(cursor, info->raft, sizeof info->raft);
        mp_read_cstr(cursor, info->rpc, sizeof info->rpc);
        mp_read_cstr(cursor, info->http, sizeof info->http);
    }
}

void msg_status_reply_encode(const struct msg_status_reply *reply, struct buf *out)
{
    codec_begin(out, STATUS_FIELDS);
    mp_uint(out, reply->coordinator);
    mp_uint(out, reply->leader);
    mp_str(out, reply->leader_rpc);
    mp_str(out, reply->leader_http);
    mp_str(out, reply->cluster_uuid);
    mp_uint(out, reply->term);
    mp_uint(out, reply->applied_index);
    mp_uint(out, reply->last_stamp_us);
    mp_uint(out, (uint64_t)reply->phase);
    mp_bool(out, reply->of_cluster);
    mp_uint(out, reply->nonce);
    mp_uint(out, reply->wall_us);
    mp_uint(out, (uint64_t)reply->room);
    mp_uint(out, reply->disk_free_bytes);
    coordinator_infos_encode(&reply->coordinators, out);
}

int msg_status_reply_decode(struct slice head, struct msg_status_reply *reply)
{
    struct cursor cursor;
    memset(reply, 0, sizeof *reply);
    codec_open(&cursor, head, STATUS_FIELDS);
    reply->coordinator = mp_read_uint(&cursor);
    reply->leader = mp_read_uint(&cursor);
    mp_read_cstr(&cursor, reply->leader_rpc, sizeof reply->leader_rpc);
    mp_read_cstr(&cursor, reply->leader_http, sizeof reply->leader_http);
    mp_read_cstr(&cursor, reply->cluster_uuid, sizeof reply->cluster_uuid);
    reply->term = mp_read_uint(&cursor);
    reply->applied_index = mp_read_uint(&cursor);
    reply->last_stamp_us = mp_read_uint(&cursor);
    reply->phase = (enum status_phase)mp_read_uint_max(&cursor, STATUS_JOINS);
    reply->of_cluster = mp_read_bool(&cursor);
    reply->nonce = mp_read_uint(&cursor);
    reply->wall_us = mp_read_uint(&cursor);
    reply->room = (enum status_room)mp_read_uint_max(&cursor, STATUS_ROOM_NONE);
    reply->disk_free_bytes = mp_read_uint(&cursor);
    coordinator_infos_decode(&cursor, &reply->coordinators);
    return cursor_finish(&cursor);
}
