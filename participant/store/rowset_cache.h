/* SPDX-License-Identifier: Apache-2.0 */
/* Decoded rowset descriptions (and contents of small rowsets), the least recently used ones dropped
 * beyond a limit. Any thread. */
#ifndef TG_PARTICIPANT_STORE_ROWSET_CACHE_H
#define TG_PARTICIPANT_STORE_ROWSET_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "common/base/buf.h"
#include "common/model/rowset.h"

struct rowset_cache;

struct rowset_cached {
    struct rowset_cached *next;  /* in its bucket */
    struct rowset_cached *newer; /* by last use */
    struct rowset_cached *older;
    atomic_uint refs;
    size_t bytes;
    bool is_inline;
    struct rowset_meta meta;
    struct buf content; /* is_inline */
};

int rowset_cache_init(uint64_t bytes_max, struct rowset_cache **cache);
/* No references may be out. */
void rowset_cache_free(struct rowset_cache *cache);

/* An empty entry with one reference, to be filled, then put or released. NULL on TG_NOMEM. */
struct rowset_cached *rowset_cached_new(void);
void rowset_cached_release(struct rowset_cached *cached);

/* With a reference, or NULL. */
struct rowset_cached *rowset_cache_find(struct rowset_cache *cache, tablet_id tablet,
                                        rowset_id rowset);
/* Keeps a filled entry (its id is in meta; a reference is taken) unless there is one or it is very
 * large. */
void rowset_cache_put(struct rowset_cache *cache, struct rowset_cached *cached);
void rowset_cache_remove(struct rowset_cache *cache, tablet_id tablet, rowset_id rowset);

#endif
