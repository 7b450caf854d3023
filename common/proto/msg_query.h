/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_QUERY: statements and small questions that the leader answers with a JSON text, whoever
 * received them over HTTP. */
#ifndef TG_COMMON_PROTO_MSG_QUERY_H
#define TG_COMMON_PROTO_MSG_QUERY_H

#include "common/base/buf.h"
#include "common/model/ids.h"

enum query_kind {
    QUERY_STATEMENT = 1,  /* text: a DDL or SHOW statement; db may be "" */
    QUERY_LOAD_STATE = 2, /* db, label */
    QUERY_CANCEL = 3,     /* db, label */
    QUERY_SCHEMA = 4,     /* db, table */
    QUERY_COUNT = 5,      /* db, table */
    QUERY_BACKENDS = 6,   /* text: "alive" for living ones only */
    QUERY_TIMELINE = 7,   /* db, table; text: the query string of the HTTP request */
    QUERY_HEALTH = 8,
    QUERY_CLUSTER = 9,      /* members, leader, versions: for `tidegate cluster status` */
    QUERY_NODES = 10,       /* participants and what they hold */
    QUERY_NODE_ORDER = 11,  /* text: "decommission 3", "recommission 3", "drop 3" */
    QUERY_REPLICAS = 12,    /* tablets and their replicas; db, table: "" for all */
    QUERY_DECLARE_LOST = 13 /* db, table; text: the query string, tablet=N&force=true */
};
enum { QUERY_TEXT_MAX = 1024 * 1024, QUERY_REPLY_MAX = 8 * 1024 * 1024 };

struct msg_query {
    enum query_kind kind;
    char db[NAME_BYTES];
    char table[NAME_BYTES];
    char label[LABEL_BYTES];
    char user[NAME_BYTES];
    struct buf text; /* owned */
    /* QUERY_STATEMENT: random, given once by the node that the client asked: the same statement
     * sent again is done once. Both 0: none. */
    uint64_t request_hi, request_lo;
};
/* Verdict 0: `data` is the JSON for the envelope's data field (docs/http-api.md). Otherwise the
 * frame's sentence is for the user. */
struct msg_query_reply {
    struct buf data; /* owned */
};
void msg_query_encode(const struct msg_query *message, struct buf *out);
int msg_query_decode(struct slice head, struct msg_query *message);
void msg_query_close(struct msg_query *message);
void msg_query_reply_encode(const struct msg_query_reply *reply, struct buf *out);
int msg_query_reply_decode(struct slice head, struct msg_query_reply *reply);
void msg_query_reply_close(struct msg_query_reply *reply);

#endif
