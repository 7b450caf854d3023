/* SPDX-License-Identifier: Apache-2.0 */
/* Clones ordered by the leader. */
#include "participant/maintain/cloner.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/log.h"

enum job_state { JOB_FREE, JOB_WAITS, JOB_RUNS, JOB_ENDED };

struct job {
    enum job_state state;
    uint64_t turn; /* when it was ordered, or ended: the oldest goes first */
    struct msg_clone order;
    struct clone_tablet *clone; /* while it runs */
    struct msg_clone_reply reply;
};

struct cloner {
    struct cloner_options options;
    struct throttle throttle;
    atomic_bool stop;
    atomic_uint_fast64_t rounds;
    atomic_uint_fast64_t bytes;
    unsigned thread_count;
    pthread_t threads[CLONER_THREADS];
    pthread_mutex_t lock; /* all below */
    pthread_cond_t wake;
    uint64_t turns;
    struct job jobs[CLONER_JOBS_MAX];
    struct recent {
        tablet_id tablet;
        uint64_t ms;
    } recent[CLONER_RECENT_MAX]; /* when a tablet was last ordered; tablet 0: free */
    uint64_t forgotten_ms;       /* the newest of those that were overwritten */
};

/* ---- jobs, with the lock held ---- */

static struct job *find_job(struct cloner *cloner, tablet_id tablet)
{
    for (unsigned i = 0; i < CLONER_JOBS_MAX; i++)
        if (cloner->jobs[i].state != JOB_FREE && cloner->jobs[i].order.tablet == tablet)
            return &cloner->jobs[i];
    return NULL;
}

static struct job *oldest(struct cloner *cloner, enum job_state state)
{
    struct job *found = NULL;

    for (unsigned i = 0; i < CLONER_JOBS_MAX; i++) {
        struct job *job = &cloner->jobs[i];

        if (job->state == state && (found == NULL || job->turn < found->turn))
            found = job;
    }
    return found;
}

static void begin_job(struct cloner *cloner, struct job *job, const struct msg_clone *message)
{
    *job = (struct job){.state = JOB_WAITS, .turn = ++cloner->turns, .order = *message};
    pthread_cond_signal(&cloner->wake);
}

/* With the lock held. */
static void note_order(struct cloner *cloner, tablet_id tablet)
{
    struct recent *oldest_one = &cloner->recent[0];

    for (unsigned i = 0; i < CLONER_RECENT_MAX && oldest_one->tablet != tablet; i++) {
        struct recent *recent = &cloner->recent[i];

        if (recent->tablet == tablet || recent->ms < oldest_one->ms)
            oldest_one = recent;
    }
    if (oldest_one->tablet != 0 && oldest_one->tablet != tablet &&
        oldest_one->ms > cloner->forgotten_ms)
        cloner->forgotten_ms = oldest_one->ms;
    *oldest_one =
        (struct recent){.tablet = tablet, .ms = clock_monotonic_ms(cloner->options.clock)};
}

bool cloner_ordered_since(struct cloner *cloner, tablet_id tablet, uint64_t since_ms)
{
    pthread_mutex_lock(&cloner->lock);
    bool ordered = cloner->forgotten_ms >= since_ms && cloner->forgotten_ms > 0;
    for (unsigned i = 0; i < CLONER_RECENT_MAX && !ordered; i++)
        ordered = cloner->recent[i].tablet == tablet && cloner->recent[i].ms >= since_ms;
    pthread_mutex_unlock(&cloner->lock);
    return ordered;
}

int cloner_order(struct cloner *cloner, const struct msg_clone *message,
                 struct msg_clone_reply *reply)
{
    int err = 0;

    memset(reply, 0, sizeof *reply);
    if (atomic_load(&cloner->stop))
        return TG_CLOSED;
    pthread_mutex_lock(&cloner->lock);
    note_order(cloner, message->tablet);
    struct job *job = find_job(cloner, message->tablet);
    if (job == NULL) {
        job = oldest(cloner, JOB_FREE);
        if (job == NULL)
            job = oldest(cloner, JOB_ENDED);
        if (job == NULL)
            err = TG_BUSY;
        else
            begin_job(cloner, job, message);
    } else if (job->state == JOB_ENDED && job->order.round != message->round) {
        begin_job(cloner, job, message);
    } else if (job->state != JOB_ENDED) {
        job->order.round = message->round; /* a new leader: it is the same work */
    }
    if (err == 0) {
        *reply = job->reply;
        if (job->clone != NULL)
            reply->bytes = atomic_load(&job->clone->bytes);
    }
    pthread_mutex_unlock(&cloner->lock);
    return err;
}

/* ---- threads ---- */

/* Without the lock. */
static void run_round(struct cloner *cloner, struct clone_tablet *clone,
                      struct msg_clone_reply *reply)
{
    struct tg_errmsg msg = {{0}};
    version_t lacks = clone->order.lacks;
    struct clone_end end = {0};
    int err = clone_tablet_run(clone, &end, &msg);

    *reply = (struct msg_clone_reply){.state = err == 0 ? CLONE_DONE : CLONE_FAILED,
                                      .bound = end.bound,
                                      .damaged = end.damaged,
                                      .proven = end.proven,
                                      .chain = end.chain,
                                      .bytes = atomic_load(&clone->bytes),
                                      .err = err};
    if (err != 0) {
        snprintf(reply->reason, sizeof reply->reason, "%.*s", (int)sizeof reply->reason - 1,
                 msg.text);
        log_warn("clone", "failed tablet=%lu source=%u last=%lu err=%s reason=%s",
                 clone->order.tablet, clone->order.source, end.bound, tg_err_name(err),
                 log_quote(msg.text));
    } else {
        if (lacks != 0)
            damage_list_remove(cloner->options.damage, clone->order.tablet);
        log_info("clone", "done tablet=%lu source=%u last=%lu bytes=%lu", clone->order.tablet,
                 clone->order.source, end.bound, reply->bytes);
    }
    atomic_fetch_add(&cloner->rounds, err == 0);
    atomic_fetch_add(&cloner->bytes, reply->bytes);
}

static void init_clone(struct cloner *cloner, struct clone_tablet *clone)
{
    memset(clone, 0, sizeof *clone);
    clone->store = cloner->options.store;
    clone->tablets = cloner->options.tablets;
    clone->clock = cloner->options.clock;
    clone->throttle = &cloner->throttle;
    clone->calls = &cloner->options.calls;
    clone->stop = &cloner->stop;
}

/* With the lock held, which is let go meanwhile. */
static void run_job(struct cloner *cloner, struct job *job)
{
    struct clone_tablet clone;
    struct msg_clone_reply reply;

    init_clone(cloner, &clone);
    clone.order = job->order;
    job->state = JOB_RUNS;
    job->clone = &clone;
    pthread_mutex_unlock(&cloner->lock);
    run_round(cloner, &clone, &reply);
    pthread_mutex_lock(&cloner->lock);
    job->clone = NULL;
    job->reply = reply;
    job->state = JOB_ENDED;
    job->turn = ++cloner->turns;
}

/* Without the lock: reads a tablet that somebody could not read. */
static void check_suspect(struct cloner *cloner, tablet_id tablet)
{
    struct clone_tablet clone;
    struct tg_errmsg msg = {{0}};
    version_t damaged;

    init_clone(cloner, &clone);
    clone.order.tablet = tablet;
    int err = clone_tablet_verify(&clone, 0, &damaged, &msg);
    if (err != 0)
        log_warn("clone", "cannot_check tablet=%lu err=%s reason=%s", tablet, tg_err_name(err),
                 log_quote(msg.text));
    if (damaged == 0)
        return;
    log_error("clone", "damage_found tablet=%lu version=%lu", tablet, damaged);
    damage_list_add(cloner->options.damage, tablet, damaged);
}

static void wait_for_work(struct cloner *cloner)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += CLONER_IDLE_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&cloner->wake, &cloner->lock, &until);
}

static void *run(void *data)
{
    struct cloner *cloner = data;

    pthread_mutex_lock(&cloner->lock);
    while (!atomic_load(&cloner->stop)) {
        struct job *job = oldest(cloner, JOB_WAITS);

        if (job != NULL) {
            run_job(cloner, job);
            continue;
        }
        pthread_mutex_unlock(&cloner->lock);
        tablet_id suspect = tablet_set_take_suspect(cloner->options.tablets);
        if (suspect != 0)
            check_suspect(cloner, suspect);
        pthread_mutex_lock(&cloner->lock);
        if (suspect == 0 && oldest(cloner, JOB_WAITS) == NULL && !atomic_load(&cloner->stop))
            wait_for_work(cloner);
    }
    pthread_mutex_unlock(&cloner->lock);
    return NULL;
}

int cloner_open(const struct cloner_options *options, struct cloner **cloner)
{
    struct cloner *c = calloc(1, sizeof *c);
    pthread_condattr_t attributes;

    if (c == NULL)
        return TG_NOMEM;
    c->options = *options;
    throttle_init(&c->throttle, options->clock, options->bytes_per_s);
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&c->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    while (c->thread_count < CLONER_THREADS &&
           pthread_create(&c->threads[c->thread_count], NULL, run, c) == 0)
        c->thread_count++;
    if (c->thread_count == 0) {
        cloner_close(c);
        return TG_NOMEM;
    }
    *cloner = c;
    return 0;
}

void cloner_close(struct cloner *cloner)
{
    if (cloner == NULL)
        return;
    pthread_mutex_lock(&cloner->lock);
    atomic_store(&cloner->stop, true);
    pthread_cond_broadcast(&cloner->wake);
    pthread_mutex_unlock(&cloner->lock);
    for (unsigned i = 0; i < cloner->thread_count; i++)
        pthread_join(cloner->threads[i], NULL);
    throttle_close(&cloner->throttle);
    pthread_cond_destroy(&cloner->wake);
    pthread_mutex_destroy(&cloner->lock);
    free(cloner);
}

uint64_t cloner_rounds(const struct cloner *cloner)
{
    return atomic_load(&cloner->rounds);
}

uint64_t cloner_bytes(const struct cloner *cloner)
{
    return atomic_load(&cloner->bytes);
}
