/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_PUBLISH: codecs. */
#include "common/proto/msg_publish.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/msgpack.h"
#include "common/proto/codec.h"

enum { PUBLISH_FIELDS = 3, BIND_FIELDS = 7, ROWSET_FIELDS = 2, PUBLISH_REPLY_FIELDS = 1 };

void publish_bind_encode(const struct publish_bind *bind, struct buf *out)
{
    mp_array(out, BIND_FIELDS);
    mp_uint(out, bind->tablet);
    mp_uint(out, bind->table);
    mp_uint(out, bind->version);
    mp_uint(out, bind->prev);
    mp_uint(out, bind->txn);
    mp_bool(out, bind->replace);
    mp_array(out, bind->rowset_count);
    for (uint32_t i = 0; i < bind->rowset_count; i++) {
        mp_array(out, ROWSET_FIELDS);
        mp_uint(out, bind->rowsets[i].rowset);
        codec_write_digest(out, &bind->rowsets[i].digest);
    }
}

void msg_publish_encode(const struct msg_publish *message, struct buf *out)
{
    codec_begin(out, PUBLISH_FIELDS);
    mp_uint(out, message->node);
    mp_uint(out, message->epoch);
    mp_array(out, message->bind_count);
    for (uint32_t i = 0; i < message->bind_count; i++)
        publish_bind_encode(&message->binds[i], out);
}

void publish_bind_decode(struct cursor *cursor, struct publish_bind *bind)
{
    mp_expect_array(cursor, BIND_FIELDS);
    bind->tablet = mp_read_uint(cursor);
    bind->table = mp_read_uint(cursor);
    bind->version = mp_read_uint(cursor);
    bind->prev = mp_read_uint(cursor);
    bind->txn = mp_read_uint(cursor);
    bind->replace = mp_read_bool(cursor);
    bind->rowsets =
        codec_read_list(cursor, LOADS_PER_TXN_MAX, sizeof *bind->rowsets, &bind->rowset_count);
    for (uint32_t i = 0; i < bind->rowset_count; i++) {
        mp_expect_array(cursor, ROWSET_FIELDS);
        bind->rowsets[i].rowset = mp_read_uint(cursor);
        codec_read_digest(cursor, &bind->rowsets[i].digest);
        if (i > 0 && bind->rowsets[i].rowset <= bind->rowsets[i - 1].rowset)
            cursor_fail(cursor, TG_CORRUPT);
    }
    if (bind->version <= bind->prev)
        cursor_fail(cursor, TG_CORRUPT);
}

int msg_publish_decode(struct slice head, struct msg_publish *message)
{
    struct cursor cursor;
    memset(message, 0, sizeof *message);
    codec_open(&cursor, head, PUBLISH_FIELDS);
    message->node = codec_read_u32(&cursor);
    message->epoch = mp_read_uint(&cursor);
    message->binds =
        codec_read_list(&cursor, PUBLISH_BINDS_MAX, sizeof *message->binds, &message->bind_count);
    for (uint32_t i = 0; i < message->bind_count && cursor.err == 0; i++)
        publish_bind_decode(&cursor, &message->binds[i]);
    int err = cursor_finish(&cursor);
    if (err != 0)
        msg_publish_close(message);
    return err;
}

void msg_publish_close(struct msg_publish *message)
{
    for (uint32_t i = 0; i < message->bind_count; i++)
        free(message->binds[i].rowsets);
    free(message->binds);
    memset(message, 0, sizeof *message);
}

void msg_publish_reply_encode(const struct msg_publish_reply *reply, struct buf *out)
{
    codec_begin(out, PUBLISH_REPLY_FIELDS);
    mp_bin(out, reply->status, reply->count);
}

int msg_publish_reply_decode(struct slice head, struct msg_publish_reply *reply)
{
    struct cursor cursor;
    memset(reply, 0, sizeof *reply);
    codec_open(&cursor, head, PUBLISH_REPLY_FIELDS);
    struct slice bytes = mp_read_bin(&cursor, PUBLISH_BINDS_MAX);
    for (size_t i = 0; i < bytes.len; i++) {
        if (bytes.data[i] > PUBLISH_FAILED)
            cursor_fail(&cursor, TG_CORRUPT);
    }
    int err = cursor_finish(&cursor);
    if (err != 0 || bytes.len == 0)
        return err;
    reply->status = malloc(bytes.len);
    if (reply->status == NULL)
        return TG_NOMEM;
    memcpy(reply->status, bytes.data, bytes.len);
    reply->count = (uint32_t)bytes.len;
    return 0;
}

void msg_publish_reply_close(struct msg_publish_reply *reply)
{
    free(reply->status);
    memset(reply, 0, sizeof *reply);
}
