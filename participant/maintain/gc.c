/* SPDX-License-Identifier: Apache-2.0 */
/* Drops staged rowsets and tablets that the coordinators named. */
#include "participant/maintain/gc.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "common/base/log.h"
#include "participant/store/rowset_drop.h"

struct drop {
    bool tablet; /* else a transaction */
    uint64_t id;
};

struct gc {
    struct store *store;
    struct tablet_set *tablets;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool closing;
    uint32_t first, count; /* of the ring */
    struct drop current;   /* being done, id 0 if none */
    struct drop ring[GC_QUEUE_MAX];
    atomic_uint_fast64_t dropped;
};

static void do_drop(struct gc *gc, const struct drop *drop)
{
    int err;

    if (drop->tablet) {
        tablet_set_remove(gc->tablets, drop->id);
        err = rowset_drop_tablet(gc->store, drop->id);
    } else {
        err = rowset_drop_txn(gc->store, drop->id);
    }
    if (err != 0)
        log_warn("gc", "drop_failed %s=%lu err=%s", drop->tablet ? "tablet" : "txn", drop->id,
                 tg_err_name(err));
    else
        log_debug("gc", "dropped %s=%lu", drop->tablet ? "tablet" : "txn", drop->id);
    atomic_fetch_add(&gc->dropped, err == 0);
}

static void *run(void *data)
{
    struct gc *gc = data;

    pthread_mutex_lock(&gc->lock);
    while (!gc->closing) {
        if (gc->count == 0) {
            pthread_cond_wait(&gc->wake, &gc->lock);
            continue;
        }
        struct drop drop = gc->ring[gc->first];
        gc->first = (gc->first + 1) % GC_QUEUE_MAX;
        gc->count--;
        gc->current = drop;
        pthread_mutex_unlock(&gc->lock);
        do_drop(gc, &drop);
        pthread_mutex_lock(&gc->lock);
        gc->current.id = 0;
    }
    pthread_mutex_unlock(&gc->lock);
    return NULL;
}

int gc_open(struct store *store, struct tablet_set *tablets, struct gc **gc)
{
    struct gc *g = calloc(1, sizeof *g);

    if (g == NULL)
        return TG_NOMEM;
    g->store = store;
    g->tablets = tablets;
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->wake, NULL);
    if (pthread_create(&g->thread, NULL, run, g) != 0) {
        free(g);
        return TG_NOMEM;
    }
    *gc = g;
    return 0;
}

void gc_close(struct gc *gc)
{
    if (gc == NULL)
        return;
    pthread_mutex_lock(&gc->lock);
    gc->closing = true;
    pthread_cond_signal(&gc->wake);
    pthread_mutex_unlock(&gc->lock);
    pthread_join(gc->thread, NULL);
    pthread_cond_destroy(&gc->wake);
    pthread_mutex_destroy(&gc->lock);
    free(gc);
}

/* Heartbeats name the same ids until they are gone, so a drop that is queued is not queued twice.
 */
static bool push(struct gc *gc, struct drop drop)
{
    bool queued;

    pthread_mutex_lock(&gc->lock);
    queued = gc->current.id == drop.id && gc->current.tablet == drop.tablet;
    for (uint32_t i = 0; i < gc->count && !queued; i++) {
        const struct drop *d = &gc->ring[(gc->first + i) % GC_QUEUE_MAX];

        queued = d->id == drop.id && d->tablet == drop.tablet;
    }
    if (!queued && gc->count < GC_QUEUE_MAX) {
        gc->ring[(gc->first + gc->count++) % GC_QUEUE_MAX] = drop;
        pthread_cond_signal(&gc->wake);
        queued = true;
    }
    pthread_mutex_unlock(&gc->lock);
    return queued;
}

bool gc_drop_txn(struct gc *gc, txn_id txn)
{
    return push(gc, (struct drop){.tablet = false, .id = txn});
}

bool gc_drop_tablet(struct gc *gc, tablet_id tablet)
{
    return push(gc, (struct drop){.tablet = true, .id = tablet});
}

uint64_t gc_dropped(const struct gc *gc)
{
    return atomic_load(&gc->dropped);
}
