/* SPDX-License-Identifier: Apache-2.0 */
/* Where a load's body comes from: pulled by the load's thread. An HTTP request, a file, a test. */
#ifndef TG_PARTICIPANT_INGEST_LOAD_SOURCE_H
#define TG_PARTICIPANT_INGEST_LOAD_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

struct load_source {
    /* Up to cap bytes of the body into out, waiting for at least one; *n = 0 at its end.
     * deadline_ms on the load's clock. TG_TIMEOUT; TG_CLOSED: the sender is gone or broke the
     * frame; TG_CANCELED: the load was told to stop; TG_CORRUPT, TG_NOMEM. msg says what happened.
     */
    int (*read)(struct load_source *source, uint8_t *out, size_t cap, uint64_t deadline_ms,
                size_t *n, struct tg_errmsg *msg);
    /* The transaction has begun: the body may come. NULL if nobody needs to know. */
    void (*accept)(struct load_source *source);
    uint64_t received; /* bytes of the body so far, as they came */
    void *ctx;
};

#endif
