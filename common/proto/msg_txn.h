/* SPDX-License-Identifier: Apache-2.0 */
/* Transactions between a load and the leading coordinator: begin (and start a load), report a load,
 * commit, abort. All are idempotent under repetition with the same request, at any leader
 * (rule 7): a caller that gets TG_UNKNOWN_OUTCOME, TG_NOT_LEADER, TG_CLOSED or
 * TG_TIMEOUT asks again until its own deadline. */
#ifndef TG_COMMON_PROTO_MSG_TXN_H
#define TG_COMMON_PROTO_MSG_TXN_H

#include <stdbool.h>

#include "common/base/buf.h"
#include "common/base/checksum.h"
#include "common/model/ids.h"
#include "common/model/schema.h"
#include "common/model/txn.h"

/* ---- begin a transaction with its first load, or a further load in a begun one ---- */
struct msg_txn_begin {
    node_id node;        /* who runs the load, … */
    uint64_t epoch;      /* … in which registration, … */
    uint64_t request_id; /* … and its number there */
    char db[NAME_BYTES];
    char table[NAME_BYTES];
    char label[LABEL_BYTES];
    char user[NAME_BYTES];
    txn_id join; /* 0: begin a new transaction; else: start a load in this explicitly begun one */
    bool two_phase;
    uint64_t timeout_ms; /* 0: the default */
};
/* Verdicts: 0; TG_LABEL_EXISTS (txn and state are set); TG_NOT_FOUND (database or table: the
 * sentence says which, in Doris's words); TG_TXN_NOT_FOUND, TG_TXN_STATE, TG_TXN_ABORTED (join);
 * TG_LIMIT; TG_FENCED (that epoch is over). */
struct load_plan_tablet {
    tablet_id tablet;
    uint8_t replica_count;
    node_id replicas[REPLICAS_MAX]; /* order is part of the plan: reports name replicas by index;
                                       0: none, then it is behind */
    uint8_t behind;   /* bit i: replica i is behind: counts for nothing, and is not sent to … */
    uint8_t catching; /* … unless it is catching, too */
    uint8_t quorum;   /* so many sealed ones that count does the load need */
};
struct load_plan_node {
    node_id node;
    char rpc[ADDRESS_BYTES];
};
struct msg_txn_begin_reply {
    txn_id txn;
    enum txn_state state; /* of the transaction with that label, for TG_LABEL_EXISTS */
    rowset_id rowset;     /* this load's */
    uint32_t load_no;
    table_id table;
    uint64_t placement_epoch;
    uint64_t timeout_ms;              /* of the transaction, from its begin */
    bool write_all;                   /* write_quorum = all */
    char label[LABEL_BYTES];          /* the transaction's */
    struct schema schema;             /* owned */
    uint32_t bucket_count;            /* tablets[i] is bucket i */
    struct load_plan_tablet *tablets; /* owned */
    uint32_t distribution_count;
    uint32_t *distribution; /* indexes of the distribution columns in the schema: owned */
    uint32_t node_count;
    struct load_plan_node *nodes; /* all that appear in tablets: owned */
};
void msg_txn_begin_encode(const struct msg_txn_begin *message, struct buf *out);
int msg_txn_begin_decode(struct slice head, struct msg_txn_begin *message);
void msg_txn_begin_reply_init(struct msg_txn_begin_reply *reply);
void msg_txn_begin_reply_encode(const struct msg_txn_begin_reply *reply, struct buf *out);
int msg_txn_begin_reply_decode(struct slice head, struct msg_txn_begin_reply *reply);
void msg_txn_begin_reply_close(struct msg_txn_begin_reply *reply);

/* ---- a load is complete on a quorum of every tablet it touched ---- */
enum load_finish {
    LOAD_FINISH_NONE = 0,      /* a load of an explicitly begun transaction */
    LOAD_FINISH_PRECOMMIT = 1, /* two-phase: the client commits later */
    LOAD_FINISH_COMMIT = 2
};
struct load_report_tablet {
    tablet_id tablet;
    uint8_t sealed; /* bit i: replica i of the plan acknowledged the seal */
    uint64_t rows;
    uint64_t bytes;
    struct digest digest;
};
struct msg_load_done {
    node_id node;
    uint64_t epoch;
    uint64_t request_id; /* of its begin */
    txn_id txn;
    rowset_id rowset;
    uint64_t placement_epoch; /* of its plan */
    enum load_finish finish;
    uint64_t wait_visible_ms; /* LOAD_FINISH_COMMIT: the answer waits this long for VISIBLE */
    uint64_t rows;            /* loaded */
    uint64_t bytes;           /* received */
    uint32_t tablet_count;    /* only those that got rows */
    struct load_report_tablet *tablets; /* owned */
};
/* Verdicts: 0 (state says how far: PREPARE, PRECOMMITTED, COMMITTED = not visible in time,
 * VISIBLE); TG_QUORUM (a tablet has too few good replicas: nothing changed, the load may fail
 * itself); TG_STALE (placement moved: the same); TG_TXN_ABORTED; TG_TXN_STATE; TG_TXN_NOT_FOUND. */
struct msg_txn_reply {
    txn_id txn;
    enum txn_state state;
    version_t version;   /* of the load's table, 0 before COMMITTED */
    uint64_t visible_us; /* completion time, 0 before VISIBLE */
};
void msg_load_done_encode(const struct msg_load_done *message, struct buf *out);
int msg_load_done_decode(struct slice head, struct msg_load_done *message);
void msg_load_done_close(struct msg_load_done *message);
void msg_txn_reply_encode(const struct msg_txn_reply *reply, struct buf *out);
int msg_txn_reply_decode(struct slice head, struct msg_txn_reply *reply);

/* ---- a load has failed: its transaction is aborted; the answer (msg_txn_reply) tells what the log
 * says ---- */
struct msg_load_failed {
    node_id node;
    uint64_t epoch;
    uint64_t request_id;
    txn_id txn; /* 0: begin's outcome is unknown: whatever that request made is aborted, or fenced
                   off for good */
    rowset_id rowset;
    char reason[256];
};
void msg_load_failed_encode(const struct msg_load_failed *message, struct buf *out);
int msg_load_failed_decode(struct slice head, struct msg_load_failed *message);

/* ---- _stream_load_2pc from a client, whoever received it ---- */
struct msg_txn_2pc {
    /* 128 random bits: a repetition of the same request gets the same answer. */
    uint64_t request_hi;
    uint64_t request_lo;
    char db[NAME_BYTES];
    char operation[32];      /* begin, precommit, commit, abort; anything else is refused */
    char txn_text[64];       /* header txn_id as received, "" if absent */
    char label[LABEL_BYTES]; /* "" if absent */
    char user[NAME_BYTES];
    uint64_t timeout_ms;      /* begin; 0: the default */
    uint64_t wait_visible_ms; /* commit */
};
struct msg_txn_2pc_reply {
    char status[32]; /* "Success", "ANALYSIS_ERROR", … */
    char msg[600];
    txn_id txn;              /* begin: the new one; else the one acted on, 0 if none */
    char label[LABEL_BYTES]; /* begin */
    enum txn_state state;    /* after it */
};
void msg_txn_2pc_encode(const struct msg_txn_2pc *message, struct buf *out);
int msg_txn_2pc_decode(struct slice head, struct msg_txn_2pc *message);
void msg_txn_2pc_reply_encode(const struct msg_txn_2pc_reply *reply, struct buf *out);
int msg_txn_2pc_reply_decode(struct slice head, struct msg_txn_2pc_reply *reply);

#endif
