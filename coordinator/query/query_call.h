/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share: one question on its way. */
#ifndef TG_COORDINATOR_QUERY_QUERY_CALL_H
#define TG_COORDINATOR_QUERY_QUERY_CALL_H

#include "common/base/json.h"
#include "coordinator/ddl/ddl.h"
#include "coordinator/query/query.h"

enum {
    QUERY_DATA_MAX = QUERY_REPLY_MAX - 64, /* bytes of JSON that still fit into a reply */
    QUERY_ROWS_MAX = 10000,                /* rows of SHOW TRANSACTION, instants, tables */
    QUERY_REPLICATION_DEFAULT = 3
};

struct query_call {
    struct consensus_request request;
    struct query_context context;
    enum query_kind kind;
    char db[NAME_BYTES]; /* of the request; statements may name another */
    char table[NAME_BYTES];
    char label[LABEL_BYTES];
    char user[NAME_BYTES];
    struct request_key key; /* of a statement */
    struct buf text;
    struct ddl ddl;
    bool has_ddl;
    /* What a read prints once its barrier has passed. */
    int (*print)(const struct query_call *call, struct json_writer *out, struct tg_errmsg *msg);
    query_done *done;
    void *data;
    uint64_t started_ms;
    txn_id waits_for; /* in query_waits */
    uint64_t until_ms;
    struct query_call *prev, *next;
};

static inline const struct state *query_state(const struct query_call *call)
{
    return consensus_state(call->context.consensus);
}
uint64_t query_now_ms(const struct query_call *call);

/* Each ends the call and frees it. */
void query_fail(struct query_call *call, int err, const char *sentence);
void query_answer(struct query_call *call, struct buf *json); /* takes json's memory */
/* {"type":"exec_status", …}: a statement that changed something was done. */
void query_answer_done(struct query_call *call);

/* Barrier, then print, then answer. */
void query_read(struct query_call *call,
                int (*print)(const struct query_call *call, struct json_writer *out,
                             struct tg_errmsg *msg));
void query_wait_visible(struct query_call *call, txn_id txn);

/* Database and table that the call means, by its statement or its request. TG_NOT_FOUND or
 * TG_INVALID with Doris's words. */
int query_find_db(const struct query_call *call, const struct database **db, struct tg_errmsg *msg);
int query_find_table(const struct query_call *call, const struct table **table,
                     struct tg_errmsg *msg);
/* TG_TOO_LARGE once the answer does not fit a reply any more. */
int query_check_size(const struct json_writer *out, struct tg_errmsg *msg);

/* A statement. */
void query_statement(struct query_call *call);
/* Prints of the questions and of SHOW and DESCRIBE. */
int query_print_load_state(const struct query_call *call, struct json_writer *out,
                           struct tg_errmsg *msg);
int query_print_schema(const struct query_call *call, struct json_writer *out,
                       struct tg_errmsg *msg);
int query_print_count(const struct query_call *call, struct json_writer *out,
                      struct tg_errmsg *msg);
int query_print_backends(const struct query_call *call, struct json_writer *out,
                         struct tg_errmsg *msg);
int query_print_health(const struct query_call *call, struct json_writer *out,
                       struct tg_errmsg *msg);
int query_print_replicas(const struct query_call *call, struct json_writer *out,
                         struct tg_errmsg *msg);
int query_print_cluster(const struct query_call *call, struct json_writer *out,
                        struct tg_errmsg *msg);
int query_print_nodes(const struct query_call *call, struct json_writer *out,
                      struct tg_errmsg *msg);
/* "decommission 3": an order about a participant. */
void query_node_order(struct query_call *call);
int query_print_timeline(const struct query_call *call, struct json_writer *out,
                         struct tg_errmsg *msg);
int query_print_databases(const struct query_call *call, struct json_writer *out,
                          struct tg_errmsg *msg);
int query_print_tables(const struct query_call *call, struct json_writer *out,
                       struct tg_errmsg *msg);
int query_print_create_table(const struct query_call *call, struct json_writer *out,
                             struct tg_errmsg *msg);
int query_print_describe(const struct query_call *call, struct json_writer *out,
                         struct tg_errmsg *msg);
int query_print_transactions(const struct query_call *call, struct json_writer *out,
                             struct tg_errmsg *msg);

#endif
