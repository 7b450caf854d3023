/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_REPLICATE: codec. */
#include "common/proto/msg_replicate.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/msgpack.h"
#include "common/proto/codec.h"

enum { REPLICATE_FIELDS = 8, PIECE_FIELDS = 3 };

void msg_replicate_encode(const struct msg_replicate *message, struct buf *out)
{
    codec_begin(out, REPLICATE_FIELDS);
    mp_uint(out, message->sender);
    mp_uint(out, message->sender_epoch);
    mp_uint(out, message->receiver);
    mp_uint(out, message->txn);
    mp_uint(out, message->rowset);
    mp_uint(out, message->table);
    mp_array(out, message->piece_count);
    for (uint32_t i = 0; i < message->piece_count; i++) {
        mp_array(out, PIECE_FIELDS);
        mp_uint(out, message->pieces[i].tablet);
        mp_uint(out, message->pieces[i].offset);
        mp_uint(out, message->pieces[i].len);
    }
    mp_array(out, message->seal_count);
    for (uint32_t i = 0; i < message->seal_count; i++)
        rowset_meta_encode(&message->seals[i], out);
}

static void read_piece(struct cursor *cursor, struct replicate_piece *piece)
{
    mp_expect_array(cursor, PIECE_FIELDS);
    piece->tablet = mp_read_uint(cursor);
    piece->offset = mp_read_uint(cursor);
    piece->len = codec_read_u32(cursor);
    if (piece->offset > INT64_MAX)
        cursor_fail(cursor, TG_CORRUPT);
}

/* A seal must be of the rowset, table and transaction that the message is about. */
static void read_seal(struct cursor *cursor, const struct msg_replicate *message,
                      struct rowset_meta *seal)
{
    int err = rowset_meta_decode(cursor, seal);
    if (err != 0) {
        cursor_fail(cursor, err);
        return;
    }
    if (seal->rowset != message->rowset || seal->table != message->table ||
        seal->txn != message->txn)
        cursor_fail(cursor, TG_CORRUPT);
}

static void read_seals(struct cursor *cursor, struct msg_replicate *message)
{
    message->seals =
        codec_read_list(cursor, REPLICATE_SEALS_MAX, sizeof *message->seals, &message->seal_count);
    for (uint32_t i = 0; i < message->seal_count; i++)
        rowset_meta_init(&message->seals[i]);
    for (uint32_t i = 0; i < message->seal_count && cursor->err == 0; i++)
        read_seal(cursor, message, &message->seals[i]);
}

int msg_replicate_decode(struct slice head, struct msg_replicate *message)
{
    struct cursor cursor;
    memset(message, 0, sizeof *message);
    codec_open(&cursor, head, REPLICATE_FIELDS);
    message->sender = codec_read_u32(&cursor);
    message->sender_epoch = mp_read_uint(&cursor);
    message->receiver = codec_read_u32(&cursor);
    message->txn = mp_read_uint(&cursor);
    message->rowset = mp_read_uint(&cursor);
    message->table = mp_read_uint(&cursor);
    message->pieces = codec_read_list(&cursor, REPLICATE_PIECES_MAX, sizeof *message->pieces,
                                      &message->piece_count);
    for (uint32_t i = 0; i < message->piece_count && cursor.err == 0; i++)
        read_piece(&cursor, &message->pieces[i]);
    read_seals(&cursor, message);
    int err = cursor_finish(&cursor);
    if (err != 0)
        msg_replicate_close(message);
    return err;
}

void msg_replicate_close(struct msg_replicate *message)
{
    for (uint32_t i = 0; i < message->seal_count; i++)
        rowset_meta_close(&message->seals[i]);
    free(message->seals);
    free(message->pieces);
    memset(message, 0, sizeof *message);
}
