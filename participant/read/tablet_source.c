/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of one tablet, from the own store or a peer. */
#include "participant/read/tablet_source.h"

#include <string.h>

#include "common/base/log.h"
#include "common/model/rowset_block.h"
#include "common/proto/message.h"
#include "participant/read/tablet_reader.h"
#include "participant/rowset/merge_cursor.h"

static bool is_silent(const struct silent_nodes *silent, node_id node)
{
    for (uint32_t i = 0; i < silent->count; i++)
        if (silent->nodes[i] == node)
            return true;
    return false;
}

static void note_silent(struct silent_nodes *silent, node_id node)
{
    if (silent->count < NODES_MAX && !is_silent(silent, node))
        silent->nodes[silent->count++] = node;
}

/* The replica to begin with: this node's own if it is a ready one, else one that answers. */
static uint8_t first_replica(const struct tablet_source *source)
{
    node_id self = atomic_load(&source->context->identity->node);
    int answering = -1;

    for (uint8_t i = 0; i < source->tablet->ready; i++) {
        node_id node = source->tablet->replicas[i];

        if (node == self)
            return i;
        if (answering < 0 && !is_silent(source->silent, node))
            answering = i;
    }
    return answering < 0 ? 0 : (uint8_t)answering;
}

int tablet_source_open(struct tablet_source *source, const struct table_reader_context *context,
                       const struct table_read *read, const struct read_point_tablet *tablet,
                       const uint32_t *columns, uint32_t column_count, struct silent_nodes *silent)
{
    struct msg_read_tablet *message = &source->message;

    memset(source, 0, sizeof *source);
    source->context = context;
    source->point = read->point;
    source->tablet = tablet;
    source->stop = read->stop;
    source->silent = silent;
    /* A tablet that nothing has touched, or nothing in the range of changes: no node need be asked.
     */
    source->done = tablet->need == 0 ||
                   (read->mode == READ_TABLET_CHANGES && tablet->need <= read->point->after);
    message->tablet = tablet->tablet;
    message->version = read->point->version;
    message->need = tablet->need;
    message->after = read->point->after;
    message->mode = read->mode;
    message->schema = read->point->schema;
    message->column_count = column_count;
    message->columns = (uint32_t *)columns;
    message->include_deleted = read->include_deleted;
    message->in_key_order = read->in_key_order;
    buf_append(&message->from, read->from.data, read->from.len);
    buf_append(&message->to, read->to.data, read->to.len);
    return message->from.err != 0 ? message->from.err : message->to.err;
}

void tablet_source_close(struct tablet_source *source)
{
    merge_cursor_close(source->cursor);
    block_decoder_close(source->decoder);
    buf_close(&source->message.from);
    buf_close(&source->message.to);
    buf_close(&source->message.position);
    memset(source, 0, sizeof *source);
}

static int next_at_home(struct tablet_source *source, uint32_t max, struct vector *out,
                        struct vector *versions, uint32_t *rows, struct tg_errmsg *msg)
{
    int err = 0;

    if (source->cursor == NULL)
        err = tablet_reader_open(source->context->store, source->context->tablets, &source->message,
                                 &source->cursor, msg);
    if (err == 0)
        err = merge_cursor_next(source->cursor, max, out, versions, rows, msg);
    if (err == TG_CORRUPT || err == TG_NOT_FOUND)
        tablet_set_suspect(source->context->tablets, source->message.tablet);
    if (err != 0) {
        merge_cursor_close(source->cursor); /* the next replica goes on from message.position */
        source->cursor = NULL;
        return err;
    }
    source->done = *rows == 0 || merge_cursor_is_done(source->cursor);
    buf_clear(&source->message.position);
    merge_cursor_position(source->cursor, &source->message.position);
    return source->message.position.err;
}

static int take_block(struct tablet_source *source, struct slice payload, struct vector *out,
                      struct vector *versions, uint32_t *rows, struct tg_errmsg *msg)
{
    uint32_t columns = source->message.column_count;
    struct block block;
    int err = block_open(&block, payload.data, payload.len, msg);

    if (err == 0 && source->decoder == NULL && (source->decoder = block_decoder_open()) == NULL)
        err = TG_NOMEM;
    if (err != 0)
        return err;
    for (uint32_t i = 0; i < columns && err == 0; i++) {
        int at = block_find(&block, source->message.columns[i]);

        err = at < 0 ? TG_CORRUPT
                     : block_decode_column(source->decoder, &block, (uint32_t)at, &out[i], msg);
    }
    if (err == 0 && versions != NULL) {
        int at = block_find(&block, COLUMN_ID_VERSION);

        err = at < 0 ? TG_CORRUPT
                     : block_decode_column(source->decoder, &block, (uint32_t)at, versions, msg);
    }
    *rows = block.rows;
    return err;
}

static const char *address_of(const struct msg_read_point_reply *point, node_id node)
{
    for (uint32_t i = 0; i < point->node_count; i++)
        if (point->nodes[i].node == node)
            return point->nodes[i].rpc;
    return NULL;
}

static int next_from_peer(struct tablet_source *source, uint32_t max, struct vector *out,
                          struct vector *versions, uint32_t *rows, struct tg_errmsg *msg)
{
    node_id node = source->tablet->replicas[source->replica];
    const char *address = address_of(source->point, node);
    struct msg_read_tablet_reply reply = {0};
    struct buf head = BUF_INIT;
    struct buf reply_head = BUF_INIT;
    struct buf payload = BUF_INIT;
    int err;

    if (address == NULL || address[0] == 0)
        return tg_fail(msg, TG_UNREACHABLE, "participant %u has no address", node);
    source->message.row_limit = max;
    msg_read_tablet_encode(&source->message, &head);
    err = peer_call_wait(source->context->peers, node, address, MSG_READ_TABLET, &head, NULL,
                         TABLE_READER_PEER_MS, source->stop, &reply_head, &payload, msg);
    if (err == 0)
        err = msg_read_tablet_reply_decode(slice_of(reply_head.data, reply_head.len), &reply);
    if (err == 0 && reply.rows > 0)
        err = take_block(source, slice_of(payload.data, payload.len), out, versions, rows, msg);
    if (err == 0 && (reply.rows != *rows || *rows > max || (*rows == 0 && !reply.done)))
        err = tg_fail(msg, TG_CORRUPT, "participant %u sent %u rows, at most %u, and says %lu",
                      node, *rows, max, reply.rows);
    if (err == 0) {
        source->done = reply.done;
        buf_clear(&source->message.position);
        buf_append(&source->message.position, reply.position.data, reply.position.len);
    }
    msg_read_tablet_reply_close(&reply);
    buf_close(&reply_head);
    buf_close(&payload);
    return err;
}

static void clear(struct tablet_source *source, struct vector *out, struct vector *versions)
{
    for (uint32_t i = 0; i < source->message.column_count; i++)
        vector_clear(&out[i]);
    if (versions != NULL)
        vector_clear(versions);
}

/* What another replica would say too. */
static bool is_final(int err)
{
    return err == TG_INVALID || err == TG_LIMIT || err == TG_TOO_LARGE || err == TG_UNSUPPORTED ||
           err == TG_NOMEM;
}

static bool is_stopped(const struct tablet_source *source)
{
    return source->stop != NULL && atomic_load(source->stop);
}

int tablet_source_next(struct tablet_source *source, uint32_t max, struct vector *out,
                       struct vector *versions, uint32_t *rows, struct tg_errmsg *msg)
{
    node_id self = atomic_load(&source->context->identity->node);
    struct tg_errmsg why = {{0}};
    int err = TG_UNREACHABLE;

    *rows = 0;
    clear(source, out, versions);
    if (source->done)
        return 0;
    if (source->tablet->ready == 0)
        return tg_fail(msg, TG_UNREACHABLE, "tablet %lu has no replica that is up to date",
                       source->tablet->tablet);
    if (!source->begun)
        source->replica = first_replica(source);
    source->begun = true;
    for (uint8_t tried = 0; tried < source->tablet->ready; tried++) {
        node_id node = source->tablet->replicas[source->replica];

        why.text[0] = 0;
        err = node == self ? next_at_home(source, max, out, versions, rows, &why)
                           : next_from_peer(source, max, out, versions, rows, &why);
        if (err == 0)
            return 0;
        *rows = 0;
        clear(source, out, versions);
        if (is_stopped(source))
            return tg_fail(msg, TG_CANCELED, "the read was stopped");
        log_warn("read", "replica_failed tablet=%lu node=%u err=%s reason=%s",
                 source->tablet->tablet, node, tg_err_name(err), log_quote(why.text));
        if (is_final(err))
            break;
        if (err == TG_TIMEOUT || err == TG_UNREACHABLE || err == TG_CLOSED)
            note_silent(source->silent, node);
        source->replica = (uint8_t)((source->replica + 1) % source->tablet->ready);
    }
    if (err != TG_CORRUPT && err != TG_CANCELED && !is_final(err))
        err = TG_UNREACHABLE;
    return tg_fail(msg, err, "tablet %lu: %s", source->tablet->tablet,
                   why.text[0] != 0 ? why.text : tg_err_sentence(err));
}
