/* SPDX-License-Identifier: Apache-2.0 */
/* Encoded blocks to all replicas of their tablets as they are made, then the seals; and which
 * replica has what, for the report.
 *
 * A replica that fails, or is too slow for a bounded backlog and wait, is dropped from the load as
 * long as every tablet keeps a quorum (rule 20): it is behind then. One thread calls these
 * functions; answers come on others. */
#ifndef TG_PARTICIPANT_INGEST_REPLICATOR_H
#define TG_PARTICIPANT_INGEST_REPLICATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/clock.h"
#include "common/model/rowset.h"
#include "common/proto/msg_txn.h"
#include "participant/ingest/load_calls.h"

enum {
    REPLICATOR_MESSAGE_BYTES = 1024 * 1024,      /* a message is sent when it has so much */
    REPLICATOR_BACKLOG_BYTES = 16 * 1024 * 1024, /* unanswered bytes of a replica */
    REPLICATOR_SLOW_MS = 10000, /* a full backlog that does not shrink: the replica is dropped */
    REPLICATOR_CALL_MS = 60000, /* the longest that a peer's answer is awaited */
    REPLICATOR_SEAL_MS = 30000, /* the longest that seals are awaited */
    REPLICATOR_GRACE_MS = 3000  /* … and the stragglers, once every tablet has its quorum */
};

struct replicator_options {
    const struct load_calls *calls;
    struct clock *clock;
    const struct msg_txn_begin_reply *plan; /* needed until replicator_close */
    node_id node;                           /* this one */
    uint64_t epoch;
    uint64_t backlog_bytes;                            /* 0: REPLICATOR_BACKLOG_BYTES */
    bool (*stopped)(void *ctx, struct tg_errmsg *msg); /* the load must end: why in msg */
    void *ctx;
};

struct replicator;

/* options are copied, what they point to must outlive the replicator. TG_NOMEM; TG_CORRUPT: a plan
 * that does not name its nodes. */
int replicator_open(const struct replicator_options *options, struct replicator **replicator);
/* Answers that are still to come are waited for by nobody: what they need lives until they came. */
void replicator_close(struct replicator *replicator);

/* Bytes of a tablet's rowset, in order of offset. Waits while a replica's backlog is full.
 * TG_QUORUM: too few good replicas are left; TG_CANCELED: stopped said so; TG_NOMEM. msg says
 * which. */
int replicator_piece(struct replicator *replicator, uint32_t bucket, uint64_t offset,
                     struct slice content, struct tg_errmsg *msg);

/* Seals the rowsets of these buckets (metas[i] of buckets[i], all content was given) and waits for
 * the replicas. 0: every one of the tablets has its quorum. */
int replicator_seal(struct replicator *replicator, const uint32_t *buckets,
                    const struct rowset_meta *const *metas, uint32_t count, struct tg_errmsg *msg);

/* Bit i: replica i of the plan acknowledged the bucket's seal. */
uint8_t replicator_sealed(const struct replicator *replicator, uint32_t bucket);

#endif
