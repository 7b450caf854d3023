/* SPDX-License-Identifier: Apache-2.0 */
/* Every possible change of the replicated state, as data, and how it is written into the raft log.
 *
 * One raft entry carries one batch: {format version, stamp, elapsed delta, commands…}. The leader
 * stamps a batch above everything it has proposed (rule 14); the i-th thing in a
 * batch that needs a time of its own gets stamp + i microseconds. Ages come from the deltas (rule
 * 9). Apply never reads a clock. */
#ifndef TG_COORDINATOR_STATE_COMMAND_H
#define TG_COORDINATOR_STATE_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/model/ids.h"
#include "common/model/schema.h"
#include "common/model/txn.h"
#include "common/proto/msg_member.h"
#include "common/proto/msg_txn.h"

enum { COMMAND_FORMAT = 1, BATCH_COMMANDS_MAX = 4096, BATCH_BYTES_MAX = 256 * 1024 };

/* Limits of which clusters may want others: the leader's options, made equal on all by the log. */
struct limits {
    uint32_t running_txns_per_db_max;   /* PREPARE + PRECOMMITTED + COMMITTED: 10 000 */
    uint32_t unpublished_per_table_max; /* 1 000: rule 16 */
    uint64_t label_memory_max;          /* bytes of finished transactions' records: 256 MiB */
};

enum command_type {
    /* The first leader's first command: the cluster's uuid; later ones change nothing. */
    COMMAND_CLUSTER_INIT = 1,
    COMMAND_MEMBER_REGISTER = 2,
    COMMAND_CREATE_DB = 10,
    COMMAND_DROP_DB = 11,
    COMMAND_CREATE_TABLE = 12,
    COMMAND_DROP_TABLE = 13,
    COMMAND_TRUNCATE_TABLE = 14,
    COMMAND_TXN_BEGIN = 20,  /* with its first load, if a table is named */
    COMMAND_LOAD_START = 21, /* a further load in an explicitly begun transaction */
    COMMAND_LOAD_DONE = 22,  /* with the finish: nothing, precommit or commit */
    COMMAND_LOAD_FAILED = 23,
    COMMAND_TXN_PRECOMMIT = 24,
    COMMAND_TXN_COMMIT = 25,
    COMMAND_TXN_ABORT = 26,
    COMMAND_TXN_VISIBLE = 27,
    COMMAND_TXN_CONFIRM = 28,    /* stragglers that bound after VISIBLE */
    COMMAND_REPLICA_BEHIND = 29, /* a replica said that it lacks what it should have */
    COMMAND_SET_LIMITS = 70,     /* struct limits */
    COMMAND_FORGET = 30,         /* finished transactions past their keep time go */
    COMMAND_REPLICA_LACKS = 31,  /* the same as BEHIND, by the version: data that was bound is
                                    damaged or gone */
    COMMAND_REPLICA_CATCH = 32,  /* a replica that is behind is written to again */
    COMMAND_REPLICA_HEALED = 33, /* a replica that is catching has bound all it missed. No longer
                                    written: PROVEN is */
    /* The coordinators themselves (coordinators.h). */
    COMMAND_COORDINATOR_FOUND = 40, /* one that raft's configuration has is written into the list */
    COMMAND_COORDINATOR_ADD = 41,
    COMMAND_COORDINATOR_PROMOTE = 42, /* it has caught up: it shall vote */
    COMMAND_COORDINATOR_DROP = 43,
    COMMAND_COORDINATOR_GONE = 44, /* raft's configuration has it no longer */
    COMMAND_NODE_DRAIN = 50,       /* a participant is on its way out, or no longer */
    COMMAND_NODE_DROP = 51,        /* a participant is gone for good, and with it its replicas */
    COMMAND_REPLICA_ADD = 52,      /* a tablet gets one more replica, which is behind from zero */
    COMMAND_REPLICA_REMOVE = 53,   /* a replica leaves its tablet, which has enough without it */
    COMMAND_REPLICA_PROVEN = 60,   /* the same, with the digest over what it has bound */
    COMMAND_MEMBER_REJOIN = 61,    /* a participant's directory was lost, or is an old one: all its
                                      replicas are behind until they have proven to be good */
    COMMAND_DECLARE_LOST = 62      /* an operator's word: no copy is left of the last versions of a
                                      tablet */
};

/* Who asked: the same triple gives the same transaction (rule 7). node 0 = a client through
 * _stream_load_2pc or a statement: then epoch and request are its 128 random bits. */
struct request_key {
    node_id node;
    uint64_t epoch;
    uint64_t request;
};

bool request_key_equal(const struct request_key *a, const struct request_key *b);
bool request_key_is_zero(const struct request_key *key);
enum { REQUEST_KEY_FIELDS = 3 }; /* encoded */

struct command_register { /* MEMBER_REGISTER, MEMBER_REJOIN */
    struct msg_register message;
};
struct command_create_table {
    struct request_key key; /* of the client's statement: a repetition gets the same answer; zero:
                               none */
    char db[NAME_BYTES];
    char table[NAME_BYTES];
    bool if_not_exists;
    struct schema schema; /* owned */
    uint32_t distribution_count;
    uint32_t distribution[COLUMNS_MAX > 64 ? 64 : COLUMNS_MAX];
    uint32_t bucket_count;
    uint8_t replication;
    bool write_all;           /* write_quorum = all */
    bool occ;                 /* concurrency = occ */
    char *comment;            /* owned, NULL if none */
    uint32_t candidate_count; /* participants that were alive, in the leader's order of preference;
                                 apply picks from them */
    node_id candidates[NODES_MAX];
};
struct command_name {       /* CREATE_DB, DROP_DB, DROP_TABLE, TRUNCATE_TABLE */
    struct request_key key; /* as in command_create_table */
    char db[NAME_BYTES];
    char table[NAME_BYTES];
    bool if_exists; /* IF EXISTS, or IF NOT EXISTS for CREATE */
    bool force;
};
struct command_begin {
    struct request_key key;
    char db[NAME_BYTES];
    char table[NAME_BYTES]; /* "" = an explicit begin without a load */
    char label[LABEL_BYTES];
    char user[NAME_BYTES];
    bool two_phase;
    uint64_t timeout_ms; /* resolved: never 0 */
};
struct command_load_start {
    struct request_key key;
    txn_id txn;
    char db[NAME_BYTES];
    char table[NAME_BYTES];
};
struct command_load_done {
    struct msg_load_done message; /* owned */
};
struct command_load_failed {
    struct request_key key; /* txn 0: abort or fence off what this request made */
    txn_id txn;
    rowset_id rowset;
    char reason[256];
};
struct command_finish { /* TXN_PRECOMMIT, TXN_COMMIT, TXN_ABORT */
    txn_id txn;
    db_id db;               /* 0 = any; else the transaction must be of this database */
    struct request_key key; /* of the client's request: a repetition gets the same answer; zero for
                               internal ones */
    /* Compare-and-set for automatic aborts (rule 8): apply only if the transaction is in this
     * state, made by this seq. 0 = unconditional. */
    enum txn_state expect_state;
    uint64_t expect_seq;
    char reason[256]; /* TXN_ABORT */
};
struct visible_txn {
    txn_id txn;
    uint32_t tablet_count; /* = the transaction's publish tablets, in their order */
    uint8_t *confirmed; /* per tablet: bit i = replica slot i has bound it (durable): owned by the
                           command */
    bool one_is_enough; /* TXN_VISIBLE: published for longer than publish_wait, so one good replica
                           a tablet suffices */
};
struct command_visible { /* TXN_VISIBLE and TXN_CONFIRM */
    /* Versions in order: of two transactions of one table the older version first. */
    uint32_t count;
    struct visible_txn *txns; /* owned */
};
struct command_behind {
    tablet_id tablet;
    node_id node;
    txn_id txn; /* what it lacks */
};
struct command_replica { /* REPLICA_LACKS, REPLICA_CATCH, REPLICA_HEALED */
    tablet_id tablet;
    node_id node;
    version_t version; /* LACKS: that it lacks; HEALED: its last bound one; CATCH: 0 */
};
struct command_proven { /* REPLICA_PROVEN */
    tablet_id tablet;
    node_id node;
    version_t bound;     /* its last bound version */
    version_t version;   /* the one up to which this is … */
    struct digest chain; /* … the digest over all that it has bound */
};
struct command_lost { /* DECLARE_LOST */
    tablet_id tablet;
    version_t kept; /* the last version that a replica still holds, 0 if none */
};
struct command_node { /* NODE_DRAIN, NODE_DROP */
    node_id node;
    uint64_t epoch; /* NODE_DROP: applies only to this registration: who came back is not dropped */
    bool drain;     /* NODE_DRAIN: false takes it back */
};
struct command_move { /* REPLICA_ADD, REPLICA_REMOVE */
    tablet_id tablet;
    node_id node;
    uint64_t placement_epoch; /* of the table as it was seen: applies only if it is unchanged */
};
struct command_forget {
    uint32_t count;
    txn_id *txns; /* owned */
};
struct command_coordinator { /* COORDINATOR_*: PROMOTE, DROP and GONE name the id alone */
    uint64_t id;
    uint64_t nonce; /* ADD: of the directory that joins */
    char raft[ADDRESS_BYTES];
    char rpc[ADDRESS_BYTES];
    char http[ADDRESS_BYTES];
};
struct command_cluster_init {
    char uuid[UUID_BYTES];
};

struct command_limits {
    struct limits limits;
};

struct command {
    enum command_type type;
    union {
        struct command_cluster_init cluster_init;
        struct command_register member;
        struct command_create_table create_table;
        struct command_name name;
        struct command_begin begin;
        struct command_load_start load_start;
        struct command_load_done load_done;
        struct command_load_failed load_failed;
        struct command_finish finish;
        struct command_visible visible;
        struct command_limits limits;
        struct command_behind behind;
        struct command_replica replica;
        struct command_proven proven;
        struct command_lost lost;
        struct command_forget forget;
        struct command_coordinator coordinator;
        struct command_node node;
        struct command_move move;
    };
};

/* Fields of each element in the flat arrays of LOAD_DONE and of VISIBLE and CONFIRM. */
enum { COMMAND_REPORT_FIELDS = 5, COMMAND_VISIBLE_FIELDS = 3 };

void command_close(struct command *command); /* frees what it owns */
/* Appends one command: below 200 bytes unless it is CREATE_TABLE or names many tablets or
 * transactions. */
void command_encode(const struct command *command, struct buf *out);
/* One command; on error nothing is owned. TG_CORRUPT, TG_UNSUPPORTED (unknown type or version: the
 * node must stop), TG_NOMEM. */
int command_decode(struct cursor *cursor, struct command *command);

struct batch_header {
    uint64_t stamp_us; /* above every time used before it */
    uint64_t elapsed_delta_ms;
    uint32_t count;
};
/* A batch is its header, then `count` encoded commands, then zero bytes up to a multiple of 8
 * (raft's rule), which the header accounts for. */
enum { BATCH_HEADER_BYTES = 24, BATCH_ALIGN = 8 };

void batch_begin(const struct batch_header *header, struct buf *out);
void batch_end(struct buf *out); /* pads: the batch must have begun at the start of out */
/* TG_CORRUPT, or TG_UNSUPPORTED for a format version that this program does not know. */
int batch_decode_header(struct cursor *cursor, struct batch_header *header);
/* After the last command: only the padding may be left. 0 or TG_CORRUPT. */
int batch_decode_end(struct cursor *cursor);

#endif
