/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_CLONE, MSG_CLONE_LIST, MSG_CLONE_READ: codecs. */
#include "common/proto/msg_clone.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/msgpack.h"
#include "common/proto/codec.h"

enum {
    CLONE_FIELDS = 15,
    CLONE_REPLY_FIELDS = 8,
    LIST_FIELDS = 3,
    LIST_REPLY_FIELDS = 4,
    READ_FIELDS = 5,
    READ_REPLY_FIELDS = 1
};

void msg_clone_encode(const struct msg_clone *message, struct buf *out)
{
    codec_begin(out, CLONE_FIELDS);
    mp_uint(out, message->node);
    mp_uint(out, message->epoch);
    mp_uint(out, message->tablet);
    mp_uint(out, message->table);
    mp_uint(out, message->round);
    mp_uint(out, message->lacks);
    mp_uint(out, message->source);
    mp_bool(out, message->trusted);
    mp_uint(out, message->last);
    mp_bool(out, message->catching);
    mp_uint(out, message->missed);
    mp_uint(out, message->prove);
    mp_bool(out, message->chain_known);
    codec_write_digest(out, &message->chain);
    mp_str(out, message->address);
}

int msg_clone_decode(struct slice head, struct msg_clone *message)
{
    struct cursor cursor;
    memset(message, 0, sizeof *message);
    codec_open(&cursor, head, CLONE_FIELDS);
    message->node = codec_read_u32(&cursor);
    message->epoch = mp_read_uint(&cursor);
    message->tablet = mp_read_uint(&cursor);
    message->table = mp_read_uint(&cursor);
    message->round = mp_read_uint(&cursor);
    message->lacks = mp_read_uint(&cursor);
    message->source = codec_read_u32(&cursor);
    message->trusted = mp_read_bool(&cursor);
    message->last = mp_read_uint(&cursor);
    message->catching = mp_read_bool(&cursor);
    message->missed = mp_read_uint(&cursor);
    message->prove = mp_read_uint(&cursor);
    message->chain_known = mp_read_bool(&cursor);
    codec_read_digest(&cursor, &message->chain);
    mp_read_cstr(&cursor, message->address, sizeof message->address);
    return cursor_finish(&cursor);
}

void msg_clone_reply_encode(const struct msg_clone_reply *reply, struct buf *out)
{
    codec_begin(out, CLONE_REPLY_FIELDS);
    mp_uint(out, reply->state);
    mp_uint(out, reply->bound);
    mp_uint(out, reply->damaged);
    mp_uint(out, reply->proven);
    codec_write_digest(out, &reply->chain);
    mp_uint(out, reply->bytes);
    mp_int(out, reply->err);
    mp_str(out, reply->reason);
}

int msg_clone_reply_decode(struct slice head, struct msg_clone_reply *reply)
{
    struct cursor cursor;
    memset(reply, 0, sizeof *reply);
    codec_open(&cursor, head, CLONE_REPLY_FIELDS);
    reply->state = (enum clone_state)mp_read_uint_max(&cursor, CLONE_FAILED);
    reply->bound = mp_read_uint(&cursor);
    reply->damaged = mp_read_uint(&cursor);
    reply->proven = mp_read_uint(&cursor);
    codec_read_digest(&cursor, &reply->chain);
    reply->bytes = mp_read_uint(&cursor);
    int64_t err = mp_read_int(&cursor);
    if (err > 0 || err < INT16_MIN)
        cursor_fail(&cursor, TG_CORRUPT);
    else
        reply->err = (int)err;
    mp_read_cstr(&cursor, reply->reason, sizeof reply->reason);
    return cursor_finish(&cursor);
}

void msg_clone_list_encode(const struct msg_clone_list *message, struct buf *out)
{
    codec_begin(out, LIST_FIELDS);
    mp_uint(out, message->source);
    mp_uint(out, message->tablet);
    mp_uint(out, message->after);
}

int msg_clone_list_decode(struct slice head, struct msg_clone_list *message)
{
    struct cursor cursor;
    memset(message, 0, sizeof *message);
    codec_open(&cursor, head, LIST_FIELDS);
    message->source = codec_read_u32(&cursor);
    message->tablet = mp_read_uint(&cursor);
    message->after = mp_read_uint(&cursor);
    return cursor_finish(&cursor);
}

void msg_clone_list_reply_encode(const struct msg_clone_list_reply *reply, struct buf *out)
{
    codec_begin(out, LIST_REPLY_FIELDS);
    mp_uint(out, reply->last);
    mp_uint(out, reply->at);
    codec_write_digest(out, &reply->chain);
    mp_array(out, reply->count);
    for (uint32_t i = 0; i < reply->count; i++)
        publish_bind_encode(&reply->binds[i], out);
}

int msg_clone_list_reply_decode(struct slice head, struct msg_clone_list_reply *reply)
{
    struct cursor cursor;
    memset(reply, 0, sizeof *reply);
    codec_open(&cursor, head, LIST_REPLY_FIELDS);
    reply->last = mp_read_uint(&cursor);
    reply->at = mp_read_uint_max(&cursor, reply->last);
    codec_read_digest(&cursor, &reply->chain);
    reply->binds =
        codec_read_list(&cursor, CLONE_LIST_VERSIONS_MAX, sizeof *reply->binds, &reply->count);
    for (uint32_t i = 0; i < reply->count && cursor.err == 0; i++) {
        publish_bind_decode(&cursor, &reply->binds[i]);
        if (reply->binds[i].version > reply->last ||
            (i > 0 && reply->binds[i].prev != reply->binds[i - 1].version))
            cursor_fail(&cursor, TG_CORRUPT);
    }
    int err = cursor_finish(&cursor);
    if (err != 0)
        msg_clone_list_reply_close(reply);
    return err;
}

void msg_clone_list_reply_close(struct msg_clone_list_reply *reply)
{
    for (uint32_t i = 0; i < reply->count; i++)
        free(reply->binds[i].rowsets);
    free(reply->binds);
    memset(reply, 0, sizeof *reply);
}

void msg_clone_read_encode(const struct msg_clone_read *message, struct buf *out)
{
    codec_begin(out, READ_FIELDS);
    mp_uint(out, message->source);
    mp_uint(out, message->tablet);
    mp_uint(out, message->rowset);
    mp_uint(out, message->offset);
    mp_uint(out, message->len);
}

int msg_clone_read_decode(struct slice head, struct msg_clone_read *message)
{
    struct cursor cursor;
    memset(message, 0, sizeof *message);
    codec_open(&cursor, head, READ_FIELDS);
    message->source = codec_read_u32(&cursor);
    message->tablet = mp_read_uint(&cursor);
    message->rowset = mp_read_uint(&cursor);
    message->offset = mp_read_uint_max(&cursor, INT64_MAX);
    message->len = (uint32_t)mp_read_uint_max(&cursor, CLONE_READ_BYTES_MAX);
    return cursor_finish(&cursor);
}

void msg_clone_read_reply_encode(const struct rowset_meta *meta, struct buf *out)
{
    codec_begin(out, READ_REPLY_FIELDS);
    if (meta == NULL)
        mp_nil(out);
    else
        rowset_meta_encode(meta, out);
}

int msg_clone_read_reply_decode(struct slice head, struct msg_clone_read_reply *reply)
{
    struct cursor cursor;
    memset(reply, 0, sizeof *reply);
    rowset_meta_init(&reply->meta);
    codec_open(&cursor, head, READ_REPLY_FIELDS);
    if (cursor.err == 0 && !mp_read_nil(&cursor)) {
        int err = rowset_meta_decode(&cursor, &reply->meta);
        if (err != 0)
            cursor_fail(&cursor, err);
        reply->with_meta = true;
    }
    int err = cursor_finish(&cursor);
    if (err != 0)
        msg_clone_read_reply_close(reply);
    return err;
}

void msg_clone_read_reply_close(struct msg_clone_read_reply *reply)
{
    rowset_meta_close(&reply->meta);
    memset(reply, 0, sizeof *reply);
}
