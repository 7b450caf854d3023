/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_QUERY: codecs. */
#include "common/proto/msg_query.h"

#include <string.h>

#include "common/base/err.h"
#include "common/base/msgpack.h"
#include "common/proto/codec.h"

enum { QUERY_FIELDS = 8, QUERY_REPLY_FIELDS = 1 };

void msg_query_encode(const struct msg_query *message, struct buf *out)
{
    codec_begin(out, QUERY_FIELDS);
    mp_uint(out, (uint64_t)message->kind);
    mp_str(out, message->db);
    mp_str(out, message->table);
    mp_str(out, message->label);
    mp_str(out, message->user);
    mp_bin(out, message->text.data, message->text.len);
    mp_uint(out, message->request_hi);
    mp_uint(out, message->request_lo);
}

int msg_query_decode(struct slice head, struct msg_query *message)
{
    struct cursor cursor;
    memset(message, 0, sizeof *message);
    codec_open(&cursor, head, QUERY_FIELDS);
    message->kind = (enum query_kind)mp_read_uint_max(&cursor, QUERY_DECLARE_LOST);
    if (message->kind < QUERY_STATEMENT)
        cursor_fail(&cursor, TG_CORRUPT);
    mp_read_cstr(&cursor, message->db, sizeof message->db);
    mp_read_cstr(&cursor, message->table, sizeof message->table);
    mp_read_cstr(&cursor, message->label, sizeof message->label);
    mp_read_cstr(&cursor, message->user, sizeof message->user);
    codec_read_buf(&cursor, QUERY_TEXT_MAX, &message->text);
    message->request_hi = mp_read_uint(&cursor);
    message->request_lo = mp_read_uint(&cursor);
    int err = cursor_finish(&cursor);
    if (err != 0)
        msg_query_close(message);
    return err;
}

void msg_query_close(struct msg_query *message)
{
    buf_close(&message->text);
}

void msg_query_reply_encode(const struct msg_query_reply *reply, struct buf *out)
{
    codec_begin(out, QUERY_REPLY_FIELDS);
    mp_bin(out, reply->data.data, reply->data.len);
}

int msg_query_reply_decode(struct slice head, struct msg_query_reply *reply)
{
    struct cursor cursor;
    memset(reply, 0, sizeof *reply);
    codec_open(&cursor, head, QUERY_REPLY_FIELDS);
    codec_read_buf(&cursor, QUERY_REPLY_MAX, &reply->data);
    int err = cursor_finish(&cursor);
    if (err != 0)
        msg_query_reply_close(reply);
    return err;
}

void msg_query_reply_close(struct msg_query_reply *reply)
{
    buf_close(&reply->data);
}
