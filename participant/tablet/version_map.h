/* SPDX-License-Identifier: Apache-2.0 */
/* The chain of versions bound to one tablet, in memory: which rowsets a reader sees at a version.
 * Pure: no store, no clock, no lock. */
#ifndef TG_PARTICIPANT_TABLET_VERSION_MAP_H
#define TG_PARTICIPANT_TABLET_VERSION_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/proto/msg_publish.h"

enum { VERSION_MAP_VERSIONS_MAX = 1 << 26, VERSION_MAP_ROWSETS_MAX = 1 << 26 };

/* A rowset and the version that binds it. */
struct version_rowset {
    version_t version;
    rowset_id rowset;
    struct digest digest;
};

struct version_log; /* append-only and shared by a map and its shares */

struct version_map {
    struct version_log *log;
    uint32_t version_count; /* how much of the log this map sees */
    uint32_t rowset_count;
};

void version_map_init(struct version_map *map);
void version_map_close(struct version_map *map);
/* A stable view for a reader: cheap, unaffected by later appends to `map`. Close it; never append
 * to it. */
void version_map_share(const struct version_map *map, struct version_map *share);

version_t version_map_last(const struct version_map *map); /* 0 if none */
/* Whether `version` is bound. */
bool version_map_has(const struct version_map *map, version_t version);

/* What publishing this bind would do as far as versions go: PUBLISH_BOUND with *already false (may
 * be bound now: prev is the last) or true (the same version with the same transaction and rowsets
 * is bound), else PUBLISH_BEHIND. */
enum publish_status version_map_bind_check(const struct version_map *map,
                                           const struct publish_bind *bind, bool *already);

/* How many versions are at or below `version`. */
uint32_t version_map_count(const struct version_map *map, version_t version);
/* The version at a place (below version_map_count(map, UINT64_MAX)), as a bind whose rowsets the
 * caller frees; its tablet and table are left 0. 0 or TG_NOMEM. */
int version_map_entry(const struct version_map *map, uint32_t place, struct publish_bind *bind);
/* Digest over all versions up to `version`: their numbers, transactions, rowsets and digests. Equal
 * on two nodes if they hold the same, and equal to the log's (version_chain.h). Returns 0. */
int version_map_chain(const struct version_map *map, version_t version, struct digest *chain);

/* Appends a version; bind_check must have allowed it. 0, TG_NOMEM, TG_LIMIT, TG_INVALID (prev is
 * not the last). */
int version_map_append(struct version_map *map, const struct publish_bind *bind);

/* A contiguous part of the map's rowsets, ascending by (version, rowset): the newest last. Valid
 * while the map (or share) is open. */
struct version_view {
    const struct version_rowset *rowsets;
    uint32_t count;
};

/* The rowsets visible at `version`: from the last replacing version at or below it on. need: the
 * last version ≤ `version` that touched this tablet, 0 if none: if it is not bound here, TG_BEHIND,
 * never an older answer (rule 1). */
int version_map_at(const struct version_map *map, version_t version, version_t need,
                   struct version_view *view);

/* The rowsets bound by versions in (after, version], replaced ones too. The same need. */
int version_map_between(const struct version_map *map, version_t after, version_t version,
                        version_t need, struct version_view *view);

#endif
