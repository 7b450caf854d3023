/* SPDX-License-Identifier: Apache-2.0 */
/* The chain of versions bound to one tablet. */
#include "participant/tablet/version_map.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/mutant.h"
#include "common/model/version_chain.h"

enum { LOG_ITEMS_MIN = 4 };

struct version_entry {
    version_t version;
    version_t prev;
    txn_id txn;
    bool replace;
    uint32_t rowset_first;
    uint32_t rowset_count;
};

/* Append-only: what a map has counted never changes, so shares read it without a lock while the
 * owner appends behind. When it is full the owner moves to a larger one; the old one goes with its
 * last share. */
struct version_log {
    atomic_uint refs;
    uint32_t version_capacity;
    uint32_t rowset_capacity;
    struct version_entry *versions;
    struct version_rowset *rowsets;
};

void version_map_init(struct version_map *map)
{
    memset(map, 0, sizeof *map);
}

static void release(struct version_log *log)
{
    if (log == NULL || atomic_fetch_sub(&log->refs, 1) != 1)
        return;
    free(log->versions);
    free(log->rowsets);
    free(log);
}

void version_map_close(struct version_map *map)
{
    release(map->log);
    version_map_init(map);
}

void version_map_share(const struct version_map *map, struct version_map *share)
{
    *share = *map;
    if (share->log != NULL)
        atomic_fetch_add(&share->log->refs, 1);
}

version_t version_map_last(const struct version_map *map)
{
    return map->version_count == 0 ? 0 : map->log->versions[map->version_count - 1].version;
}

/* How many versions are at or below `version`. */
static uint32_t count_until(const struct version_map *map, version_t version)
{
    uint32_t low = 0;
    uint32_t high = map->version_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (map->log->versions[middle].version <= version)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct version_entry *find(const struct version_map *map, version_t version)
{
    uint32_t count = count_until(map, version);
    if (count == 0 || map->log->versions[count - 1].version != version)
        return NULL;
    return &map->log->versions[count - 1];
}

bool version_map_has(const struct version_map *map, version_t version)
{
    return find(map, version) != NULL;
}

static bool is_same(const struct version_map *map, const struct version_entry *entry,
                    const struct publish_bind *bind)
{
    if (entry->txn != bind->txn || entry->prev != bind->prev || entry->replace != bind->replace ||
        entry->rowset_count != bind->rowset_count)
        return false;
    for (uint32_t i = 0; i < bind->rowset_count; i++) {
        const struct version_rowset *rowset = &map->log->rowsets[entry->rowset_first + i];
        if (rowset->rowset != bind->rowsets[i].rowset ||
            !digest_equal(&rowset->digest, &bind->rowsets[i].digest))
            return false;
    }
    return true;
}

enum publish_status version_map_bind_check(const struct version_map *map,
                                           const struct publish_bind *bind, bool *already)
{
    const struct version_entry *entry = find(map, bind->version);
    *already = entry != NULL && is_same(map, entry, bind);
    if (*already)
        return PUBLISH_BOUND;
    if (entry != NULL || bind->prev != version_map_last(map) || bind->version <= bind->prev)
        return PUBLISH_BEHIND;
    return PUBLISH_BOUND;
}

uint32_t version_map_count(const struct version_map *map, version_t version)
{
    return count_until(map, version);
}

int version_map_entry(const struct version_map *map, uint32_t place, struct publish_bind *bind)
{
    const struct version_entry *entry = &map->log->versions[place];
    *bind = (struct publish_bind){.version = entry->version,
                                  .prev = entry->prev,
                                  .txn = entry->txn,
                                  .replace = entry->replace,
                                  .rowset_count = entry->rowset_count};
    bind->rowsets = calloc((size_t)entry->rowset_count + 1, sizeof *bind->rowsets);
    if (bind->rowsets == NULL)
        return TG_NOMEM;
    for (uint32_t i = 0; i < entry->rowset_count; i++) {
        const struct version_rowset *rowset = &map->log->rowsets[entry->rowset_first + i];
        bind->rowsets[i] = (struct publish_rowset){rowset->rowset, rowset->digest};
    }
    return 0;
}

int version_map_chain(const struct version_map *map, version_t version, struct digest *chain)
{
    uint32_t count = count_until(map, version);
    *chain = (struct digest){0};
    for (uint32_t i = 0; i < count; i++) {
        const struct version_entry *entry = &map->log->versions[i];
        version_chain_add(chain, &(struct chain_version){.version = entry->version,
                                                         .prev = entry->prev,
                                                         .txn = entry->txn,
                                                         .replace = entry->replace,
                                                         .rowset_count = entry->rowset_count});
        for (uint32_t j = 0; j < entry->rowset_count; j++) {
            const struct version_rowset *rowset = &map->log->rowsets[entry->rowset_first + j];
            version_chain_add_rowset(chain, rowset->rowset, &rowset->digest);
        }
    }
    return 0;
}

static uint32_t grown(uint32_t capacity, uint32_t needed, uint32_t max)
{
    uint64_t wanted = capacity < LOG_ITEMS_MIN ? LOG_ITEMS_MIN : (uint64_t)capacity * 2;
    if (wanted < needed)
        wanted = needed;
    return wanted < max ? (uint32_t)wanted : max;
}

/* A larger copy of the log, for this map alone. */
static int move_log(struct version_map *map, uint32_t versions, uint32_t rowsets)
{
    struct version_log *old = map->log;
    struct version_log *log = calloc(1, sizeof *log);
    if (log == NULL)
        return TG_NOMEM;
    atomic_init(&log->refs, 1);
    log->version_capacity = grown(map->version_count, versions, VERSION_MAP_VERSIONS_MAX);
    log->rowset_capacity = grown(map->rowset_count, rowsets, VERSION_MAP_ROWSETS_MAX);
    log->versions = malloc(log->version_capacity * sizeof *log->versions);
    log->rowsets = malloc(log->rowset_capacity * sizeof *log->rowsets);
    if (log->versions == NULL || log->rowsets == NULL) {
        release(log);
        return TG_NOMEM;
    }
    if (old != NULL) {
        memcpy(log->versions, old->versions, map->version_count * sizeof *log->versions);
        memcpy(log->rowsets, old->rowsets, map->rowset_count * sizeof *log->rowsets);
    }
    release(old);
    map->log = log;
    return 0;
}

int version_map_append(struct version_map *map, const struct publish_bind *bind)
{
    if (bind->prev != version_map_last(map) || bind->version <= bind->prev)
        return TG_INVALID;
    if (map->version_count >= VERSION_MAP_VERSIONS_MAX ||
        bind->rowset_count > VERSION_MAP_ROWSETS_MAX - map->rowset_count)
        return TG_LIMIT;
    uint32_t versions = map->version_count + 1;
    uint32_t rowsets = map->rowset_count + bind->rowset_count;
    if (map->log == NULL || versions > map->log->version_capacity ||
        rowsets > map->log->rowset_capacity) {
        int err = move_log(map, versions, rowsets);
        if (err != 0)
            return err;
    }
    map->log->versions[map->version_count] =
        (struct version_entry){.version = bind->version,
                               .prev = bind->prev,
                               .txn = bind->txn,
                               .replace = bind->replace,
                               .rowset_first = map->rowset_count,
                               .rowset_count = bind->rowset_count};
    for (uint32_t i = 0; i < bind->rowset_count; i++) {
        map->log->rowsets[map->rowset_count + i] =
            (struct version_rowset){.version = bind->version,
                                    .rowset = bind->rowsets[i].rowset,
                                    .digest = bind->rowsets[i].digest};
    }
    map->version_count = versions;
    map->rowset_count = rowsets;
    return 0;
}

/* The rowsets of entries [first, end). */
static void set_view(const struct version_map *map, uint32_t first, uint32_t end,
                     struct version_view *view)
{
    *view = (struct version_view){NULL, 0};
    if (first >= end)
        return;
    const struct version_entry *from = &map->log->versions[first];
    const struct version_entry *to = &map->log->versions[end - 1];
    view->rowsets = map->log->rowsets + from->rowset_first;
    view->count = to->rowset_first + to->rowset_count - from->rowset_first;
}

int version_map_at(const struct version_map *map, version_t version, version_t need,
                   struct version_view *view)
{
    *view = (struct version_view){NULL, 0};
    if (need > version)
        return TG_INVALID;
    if (need != 0 && !version_map_has(map, need))
        return TG_BEHIND;
    uint32_t end = MUTANT(5) ? map->version_count : count_until(map, version);
    uint32_t first = end;
    while (first > 0) {
        first--;
        if (map->log->versions[first].replace)
            break;
    }
    set_view(map, first, end, view);
    return 0;
}

int version_map_between(const struct version_map *map, version_t after, version_t version,
                        version_t need, struct version_view *view)
{
    *view = (struct version_view){NULL, 0};
    if (need > version)
        return TG_INVALID;
    if (need != 0 && !version_map_has(map, need))
        return TG_BEHIND;
    set_view(map, count_until(map, after - (MUTANT(16) && after > 0)), count_until(map, version),
             view);
    return 0;
}
