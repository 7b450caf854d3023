/* SPDX-License-Identifier: Apache-2.0 */
/* The one write thread of an environment: group commit. */
#include "participant/store/store_writer.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "common/base/check.h"
#include "common/base/failpoint.h"
#include "common/base/log.h"
#include "participant/store/disk_reserve.h"

/* Pages at the end of a map that only shrinking jobs may use, so that a full map can be emptied:
 * LMDB writes even to delete. */
enum { RESERVE_SHARE = 32, RESERVE_PAGES_MIN = 48, RESERVE_PAGES_MAX = 16 * 1024 };

enum { ADVANCE_PAGES_MIN = 16 /* freed pages that are worth a transaction of their own */ };
enum { READERS_CHECK_S = 30 /* between two looks for readers whose process is gone */ };

struct store_writer {
    struct lmdb_env *env;
    uint64_t queue_bytes;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct store_job *first;
    struct store_job **last;
    uint64_t bytes; /* of jobs that wait or are being written */
    struct store_waiter *waiters;
    bool stopping;
    struct timespec check_at; /* the thread's: the readers' slots */
};

/* Takes as many jobs as fit one transaction; at least one. */
static struct store_job *take_batch(struct store_writer *writer)
{
    struct store_job *batch = writer->first;
    struct store_job *end = batch;
    size_t bytes = batch->bytes;
    for (uint32_t jobs = 1; end->next != NULL && jobs < STORE_WRITER_BATCH_JOBS; jobs++) {
        if (bytes + end->next->bytes > STORE_WRITER_BATCH_BYTES)
            break;
        end = end->next;
        bytes += end->bytes;
    }
    writer->first = end->next;
    if (writer->first == NULL)
        writer->last = &writer->first;
    end->next = NULL;
    return batch;
}

static uint64_t reserve_pages(uint64_t total)
{
    uint64_t reserve = total / RESERVE_SHARE;
    if (reserve < RESERVE_PAGES_MIN)
        reserve = RESERVE_PAGES_MIN;
    return reserve < RESERVE_PAGES_MAX ? reserve : RESERVE_PAGES_MAX;
}

/* How many bytes jobs that do not shrink may still write: up to the reserve of the map, and of the
 * disk up to its floor; pages that the file has already can be used again. */
static int room_for_growth(struct store_writer *writer, uint64_t *room, struct lmdb_pages *pages)
{
    struct lmdb_env *env = writer->env;
    uint64_t total = env->map_bytes / env->page_bytes;
    uint64_t reserve = reserve_pages(total);
    uint64_t plenty = 2 * (uint64_t)STORE_WRITER_BATCH_BYTES;
    uint64_t growth = env->disk != NULL ? disk_reserve_growth(env->disk) : UINT64_MAX;
    int err = lmdb_env_pages(env, false, pages);
    if (err == 0 &&
        (growth < 2 * plenty || pages->map < pages->last + reserve + plenty / env->page_bytes))
        err = lmdb_env_pages(env, true, pages);
    if (err != 0)
        return err;
    uint64_t left = pages->map + pages->usable - pages->last;
    *room = left > reserve ? (left - reserve) * env->page_bytes : 0;
    uint64_t again = pages->usable + pages->behind;
    if (growth < UINT64_MAX / 2 && again > RESERVE_PAGES_MIN)
        growth += (again - RESERVE_PAGES_MIN) * env->page_bytes;
    if (growth < *room)
        *room = growth;
    return 0;
}

static void log_no_room(const struct store_writer *writer, uint64_t wanted, uint64_t room,
                        const struct lmdb_pages *pages)
{
    log_warn("store",
             "no_room environment=%s wanted=%lu room=%lu map_pages=%lu last=%lu usable=%lu "
             "fresh=%lu pinned=%lu behind=%lu",
             writer->env->name, wanted, room, pages->map, pages->last, pages->usable, pages->fresh,
             pages->pinned, pages->behind);
}

/* The same, but what the last transaction freed must not wait for another one that never comes
 * because there is no room. */
static int make_room(struct store_writer *writer, const struct store_job *list, uint64_t *room)
{
    struct lmdb_pages pages;
    uint64_t wanted = 0;
    for (const struct store_job *job = list; job != NULL; job = job->next)
        wanted += job->shrinks ? 0 : job->bytes;
    int err = room_for_growth(writer, room, &pages);
    if (err == 0 && *room < wanted && pages.fresh >= ADVANCE_PAGES_MIN &&
        lmdb_env_advance(writer->env) == 0)
        err = room_for_growth(writer, room, &pages);
    if (err == 0 && *room < wanted)
        log_no_room(writer, wanted, *room, &pages);
    return err;
}

/* One transaction over the jobs of a list. 0: each job has its own verdict in err; else nothing of
 * it happened. */
static int commit_list(struct store_writer *writer, struct store_job *list)
{
    struct lmdb_txn txn;
    uint64_t room;
    int err = make_room(writer, list, &room);
    if (err == 0)
        err = lmdb_txn_write(writer->env, &txn);
    if (err != 0)
        return err;
    for (struct store_job *job = list; job != NULL && txn.err == 0; job = job->next) {
        if (!job->shrinks && job->bytes > room) {
            job->err = TG_NOSPACE;
            continue;
        }
        room -= job->shrinks ? 0 : job->bytes;
        job->err = job->apply(job, &txn);
    }
    if (txn.err == 0)
        txn.err = FAILPOINT_ERROR("part.rowset_written_before_fsync", TG_NOSPACE);
    return lmdb_txn_commit(&txn);
}

/* One job alone. What frees space may have that of the reserve when there is no other. */
static void commit_one(struct store_writer *writer, struct store_job *job)
{
    struct disk_reserve *disk = writer->env->disk;
    int err = commit_list(writer, job);
    struct lmdb_pages pages;
    if (err == TG_NOSPACE && lmdb_env_pages(writer->env, true, &pages) == 0)
        log_no_room(writer, job->bytes, 0, &pages);
    if (err == TG_NOSPACE && job->shrinks && disk != NULL && disk_reserve_give_up(disk))
        err = commit_list(writer, job);
    if (err != 0)
        job->err = err;
}

/* When a transaction fails as a whole, one job may be to blame (a full map, say): each gets a
 * transaction of its own, so that those that still fit are not refused with it. */
static void commit_batch(struct store_writer *writer, struct store_job *batch)
{
    if (batch->next == NULL) {
        commit_one(writer, batch);
        return;
    }
    int err = commit_list(writer, batch);
    if (err == 0)
        return;
    log_warn("store", "batch given up environment=%s reason=%s", writer->env->name,
             log_quote(tg_err_sentence(err)));
    for (struct store_job *job = batch; job != NULL; job = job->next) {
        struct store_job *next = job->next;
        job->next = NULL;
        commit_one(writer, job);
        job->next = next;
    }
}

static void complete_batch(struct store_writer *writer, struct store_job *batch)
{
    uint64_t bytes = 0;
    for (struct store_job *job = batch; job != NULL; job = job->next)
        bytes += job->bytes;
    pthread_mutex_lock(&writer->lock);
    writer->bytes -= bytes;
    struct store_waiter *waiters = NULL;
    if (writer->bytes < writer->queue_bytes) {
        waiters = writer->waiters;
        writer->waiters = NULL;
    }
    pthread_mutex_unlock(&writer->lock);
    while (batch != NULL) {
        struct store_job *next = batch->next;
        batch->done(batch, batch->err);
        batch = next;
    }
    while (waiters != NULL) {
        struct store_waiter *next = waiters->next;
        waiters->ready(waiters);
        waiters = next;
    }
}

/* Waits for work, and looks after the readers' slots meanwhile. With the lock held. */
static void wait_work(struct store_writer *writer)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec >= writer->check_at.tv_sec) {
        writer->check_at = now;
        writer->check_at.tv_sec += READERS_CHECK_S;
        pthread_mutex_unlock(&writer->lock);
        lmdb_env_check_readers(writer->env);
        pthread_mutex_lock(&writer->lock);
    }
    if (writer->first == NULL && !writer->stopping)
        (void)pthread_cond_timedwait(&writer->work, &writer->lock, &writer->check_at);
}

static void *run(void *data)
{
    struct store_writer *writer = data;
    pthread_mutex_lock(&writer->lock);
    for (;;) {
        do
            wait_work(writer);
        while (writer->first == NULL && !writer->stopping);
        if (writer->first == NULL)
            break;
        struct store_job *batch = take_batch(writer);
        pthread_mutex_unlock(&writer->lock);
        commit_batch(writer, batch);
        complete_batch(writer, batch);
        pthread_mutex_lock(&writer->lock);
    }
    pthread_mutex_unlock(&writer->lock);
    return NULL;
}

int store_writer_start(struct lmdb_env *env, uint64_t queue_bytes, struct store_writer **writer)
{
    struct store_writer *made = calloc(1, sizeof *made);
    if (made == NULL)
        return TG_NOMEM;
    made->env = env;
    made->queue_bytes = queue_bytes;
    made->last = &made->first;
    pthread_mutex_init(&made->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&made->work, &attr);
    pthread_condattr_destroy(&attr);
    if (pthread_create(&made->thread, NULL, run, made) != 0) {
        pthread_cond_destroy(&made->work);
        pthread_mutex_destroy(&made->lock);
        free(made);
        return TG_NOMEM;
    }
    *writer = made;
    return 0;
}

void store_writer_stop(struct store_writer *writer)
{
    if (writer == NULL)
        return;
    pthread_mutex_lock(&writer->lock);
    writer->stopping = true;
    pthread_cond_signal(&writer->work);
    pthread_mutex_unlock(&writer->lock);
    pthread_join(writer->thread, NULL);
    TG_CHECK(writer->waiters == NULL);
    pthread_cond_destroy(&writer->work);
    pthread_mutex_destroy(&writer->lock);
    free(writer);
}

int store_writer_submit(struct store_writer *writer, struct store_job *job)
{
    int err = 0;
    job->next = NULL;
    job->err = 0;
    pthread_mutex_lock(&writer->lock);
    if (writer->stopping) {
        err = TG_CLOSED;
    } else if (!job->shrinks && writer->bytes > writer->queue_bytes * STORE_WRITER_HARD_FACTOR) {
        err = TG_BUSY;
    } else {
        *writer->last = job;
        writer->last = &job->next;
        writer->bytes += job->bytes;
        pthread_cond_signal(&writer->work);
    }
    pthread_mutex_unlock(&writer->lock);
    return err;
}

bool store_writer_wait_room(struct store_writer *writer, struct store_waiter *waiter)
{
    pthread_mutex_lock(&writer->lock);
    bool full = writer->bytes >= writer->queue_bytes;
    if (full) {
        waiter->next = writer->waiters;
        writer->waiters = waiter;
    }
    pthread_mutex_unlock(&writer->lock);
    return full;
}

struct run_job {
    struct store_job job; /* first */
    int (*apply)(void *data, struct lmdb_txn *txn);
    void *data;
    pthread_mutex_t lock;
    pthread_cond_t finished;
    bool is_done;
    int err;
};

static int run_apply(struct store_job *job, struct lmdb_txn *txn)
{
    struct run_job *self = (struct run_job *)job;
    return self->apply(self->data, txn);
}

static void run_done(struct store_job *job, int err)
{
    struct run_job *self = (struct run_job *)job;
    pthread_mutex_lock(&self->lock);
    self->err = err;
    self->is_done = true;
    pthread_cond_signal(&self->finished);
    pthread_mutex_unlock(&self->lock);
}

int store_writer_run(struct store_writer *writer, bool shrinks, size_t bytes,
                     int (*apply)(void *data, struct lmdb_txn *txn), void *data)
{
    struct run_job self = {
        .job = {.bytes = bytes, .shrinks = shrinks, .apply = run_apply, .done = run_done},
        .apply = apply,
        .data = data};
    pthread_mutex_init(&self.lock, NULL);
    pthread_cond_init(&self.finished, NULL);
    int err = store_writer_submit(writer, &self.job);
    if (err == 0) {
        pthread_mutex_lock(&self.lock);
        while (!self.is_done)
            pthread_cond_wait(&self.finished, &self.lock);
        pthread_mutex_unlock(&self.lock);
        err = self.err;
    }
    pthread_cond_destroy(&self.finished);
    pthread_mutex_destroy(&self.lock);
    return err;
}
