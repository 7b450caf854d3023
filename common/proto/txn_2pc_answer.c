/* SPDX-License-Identifier: Apache-2.0 */
/* _stream_load_2pc as clients speak it. */
#include "common/proto/txn_2pc_answer.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"

#define ANALYSIS "TStatus: errCode = 2, detailMessage = "

bool txn_label_is_valid(const char *label)
{
    size_t len = strlen(label);

    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)label[i]) && strchr("-_:", label[i]) == NULL)
            return false;
    return len > 0 && len < LABEL_BYTES;
}

void txn_2pc_refuse(struct msg_txn_2pc_reply *reply, const char *status, const char *text)
{
    memset(reply, 0, sizeof *reply);
    snprintf(reply->status, sizeof reply->status, "%s", status);
    snprintf(reply->msg, sizeof reply->msg, "%s", text);
}

static bool __attribute__((format(printf, 3, 4)))
refuse(struct msg_txn_2pc_reply *reply, const char *status, const char *format, ...)
{
    char text[sizeof reply->msg];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    txn_2pc_refuse(reply, status, text);
    return false;
}

/* Only as much as fits; what does not is nothing that anybody could have meant. */
static void copy(char *out, size_t cap, const char *value)
{
    snprintf(out, cap, "%s", value != NULL ? value : "");
}

static bool take_timeout(const char *value, struct msg_txn_2pc *message,
                         struct msg_txn_2pc_reply *reply)
{
    char *end;

    if (value == NULL)
        return true;
    long long seconds = strtoll(value, &end, 10);
    if (end == value || *end != '\0')
        return refuse(reply, "INVALID_ARGUMENT", "Invalid format of 'timeout': '%s', stoi", value);
    if (seconds < TXN_TIMEOUT_S_MIN || seconds > TXN_TIMEOUT_S_MAX)
        return refuse(reply, "INVALID_ARGUMENT",
                      "Invalid timeout: %lld. Timeout should between %d and %d seconds", seconds,
                      TXN_TIMEOUT_S_MIN, TXN_TIMEOUT_S_MAX);
    message->timeout_ms = (uint64_t)seconds * 1000;
    return true;
}

bool txn_2pc_request(const char *db, const char *user, const struct txn_2pc_headers *headers,
                     struct msg_txn_2pc *message, struct msg_txn_2pc_reply *reply)
{
    const char *label = headers->label != NULL ? headers->label : "";
    bool begins = headers->operation != NULL && strcmp(headers->operation, "begin") == 0;

    memset(message, 0, sizeof *message);
    if (strlen(db) >= sizeof message->db)
        return refuse(reply, "ANALYSIS_ERROR", ANALYSIS "unknown database, database=%s", db);
    if (begins && label[0] != '\0' && !txn_label_is_valid(label))
        return refuse(reply, "ANALYSIS_ERROR",
                      ANALYSIS "Label format error. regex: ^[-_A-Za-z0-9:]{1,%d}$, label: %s",
                      LABEL_BYTES - 1, label);
    if (strlen(label) >= sizeof message->label) {
        if (headers->txn_id == NULL)
            return refuse(reply, "ANALYSIS_ERROR", ANALYSIS "transaction not found, label=%s",
                          label);
        label = ""; /* the id decides */
    }
    copy(message->db, sizeof message->db, db);
    copy(message->user, sizeof message->user, user);
    copy(message->operation, sizeof message->operation, headers->operation);
    copy(message->txn_text, sizeof message->txn_text, headers->txn_id);
    copy(message->label, sizeof message->label, label);
    return !begins || take_timeout(headers->timeout, message, reply);
}

void txn_2pc_print(const struct msg_txn_2pc *message, const struct msg_txn_2pc_reply *reply,
                   struct buf *out)
{
    struct json_writer json;
    char id[24];

    json_writer_init(&json, out, 4);
    json_writer_object(&json);
    json_writer_key(&json, "status");
    json_writer_str(&json, reply->status);
    json_writer_key(&json, "msg");
    json_writer_str(&json, reply->msg);
    if (strcmp(message->operation, "begin") == 0 && reply->txn != 0) {
        snprintf(id, sizeof id, "%" PRIu64, reply->txn);
        json_writer_key(&json, "txn_id");
        json_writer_str(&json, id);
        json_writer_key(&json, "label");
        json_writer_str(&json, message->label);
        if (strcmp(reply->status, "Success") != 0) {
            json_writer_key(&json, "ExistingJobStatus");
            json_writer_str(&json, txn_state_job_status(reply->state));
        }
    }
    json_writer_object_end(&json);
    buf_append_str(out, "\n");
}
