/* SPDX-License-Identifier: Apache-2.0 */
/* _stream_load_2pc, executed here whoever leads. A request gets 128 random bits once; whatever is
 * sent again carries the same, so a commit that was decided by a leader that died is answered as
 * the success it is. An outcome that nobody tells in time stays unknown: then the connection is
 * closed without an answer, and the client asks again (rule 11). */
#include "coordinator/api/api_txn.h"

#include "common/proto/message.h"
#include "common/proto/txn_2pc_answer.h"

static void answer(struct api_request *request, int status, const struct msg_txn_2pc_reply *reply)
{
    struct buf out = BUF_INIT;

    txn_2pc_print(&request->two_phase, reply, &out);
    http_exchange_respond(request->exchange, status, API_JSON, NULL, out.data, out.len);
    buf_close(&out);
}

static void decided(struct api_request *request, int err, const char *sentence, struct slice head)
{
    struct msg_txn_2pc_reply reply;

    if (err == 0)
        err = msg_txn_2pc_reply_decode(head, &reply);
    if (err == 0) {
        answer(request, 200, &reply);
    } else if (err == TG_UNKNOWN_OUTCOME || err == TG_CANCELED) {
        http_exchange_abort(request->exchange);
    } else {
        txn_2pc_refuse(&reply, "INTERNAL_ERROR",
                       sentence[0] != '\0' ? sentence : tg_err_sentence(err));
        answer(request, tg_err_http_status(err), &reply);
    }
}

void api_txn_2pc(struct api_request *request, const char *db)
{
    const struct http_request *http = http_exchange_request(request->exchange);
    const struct api_options *options = &request->api->options;
    struct txn_2pc_headers headers = {
        .operation = http_request_header(http, "txn_operation"),
        .txn_id = http_request_header(http, "txn_id"),
        .label = http_request_header(http, "label"),
        .timeout = http_request_header(http, "timeout"),
    };
    struct msg_txn_2pc_reply refusal;
    struct tg_errmsg msg;
    struct buf head = BUF_INIT;

    if (api_request_check_user(request, &msg) != 0) {
        api_answer_failed(request, msg.text);
        return;
    }
    struct msg_txn_2pc *message = &request->two_phase;
    if (!txn_2pc_request(db, request->user.user, &headers, message, &refusal)) {
        answer(request, 200, &refusal);
        return;
    }
    api_request_key(request, &message->request_hi, &message->request_lo);
    message->wait_visible_ms = options->commit_visible_wait_ms;
    msg_txn_2pc_encode(message, &head);
    api_request_call(request, MSG_TXN_2PC, &head, options->txn_timeout_ms, decided);
}
