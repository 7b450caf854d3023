/* SPDX-License-Identifier: Apache-2.0 */
/* A load while it runs: what the files of stream_load share. Private to them. */
#ifndef TG_PARTICIPANT_INGEST_LOAD_RUN_H
#define TG_PARTICIPANT_INGEST_LOAD_RUN_H

#include "common/proto/msg_txn.h"
#include "participant/ingest/replicator.h"
#include "participant/ingest/stream_load.h"
#include "participant/ingest/tablet_router.h"

struct load_run {
    struct stream_load_context *context;
    const struct load_request *request;
    const struct load_options *options;
    struct load_source *source;
    struct load_result *result;
    struct live_request live;
    bool is_live; /* listed */
    void (*stop_wake)(void *ctx);
    void *stop_ctx;
    uint64_t epoch;
    node_id node;
    uint64_t start_ms;
    uint64_t deadline_ms;
    struct msg_txn_begin_reply plan;
    struct buf begin_reply;    /* of a begin that the caller made: not empty if it went well */
    struct msg_load_done done; /* the report, once everything is sealed */
    uint64_t done_ms;          /* when it was made */
    bool begun;
    struct error_log log;
    struct row_mapping mapping;
    struct row_converter converter;
    struct tablet_router router;
    struct replicator *replicator;
    bool like_gzip;       /* a plain body that begins as gzip does */
    size_t held;          /* what it is counted for in context->memory */
    struct tg_errmsg msg; /* why it fails */
};

/* The load must end now: TG_CANCELED or TG_TIMEOUT with the reason in msg, else 0. */
int load_run_check(struct load_run *run, struct tg_errmsg *msg);

/* Fills msg: the loads' memory is used up. TG_NOMEM. */
int load_run_no_memory(struct load_run *run, size_t want);

/* ---- the coordinators (load_txn.c) ---- */

/* The begin message. TG_NOMEM, TG_NOT_FOUND (no table can have such a name; run->msg says so). */
int load_txn_begin_message(struct load_run *run, struct buf *head);
/* Begins, unless run->begin_reply tells that it was done. 0; TG_LABEL_EXISTS (result->txn, existing
 * are set); TG_UNKNOWN_OUTCOME; other verdicts with the client's message in run->msg. */
int load_txn_begin(struct load_run *run);
/* Makes run->done of what was sealed. TG_NOMEM. */
int load_txn_make_done(struct load_run *run);
/* Its encoding. TG_NOMEM. */
int load_txn_done_message(const struct load_run *run, struct buf *head);
/* Takes the coordinators' answer to it. False if it is not the last word. */
bool load_txn_done_reply(struct load_run *run, struct slice head);
/* Reports the load and, as its options say, precommits or commits. 0: result->status is set. Other:
 * run->msg; the transaction may be in any state: load_txn_fail finds out. */
int load_txn_done(struct load_run *run);
/* The load has failed: sees to it that the transaction is aborted, or learns what else became of
 * it. Sets result->status. */
void load_txn_fail(struct load_run *run);

/* ---- the body (load_body.c) ---- */

/* Reads the body to its end and sends what becomes of it, sealed. 0, or an error with the client's
 * message in run->msg. */
int load_body_run(struct load_run *run);
/* Frees what only the body needed; its figures go to the result. Harmless if done. */
void load_body_close(struct load_run *run);

#endif
