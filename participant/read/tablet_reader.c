/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_READ_TABLET on the node that holds the replica. */
#include "participant/read/tablet_reader.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checksum.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/work_queue.h"
#include "common/model/rowset_block.h"
#include "participant/rowset/merge_cursor.h"
#include "participant/tablet/version_map.h"

int tablet_reader_open(struct store *store, struct tablet_set *tablets,
                       const struct msg_read_tablet *message, struct merge_cursor **cursor,
                       struct tg_errmsg *msg)
{
    struct version_map share;
    struct version_view view = {0};
    struct merge_input *inputs = NULL;
    bool changes = message->mode == READ_TABLET_CHANGES;
    int err;

    tablet_set_share(tablets, message->tablet, &share);
    if (changes)
        err = version_map_between(&share, message->after, message->version, message->need, &view);
    else
        err = version_map_at(&share, message->version, message->need, &view);
    if (err != 0)
        tg_fail(msg, err, "tablet %lu has not bound version %lu here", message->tablet,
                message->need);
    if (err == 0) {
        inputs = calloc((size_t)view.count + 1, sizeof *inputs);
        err = inputs == NULL ? TG_NOMEM : 0;
    }
    if (err == 0) {
        for (uint32_t i = 0; i < view.count; i++)
            inputs[i] = (struct merge_input){view.rowsets[i].version, view.rowsets[i].rowset};
        bool unique = message->schema.key_model == KEY_UNIQUE;
        struct merge_options options = {
            .schema = &message->schema,
            .column_count = message->column_count,
            .columns = message->columns,
            .merge = !changes && (unique || message->in_key_order),
            .newest_wins = !changes && unique,
            .include_deleted = message->include_deleted,
            .from = slice_of(message->from.data, message->from.len),
            .to = slice_of(message->to.data, message->to.len),
        };
        err =
            merge_cursor_open(store, message->tablet, inputs, view.count, &options,
                              slice_of(message->position.data, message->position.len), cursor, msg);
    }
    free(inputs);
    version_map_close(&share);
    return err;
}

/* ---- cursors whose read goes on ---- */

struct kept {
    struct digest key; /* of the message that goes on */
    struct msg_read_tablet message;
    struct merge_cursor *cursor;
    uint64_t since_ms;
};

struct job {
    struct msg_read_tablet message;
    tablet_reader_done *done;
    void *data;
};

struct tablet_reader_pool {
    struct store *store;
    struct tablet_set *tablets;
    struct work_queue queue;
    atomic_bool closing;
    unsigned thread_count;
    pthread_t threads[TABLET_READER_THREADS];
    pthread_mutex_t lock; /* kept, oldest first */
    unsigned kept_count;
    struct kept kept[TABLET_READER_IDLE_MAX];
};

/* What two messages must have in common for one cursor to serve both: everything but the limit. */
static int key_of(const struct msg_read_tablet *message, struct digest *key)
{
    struct msg_read_tablet same = *message;
    struct buf text = BUF_INIT;
    int err;

    same.row_limit = 0;
    msg_read_tablet_encode(&same, &text);
    err = text.err;
    if (err == 0)
        *key = digest_of(text.data, text.len);
    buf_close(&text);
    return err;
}

static void kept_close(struct kept *kept)
{
    merge_cursor_close(kept->cursor);
    msg_read_tablet_close(&kept->message);
}

/* With the lock held. */
static struct kept take_out(struct tablet_reader_pool *pool, unsigned at)
{
    struct kept kept = pool->kept[at];

    pool->kept_count--;
    memmove(&pool->kept[at], &pool->kept[at + 1], (pool->kept_count - at) * sizeof pool->kept[0]);
    return kept;
}

/* A kept cursor that goes on where the message does. */
static bool find_kept(struct tablet_reader_pool *pool, const struct digest *key, struct kept *kept)
{
    bool is_found = false;

    pthread_mutex_lock(&pool->lock);
    for (unsigned i = 0; i < pool->kept_count && !is_found; i++) {
        is_found = digest_equal(&pool->kept[i].key, key);
        if (is_found)
            *kept = take_out(pool, i);
    }
    pthread_mutex_unlock(&pool->lock);
    return is_found;
}

static void keep(struct tablet_reader_pool *pool, struct kept *kept)
{
    struct kept oldest = {0};

    kept->since_ms = clock_monotonic_ms(clock_system());
    pthread_mutex_lock(&pool->lock);
    if (pool->kept_count == TABLET_READER_IDLE_MAX)
        oldest = take_out(pool, 0);
    pool->kept[pool->kept_count++] = *kept;
    pthread_mutex_unlock(&pool->lock);
    kept_close(&oldest);
}

/* Lets go of those whose reader seems to be gone. Returns how long to wait until the next look. */
static uint64_t drop_old(struct tablet_reader_pool *pool)
{
    uint64_t now = clock_monotonic_ms(clock_system());

    for (;;) {
        struct kept old = {0};
        uint64_t wait = WORK_QUEUE_FOREVER;

        pthread_mutex_lock(&pool->lock);
        if (pool->kept_count > 0) {
            uint64_t end = pool->kept[0].since_ms + TABLET_READER_IDLE_MS;

            if (end <= now)
                old = take_out(pool, 0);
            else
                wait = end - now;
        }
        pthread_mutex_unlock(&pool->lock);
        if (old.cursor == NULL)
            return wait;
        kept_close(&old);
    }
}

/* ---- one answer ---- */

static int encode_rows(struct merge_cursor *cursor, const struct msg_read_tablet *message,
                       uint32_t max, struct block_encoder *encoder, struct vector *vectors,
                       uint32_t *ids, uint32_t *rows, struct buf *payload, struct tg_errmsg *msg)
{
    bool changes = message->mode == READ_TABLET_CHANGES;
    uint32_t count = message->column_count;
    const struct vector *columns[COLUMNS_MAX + 2];
    int err = merge_cursor_next(cursor, max, vectors, changes ? &vectors[count] : NULL, rows, msg);

    if (err != 0 || *rows == 0)
        return err;
    for (uint32_t i = 0; i < count; i++)
        ids[i] = message->columns[i];
    if (changes)
        ids[count++] = COLUMN_ID_VERSION;
    for (uint32_t i = 0; i < count; i++)
        columns[i] = &vectors[i];
    err = block_encode(encoder, columns, ids, count, 0, *rows, payload);
    return err == 0 ? 0 : tg_fail(msg, err, "the rows cannot be encoded");
}

static int answer(struct merge_cursor *cursor, const struct msg_read_tablet *message,
                  struct block_encoder *encoder, struct msg_read_tablet_reply *reply,
                  struct buf *payload, struct tg_errmsg *msg)
{
    uint32_t columns = message->column_count;
    uint32_t max = BLOCK_ROWS;
    uint32_t rows = 0;

    if (message->row_limit != 0 && message->row_limit < max)
        max = (uint32_t)message->row_limit;
    struct vector *vectors = calloc((size_t)columns + 1, sizeof *vectors);
    uint32_t *ids = calloc((size_t)columns + 1, sizeof *ids);
    int err = vectors == NULL || ids == NULL ? TG_NOMEM : 0;
    if (err == 0) {
        for (uint32_t i = 0; i < columns; i++)
            vector_init(&vectors[i], merge_cursor_type(cursor, i));
        vector_init(&vectors[columns], (struct column_type){.kind = TYPE_BIGINT});
        err = encode_rows(cursor, message, max, encoder, vectors, ids, &rows, payload, msg);
        for (uint32_t i = 0; i <= columns; i++)
            vector_close(&vectors[i]);
    }
    if (err == 0) {
        reply->rows = rows;
        reply->done = rows == 0 || merge_cursor_is_done(cursor);
        merge_cursor_position(cursor, &reply->position);
        err = reply->position.err;
    }
    free(vectors);
    free(ids);
    return err;
}

static int read_job(struct tablet_reader_pool *pool, struct job *job, struct block_encoder *encoder,
                    struct msg_read_tablet_reply *reply, struct buf *payload, struct tg_errmsg *msg)
{
    struct kept kept = {0};
    struct digest key;

    if (atomic_load(&pool->closing))
        return tg_fail(msg, TG_CLOSED, "the node shuts down");
    if (job->message.column_count == 0 || job->message.column_count > COLUMNS_MAX + 1)
        return tg_fail(msg, TG_INVALID, "no columns, or more than %d", COLUMNS_MAX + 1);
    int err = key_of(&job->message, &key);
    if (err == 0 && (job->message.position.len == 0 || !find_kept(pool, &key, &kept))) {
        kept.message = job->message;
        memset(&job->message, 0, sizeof job->message);
        err = tablet_reader_open(pool->store, pool->tablets, &kept.message, &kept.cursor, msg);
    } else if (err == 0) {
        kept.message.row_limit = job->message.row_limit;
    }
    if (err == 0)
        err = answer(kept.cursor, &kept.message, encoder, reply, payload, msg);
    if (err == 0 && !reply->done) {
        buf_clear(&kept.message.position);
        buf_append(&kept.message.position, reply->position.data, reply->position.len);
        if (kept.message.position.err == 0 && key_of(&kept.message, &kept.key) == 0) {
            keep(pool, &kept);
            return 0;
        }
    }
    kept_close(&kept);
    return err;
}

/* ---- threads for peers ---- */

static void run_job(struct tablet_reader_pool *pool, struct job *job, struct block_encoder *encoder)
{
    struct msg_read_tablet_reply reply = {0};
    struct buf payload = BUF_INIT;
    struct tg_errmsg msg = {{0}};
    tablet_id tablet = job->message.tablet;
    int err = read_job(pool, job, encoder, &reply, &payload, &msg);

    if (err == TG_CORRUPT || err == TG_NOT_FOUND)
        tablet_set_suspect(pool->tablets, tablet);
    if (err != 0) {
        if (err != TG_BEHIND && err != TG_CLOSED)
            log_warn("read", "cannot_serve tablet=%lu err=%s reason=%s", tablet, tg_err_name(err),
                     log_quote(msg.text));
        job->done(job->data, err, msg.text[0] != 0 ? msg.text : tg_err_sentence(err), NULL, NULL);
    } else {
        job->done(job->data, 0, "", &reply, &payload);
    }
    msg_read_tablet_reply_close(&reply);
    buf_close(&payload);
    msg_read_tablet_close(&job->message);
    free(job);
}

static void *run(void *data)
{
    struct tablet_reader_pool *pool = data;
    struct block_encoder *encoder = block_encoder_open();
    void *job;
    int err;

    /* Without an encoder this thread cannot work; it is as if it had not been started. */
    while (encoder != NULL &&
           (err = work_queue_pop(&pool->queue, drop_old(pool), &job)) != TG_CLOSED)
        if (err == 0)
            run_job(pool, job, encoder);
    block_encoder_close(encoder);
    return NULL;
}

int tablet_reader_pool_open(struct store *store, struct tablet_set *tablets,
                            struct tablet_reader_pool **pool)
{
    struct tablet_reader_pool *p = calloc(1, sizeof *p);

    if (p == NULL)
        return TG_NOMEM;
    p->store = store;
    p->tablets = tablets;
    if (work_queue_init(&p->queue, TABLET_READER_QUEUE_MAX) != 0) {
        free(p);
        return TG_NOMEM;
    }
    pthread_mutex_init(&p->lock, NULL);
    while (p->thread_count < TABLET_READER_THREADS &&
           pthread_create(&p->threads[p->thread_count], NULL, run, p) == 0)
        p->thread_count++;
    if (p->thread_count == 0) {
        tablet_reader_pool_close(p);
        return TG_NOMEM;
    }
    *pool = p;
    return 0;
}

void tablet_reader_pool_close(struct tablet_reader_pool *pool)
{
    if (pool == NULL)
        return;
    atomic_store(&pool->closing, true);
    work_queue_close(&pool->queue);
    for (unsigned i = 0; i < pool->thread_count; i++)
        pthread_join(pool->threads[i], NULL);
    for (unsigned i = 0; i < pool->kept_count; i++)
        kept_close(&pool->kept[i]);
    work_queue_free(&pool->queue);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

void tablet_reader_serve(struct tablet_reader_pool *pool, struct msg_read_tablet *message,
                         tablet_reader_done *done, void *data)
{
    struct job *job = calloc(1, sizeof *job);

    if (job != NULL) {
        *job = (struct job){.message = *message, .done = done, .data = data};
        memset(message, 0, sizeof *message);
        if (work_queue_try_push(&pool->queue, job) == 0)
            return;
        *message = job->message;
        free(job);
    }
    msg_read_tablet_close(message);
    done(data, TG_BUSY, "too many reads for other nodes are waiting", NULL, NULL);
}
