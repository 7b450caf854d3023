/* SPDX-License-Identifier: Apache-2.0 */
/* SHOW TRANSACTION, with Doris's columns. Newest first. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "coordinator/query/query_call.h"
#include "coordinator/query/query_result.h"
#include "coordinator/query/query_time.h"

static const struct query_column columns[] = {{"TransactionId", "BIGINT"},
                                              {"Label", "CHAR"},
                                              {"Coordinator", "CHAR"},
                                              {"TransactionStatus", "CHAR"},
                                              {"LoadJobSourceType", "CHAR"},
                                              {"PrepareTime", "CHAR"},
                                              {"PreCommitTime", "CHAR"},
                                              {"CommitTime", "CHAR"},
                                              {"PublishTime", "CHAR"},
                                              {"FinishTime", "CHAR"},
                                              {"Reason", "CHAR"},
                                              {"ErrorReplicasCount", "BIGINT"},
                                              {"ListenerId", "BIGINT"},
                                              {"TimeoutMs", "BIGINT"},
                                              {"ErrMsg", "CHAR"}};

static void print_time(struct json_writer *out, uint64_t us)
{
    char text[QUERY_TIME_BYTES];

    if (us == 0) {
        json_writer_null(out);
        return;
    }
    query_time_plain(us, text);
    json_writer_str(out, text);
}

/* "BE: 10.0.0.1" of the node that ran the load; a client that drives the transaction itself came
 * through a coordinator. */
static void print_origin(const struct state *state, const struct txn *txn, struct json_writer *out)
{
    const struct request_key *key = txn->load_count > 0 ? &txn->loads[0].key : &txn->begin_key;
    const struct member *member = members_find(&state->members, key->node);
    char text[ADDRESS_BYTES + 8] = "FE: client";

    if (member != NULL)
        snprintf(text, sizeof text, "BE: %.*s", (int)strcspn(member->http, ":"), member->http);
    json_writer_str(out, text);
}

/* Replicas of its tablets that did not take their part, as far as its records are still kept. */
static uint64_t error_replicas(const struct state *state, const struct txn *txn)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < txn->load_count; i++)
        for (uint32_t j = 0; txn->loads[i].tablets != NULL && j < txn->loads[i].tablet_count; j++) {
            const struct txn_load_tablet *part = &txn->loads[i].tablets[j];
            const struct tablet *tablet = catalog_tablet(&state->catalog, part->tablet);

            if (tablet != NULL)
                count += (uint64_t)__builtin_popcount(tablet_all(tablet) & ~part->sealed & 0xffu);
        }
    return count;
}

static void print_txn(const struct state *state, const struct txn *txn, struct json_writer *out)
{
    bool final = txn->state == TXN_VISIBLE || txn->state == TXN_ABORTED;

    json_writer_array(out);
    json_writer_uint(out, txn->id);
    json_writer_str(out, txn->label);
    print_origin(state, txn, out);
    json_writer_str(out, txn_state_name((enum txn_state)txn->state));
    json_writer_str(out, "BACKEND_STREAMING");
    print_time(out, txn->begin_us);
    print_time(out, txn->precommit_us);
    print_time(out, txn->commit_us);
    print_time(out, txn->commit_us); /* publishing begins when it is committed */
    print_time(out, final ? txn->visible_us : 0);
    json_writer_str(out, txn->reason != NULL ? txn->reason : "");
    json_writer_uint(out, error_replicas(state, txn));
    json_writer_int(out, -1);
    json_writer_uint(out, txn->timeout_ms);
    json_writer_str(out, "");
    json_writer_array_end(out);
}

static bool takes(const struct ddl *ddl, db_id db, const struct txn *txn)
{
    if (txn->db != db)
        return false;
    switch (ddl->filter) {
    case DDL_FILTER_NONE:
        return true;
    case DDL_FILTER_ID:
        return txn->id == ddl->filter_id;
    case DDL_FILTER_LABEL:
        return strcmp(txn->label, ddl->pattern) == 0;
    case DDL_FILTER_LIKE:
        return ddl_like(ddl->pattern, txn->label);
    case DDL_FILTER_STATUS:
        return strcasecmp(txn_state_name((enum txn_state)txn->state), ddl->pattern) == 0;
    }
    return false;
}

/* Who asks by label pattern wants to know them all (connectors look for what they left open), so
 * too many are an error there; who just looks gets the newest. */
static int print_all(const struct query_call *call, db_id db, struct json_writer *out,
                     struct tg_errmsg *msg)
{
    const struct state *state = query_state(call);
    const struct txn_ids *ids = &state->txns.by_id;
    uint32_t rows = 0;
    int err = 0;

    for (uint32_t p = ids->page_count; p-- > 0 && err == 0;) {
        for (uint32_t i = TXN_PAGE; ids->pages[p] != NULL && i-- > 0 && err == 0;) {
            const struct txn *txn = ids->pages[p]->txns[i];

            if (txn == NULL || !takes(&call->ddl, db, txn))
                continue;
            if (rows == QUERY_ROWS_MAX)
                return call->ddl.filter == DDL_FILTER_LIKE
                           ? tg_fail(msg, TG_TOO_LARGE,
                                     "more than %d transactions match: use a longer pattern",
                                     QUERY_ROWS_MAX)
                           : 0;
            print_txn(state, txn, out);
            rows++;
            err = query_check_size(out, msg);
        }
    }
    return err;
}

static int print_one(const struct query_call *call, const struct txn *txn, struct json_writer *out)
{
    if (txn != NULL)
        print_txn(query_state(call), txn, out);
    return 0;
}

int query_print_transactions(const struct query_call *call, struct json_writer *out,
                             struct tg_errmsg *msg)
{
    const struct txn_table *txns = &query_state(call)->txns;
    const struct database *db;
    const struct txn *txn = NULL;
    int err = query_find_db(call, &db, msg);

    if (err != 0)
        return err;
    if (call->ddl.filter == DDL_FILTER_ID) {
        txn = txn_table_find(txns, call->ddl.filter_id);
        if (txn == NULL || txn->db != db->id)
            return tg_fail(msg, TG_TXN_NOT_FOUND, "transaction with id %" PRIu64 " does not exist",
                           call->ddl.filter_id);
    }
    query_result_begin(out, columns, sizeof columns / sizeof columns[0]);
    if (call->ddl.filter == DDL_FILTER_ID) {
        err = print_one(call, txn, out);
    } else if (call->ddl.filter == DDL_FILTER_LABEL) {
        for (txn = txn_table_find_label(txns, db->id, call->ddl.pattern); txn != NULL && err == 0;
             txn = txn->same_label) {
            err = print_one(call, txn, out);
            if (err == 0)
                err = query_check_size(out, msg);
        }
    } else {
        err = print_all(call, db->id, out, msg);
    }
    query_result_end(out, query_now_ms(call) - call->started_ms);
    return err;
}
