/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_LOAD_DONE, MSG_LOAD_FAILED and MSG_TXN_2PC: codecs. */
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/msgpack.h"
#include "common/proto/codec.h"
#include "common/proto/msg_txn.h"

enum {
    DONE_FIELDS = 11,
    REPORT_FIELDS = 5,
    TXN_REPLY_FIELDS = 4,
    FAILED_FIELDS = 6,
    TWO_PHASE_FIELDS = 9,
    TWO_PHASE_REPLY_FIELDS = 5,
    REPLICA_SET_MAX = (1 << REPLICAS_MAX) - 1
};

void msg_load_done_encode(const struct msg_load_done *message, struct buf *out)
{
    codec_begin(out, DONE_FIELDS);
    mp_uint(out, message->node);
    mp_uint(out, message->epoch);
    mp_uint(out, message->request_id);
    mp_uint(out, message->txn);
    mp_uint(out, message->rowset);
    mp_uint(out, message->placement_epoch);
    mp_uint(out, (uint64_t)message->finish);
    mp_uint(out, message->wait_visible_ms);
    mp_uint(out, message->rows);
    mp_uint(out, message->bytes);
    mp_array(out, message->tablet_count);
    for (uint32_t i = 0; i < message->tablet_count; i++) {
        const struct load_report_tablet *report = &message->tablets[i];
        mp_array(out, REPORT_FIELDS);
        mp_uint(out, report->tablet);
        mp_uint(out, report->sealed);
        mp_uint(out, report->rows);
        mp_uint(out, report->bytes);
        codec_write_digest(out, &report->digest);
    }
}

int msg_load_done_decode(struct slice head, struct msg_load_done *message)
{
    struct cursor cursor;
    memset(message, 0, sizeof *message);
    codec_open(&cursor, head, DONE_FIELDS);
    message->node = codec_read_u32(&cursor);
    message->epoch = mp_read_uint(&cursor);
    message->request_id = mp_read_uint(&cursor);
    message->txn = mp_read_uint(&cursor);
    message->rowset = mp_read_uint(&cursor);
    message->placement_epoch = mp_read_uint(&cursor);
    message->finish = (enum load_finish)mp_read_uint_max(&cursor, LOAD_FINISH_COMMIT);
    message->wait_visible_ms = mp_read_uint(&cursor);
    message->rows = mp_read_uint(&cursor);
    message->bytes = mp_read_uint(&cursor);
    message->tablets =
        codec_read_list(&cursor, BUCKETS_MAX, sizeof *message->tablets, &message->tablet_count);
    for (uint32_t i = 0; i < message->tablet_count && cursor.err == 0; i++) {
        struct load_report_tablet *report = &message->tablets[i];
        mp_expect_array(&cursor, REPORT_FIELDS);
        report->tablet = mp_read_uint(&cursor);
        report->sealed = (uint8_t)mp_read_uint_max(&cursor, REPLICA_SET_MAX);
        report->rows = mp_read_uint(&cursor);
        report->bytes = mp_read_uint(&cursor);
        codec_read_digest(&cursor, &report->digest);
    }
    int err = cursor_finish(&cursor);
    if (err != 0)
        msg_load_done_close(message);
    return err;
}

void msg_load_done_close(struct msg_load_done *message)
{
    free(message->tablets);
    message->tablets = NULL;
    message->tablet_count = 0;
}

void msg_txn_reply_encode(const struct msg_txn_reply *reply, struct buf *out)
{
    codec_begin(out, TXN_REPLY_FIELDS);
    mp_uint(out, reply->txn);
    mp_uint(out, (uint64_t)reply->state);
    mp_uint(out, reply->version);
    mp_uint(out, reply->visible_us);
}

int msg_txn_reply_decode(struct slice head, struct msg_txn_reply *reply)
{
    struct cursor cursor;
    memset(reply, 0, sizeof *reply);
    codec_open(&cursor, head, TXN_REPLY_FIELDS);
    reply->txn = mp_read_uint(&cursor);
    reply->state = (enum txn_state)mp_read_uint_max(&cursor, TXN_PRECOMMITTED);
    reply->version = mp_read_uint(&cursor);
    reply->visible_us = mp_read_uint(&cursor);
    return cursor_finish(&cursor);
}

void msg_load_failed_encode(const struct msg_load_failed *message, struct buf *out)
{
    codec_begin(out, FAILED_FIELDS);
    mp_uint(out, message->node);
    mp_uint(out, message->epoch);
    mp_uint(out, message->request_id);
    mp_uint(out, message->txn);
    mp_uint(out, message->rowset);
    mp_str(out, message->reason);
}

int msg_load_failed_decode(struct slice head, struct msg_load_failed *message)
{
    struct cursor cursor;
    memset(message, 0, sizeof *message);
    codec_open(&cursor, head, FAILED_FIELDS);
    message->node = codec_read_u32(&cursor);
    message->epoch = mp_read_uint(&cursor);
    message->request_id = mp_read_uint(&cursor);
    message->txn = mp_read_uint(&cursor);
    message->rowset = mp_read_uint(&cursor);
    mp_read_cstr(&cursor, message->reason, sizeof message->reason);
    return cursor_finish(&cursor);
}

void msg_txn_2pc_encode(const struct msg_txn_2pc *message, struct buf *out)
{
    codec_begin(out, TWO_PHASE_FIELDS);
    mp_uint(out, message->request_hi);
    mp_uint(out, message->request_lo);
    mp_str(out, message->db);
    mp_str(out, message->operation);
    mp_str(out, message->txn_text);
    mp_str(out, message->label);
    mp_str(out, message->user);
    mp_uint(out, message->timeout_ms);
    mp_uint(out, message->wait_visible_ms);
}

int msg_txn_2pc_decode(struct slice head, struct msg_txn_2pc *message)
{
    struct cursor cursor;
    memset(message, 0, sizeof *message);
    codec_open(&cursor, head, TWO_PHASE_FIELDS);
    message->request_hi = mp_read_uint(&cursor);
    message->request_lo = mp_read_uint(&cursor);
    mp_read_cstr(&cursor, message->db, sizeof message->db);
    mp_read_cstr(&cursor, message->operation, sizeof message->operation);
    mp_read_cstr(&cursor, message->txn_text, sizeof message->txn_text);
    mp_read_cstr(&cursor, message->label, sizeof message->label);
    mp_read_cstr(&cursor, message->user, sizeof message->user);
    message->timeout_ms = mp_read_uint(&cursor);
    message->wait_visible_ms = mp_read_uint(&cursor);
    return cursor_finish(&cursor);
}

void msg_txn_2pc_reply_encode(const struct msg_txn_2pc_reply *reply, struct buf *out)
{
    codec_begin(out, TWO_PHASE_REPLY_FIELDS);
    mp_str(out, reply->status);
    mp_str(out, reply->msg);
    mp_uint(out, reply->txn);
    mp_str(out, reply->label);
    mp_uint(out, (uint64_t)reply->state);
}

int msg_txn_2pc_reply_decode(struct slice head, struct msg_txn_2pc_reply *reply)
{
    struct cursor cursor;
    memset(reply, 0, sizeof *reply);
    codec_open(&cursor, head, TWO_PHASE_REPLY_FIELDS);
    mp_read_cstr(&cursor, reply->status, sizeof reply->status);
    mp_read_cstr(&cursor, reply->msg, sizeof reply->msg);
    reply->txn = mp_read_uint(&cursor);
    mp_read_cstr(&cursor, reply->label, sizeof reply->label);
    reply->state = (enum txn_state)mp_read_uint_max(&cursor, TXN_PRECOMMITTED);
    return cursor_finish(&cursor);
}
