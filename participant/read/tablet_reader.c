/* SPDX-License-Identifier: Apache-2.0 */
/* One block of a tablet's rows at a time. */
#include "participant/read/tablet_reader.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

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
        inputs = calloc(view.count + 1, sizeof *inputs);
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

static int encode_rows(struct merge_cursor *cursor, const struct msg_read_tablet *message,
                       uint32_t max, struct vector *vectors, uint32_t *ids, uint32_t *rows,
                       struct buf *payload, struct tg_errmsg *msg)
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
    struct block_encoder *encoder = block_encoder_open();
    if (encoder == NULL)
        return TG_NOMEM;
    err = block_encode(encoder, columns, ids, count, 0, *rows, payload);
    block_encoder_close(encoder);
    return err;
}

int tablet_reader_read(struct store *store, struct tablet_set *tablets,
                       const struct msg_read_tablet *message, struct msg_read_tablet_reply *reply,
                       struct buf *payload, struct tg_errmsg *msg)
{
    struct merge_cursor *cursor = NULL;
    uint32_t columns = message->column_count;
    uint32_t max = BLOCK_ROWS;
    uint32_t rows = 0;

    memset(reply, 0, sizeof *reply);
    buf_init(payload);
    if (columns > COLUMNS_MAX + 1)
        return tg_fail(msg, TG_INVALID, "more than %d columns", COLUMNS_MAX + 1);
    if (message->row_limit != 0 && message->row_limit < max)
        max = (uint32_t)message->row_limit;
    struct vector *vectors = calloc(columns + 1, sizeof *vectors);
    uint32_t *ids = calloc(columns + 1, sizeof *ids);
    int err = vectors == NULL || ids == NULL ? TG_NOMEM : 0;
    if (err == 0)
        err = tablet_reader_open(store, tablets, message, &cursor, msg);
    if (err == 0) {
        for (uint32_t i = 0; i < columns; i++)
            vector_init(&vectors[i], merge_cursor_type(cursor, i));
        vector_init(&vectors[columns], (struct column_type){.kind = TYPE_BIGINT});
        err = encode_rows(cursor, message, max, vectors, ids, &rows, payload, msg);
        for (uint32_t i = 0; i <= columns; i++)
            vector_close(&vectors[i]);
    }
    if (err == 0) {
        reply->rows = rows;
        reply->done = rows < max;
        merge_cursor_position(cursor, &reply->position);
        err = reply->position.err;
    }
    merge_cursor_close(cursor);
    free(vectors);
    free(ids);
    if (err != 0) {
        msg_read_tablet_reply_close(reply);
        buf_close(payload);
    }
    return err;
}

/* ---- threads for peers ---- */

struct job {
    struct msg_read_tablet message;
    tablet_reader_done *done;
    void *data;
};

struct tablet_reader_pool {
    struct store *store;
    struct tablet_set *tablets;
    struct work_queue queue;
    unsigned thread_count;
    pthread_t threads[TABLET_READER_THREADS];
};

static void run_job(struct tablet_reader_pool *pool, struct job *job)
{
    struct msg_read_tablet_reply reply;
    struct buf payload;
    struct tg_errmsg msg = {{0}};
    int err = tablet_reader_read(pool->store, pool->tablets, &job->message, &reply, &payload, &msg);

    job->done(job->data, err, &reply, &payload);
    if (err == 0) {
        msg_read_tablet_reply_close(&reply);
        buf_close(&payload);
    }
    msg_read_tablet_close(&job->message);
    free(job);
}

static void *run(void *data)
{
    struct tablet_reader_pool *pool = data;
    void *job;

    while (work_queue_pop(&pool->queue, WORK_QUEUE_FOREVER, &job) == 0)
        run_job(pool, job);
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
    work_queue_close(&pool->queue);
    for (unsigned i = 0; i < pool->thread_count; i++)
        pthread_join(pool->threads[i], NULL);
    work_queue_free(&pool->queue);
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
    done(data, TG_BUSY, NULL, NULL);
}
