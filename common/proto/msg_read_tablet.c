/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_READ_TABLET: codecs. */
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/msgpack.h"
#include "common/model/row_key.h"
#include "common/proto/codec.h"
#include "common/proto/msg_read.h"

enum {
    TABLET_FIELDS = 13,
    TABLET_REPLY_FIELDS = 3,
    COLUMNS_READ_MAX = COLUMNS_MAX + 8 /* all visible ones and the hidden */
};

void msg_read_tablet_encode(const struct msg_read_tablet *message, struct buf *out)
{
    codec_begin(out, TABLET_FIELDS);
    mp_uint(out, message->tablet);
    mp_uint(out, message->version);
    mp_uint(out, message->need);
    mp_uint(out, message->after);
    mp_uint(out, (uint64_t)message->mode);
    schema_encode(&message->schema, out);
    codec_write_u32s(out, message->columns, message->column_count);
    mp_bool(out, message->include_deleted);
    mp_bool(out, message->in_key_order);
    mp_bin(out, message->from.data, message->from.len);
    mp_bin(out, message->to.data, message->to.len);
    mp_uint(out, message->row_limit);
    mp_bin(out, message->position.data, message->position.len);
}

int msg_read_tablet_decode(struct slice head, struct msg_read_tablet *message)
{
    struct cursor cursor;
    memset(message, 0, sizeof *message);
    schema_init(&message->schema);
    codec_open(&cursor, head, TABLET_FIELDS);
    message->tablet = mp_read_uint(&cursor);
    message->version = mp_read_uint(&cursor);
    message->need = mp_read_uint(&cursor);
    message->after = mp_read_uint(&cursor);
    message->mode = (enum read_tablet_mode)mp_read_uint_max(&cursor, READ_TABLET_CHANGES);
    if (cursor.err == 0)
        cursor_fail(&cursor, schema_decode(&cursor, &message->schema));
    message->columns = codec_read_u32s(&cursor, COLUMNS_READ_MAX, &message->column_count);
    message->include_deleted = mp_read_bool(&cursor);
    message->in_key_order = mp_read_bool(&cursor);
    codec_read_buf(&cursor, ROW_KEY_BYTES_MAX, &message->from);
    codec_read_buf(&cursor, ROW_KEY_BYTES_MAX, &message->to);
    message->row_limit = mp_read_uint(&cursor);
    codec_read_buf(&cursor, READ_POSITION_MAX, &message->position);
    int err = cursor_finish(&cursor);
    if (err != 0)
        msg_read_tablet_close(message);
    return err;
}

void msg_read_tablet_close(struct msg_read_tablet *message)
{
    schema_close(&message->schema);
    free(message->columns);
    message->columns = NULL;
    message->column_count = 0;
    buf_close(&message->from);
    buf_close(&message->to);
    buf_close(&message->position);
}

void msg_read_tablet_reply_encode(const struct msg_read_tablet_reply *reply, struct buf *out)
{
    codec_begin(out, TABLET_REPLY_FIELDS);
    mp_uint(out, reply->rows);
    mp_bool(out, reply->done);
    mp_bin(out, reply->position.data, reply->position.len);
}

int msg_read_tablet_reply_decode(struct slice head, struct msg_read_tablet_reply *reply)
{
    struct cursor cursor;
    memset(reply, 0, sizeof *reply);
    codec_open(&cursor, head, TABLET_REPLY_FIELDS);
    reply->rows = mp_read_uint(&cursor);
    reply->done = mp_read_bool(&cursor);
    codec_read_buf(&cursor, READ_POSITION_MAX, &reply->position);
    int err = cursor_finish(&cursor);
    if (err != 0)
        msg_read_tablet_reply_close(reply);
    return err;
}

void msg_read_tablet_reply_close(struct msg_read_tablet_reply *reply)
{
    buf_close(&reply->position);
}
