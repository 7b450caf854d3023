/* SPDX-License-Identifier: Apache-2.0 */
/* Decoded rowset descriptions, least recently used ones dropped. */
#include "participant/store/rowset_cache.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/base/err.h"

enum {
    CACHE_BUCKETS = 8192,
    CACHE_LARGE_SHARE = 4 /* an entry over a quarter of all is not kept */
};

struct rowset_cache {
    pthread_mutex_t lock;
    uint64_t bytes_max;
    uint64_t bytes;
    struct rowset_cached *newest;
    struct rowset_cached *oldest;
    struct rowset_cached *buckets[CACHE_BUCKETS];
};

int rowset_cache_init(uint64_t bytes_max, struct rowset_cache **cache)
{
    struct rowset_cache *made = calloc(1, sizeof *made);
    if (made == NULL)
        return TG_NOMEM;
    pthread_mutex_init(&made->lock, NULL);
    made->bytes_max = bytes_max;
    *cache = made;
    return 0;
}

struct rowset_cached *rowset_cached_new(void)
{
    struct rowset_cached *cached = calloc(1, sizeof *cached);
    if (cached == NULL)
        return NULL;
    atomic_init(&cached->refs, 1);
    rowset_meta_init(&cached->meta);
    return cached;
}

void rowset_cached_release(struct rowset_cached *cached)
{
    if (cached == NULL || atomic_fetch_sub(&cached->refs, 1) != 1)
        return;
    rowset_meta_close(&cached->meta);
    buf_close(&cached->content);
    free(cached);
}

static struct rowset_cached **find_link(struct rowset_cache *cache, tablet_id tablet,
                                        rowset_id rowset)
{
    uint64_t mixed = (tablet * 0x9E3779B97F4A7C15u) ^ (rowset * 0xC2B2AE3D27D4EB4Fu);
    struct rowset_cached **link = &cache->buckets[(mixed >> 32) % CACHE_BUCKETS];
    while (*link != NULL && ((*link)->meta.tablet != tablet || (*link)->meta.rowset != rowset))
        link = &(*link)->next;
    return link;
}

static void unlink_use(struct rowset_cache *cache, struct rowset_cached *cached)
{
    *(cached->newer != NULL ? &cached->newer->older : &cache->newest) = cached->older;
    *(cached->older != NULL ? &cached->older->newer : &cache->oldest) = cached->newer;
}

static void link_newest(struct rowset_cache *cache, struct rowset_cached *cached)
{
    cached->newer = NULL;
    cached->older = cache->newest;
    *(cache->newest != NULL ? &cache->newest->newer : &cache->oldest) = cached;
    cache->newest = cached;
}

static void take_out(struct rowset_cache *cache, struct rowset_cached **link)
{
    struct rowset_cached *cached = *link;
    *link = cached->next;
    unlink_use(cache, cached);
    cache->bytes -= cached->bytes;
    rowset_cached_release(cached);
}

struct rowset_cached *rowset_cache_find(struct rowset_cache *cache, tablet_id tablet,
                                        rowset_id rowset)
{
    pthread_mutex_lock(&cache->lock);
    struct rowset_cached *cached = *find_link(cache, tablet, rowset);
    if (cached != NULL) {
        unlink_use(cache, cached);
        link_newest(cache, cached);
        atomic_fetch_add(&cached->refs, 1);
    }
    pthread_mutex_unlock(&cache->lock);
    return cached;
}

void rowset_cache_put(struct rowset_cache *cache, struct rowset_cached *cached)
{
    size_t refs = cached->meta.block_count * sizeof *cached->meta.blocks;
    size_t bytes = sizeof *cached + refs + cached->meta.key_bytes.len + cached->content.len;
    if (bytes > cache->bytes_max / CACHE_LARGE_SHARE)
        return;
    pthread_mutex_lock(&cache->lock);
    struct rowset_cached **link = find_link(cache, cached->meta.tablet, cached->meta.rowset);
    if (*link == NULL) {
        cached->bytes = bytes;
        cached->next = NULL;
        *link = cached;
        atomic_fetch_add(&cached->refs, 1);
        cache->bytes += bytes;
        link_newest(cache, cached);
        while (cache->bytes > cache->bytes_max) {
            const struct rowset_meta *oldest = &cache->oldest->meta;
            take_out(cache, find_link(cache, oldest->tablet, oldest->rowset));
        }
    }
    pthread_mutex_unlock(&cache->lock);
}

void rowset_cache_remove(struct rowset_cache *cache, tablet_id tablet, rowset_id rowset)
{
    pthread_mutex_lock(&cache->lock);
    struct rowset_cached **link = find_link(cache, tablet, rowset);
    if (*link != NULL)
        take_out(cache, link);
    pthread_mutex_unlock(&cache->lock);
}

void rowset_cache_free(struct rowset_cache *cache)
{
    if (cache == NULL)
        return;
    while (cache->oldest != NULL) {
        const struct rowset_meta *oldest = &cache->oldest->meta;
        take_out(cache, find_link(cache, oldest->tablet, oldest->rowset));
    }
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}
