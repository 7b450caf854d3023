/* SPDX-License-Identifier: Apache-2.0 */
/* The fake world of a load. */
#include "tests/lib/fake_load_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/check.h"
#include "common/model/rowset_block.h"
#include "common/proto/message.h"

static void encode_state(const struct fake_load_world *w, struct buf *out)
{
    struct msg_txn_reply reply = {.txn = FAKE_TXN, .state = w->state, .version = 1};
    msg_txn_reply_encode(&reply, out);
}

static int on_begin(struct fake_load_world *w, struct buf *head, struct buf *out)
{
    struct msg_txn_begin_reply reply;

    TG_CHECK(msg_txn_begin_decode(slice_of(head->data, head->len), &w->begin) == 0);
    w->begins++;
    msg_txn_begin_reply_init(&reply);
    reply.txn = FAKE_TXN;
    if (w->begin_err == TG_LABEL_EXISTS) {
        reply.state = w->existing;
        msg_txn_begin_reply_encode(&reply, out);
    }
    if (w->begin_err != 0) {
        msg_txn_begin_reply_close(&reply);
        return w->begin_err;
    }
    w->state = TXN_PREPARE;
    reply.state = TXN_PREPARE;
    reply.rowset = FAKE_ROWSET;
    reply.load_no = 1;
    reply.table = 7;
    reply.timeout_ms = 1000000;
    reply.write_all = w->write_all;
    schema_copy(&w->schema, &reply.schema);
    reply.bucket_count = w->buckets;
    reply.tablets = calloc(w->buckets, sizeof *reply.tablets);
    for (uint32_t b = 0; b < w->buckets; b++) {
        reply.tablets[b].tablet = 100 + b;
        reply.tablets[b].replica_count = (uint8_t)w->replicas;
        reply.tablets[b].quorum = (uint8_t)(w->write_all ? w->replicas : w->replicas / 2 + 1);
        for (uint32_t i = 0; i < w->replicas; i++)
            reply.tablets[b].replicas[i] = i + 1;
    }
    reply.distribution_count = 1;
    reply.distribution = calloc(1, sizeof *reply.distribution);
    reply.node_count = w->replicas;
    reply.nodes = calloc(w->replicas, sizeof *reply.nodes);
    for (uint32_t i = 0; i < w->replicas; i++) {
        reply.nodes[i].node = i + 1;
        snprintf(reply.nodes[i].rpc, sizeof reply.nodes[i].rpc, "127.0.0.1:%u", 8060 + i);
    }
    msg_txn_begin_reply_encode(&reply, out);
    msg_txn_begin_reply_close(&reply);
    return 0;
}

static int on_done(struct fake_load_world *w, struct buf *head, struct buf *out)
{
    static const enum txn_state STATES[] = {[LOAD_FINISH_NONE] = TXN_PREPARE,
                                            [LOAD_FINISH_PRECOMMIT] = TXN_PRECOMMITTED,
                                            [LOAD_FINISH_COMMIT] = TXN_COMMITTED};
    int err = w->dones == 0 ? w->done_err : 0;

    msg_load_done_close(&w->done);
    TG_CHECK(msg_load_done_decode(slice_of(head->data, head->len), &w->done) == 0);
    w->dones++;
    if (w->state == TXN_PREPARE && (err == 0 || w->done_applies)) {
        w->state = STATES[w->done.finish];
        if (w->state == TXN_COMMITTED)
            w->state = w->committed;
    }
    encode_state(w, out);
    return err;
}

static int on_failed(struct fake_load_world *w, struct buf *head, struct buf *out)
{
    TG_CHECK(msg_load_failed_decode(slice_of(head->data, head->len), &w->failed) == 0);
    w->fails++;
    if (w->fail_err != 0)
        return w->fail_err;
    if (w->state == TXN_PREPARE || w->state == TXN_UNKNOWN)
        w->state = TXN_ABORTED;
    encode_state(w, out);
    return 0;
}

static int call_coordinator(void *ctx, uint16_t type, struct buf *head, uint64_t timeout_ms,
                            uint64_t attempt_ms, struct buf *reply_head, struct tg_errmsg *msg)
{
    struct fake_load_world *w = ctx;
    int err = TG_INVALID;

    (void)timeout_ms;
    (void)attempt_ms;
    pthread_mutex_lock(&w->lock);
    if (type == MSG_TXN_BEGIN)
        err = on_begin(w, head, reply_head);
    else if (type == MSG_LOAD_DONE)
        err = on_done(w, head, reply_head);
    else if (type == MSG_LOAD_FAILED)
        err = on_failed(w, head, reply_head);
    pthread_mutex_unlock(&w->lock);
    buf_close(head);
    if (err != 0)
        tg_fail(msg, err, "%s", tg_err_sentence(err));
    return err;
}

static int take_message(struct fake_load_world *w, node_id node,
                        const struct msg_replicate *message, struct slice payload)
{
    size_t at = 0;

    TG_CHECK(node >= 1 && node <= FAKE_NODES_MAX);
    w->messages[node]++;
    if (w->replicate_err[node] != 0)
        return w->replicate_err[node];
    for (uint32_t i = 0; i < message->piece_count; i++) {
        struct fake_replica *replica = &w->tablets[node][message->pieces[i].tablet - 100];
        if (message->pieces[i].offset != replica->content.len)
            return TG_STALE;
        buf_append(&replica->content, payload.data + at, message->pieces[i].len);
        at += message->pieces[i].len;
    }
    TG_CHECK(at == payload.len);
    for (uint32_t i = 0; i < message->seal_count; i++) {
        struct fake_replica *replica = &w->tablets[node][message->seals[i].tablet - 100];
        struct digest digest = digest_of(replica->content.data, replica->content.len);
        if (message->seals[i].bytes != replica->content.len ||
            !digest_equal(&digest, &message->seals[i].digest))
            return TG_DIGEST;
        struct buf bytes = BUF_INIT;
        struct cursor cursor;
        rowset_meta_encode(&message->seals[i], &bytes);
        cursor_init(&cursor, bytes.data, bytes.len);
        TG_CHECK(rowset_meta_decode(&cursor, &replica->meta) == 0);
        buf_close(&bytes);
        replica->sealed = true;
    }
    return 0;
}

static void call_store(void *ctx, const struct msg_replicate *message, struct slice payload,
                       void (*done)(void *data, int err), void *data)
{
    struct fake_load_world *w = ctx;

    pthread_mutex_lock(&w->lock);
    int err = take_message(w, 1, message, payload);
    bool silent = w->silent[1];
    if (silent)
        w->held[w->held_count++] = (struct held){.done = done, .data = data};
    pthread_mutex_unlock(&w->lock);
    if (!silent)
        done(data, err);
}

static void call_peer(void *ctx, struct peer_call *call)
{
    struct fake_load_world *w = ctx;
    struct msg_replicate message;

    TG_CHECK(call->type == MSG_REPLICATE);
    TG_CHECK(msg_replicate_decode(slice_of(call->head.data, call->head.len), &message) == 0);
    TG_CHECK(message.receiver == call->node);
    pthread_mutex_lock(&w->lock);
    struct rpc_reply reply = {.err = take_message(w, call->node, &message,
                                                  slice_of(call->payload.data, call->payload.len)),
                              .message = ""};
    bool silent = w->silent[call->node];
    if (silent)
        w->held[w->held_count++] = (struct held){.peer_done = call->done, .data = call->data};
    pthread_mutex_unlock(&w->lock);
    msg_replicate_close(&message);
    buf_close(&call->head);
    buf_close(&call->payload);
    if (!silent)
        call->done(call->data, &reply);
}

/* ---- schema from text ---- */

static struct column_type parse_type(const char *name)
{
    static const struct {
        const char *name;
        uint8_t kind;
    } TYPES[] = {
        {"BOOLEAN", TYPE_BOOLEAN}, {"TINYINT", TYPE_TINYINT},   {"SMALLINT", TYPE_SMALLINT},
        {"INT", TYPE_INT},         {"BIGINT", TYPE_BIGINT},     {"LARGEINT", TYPE_LARGEINT},
        {"FLOAT", TYPE_FLOAT},     {"DOUBLE", TYPE_DOUBLE},     {"DECIMAL", TYPE_DECIMAL},
        {"DATE", TYPE_DATE},       {"DATETIME", TYPE_DATETIME}, {"CHAR", TYPE_CHAR},
        {"VARCHAR", TYPE_VARCHAR}, {"STRING", TYPE_STRING},     {"JSON", TYPE_JSON}};
    struct column_type type = {0};
    unsigned a = 0;
    unsigned b = 0;
    size_t len = strcspn(name, "(");

    for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++)
        if (strlen(TYPES[i].name) == len && strncmp(TYPES[i].name, name, len) == 0)
            type.kind = TYPES[i].kind;
    TG_CHECK(type.kind != 0);
    if (name[len] == '(')
        sscanf(name + len, "(%u;%u)", &a, &b);
    if (type.kind == TYPE_DECIMAL) {
        type.precision = (uint8_t)a;
        type.scale = (uint8_t)b;
    } else if (type.kind == TYPE_DATETIME) {
        type.scale = (uint8_t)a;
    } else {
        type.length = a;
    }
    return type;
}

void fake_load_world_init(struct fake_load_world *world, uint8_t key_model, uint32_t keys,
                          const char *columns, uint32_t buckets)
{
    char *copy = strdup(columns);
    char *save = NULL;

    memset(world, 0, sizeof *world);
    world->buckets = buckets;
    world->replicas = 1;
    world->committed = TXN_VISIBLE;
    pthread_mutex_init(&world->lock, NULL);
    world->calls = (struct load_calls){
        .ctx = world, .coordinator = call_coordinator, .store = call_store, .peer = call_peer};
    for (uint32_t n = 0; n <= FAKE_NODES_MAX; n++)
        for (uint32_t b = 0; b < FAKE_BUCKETS_MAX; b++)
            rowset_meta_init(&world->tablets[n][b].meta);
    schema_init(&world->schema);
    world->schema.key_model = key_model;
    for (char *one = strtok_r(copy, ",", &save); one != NULL; one = strtok_r(NULL, ",", &save)) {
        struct schema_column column = {.nullable = strstr(one, "NOT NULL") == NULL};
        char type[32];
        char *def = strstr(one, "DEFAULT ");
        TG_CHECK(sscanf(one, " %64s %31s", column.name, type) == 2);
        column.type = parse_type(type);
        column.is_key = world->schema.column_count < keys;
        if (def != NULL) {
            column.default_kind = DEFAULT_TEXT;
            column.default_text = def + 8;
        }
        TG_CHECK(schema_add_column(&world->schema, &column, NULL) == 0);
    }
    world->schema.key_count = keys;
    world->schema.id = 1;
    free(copy);
}

void fake_load_world_reset(struct fake_load_world *world)
{
    for (uint32_t n = 0; n <= FAKE_NODES_MAX; n++) {
        for (uint32_t b = 0; b < FAKE_BUCKETS_MAX; b++) {
            struct fake_replica *replica = &world->tablets[n][b];
            buf_close(&replica->content);
            rowset_meta_close(&replica->meta);
            rowset_meta_init(&replica->meta);
            replica->sealed = false;
        }
        world->messages[n] = 0;
    }
    world->state = TXN_UNKNOWN;
    world->begins = world->dones = world->fails = 0;
}

void fake_load_world_close(struct fake_load_world *world)
{
    for (unsigned i = 0; i < world->held_count; i++) {
        struct rpc_reply reply = {.err = TG_CANCELED, .message = ""};
        if (world->held[i].done != NULL)
            world->held[i].done(world->held[i].data, TG_CANCELED);
        else
            world->held[i].peer_done(world->held[i].data, &reply);
    }
    for (uint32_t n = 0; n <= FAKE_NODES_MAX; n++) {
        for (uint32_t b = 0; b < FAKE_BUCKETS_MAX; b++) {
            buf_close(&world->tablets[n][b].content);
            rowset_meta_close(&world->tablets[n][b].meta);
        }
    }
    msg_load_done_close(&world->done);
    schema_close(&world->schema);
    pthread_mutex_destroy(&world->lock);
}

/* ---- reading back ---- */

static void print_block(const struct fake_load_world *w, struct block_decoder *decoder,
                        struct slice bytes, struct buf *out)
{
    struct block block;
    uint32_t count = schema_stored_count(&w->schema);
    struct vector *columns = calloc(count, sizeof *columns);

    TG_CHECK(block_open(&block, bytes.data, bytes.len, NULL) == 0);
    TG_CHECK(block.column_count == count);
    for (uint32_t i = 0; i < count; i++) {
        int index = block_find(&block, schema_stored_id(&w->schema, i));
        TG_CHECK(index >= 0);
        vector_init(&columns[i], schema_stored_type(&w->schema, i));
        TG_CHECK(block_decode_column(decoder, &block, (uint32_t)index, &columns[i], NULL) == 0);
    }
    for (uint32_t r = 0; r < block.rows; r++) {
        for (uint32_t i = 0; i < count; i++) {
            char text[TYPE_TEXT_MAX];
            if (i > 0)
                buf_append_str(out, "|");
            if (vector_is_null(&columns[i], r)) {
                buf_append_str(out, "\\N");
            } else if (columns[i].width == 0) {
                struct slice value = vector_bytes(&columns[i], r);
                buf_append(out, value.data, value.len);
            } else {
                size_t len = type_print(columns[i].type, vector_fixed(&columns[i], r), text);
                buf_append(out, text, len);
            }
        }
        buf_append_str(out, "\n");
    }
    for (uint32_t i = 0; i < count; i++)
        vector_close(&columns[i]);
    free(columns);
}

static void print_bucket(struct fake_load_world *w, node_id node, uint32_t bucket, struct buf *out)
{
    const struct fake_replica *replica = &w->tablets[node][bucket];
    struct block_decoder *decoder = block_decoder_open();

    for (uint32_t i = 0; replica->sealed && i < replica->meta.block_count; i++) {
        const struct rowset_block_ref *ref = &replica->meta.blocks[i];
        print_block(w, decoder, slice_of(replica->content.data + ref->offset, ref->len), out);
    }
    block_decoder_close(decoder);
}

char *fake_load_world_bucket(struct fake_load_world *world, node_id node, uint32_t bucket)
{
    struct buf out = BUF_INIT;
    size_t len;

    print_bucket(world, node, bucket, &out);
    TG_CHECK(buf_cstr(&out) != NULL);
    return out.data == NULL ? strdup("") : (char *)buf_take(&out, &len);
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char *fake_load_world_rows(struct fake_load_world *world, node_id node)
{
    struct buf all = BUF_INIT;
    struct buf out = BUF_INIT;
    size_t count = 0;
    size_t len;

    for (uint32_t b = 0; b < world->buckets; b++)
        print_bucket(world, node, b, &all);
    if (all.len == 0)
        return strdup("");
    TG_CHECK(buf_cstr(&all) != NULL);
    for (size_t i = 0; i < all.len; i++)
        count += all.data[i] == '\n';
    char **lines = calloc(count + 1, sizeof *lines);
    char *at = (char *)all.data;
    for (size_t i = 0; i < count; i++) {
        lines[i] = at;
        at = strchr(at, '\n');
        *at++ = 0;
    }
    qsort(lines, count, sizeof *lines, compare_lines);
    for (size_t i = 0; i < count; i++)
        buf_printf(&out, "%s\n", lines[i]);
    free(lines);
    buf_close(&all);
    TG_CHECK(buf_cstr(&out) != NULL);
    return (char *)buf_take(&out, &len);
}
