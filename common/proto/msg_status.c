/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_STATUS: its answer's codec. */
#include "common/proto/msg_status.h"

#include <string.h>

#include "common/base/msgpack.h"
#include "common/proto/codec.h"

enum { STATUS_FIELDS = 9 };

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
    reply->phase = (enum status_phase)mp_read_uint_max(&cursor, STATUS_READY);
    return cursor_finish(&cursor);
}
