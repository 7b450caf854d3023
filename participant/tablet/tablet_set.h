/* SPDX-License-Identifier: Apache-2.0 */
/* All tablets that have versions on this node. Readers take shares of version maps; publishing goes
 * on beside them. Any thread. */
#ifndef TG_PARTICIPANT_TABLET_TABLET_SET_H
#define TG_PARTICIPANT_TABLET_TABLET_SET_H

#include "participant/store/store.h"
#include "participant/tablet/version_map.h"

struct tablet_set;

/* Loads every tablet from the store; store may be NULL (an empty set, for tests and simulations).
 * TG_CORRUPT, TG_NOMEM, TG_IO. */
int tablet_set_open(struct store *store, struct tablet_set **set);
void tablet_set_close(struct tablet_set *set);

/* A share of the tablet's map, to be closed with version_map_close. An unknown tablet gives an
 * empty map: it has no versions, so only reads with need 0 succeed. */
void tablet_set_share(struct tablet_set *set, tablet_id tablet, struct version_map *share);

/* Appends a bound version (publish.h does this once it is durable). 0, TG_NOMEM, TG_LIMIT,
 * TG_INVALID. */
int tablet_set_append(struct tablet_set *set, const struct publish_bind *bind);

/* Versions above `keep` are gone from the store; shares stay good. 0, TG_NOMEM. */
int tablet_set_cut(struct tablet_set *set, tablet_id tablet, version_t keep);

/* Forgets a dropped tablet; shares stay good. */
void tablet_set_remove(struct tablet_set *set, tablet_id tablet);

/* Up to max tablet ids above `after`, ascending; returns how many. Fewer than max: there are no
 * more. For heartbeats, in turn. */
uint32_t tablet_set_list(struct tablet_set *set, tablet_id after, tablet_id *tablets, uint32_t max);

/* Data of that tablet could not be read: maintenance is to look at it. Beyond TABLET_SUSPECTS_MAX
 * nothing is kept: the next read says it again. */
enum { TABLET_SUSPECTS_MAX = 64 };
void tablet_set_suspect(struct tablet_set *set, tablet_id tablet);
/* One of them, taken out; 0 if there is none. */
tablet_id tablet_set_take_suspect(struct tablet_set *set);

/* Last bound version, 0 if none. */
version_t tablet_set_last(struct tablet_set *set, tablet_id tablet);

#endif
