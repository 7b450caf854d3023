/* SPDX-License-Identifier: Apache-2.0 */
/* All tablets that have versions on this node, sorted by id. */
#include "participant/tablet/tablet_set.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "participant/store/version_store.h"

enum { TABLETS_MIN = 16 };

struct tablet {
    tablet_id id;
    struct version_map map;
};

struct tablet_set {
    pthread_rwlock_t lock;
    struct tablet *tablets; /* ascending by id */
    uint32_t count;
    uint32_t capacity;
    tablet_id suspects[TABLET_SUSPECTS_MAX];
    uint32_t suspect_count;
};

/* Index of the first tablet at or above id. */
static uint32_t find_place(const struct tablet_set *set, tablet_id id)
{
    uint32_t low = 0;
    uint32_t high = set->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (set->tablets[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct tablet *find(struct tablet_set *set, tablet_id id)
{
    uint32_t at = find_place(set, id);
    return at < set->count && set->tablets[at].id == id ? &set->tablets[at] : NULL;
}

static struct tablet *insert(struct tablet_set *set, tablet_id id)
{
    if (set->count == set->capacity) {
        uint32_t capacity = set->capacity < TABLETS_MIN ? TABLETS_MIN : set->capacity * 2;
        struct tablet *tablets = realloc(set->tablets, capacity * sizeof *tablets);
        if (tablets == NULL)
            return NULL;
        set->tablets = tablets;
        set->capacity = capacity;
    }
    uint32_t at = find_place(set, id);
    memmove(&set->tablets[at + 1], &set->tablets[at], (set->count - at) * sizeof *set->tablets);
    set->tablets[at].id = id;
    version_map_init(&set->tablets[at].map);
    set->count++;
    return &set->tablets[at];
}

int tablet_set_append(struct tablet_set *set, const struct publish_bind *bind)
{
    pthread_rwlock_wrlock(&set->lock);
    struct tablet *tablet = find(set, bind->tablet);
    if (tablet == NULL)
        tablet = insert(set, bind->tablet);
    int err = tablet == NULL ? TG_NOMEM : version_map_append(&tablet->map, bind);
    pthread_rwlock_unlock(&set->lock);
    return err;
}

/* A first version whose prev was cleaned away begins the chain here. */
static int load_version(void *data, const struct version_record *record)
{
    struct tablet_set *set = data;
    struct publish_bind bind = {.tablet = record->tablet,
                                .table = record->table,
                                .version = record->version,
                                .prev = tablet_set_last(set, record->tablet),
                                .txn = record->txn,
                                .replace = record->replace,
                                .rowset_count = record->rowset_count,
                                .rowsets = (struct publish_rowset *)(uintptr_t)record->rowsets};
    return tablet_set_append(set, &bind);
}

int tablet_set_open(struct store *store, struct tablet_set **set)
{
    struct tablet_set *made = calloc(1, sizeof *made);
    if (made == NULL)
        return TG_NOMEM;
    pthread_rwlock_init(&made->lock, NULL);
    int err = store == NULL ? 0 : version_store_each(store, load_version, made);
    if (err != 0) {
        tablet_set_close(made);
        return err;
    }
    if (made->count > 0)
        log_info("tablet", "loaded tablets=%u", made->count);
    *set = made;
    return 0;
}

void tablet_set_close(struct tablet_set *set)
{
    if (set == NULL)
        return;
    for (uint32_t i = 0; i < set->count; i++)
        version_map_close(&set->tablets[i].map);
    free(set->tablets);
    pthread_rwlock_destroy(&set->lock);
    free(set);
}

void tablet_set_share(struct tablet_set *set, tablet_id tablet, struct version_map *share)
{
    version_map_init(share);
    pthread_rwlock_rdlock(&set->lock);
    const struct tablet *found = find(set, tablet);
    if (found != NULL)
        version_map_share(&found->map, share);
    pthread_rwlock_unlock(&set->lock);
}

static int copy_until(const struct version_map *map, version_t keep, struct version_map *copy)
{
    int err = 0;

    version_map_init(copy);
    for (uint32_t i = 0; err == 0 && i < version_map_count(map, keep); i++) {
        struct publish_bind bind;

        err = version_map_entry(map, i, &bind);
        if (err == 0)
            err = version_map_append(copy, &bind);
        free(bind.rowsets);
    }
    if (err != 0)
        version_map_close(copy);
    return err;
}

int tablet_set_cut(struct tablet_set *set, tablet_id tablet, version_t keep)
{
    int err = 0;
    pthread_rwlock_wrlock(&set->lock);
    struct tablet *found = find(set, tablet);
    if (found != NULL && version_map_last(&found->map) > keep) {
        struct version_map copy;
        err = copy_until(&found->map, keep, &copy);
        if (err == 0) {
            version_map_close(&found->map);
            found->map = copy;
        }
    }
    pthread_rwlock_unlock(&set->lock);
    return err;
}

void tablet_set_remove(struct tablet_set *set, tablet_id tablet)
{
    pthread_rwlock_wrlock(&set->lock);
    struct tablet *found = find(set, tablet);
    if (found != NULL) {
        version_map_close(&found->map);
        size_t behind = set->count - (size_t)(found - set->tablets) - 1;
        memmove(found, found + 1, behind * sizeof *found);
        set->count--;
    }
    pthread_rwlock_unlock(&set->lock);
}

uint32_t tablet_set_list(struct tablet_set *set, tablet_id after, tablet_id *tablets, uint32_t max)
{
    uint32_t listed = 0;
    pthread_rwlock_rdlock(&set->lock);
    uint32_t at = after == UINT64_MAX ? set->count : find_place(set, after + 1);
    while (at < set->count && listed < max)
        tablets[listed++] = set->tablets[at++].id;
    pthread_rwlock_unlock(&set->lock);
    return listed;
}

version_t tablet_set_last(struct tablet_set *set, tablet_id tablet)
{
    pthread_rwlock_rdlock(&set->lock);
    const struct tablet *found = find(set, tablet);
    version_t last = found == NULL ? 0 : version_map_last(&found->map);
    pthread_rwlock_unlock(&set->lock);
    return last;
}

void tablet_set_suspect(struct tablet_set *set, tablet_id tablet)
{
    pthread_rwlock_wrlock(&set->lock);
    bool known = false;
    for (uint32_t i = 0; i < set->suspect_count; i++)
        known = known || set->suspects[i] == tablet;
    if (!known && set->suspect_count < TABLET_SUSPECTS_MAX)
        set->suspects[set->suspect_count++] = tablet;
    pthread_rwlock_unlock(&set->lock);
}

tablet_id tablet_set_take_suspect(struct tablet_set *set)
{
    pthread_rwlock_wrlock(&set->lock);
    tablet_id tablet = 0;
    if (set->suspect_count > 0) {
        tablet = set->suspects[0];
        set->suspect_count--;
        memmove(&set->suspects[0], &set->suspects[1], set->suspect_count * sizeof set->suspects[0]);
    }
    pthread_rwlock_unlock(&set->lock);
    return tablet;
}
