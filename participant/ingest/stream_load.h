/* SPDX-License-Identifier: Apache-2.0 */
/* One load, straight-line on a thread of its own: begin, read the body, make rows, route, sort,
 * encode, replicate, seal, report. Knows nothing of HTTP: files and queues can be loaded by it too.
 *
 *   begin ──▶ accept the body ──▶ rows … segments … pieces ──▶ seals ──▶ done ──▶ result
 *     │                │ bad data, sender gone, stopped, timeout, no quorum    │ outcome unknown
 *     ▼                ▼                                                       ▼
 *   refused          failed: told to the coordinators, who abort ◀── asked what the log says
 *
 * Fail is said only when the log says ABORTED; an outcome that cannot be learned until the deadline
 * stays unknown, and the result says so (rule 11). */
#ifndef TG_PARTICIPANT_INGEST_STREAM_LOAD_H
#define TG_PARTICIPANT_INGEST_STREAM_LOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/model/txn.h"
#include "participant/ingest/error_log.h"
#include "participant/ingest/load_calls.h"
#include "participant/ingest/load_memory.h"
#include "participant/ingest/load_options.h"
#include "participant/ingest/load_source.h"
#include "participant/link/live_requests.h"
#include "participant/link/node_identity.h"

enum {
    LOAD_CALL_MS = 2000, /* one attempt at the coordinators, so that a stop is noticed */
    LOAD_FAIL_MS = 2000, /* after the deadline, or once stopped: to learn that it is aborted */
    LOAD_VISIBLE_SLICE_MS = 1000,    /* one question "is it visible yet" waits so long */
    LOAD_SHARE_MIN = 4 * 1024 * 1024 /* bytes that a load may always use */
};

/* Doris's sentence for a body that is too large: its size, the limit in bytes. */
#define LOAD_TOO_LARGE                                                                         \
    "[E-217]body size %llu exceed BE's conf `streaming_load_max_mb` %llu. increase it if you " \
    "are sure this load is reasonable"

/* What all loads of a node share. */
struct stream_load_context {
    const struct load_calls *calls;
    struct clock *clock;
    struct live_requests *live;
    const struct node_identity *identity;
    struct error_logs *errors;   /* may be NULL */
    uint64_t memory_bytes;       /* of one load, for rows that are not encoded yet */
    uint64_t memory_total_bytes; /* of rows of all loads: each gets its share */
    struct load_memory memory;   /* of all loads, rows and everything else */
    uint64_t body_bytes_max;
    uint64_t publish_wait_ms;
    size_t chunk_bytes;  /* 0: as the readers like it; tests take small ones */
    atomic_uint active;  /* loads that run: kept by stream_load_run */
    atomic_bool closing; /* the node shuts down */
};

struct load_request {
    const char *db;
    const char *table;
    const char *user;
    const struct load_options *options;
    uint64_t size_hint; /* the body's length if known, else 0 */
};

enum load_status {
    LOAD_SUCCESS,
    LOAD_PUBLISH_TIMEOUT, /* committed, not visible yet */
    LOAD_LABEL_EXISTS,
    LOAD_FAIL,
    LOAD_UNKNOWN /* nothing may be said */
};

struct load_result {
    enum load_status status;
    txn_id txn;              /* 0: none was begun */
    char label[LABEL_BYTES]; /* the transaction's: for an answer to who named none */
    enum txn_state existing; /* LOAD_LABEL_EXISTS: of the transaction that has the label */
    char message[TG_ERRMSG_MAX];
    char first_error[256];
    char error_file[ERROR_LOG_NAME_BYTES]; /* "" if no row was kept */
    uint64_t total_rows;
    uint64_t loaded_rows;
    uint64_t filtered_rows;
    uint64_t bytes; /* received */
    uint64_t load_ms;
    uint64_t begin_ms;
    uint64_t read_ms;   /* waiting for the body */
    uint64_t write_ms;  /* making and sending rows */
    uint64_t commit_ms; /* LOAD_FINISH_COMMIT: reporting and waiting */
};

/* A load in steps, for a caller with an event loop: the calls to the coordinators at both ends are
 * then the loop's, and a thread is only needed for what lies between.
 *
 *   open ─▶ begin_message … began ─▶ work ─▶ (true) … done ─▶ (true)  close
 *                                      │ false            │ false
 *                                      ▼                  ▼
 *                                    close             report ─▶ close
 *
 * work and report block, the others do not. Every call is idempotent at the coordinators, so an
 * answer that is none, or not the last word, costs nothing but asking again: by work and report. */
struct load_run;

/* 0, or an error: then result is complete and there is nothing to close. The arguments, as those of
 * stream_load_run, must outlive the load. */
int stream_load_open(struct stream_load_context *context, const struct load_request *request,
                     struct load_source *source, void (*stop_wake)(void *ctx), void *ctx,
                     struct load_result *result, struct load_run **run);
/* MSG_TXN_BEGIN for one attempt of at most LOAD_CALL_MS. On failure go on with work, which says
 * why. */
int stream_load_begin_message(struct load_run *run, struct buf *head);
void stream_load_began(struct load_run *run, int err, struct slice head);
/* True: all is sealed, and `done` is MSG_LOAD_DONE for one attempt. False: result is complete. */
bool stream_load_work(struct load_run *run, struct buf *done);
/* True: result is complete. */
bool stream_load_done(struct load_run *run, int err, struct slice head);
void stream_load_report(struct load_run *run);
/* Completes the result's figures; frees. */
void stream_load_close(struct load_run *run);

/* Runs the load to its end; blocks. stop_wake (may be NULL) is called, from any thread, when the
 * load is told to stop while it may be waiting in source->read. Returns result->status. */
enum load_status stream_load_run(struct stream_load_context *context,
                                 const struct load_request *request, struct load_source *source,
                                 void (*stop_wake)(void *ctx), void *ctx,
                                 struct load_result *result);

#endif
