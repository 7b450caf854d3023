/* SPDX-License-Identifier: Apache-2.0 */
/* Printing the answer of a load. */
#include "participant/ingest/load_answer.h"

#include <stdio.h>

#include "common/base/check.h"
#include "common/base/json.h"

static const char *status_text(enum load_status status)
{
    switch (status) {
    case LOAD_SUCCESS:
        return "Success";
    case LOAD_PUBLISH_TIMEOUT:
        return "Publish Timeout";
    case LOAD_LABEL_EXISTS:
        return "Label Already Exists";
    case LOAD_FAIL:
        return "Fail";
    case LOAD_UNKNOWN:
        break;
    }
    TG_UNREACHABLE();
}

static void number(struct json_writer *json, const char *key, uint64_t value)
{
    json_writer_key(json, key);
    json_writer_uint(json, value);
}

/* Connectors read times as 32-bit numbers. */
static void milliseconds(struct json_writer *json, const char *key, uint64_t value)
{
    number(json, key, value < INT32_MAX ? value : INT32_MAX);
}

static void text(struct json_writer *json, const char *key, const char *value)
{
    json_writer_key(json, key);
    json_writer_str(json, value);
}

void load_answer_print(const struct load_options *options, const struct load_result *result,
                       const char *address, struct buf *out)
{
    struct json_writer json;
    char url[256];

    json_writer_init(&json, out, 4);
    json_writer_object(&json);
    json_writer_key(&json, "TxnId");
    json_writer_int(&json, result->txn != 0 ? (int64_t)result->txn : -1);
    text(&json, "Label", options->label[0] != 0 ? options->label : result->label);
    text(&json, "Comment", options->comment);
    text(&json, "TwoPhaseCommit", options->two_phase_commit ? "true" : "false");
    text(&json, "Status", status_text(result->status));
    if (result->status == LOAD_LABEL_EXISTS)
        text(&json, "ExistingJobStatus", txn_state_job_status(result->existing));
    text(&json, "Message", result->message);
    number(&json, "NumberTotalRows", result->total_rows);
    number(&json, "NumberLoadedRows", result->loaded_rows);
    number(&json, "NumberFilteredRows", result->filtered_rows);
    number(&json, "NumberUnselectedRows", 0);
    number(&json, "LoadBytes", result->bytes);
    milliseconds(&json, "LoadTimeMs", result->load_ms);
    milliseconds(&json, "BeginTxnTimeMs", result->begin_ms);
    milliseconds(&json, "StreamLoadPutTimeMs", 0); /* the plan comes with begin */
    milliseconds(&json, "ReadDataTimeMs", result->read_ms);
    milliseconds(&json, "WriteDataTimeMs", result->write_ms);
    milliseconds(&json, "ReceiveDataTimeMs", result->read_ms);
    milliseconds(&json, "CommitAndPublishTimeMs", result->commit_ms);
    if (result->error_file[0] != 0) {
        snprintf(url, sizeof url, "http://%s/api/_load_error_log?file=%s", address,
                 result->error_file);
        text(&json, "ErrorURL", url);
    }
    if (result->status == LOAD_FAIL && result->first_error[0] != 0)
        text(&json, "FirstErrorMsg", result->first_error);
    json_writer_object_end(&json);
    buf_append_str(out, "\n");
}
