/* SPDX-License-Identifier: Apache-2.0 */
/* What of rowsets lies in the store, and whether all of it belongs to something: for operators, and
 * for tests that look for leaks. Reads the metadata and the keys of the extents: not on an event
 * loop. */
#ifndef TG_PARTICIPANT_STORE_ROWSET_LIST_H
#define TG_PARTICIPANT_STORE_ROWSET_LIST_H

#include "participant/store/store.h"

enum { ROWSET_LIST_MAX = 1 << 20 };

enum rowset_standing {
    ROWSET_STANDING_BOUND = 1,    /* a version binds it, and it is here */
    ROWSET_STANDING_SEALED = 2,   /* staged, complete */
    ROWSET_STANDING_OPEN = 3,     /* staged, being written or left by a crash */
    ROWSET_STANDING_DROPPING = 4, /* staged, on its way out */
    /* What must not be, unless something changes while it is looked at: */
    ROWSET_STANDING_MISSING = 5, /* a version binds it, and it is not here */
    ROWSET_STANDING_LEAKED = 6   /* here, in whole or in extents, and nothing names it */
};

struct rowset_listed {
    tablet_id tablet;
    rowset_id rowset;
    txn_id txn; /* 0 if that is not known */
    enum rowset_standing standing;
};

/* All of them, by tablet and rowset; *list is the caller's to free. TG_LIMIT: more than
 * ROWSET_LIST_MAX; TG_CORRUPT, TG_NOMEM, TG_IO. */
int rowset_list(struct store *store, struct rowset_listed **list, uint32_t *count);

#endif
