/* SPDX-License-Identifier: Apache-2.0 */
/* QUERY_DECLARE_LOST on the leader. */
#include "coordinator/dispatch/dispatch_lost.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/json.h"
#include "common/base/log.h"

struct lost_call {
    struct consensus_request request;
    struct dispatch *dispatch;
    dispatch_done *done;
    void *data;
    uint32_t count;
    uint32_t next; /* to be declared */
    struct lost_tablet {
        tablet_id tablet;
        version_t kept;
        bool lost; /* the command has changed something */
    } * tablets;   /* owned */
};

static void end(struct lost_call *call, int err, const char *sentence, struct slice head)
{
    call->done(call->data, err, sentence, head);
    free(call->tablets);
    free(call);
}

static void answer(struct lost_call *call)
{
    struct msg_query_reply reply = {.data = BUF_INIT};
    struct buf head = BUF_INIT;
    struct json_writer json;

    json_writer_init(&json, &reply.data, 0);
    json_writer_object(&json);
    json_writer_key(&json, "tablets");
    json_writer_array(&json);
    for (uint32_t i = 0; i < call->count; i++) {
        json_writer_object(&json);
        json_writer_key(&json, "tablet");
        json_writer_uint(&json, call->tablets[i].tablet);
        json_writer_key(&json, "kept_version");
        json_writer_uint(&json, call->tablets[i].kept);
        json_writer_key(&json, "lost");
        json_writer_bool(&json, call->tablets[i].lost);
        json_writer_object_end(&json);
    }
    json_writer_array_end(&json);
    json_writer_object_end(&json);
    msg_query_reply_encode(&reply, &head);
    msg_query_reply_close(&reply);
    end(call, head.err, "", slice_of(head.data, head.len));
    buf_close(&head);
}

static void propose_next(struct lost_call *call);

static void on_applied(struct consensus_request *request, int err,
                       const struct apply_result *result)
{
    struct lost_call *call = request->data;

    if (err != 0 || result->err != 0) {
        end(call, err != 0 ? err : result->err, err != 0 ? tg_err_sentence(err) : result->msg.text,
            slice_of(NULL, 0));
        return;
    }
    struct lost_tablet *tablet = &call->tablets[call->next++];
    tablet->lost = !result->repeated;
    if (tablet->lost)
        log_warn("repair", "declared_lost tablet=%lu kept=%lu", tablet->tablet, tablet->kept);
    propose_next(call);
}

static void propose_next(struct lost_call *call)
{
    if (call->next == call->count) {
        answer(call);
        return;
    }
    struct command command = {.type = COMMAND_DECLARE_LOST};
    command.lost = (struct command_lost){.tablet = call->tablets[call->next].tablet,
                                         .kept = call->tablets[call->next].kept};
    call->request.done = on_applied;
    call->request.data = call;
    consensus_propose(call->dispatch->consensus, &command, &call->request);
}

/* ---- which, and how far they reach ---- */

struct wish {
    tablet_id tablet; /* 0: any of the table */
    bool force;
};

/* text: the query string of the request. */
static struct wish read_wish(const struct msg_query *message)
{
    struct wish wish = {0};
    char text[128] = "";

    if (message->text.len < sizeof text && message->text.len > 0)
        memcpy(text, message->text.data, message->text.len);
    const char *tablet = strstr(text, "tablet=");
    wish.tablet = tablet != NULL ? strtoull(tablet + strlen("tablet="), NULL, 10) : 0;
    wish.force = strstr(text, "force=true") != NULL;
    return wish;
}

static int find_table(const struct state *state, const struct msg_query *message,
                      const struct table **table, struct tg_errmsg *msg)
{
    const struct database *database = catalog_database(&state->catalog, message->db);

    *table = database != NULL ? catalog_table(database, message->table) : NULL;
    return *table != NULL
               ? 0
               : tg_fail(msg, TG_NOT_FOUND, "table not found, tableName=%s", message->table);
}

static int collect(struct lost_call *call, const struct msg_query *message, struct tg_errmsg *msg)
{
    struct wish wish = read_wish(message);
    const struct table *table;
    int err = find_table(consensus_state(call->dispatch->consensus), message, &table, msg);

    if (err != 0)
        return err;
    call->tablets = calloc(table->bucket_count, sizeof *call->tablets);
    TG_CHECK_MEMORY(call->tablets != NULL);
    for (uint32_t i = 0; err == 0 && i < table->bucket_count; i++) {
        const struct tablet *tablet = table->tablets[i];

        if ((wish.tablet != 0 && wish.tablet != tablet->id) || tablet_good(tablet) != 0)
            continue;
        struct lost_tablet *lost = &call->tablets[call->count++];
        lost->tablet = tablet->id;
        err = repair_daemon_reach(call->dispatch->repairs, tablet, wish.force, &lost->kept, msg);
    }
    if (err == 0 && call->count == 0)
        err = tg_fail(msg, TG_REFUSED,
                      "nothing of table %s is lost: its tablets have good copies, or it has no "
                      "tablet %" PRIu64,
                      table->name, wish.tablet);
    return err;
}

void dispatch_lost(struct dispatch *dispatch, const struct msg_query *message, dispatch_done *done,
                   void *data)
{
    struct lost_call *call = calloc(1, sizeof *call);
    struct tg_errmsg msg = {{0}};

    TG_CHECK_MEMORY(call != NULL);
    call->dispatch = dispatch;
    call->done = done;
    call->data = data;
    int err = dispatch->repairs != NULL ? collect(call, message, &msg) : TG_UNSUPPORTED;
    if (err != 0)
        end(call, err, msg.text, slice_of(NULL, 0));
    else
        propose_next(call);
}
