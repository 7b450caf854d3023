/* SPDX-License-Identifier: Apache-2.0 */
/* Drops staged rowsets and tablets that the coordinators named. */
#include "participant/maintain/gc.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "participant/store/rowset_drop.h"

struct drop {
    bool tablet; /* else a transaction */
    uint64_t id;
};

/* Of the hash table: a power of two, never more than a quarter full. */
enum { GC_SLOTS = 4 * GC_QUEUE_MAX };

struct gc {
    struct store *store;
    struct tablet_set *tablets;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool closing;
    uint32_t first, count; /* of the ring */
    struct drop ring[GC_QUEUE_MAX];
    uint32_t slots[GC_SLOTS]; /* place in the ring + 1 of queued drops, 0 if free; rebuilt when
                                 dirty */
    uint32_t used_slots;      /* of drops that may be done already, too */
    struct drop current;      /* being done, id 0 if none */
    atomic_uint_fast64_t dropped;
};

static void do_drop(struct gc *gc, const struct drop *drop)
{
    int err = drop->tablet ? rowset_drop_tablet(gc->store, drop->id)
                           : rowset_drop_txn(gc->store, drop->id);

    if (err != 0) {
        /* A tablet stays listed, so that it is named again. */
        log_warn("gc", "drop_failed %s=%lu err=%s", drop->tablet ? "tablet" : "txn", drop->id,
                 tg_err_name(err));
        return;
    }
    if (drop->tablet)
        tablet_set_remove(gc->tablets, drop->id);
    log_debug("gc", "dropped %s=%lu", drop->tablet ? "tablet" : "txn", drop->id);
    atomic_fetch_add(&gc->dropped, 1);
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
        pthread_cond_destroy(&g->wake);
        pthread_mutex_destroy(&g->lock);
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

/* ---- the queue ---- */

static bool is_same(const struct drop *a, const struct drop *b)
{
    return a->id == b->id && a->tablet == b->tablet;
}

/* Whether a place of the ring is queued at this moment. */
static bool is_queued(const struct gc *gc, uint32_t place)
{
    return (place + GC_QUEUE_MAX - gc->first) % GC_QUEUE_MAX < gc->count;
}

/* The slot of a drop, or the free one where it would go. Slots of drops that are done point to a
 * place that is empty or taken by another: they only lengthen the way. */
static uint32_t find_slot(const struct gc *gc, const struct drop *drop)
{
    uint64_t hash = (drop->id * 2 + drop->tablet) * UINT64_C(0x9E3779B97F4A7C15);
    uint32_t slot = (uint32_t)(hash >> 32) % GC_SLOTS;

    while (gc->slots[slot] != 0 &&
           !(is_queued(gc, gc->slots[slot] - 1) && is_same(&gc->ring[gc->slots[slot] - 1], drop)))
        slot = (slot + 1) % GC_SLOTS;
    return slot;
}

static void rebuild_slots(struct gc *gc)
{
    memset(gc->slots, 0, sizeof gc->slots);
    for (uint32_t i = 0; i < gc->count; i++) {
        uint32_t place = (gc->first + i) % GC_QUEUE_MAX;

        gc->slots[find_slot(gc, &gc->ring[place])] = place + 1;
    }
    gc->used_slots = gc->count;
}

/* Heartbeats name the same ids until they are gone, so a drop that is queued is not queued twice.
 */
static bool push(struct gc *gc, struct drop drop)
{
    bool queued = true;

    pthread_mutex_lock(&gc->lock);
    if (gc->used_slots >= GC_SLOTS / 2)
        rebuild_slots(gc);
    uint32_t slot = find_slot(gc, &drop);
    if (gc->slots[slot] == 0 && !is_same(&gc->current, &drop)) {
        queued = gc->count < GC_QUEUE_MAX;
        if (queued) {
            uint32_t place = (gc->first + gc->count++) % GC_QUEUE_MAX;

            gc->ring[place] = drop;
            gc->slots[slot] = place + 1;
            gc->used_slots++;
            pthread_cond_signal(&gc->wake);
        }
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

bool gc_drops_tablet(struct gc *gc, tablet_id tablet)
{
    const struct drop drop = {.tablet = true, .id = tablet};

    pthread_mutex_lock(&gc->lock);
    bool drops = is_same(&gc->current, &drop) || gc->slots[find_slot(gc, &drop)] != 0;
    pthread_mutex_unlock(&gc->lock);
    return drops;
}

uint64_t gc_dropped(const struct gc *gc)
{
    return atomic_load(&gc->dropped);
}
