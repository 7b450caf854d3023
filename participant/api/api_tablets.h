/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/_tablets: what is bound here, for comparing nodes with each other. */
#ifndef TG_PARTICIPANT_API_API_TABLETS_H
#define TG_PARTICIPANT_API_API_TABLETS_H

#include "common/base/buf.h"
#include "participant/tablet/tablet_set.h"

enum {
    API_TABLETS_MAX = 1024,           /* in one answer, … */
    API_TABLETS_VERSIONS_MAX = 200000 /* … and versions looked at, about: it is made on the loop */
};

/* query: "after=NUMBER" or "". Appends the answer: tablets above `after`, each with its last bound
 * version and the digest over all its versions; "more" says whether to ask again with the last one.
 * 0, TG_INVALID (no number), TG_NOMEM. */
int api_tablets_print(struct tablet_set *tablets, const char *query, struct buf *out);

#endif
