/* SPDX-License-Identifier: Apache-2.0 */
/* Reads all that is bound here, over and over. */
#include "participant/maintain/scrubber.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/log.h"
#include "participant/maintain/throttle.h"
#include "participant/store/rowset_reader.h"

struct scrubber {
    struct scrubber_options options;
    struct throttle throttle;
    atomic_bool stop;
    pthread_t thread;
    pthread_mutex_t lock; /* state */
    pthread_cond_t wake;
    struct scrubber_state state;
};

static void rest(struct scrubber *scrubber, uint64_t ms)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(ms / 1000);
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&scrubber->lock);
    if (!atomic_load(&scrubber->stop))
        pthread_cond_timedwait(&scrubber->wake, &scrubber->lock, &until);
    pthread_mutex_unlock(&scrubber->lock);
}

/* Of a rowset that is being read. */
static bool go_on(void *data, uint64_t bytes)
{
    struct scrubber *scrubber = data;

    pthread_mutex_lock(&scrubber->lock);
    scrubber->state.bytes += bytes;
    pthread_mutex_unlock(&scrubber->lock);
    throttle_wait(&scrubber->throttle, bytes, &scrubber->stop);
    return !atomic_load(&scrubber->stop);
}

static bool is_damage(int err)
{
    return err == TG_CORRUPT || err == TG_NOT_FOUND || err == TG_UNSUPPORTED;
}

static int check_rowset(struct scrubber *scrubber, tablet_id tablet,
                        const struct publish_rowset *rowset)
{
    struct rowset_reader reader;
    int err = rowset_reader_open_anew(scrubber->options.store, tablet, rowset->rowset, &reader);

    if (err != 0)
        return err;
    err = digest_equal(&reader.meta->digest, &rowset->digest)
              ? rowset_reader_verify_slowly(&reader, go_on, scrubber)
              : TG_CORRUPT;
    rowset_reader_close(&reader);
    pthread_mutex_lock(&scrubber->lock);
    scrubber->state.rowsets++;
    pthread_mutex_unlock(&scrubber->lock);
    return err;
}

/* The tablet was dropped meanwhile, or cloned anew: it is another one now. */
static bool is_bound(struct scrubber *scrubber, tablet_id tablet, const struct publish_bind *bind,
                     uint32_t rowset)
{
    struct version_map map;
    struct version_view view;
    bool bound = false;

    tablet_set_share(scrubber->options.tablets, tablet, &map);
    if (version_map_has(&map, bind->version) &&
        version_map_between(&map, bind->version - 1, bind->version, bind->version, &view) == 0)
        for (uint32_t i = 0; i < view.count; i++)
            bound = bound || view.rowsets[i].rowset == bind->rowsets[rowset].rowset;
    version_map_close(&map);
    return bound;
}

static bool is_damaged(struct scrubber *scrubber, tablet_id tablet, const struct publish_bind *bind,
                       uint32_t rowset)
{
    if (!is_damage(check_rowset(scrubber, tablet, &bind->rowsets[rowset])))
        return false;
    rest(scrubber, SCRUB_SECOND_LOOK_MS);
    return !atomic_load(&scrubber->stop) && is_bound(scrubber, tablet, bind, rowset) &&
           is_damage(check_rowset(scrubber, tablet, &bind->rowsets[rowset]));
}

/* It waits until there is room in the list: the leader takes what is in it with the next
 * heartbeats, and repairs empty it. */
static void tell(struct scrubber *scrubber, tablet_id tablet, version_t version)
{
    log_error("scrub", "damage_found tablet=%lu version=%lu", tablet, version);
    pthread_mutex_lock(&scrubber->lock);
    scrubber->state.damaged++;
    pthread_mutex_unlock(&scrubber->lock);
    while (!damage_list_add(scrubber->options.damage, tablet, version) &&
           !atomic_load(&scrubber->stop))
        rest(scrubber, SCRUB_LOOK_MS);
}

static void read_tablet(struct scrubber *scrubber, tablet_id tablet)
{
    struct version_map map;
    version_t damaged = 0;
    int err = 0;

    pthread_mutex_lock(&scrubber->lock);
    scrubber->state.tablet = tablet;
    pthread_mutex_unlock(&scrubber->lock);
    tablet_set_share(scrubber->options.tablets, tablet, &map);
    uint32_t end = version_map_count(&map, UINT64_MAX);
    for (uint32_t i = 0; i < end && err == 0 && damaged == 0 && !atomic_load(&scrubber->stop);
         i++) {
        struct publish_bind bind;

        err = version_map_entry(&map, i, &bind);
        for (uint32_t j = 0; err == 0 && j < bind.rowset_count && damaged == 0; j++)
            if (is_damaged(scrubber, tablet, &bind, j))
                damaged = bind.version;
        free(bind.rowsets);
    }
    version_map_close(&map);
    if (damaged != 0)
        tell(scrubber, tablet, damaged);
}

static void read_all(struct scrubber *scrubber)
{
    uint64_t began = clock_monotonic_ms(scrubber->options.clock);
    uint64_t bytes = scrubber->state.bytes;
    tablet_id tablet = 0;

    pthread_mutex_lock(&scrubber->lock);
    scrubber->state.under_way = true;
    pthread_mutex_unlock(&scrubber->lock);
    while (!atomic_load(&scrubber->stop) &&
           tablet_set_list(scrubber->options.tablets, tablet, &tablet, 1) == 1)
        if (!damage_list_has(scrubber->options.damage, tablet)) /* its repair reads it */
            read_tablet(scrubber, tablet);
    pthread_mutex_lock(&scrubber->lock);
    scrubber->state.under_way = false;
    scrubber->state.tablet = 0;
    if (!atomic_load(&scrubber->stop)) {
        scrubber->state.passes++;
        scrubber->state.pass_bytes = scrubber->state.bytes - bytes;
        scrubber->state.pass_ms = clock_monotonic_ms(scrubber->options.clock) - began;
    }
    pthread_mutex_unlock(&scrubber->lock);
    log_debug("scrub", "pass bytes=%lu ms=%lu", scrubber->state.pass_bytes,
              scrubber->state.pass_ms);
}

static void *run(void *data)
{
    struct scrubber *scrubber = data;
    uint64_t interval = scrubber->options.interval_ms;
    uint64_t due = clock_monotonic_ms(scrubber->options.clock);

    while (!atomic_load(&scrubber->stop)) {
        uint64_t now = clock_monotonic_ms(scrubber->options.clock);

        if (interval == 0 || now < due) {
            rest(scrubber, SCRUB_LOOK_MS);
            continue;
        }
        due = now + interval;
        read_all(scrubber);
    }
    return NULL;
}

int scrubber_open(const struct scrubber_options *options, struct scrubber **scrubber)
{
    struct scrubber *s = calloc(1, sizeof *s);
    pthread_condattr_t attributes;

    if (s == NULL)
        return TG_NOMEM;
    s->options = *options;
    throttle_init(&s->throttle, options->clock, options->bytes_per_s);
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    if (pthread_create(&s->thread, NULL, run, s) != 0) {
        pthread_cond_destroy(&s->wake);
        pthread_mutex_destroy(&s->lock);
        throttle_close(&s->throttle);
        free(s);
        return TG_NOMEM;
    }
    *scrubber = s;
    return 0;
}

void scrubber_close(struct scrubber *scrubber)
{
    if (scrubber == NULL)
        return;
    pthread_mutex_lock(&scrubber->lock);
    atomic_store(&scrubber->stop, true);
    pthread_cond_broadcast(&scrubber->wake);
    pthread_mutex_unlock(&scrubber->lock);
    pthread_join(scrubber->thread, NULL);
    pthread_cond_destroy(&scrubber->wake);
    pthread_mutex_destroy(&scrubber->lock);
    throttle_close(&scrubber->throttle);
    free(scrubber);
}

void scrubber_look(struct scrubber *scrubber, struct scrubber_state *state)
{
    pthread_mutex_lock(&scrubber->lock);
    *state = scrubber->state;
    pthread_mutex_unlock(&scrubber->lock);
}
