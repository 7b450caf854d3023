/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a read whose version is known and writes its text into a stream. */
#include "participant/api/read_answer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/failpoint.h"
#include "common/base/json.h"

struct answering {
    const struct read_request *request;
    const struct msg_read_point_reply *point;
    const struct read_terms *terms;
    struct result_writer writer;
    struct read_stream *stream;
    struct buf text;
    /* _changes */
    uint32_t next_version; /* index in point->versions: the first not yet reached */
    version_t row_version; /* of the last row given, … */
    uint64_t row_skip;     /* … and how many rows of that version were given */
    uint64_t to_skip;      /* rows of the first version that an earlier answer gave */
    uint64_t given;
    bool limited; /* the limit was reached */
};

static int flush(struct answering *a)
{
    if (a->text.err != 0)
        return a->text.err;
    /* An answer with a limit is kept whole: its token, in the head, is known only at the end. */
    if (a->text.len < READ_STREAM_BYTES ||
        (a->request->kind == READ_CHANGES && a->request->limit > 0))
        return 0;
    return read_stream_write(a->stream, &a->text, READ_AHEAD_BYTES, READ_STALL_MS);
}

static int give_rows(void *data, const struct vector *columns, const struct vector *versions,
                     uint32_t rows)
{
    struct answering *a = data;
    int sign = a->terms->delete_sign;

    (void)versions;
    for (uint32_t row = 0; row < rows; row++) {
        struct result_prefix prefix = {"", ""};

        if (sign >= 0 && a->request->include_deleted) {
            bool deleted = *(const int8_t *)vector_fixed(&columns[sign], row) != 0;

            prefix.json = deleted ? "\"_deleted\":true," : "\"_deleted\":false,";
            prefix.csv = deleted ? "1," : "0,";
        }
        result_writer_row(&a->writer, columns, row, &prefix, &a->text);
        int err = flush(a);
        if (err != 0)
            return err;
    }
    return 0;
}

/* ---- _changes ---- */

static void write_truncate(struct answering *a, const struct read_point_version *v)
{
    if (a->request->format == RESULT_JSON)
        buf_printf(&a->text,
                   "{\"_version\":%" PRIu64 ",\"_time_us\":%" PRIu64 ",\"_op\":\"truncate\"}\n",
                   v->version, v->time_us);
    else
        buf_printf(&a->text, "%" PRIu64 ",%" PRIu64 ",truncate\n", v->version, v->time_us);
}

/* Moves on to `version`, saying on the way which versions emptied the table. Returns its entry,
 * NULL if it is not listed. */
static const struct read_point_version *reach(struct answering *a, version_t version)
{
    const struct msg_read_point_reply *point = a->point;

    while (a->next_version < point->version_count &&
           point->versions[a->next_version].version <= version) {
        const struct read_point_version *v = &point->versions[a->next_version++];

        if (v->replace && a->request->skip == 0)
            write_truncate(a, v);
        else if (v->replace && v->version > a->request->after.value + 1)
            write_truncate(a, v);
    }
    if (a->next_version == 0 || point->versions[a->next_version - 1].version != version)
        return NULL;
    return &point->versions[a->next_version - 1];
}

static int give_change(struct answering *a, const struct vector *columns, uint32_t row,
                       version_t version)
{
    char json[128];
    char csv[96];
    struct result_prefix prefix = {json, csv};
    const struct read_point_version *v = reach(a, version);
    const char *op = "insert";

    if (v == NULL)
        return TG_CORRUPT;
    if (version != a->row_version) {
        a->row_version = version;
        a->row_skip = 0;
    }
    a->row_skip++;
    if (version == a->point->after + 1 && a->row_skip <= a->to_skip)
        return 0;
    if (a->terms->delete_sign >= 0)
        op = *(const int8_t *)vector_fixed(&columns[a->terms->delete_sign], row) != 0 ? "delete"
                                                                                      : "upsert";
    snprintf(json, sizeof json, "\"_version\":%" PRIu64 ",\"_time_us\":%" PRIu64 ",\"_op\":\"%s\",",
             version, v->time_us, op);
    snprintf(csv, sizeof csv, "%" PRIu64 ",%" PRIu64 ",%s,", version, v->time_us, op);
    result_writer_row(&a->writer, columns, row, &prefix, &a->text);
    a->given++;
    a->limited = a->request->limit > 0 &&
                 (a->given == a->request->limit || a->text.len >= READ_CHANGES_BYTES_MAX);
    return flush(a);
}

static int give_changes(void *data, const struct vector *columns, const struct vector *versions,
                        uint32_t rows)
{
    struct answering *a = data;
    int err = 0;

    for (uint32_t row = 0; row < rows && err == 0 && !a->limited; row++) {
        int64_t version;

        memcpy(&version, vector_fixed(versions, row), sizeof version);
        err = give_change(a, columns, row, (version_t)version);
    }
    return err == 0 && a->limited ? TG_LIMIT : err;
}

/* ---- the head ---- */

static void set_headers(struct answering *a)
{
    const struct msg_read_point_reply *point = a->point;
    bool json = a->request->format == RESULT_JSON;
    char token[READ_TOKEN_BYTES] = "";
    char headers[384];
    int at = snprintf(headers, sizeof headers,
                      "X-Tidegate-Version: %" PRIu64 "\r\nX-Tidegate-As-Of: %" PRIu64 "\r\n",
                      point->version, point->time_us);

    if (a->request->kind == READ_CHANGES) {
        if (a->limited)
            read_token_print(point->table, a->row_version - 1, a->row_skip, token);
        else if (point->version > point->after)
            read_token_print(point->table, point->version, 0, token);
        else /* nothing was looked at: as far as before */
            read_token_print(point->table, point->after, a->to_skip, token);
        snprintf(headers + at, sizeof headers - (size_t)at, "X-Tidegate-Token: %s\r\n", token);
    }
    read_stream_headers(a->stream, json ? "application/x-ndjson" : "text/csv; charset=utf-8",
                        headers);
    if (a->request->kind == READ_CHANGES)
        FAILPOINT("feed.cursor_saved");
}

static int run_rows(struct answering *a, const struct table_reader_context *context,
                    struct tg_errmsg *msg)
{
    const struct read_request *request = a->request;
    bool changes = request->kind == READ_CHANGES;
    struct table_read read = {
        .point = a->point,
        .mode = changes ? READ_TABLET_CHANGES : READ_TABLET_ROWS,
        .column_count = a->terms->column_count,
        .columns = a->terms->ids,
        .include_deleted = request->include_deleted,
        .in_key_order = request->in_key_order,
        .bucket = a->terms->bucket,
        .from = slice_of(a->terms->from.data, a->terms->from.len),
        .to = slice_of(a->terms->to.data, a->terms->to.len),
        .limit = changes ? 0 : request->limit,
        .stop = read_stream_stop(a->stream),
    };

    if (changes && a->point->version <= a->point->after)
        return 0;
    int err = table_reader_run(context, &read, changes ? give_changes : give_rows, a, msg);
    if (err == TG_LIMIT && a->limited)
        return 0;
    if (err == 0 && changes)
        reach(a, a->point->version);
    return err;
}

int read_answer_run(const struct table_reader_context *context, const struct read_request *request,
                    const struct msg_read_point_reply *point, struct read_stream *stream,
                    struct buf *rest, struct tg_errmsg *msg)
{
    struct read_terms terms;
    struct answering a = {
        .request = request,
        .point = point,
        .terms = &terms,
        .stream = stream,
        .to_skip = request->skip,
    };
    int err = read_terms_make(request, point, &terms, msg);

    if (err == 0)
        err = result_writer_open(&a.writer, request->format, terms.shown, terms.shown_count);
    if (err == 0) {
        set_headers(&a);
        err = run_rows(&a, context, msg);
        if (err == 0 && a.limited)
            set_headers(&a); /* the token of where it ended; nothing has been written yet */
    }
    result_writer_close(&a.writer);
    read_terms_close(&terms);
    if (err == 0)
        err = a.text.err;
    if (err == 0)
        *rest = a.text;
    else
        buf_close(&a.text);
    return err;
}

void read_answer_error(int err, const char *sentence, struct buf *out)
{
    buf_printf(out,
               "{\"msg\":\"%s\",\"code\":%d,\"data\":", err == TG_NOT_FOUND ? "Not Found" : "Error",
               tg_err_http_status(err));
    json_append_cstr(out, sentence);
    buf_append_str(out, ",\"count\":0}\n");
}
