/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/_rowsets: what of rowsets lies in the store, and whether each belongs to something; and
 * GET /api/_scrub: how far the reading of all data is. */
#ifndef TG_PARTICIPANT_API_API_ROWSETS_H
#define TG_PARTICIPANT_API_API_ROWSETS_H

#include "common/net/http_server.h"
#include "common/net/loop.h"
#include "participant/maintain/scrubber.h"
#include "participant/store/store.h"

enum { API_ROWSETS_MAX = 10000 /* rowsets named in one answer; all are counted */ };

struct api_rowsets;

/* NULL on TG_NOMEM. */
struct api_rowsets *api_rowsets_open(struct loop *loop, struct store *store);
/* Off the loop: waits until no list is being made; later ones are refused. */
void api_rowsets_close(struct api_rowsets *rowsets);
/* On the loop: answers, made in the pool, with counts by standing and those rowsets that are not
 * simply bound (with "all=true": all). */
void api_rowsets_answer(struct api_rowsets *rowsets, struct http_exchange *exchange);

void api_scrub_print(struct scrubber *scrubber, struct buf *out);

#endif
