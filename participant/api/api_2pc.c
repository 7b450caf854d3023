/* SPDX-License-Identifier: Apache-2.0 */
/* _stream_load_2pc on a participant: passed on to the leading coordinator. The request gets 128
 * random bits once, so that whatever is sent again gets the answer of the first. */
#include <stdlib.h>
#include <string.h>

#include "common/proto/message.h"
#include "common/proto/txn_2pc_answer.h"
#include "participant/api/api_load_internal.h"

enum {
    TXN_2PC_TIMEOUT_MS = 30000, /* then the outcome is unknown: the connection closes */
    TXN_2PC_SLACK_MS = 3000     /* an attempt may take so long beyond its wait for VISIBLE */
};

struct pending {
    struct http_exchange *exchange; /* NULL once it is closed */
    struct msg_txn_2pc message;
};

static void on_close(void *data)
{
    struct pending *pending = data;
    pending->exchange = NULL;
}

static void respond(struct http_exchange *exchange, const struct msg_txn_2pc *message,
                    const struct msg_txn_2pc_reply *reply)
{
    struct buf body = BUF_INIT;

    txn_2pc_print(message, reply, &body);
    http_exchange_respond(exchange, 200, API_LOAD_JSON, NULL, body.data, body.len);
    buf_close(&body);
}

static bool is_unknown(int err)
{
    return err == TG_TIMEOUT || err == TG_CANCELED || err == TG_UNKNOWN_OUTCOME || err == TG_CLOSED;
}

static void on_reply(void *data, const struct rpc_reply *answer)
{
    struct pending *pending = data;
    struct http_exchange *exchange = pending->exchange;
    struct msg_txn_2pc_reply reply = {0};
    int err = answer->err != 0 ? answer->err : msg_txn_2pc_reply_decode(answer->head, &reply);

    if (exchange != NULL) {
        http_exchange_on_close(exchange, NULL, NULL);
        if (is_unknown(err)) {
            http_exchange_abort(exchange);
        } else {
            if (err != 0)
                txn_2pc_refuse(&reply, "INTERNAL_ERROR",
                               answer->message[0] != 0 ? answer->message : tg_err_sentence(err));
            respond(exchange, &pending->message, &reply);
        }
    }
    free(pending);
}

void api_load_2pc(struct api_load *api, struct http_exchange *exchange,
                  const struct http_params *params)
{
    const struct http_request *http = http_exchange_request(exchange);
    struct txn_2pc_headers headers = {.operation = http_request_header(http, "txn_operation"),
                                      .txn_id = http_request_header(http, "txn_id"),
                                      .label = http_request_header(http, "label"),
                                      .timeout = http_request_header(http, "timeout")};
    struct msg_txn_2pc_reply refusal = {0};
    struct tg_errmsg msg = {{0}};
    char user[NAME_BYTES] = "";
    struct buf head = BUF_INIT;
    struct pending *pending = calloc(1, sizeof *pending);

    if (pending == NULL) {
        http_exchange_abort(exchange);
        return;
    }
    bool good = txn_2pc_request(params->value[0], user, &headers, &pending->message, &refusal);
    if (api_load_authenticate(api, http, user, &msg) != 0) {
        const char *text = strchr(msg.text, ']'); /* status and text apart */
        txn_2pc_refuse(&refusal, "ANALYSIS_ERROR", text != NULL ? text + 1 : msg.text);
        good = false;
    }
    if (!good) {
        respond(exchange, &pending->message, &refusal);
        free(pending);
        return;
    }
    memcpy(pending->message.user, user, sizeof user);
    do {
        pending->message.request_hi = random_u64(api->options.random);
        pending->message.request_lo = random_u64(api->options.random);
    } while (pending->message.request_hi == 0 || pending->message.request_lo == 0);
    pending->message.wait_visible_ms = api->options.commit_visible_wait_ms;
    msg_txn_2pc_encode(&pending->message, &head);
    pending->exchange = exchange;
    http_exchange_on_close(exchange, on_close, pending);
    coordinator_client_call(api->options.coordinators, MSG_TXN_2PC, &head, TXN_2PC_TIMEOUT_MS,
                            api->options.commit_visible_wait_ms + TXN_2PC_SLACK_MS, on_reply,
                            pending);
}
