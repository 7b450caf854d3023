/* SPDX-License-Identifier: Apache-2.0 */
/* From headers to load_options: a table of small readers, called in order; the first that refuses
 * gives the message. */
#include "participant/ingest/load_options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define ANALYSIS "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = "
#define INVALID  "[INVALID_ARGUMENT]"

struct reader {
    load_header_lookup *lookup;
    void *ctx;
    const char *default_label;
    struct load_options *options;
    struct tg_errmsg *msg;
};

static const char *header(const struct reader *r, const char *name)
{
    const char *value = r->lookup(r->ctx, name);
    return value != NULL && *value != 0 ? value : NULL;
}

/* Any case of "true" is true, everything else false. */
static bool header_bool(const struct reader *r, const char *name)
{
    const char *value = header(r, name);
    return value != NULL && strcasecmp(value, "true") == 0;
}

static int unsupported(const struct reader *r, const char *name, const char *value)
{
    return tg_fail(r->msg, TG_UNSUPPORTED, INVALID "header '%s' is not supported: %.100s", name,
                   value);
}

/* Whole numbers as std::stoi takes them, but nothing may follow. */
static int parse_int(const struct reader *r, const char *name, const char *value, int64_t *number)
{
    char *end;
    errno = 0;
    long long n = strtoll(value, &end, 10);
    if (end == value || *end != 0)
        return tg_fail(r->msg, TG_INVALID, INVALID "Invalid format of '%s': '%.64s', stoi", name,
                       value);
    if (errno == ERANGE || n < INT32_MIN || n > INT32_MAX)
        return tg_fail(r->msg, TG_INVALID, INVALID "'%s' value out of range: '%.64s', stoi", name,
                       value);
    *number = n;
    return 0;
}

static int read_label(const struct reader *r)
{
    const char *label = header(r, "label");
    struct load_options *o = r->options;

    if (label == NULL) {
        if (o->join == 0)
            snprintf(o->label, sizeof o->label, "%s", r->default_label);
        return 0;
    }
    snprintf(o->label, sizeof o->label, "%s", label);
    static const char LETTERS[] =
        "-_:0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t len = strlen(label);
    if (len >= LABEL_BYTES || strspn(label, LETTERS) != len)
        return tg_fail(r->msg, TG_INVALID,
                       ANALYSIS "Label format error. regex: ^[-_A-Za-z0-9:]{1,128}$, label: %.200s",
                       label);
    return 0;
}

static int read_transaction(const struct reader *r)
{
    struct load_options *o = r->options;
    const char *two_phase = header(r, "two_phase_commit");
    const char *txn = header(r, "txn_id");
    const char *comment = header(r, "comment");

    o->two_phase_commit = two_phase != NULL && strcmp(two_phase, "true") == 0;
    if (comment != NULL)
        snprintf(o->comment, sizeof o->comment, "%s", comment);
    if (txn == NULL)
        return 0;
    char *end;
    errno = 0;
    unsigned long long id = strtoull(txn, &end, 10);
    if (*txn < '0' || *txn > '9' || *end != 0 || errno == ERANGE || id == 0)
        return tg_fail(r->msg, TG_INVALID, INVALID "Invalid txn_id: '%.64s'", txn);
    if (!o->two_phase_commit)
        return tg_fail(r->msg, TG_INVALID,
                       INVALID "a load with txn_id needs two_phase_commit: true");
    o->join = id;
    return 0;
}

static int read_format(const struct reader *r)
{
    static const struct {
        const char *name;
        enum load_format format;
        uint32_t skip;
    } FORMATS[] = {{"csv", LOAD_CSV, 0},
                   {"csv_with_names", LOAD_CSV, 1},
                   {"csv_with_names_and_types", LOAD_CSV, 2},
                   {"json", LOAD_JSON, 0}};
    struct load_options *o = r->options;
    const char *value = header(r, "format");

    if (value == NULL)
        value = "csv";
    for (size_t i = 0; i < sizeof FORMATS / sizeof FORMATS[0]; i++) {
        if (strcasecmp(FORMATS[i].name, value) == 0) {
            o->format = FORMATS[i].format;
            o->skip_lines = FORMATS[i].skip;
            return 0;
        }
    }
    return tg_fail(r->msg, TG_INVALID, "[INTERNAL_ERROR]unknown data format, format=%.64s", value);
}

static int read_compression(const struct reader *r)
{
    static const struct {
        const char *name;
        enum load_compression compression;
    } KINDS[] = {{"gz", LOAD_GZ},         {"gzip", LOAD_GZ},    {"deflate", LOAD_DEFLATE},
                 {"bz2", LOAD_BZ2},       {"lz4", LOAD_LZ4},    {"lz4frame", LOAD_LZ4},
                 {"lz4_frame", LOAD_LZ4}, {"plain", LOAD_PLAIN}};
    const char *value = header(r, "compress_type");

    if (value == NULL)
        return 0;
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++) {
        if (strcasecmp(KINDS[i].name, value) == 0) {
            r->options->compression = KINDS[i].compression;
            return 0;
        }
    }
    return tg_fail(r->msg, TG_INVALID, "[INTERNAL_ERROR]unknown data format, compress_type=%.64s",
                   value);
}

static int read_limits(const struct reader *r)
{
    struct load_options *o = r->options;
    const char *ratio = header(r, "max_filter_ratio");
    const char *strict = header(r, "strict_mode");
    const char *timeout = header(r, "timeout");
    const char *zone = header(r, "timezone");
    int64_t seconds = LOAD_TIMEOUT_S_DEFAULT;
    int err;

    if (ratio != NULL) {
        char *end;
        o->max_filter_ratio = strtod(ratio, &end);
        if (end == ratio || *end != 0 || !isfinite(o->max_filter_ratio) ||
            o->max_filter_ratio < 0 || o->max_filter_ratio > 1)
            return tg_fail(r->msg, TG_INVALID,
                           INVALID "Invalid max_filter_ratio: '%.64s'. It must be a number "
                                   "between 0 and 1",
                           ratio);
    }
    if (strict != NULL) {
        o->strict_mode = strcasecmp(strict, "true") == 0;
        if (!o->strict_mode && strcasecmp(strict, "false") != 0)
            return tg_fail(r->msg, TG_INVALID,
                           INVALID "Invalid strict mode format. Must be bool type");
    }
    if (timeout != NULL && (err = parse_int(r, "timeout", timeout, &seconds)) != 0)
        return err;
    if (seconds < LOAD_TIMEOUT_S_MIN || seconds > LOAD_TIMEOUT_S_MAX)
        return tg_fail(r->msg, TG_INVALID,
                       INVALID "Invalid timeout: %lld. Timeout should between %d and %d seconds",
                       (long long)seconds, LOAD_TIMEOUT_S_MIN, LOAD_TIMEOUT_S_MAX);
    o->timeout_ms = (uint64_t)seconds * 1000;
    if (zone == NULL)
        zone = header(r, "time_zone");
    return load_text_timezone(zone != NULL ? zone : "+08:00", &o->tz_offset_us, r->msg);
}

/* Header value of one byte, -1 if absent. */
static int read_byte(const struct reader *r, const char *name, int *byte)
{
    const char *value = header(r, name);

    *byte = -1;
    if (value == NULL)
        return 0;
    if (value[1] != 0)
        return tg_fail(r->msg, TG_INVALID, INVALID "%s must be single-char, actually is %.64s",
                       name, value);
    *byte = (unsigned char)value[0];
    return 0;
}

static int read_csv(const struct reader *r)
{
    struct load_options *o = r->options;
    const char *column = header(r, "column_separator");
    const char *line = header(r, "line_delimiter");
    const char *skip = header(r, "skip_lines");
    int64_t lines;
    int err;

    if ((err = load_text_separator(column != NULL ? column : "\t", &o->column_separator, r->msg)))
        return err;
    if ((err = load_text_separator(line != NULL ? line : "\n", &o->line_delimiter, r->msg)) != 0)
        return err;
    o->strip_cr = o->line_delimiter.len == 1 && o->line_delimiter.bytes[0] == '\n';
    if ((err = read_byte(r, "enclose", &o->enclose)) != 0 ||
        (err = read_byte(r, "escape", &o->escape)) != 0)
        return err;
    if (o->enclose >= 0 &&
        (memchr(o->column_separator.bytes, o->enclose, o->column_separator.len) != NULL ||
         memchr(o->line_delimiter.bytes, o->enclose, o->line_delimiter.len) != NULL))
        return tg_fail(r->msg, TG_INVALID,
                       INVALID "enclose must not be part of column_separator or line_delimiter");
    o->trim_double_quotes = header_bool(r, "trim_double_quotes");
    o->empty_field_as_null = header_bool(r, "empty_field_as_null");
    if (skip == NULL)
        return 0;
    if ((err = parse_int(r, "skip_lines", skip, &lines)) != 0)
        return err;
    if (lines < 0)
        return tg_fail(r->msg, TG_INVALID, INVALID "Invalid 'skip_lines': %lld", (long long)lines);
    if (o->skip_lines == 0) /* csv_with_names knows how many itself */
        o->skip_lines = (uint32_t)lines;
    return 0;
}

static int read_json(const struct reader *r)
{
    struct load_options *o = r->options;
    const char *paths = header(r, "jsonpaths");
    const char *root = header(r, "json_root");
    int err;

    o->by_line = header_bool(r, "read_json_by_line");
    o->strip_outer_array = header_bool(r, "strip_outer_array");
    if (header(r, "read_json_by_line") == NULL && header(r, "strip_outer_array") == NULL)
        o->by_line = true;
    if (o->format != LOAD_JSON)
        return 0;
    if (root != NULL) {
        if ((err = json_path_parse(root, strlen(root), &o->json_root, r->msg)) != 0)
            return err;
        o->has_json_root = o->json_root.count > 0;
    }
    if (paths == NULL)
        return 0;
    if ((err = json_paths_parse(paths, &o->jsonpaths, r->msg)) != 0)
        return err;
    o->jsonpaths_text = strdup(paths);
    return o->jsonpaths_text != NULL ? 0
                                     : tg_fail(r->msg, TG_NOMEM, "[INTERNAL_ERROR]out of memory");
}

static int read_columns(const struct reader *r)
{
    struct load_options *o = r->options;
    const char *columns = header(r, "columns");
    const char *hidden = header(r, "hidden_columns");
    int err = 0;

    if (columns != NULL)
        err = load_names_parse(columns, &o->columns, r->msg);
    if (err != 0 || hidden == NULL || columns != NULL) /* plain names decide alone */
        return err;
    if (strcasecmp(hidden, "__DORIS_DELETE_SIGN__") != 0)
        return unsupported(r, "hidden_columns", hidden);
    o->hidden_delete_sign = true;
    return 0;
}

static int read_merge(const struct reader *r)
{
    const char *merge = header(r, "merge_type");
    const char *predicate = header(r, "delete");

    if (merge != NULL && strcasecmp(merge, "MERGE") == 0) {
        if (predicate == NULL)
            return tg_fail(r->msg, TG_INVALID,
                           ANALYSIS "Excepted DELETE ON clause when merge type is MERGE.");
        return unsupported(r, "merge_type", merge);
    }
    if (merge != NULL && strcasecmp(merge, "APPEND") != 0 && strcasecmp(merge, "DELETE") != 0)
        return tg_fail(r->msg, TG_INVALID, INVALID "Invalid merge type %.64s", merge);
    if (predicate != NULL)
        return tg_fail(r->msg, TG_INVALID,
                       ANALYSIS "Not support DELETE ON clause when merge type is not MERGE.");
    r->options->delete_rows = merge != NULL && strcasecmp(merge, "DELETE") == 0;
    return 0;
}

/* Wishes that would change what is stored are refused, never passed over in silence. */
static int refuse_unsupported(const struct reader *r)
{
    static const char *const REFUSED[] = {"where", "partitions", "temporary_partitions",
                                          "function_column.sequence_col", "sql"};
    const char *group = header(r, "group_commit");
    const char *update = header(r, "unique_key_update_mode");

    for (size_t i = 0; i < sizeof REFUSED / sizeof REFUSED[0]; i++) {
        const char *value = header(r, REFUSED[i]);
        if (value != NULL)
            return unsupported(r, REFUSED[i], value);
    }
    if (header_bool(r, "partial_columns"))
        return unsupported(r, "partial_columns", "true");
    if (update != NULL && strcasecmp(update, "UPSERT") != 0)
        return unsupported(r, "unique_key_update_mode", update);
    const char *negative = header(r, "negative");
    if (negative != NULL && strcmp(negative, "true") == 0)
        return unsupported(r, "negative", negative);
    if (group == NULL || strcasecmp(group, "off_mode") == 0)
        return 0;
    if (strcasecmp(group, "sync_mode") != 0 && strcasecmp(group, "async_mode") != 0)
        return tg_fail(r->msg, TG_INVALID,
                       INVALID "group_commit can only be [async_mode, sync_mode, off_mode]");
    if (r->options->two_phase_commit) /* ignored there, as everywhere */
        return 0;
    return unsupported(r, "group_commit", group);
}

/* Headers that change nothing here but must be well formed. */
static int check_harmless(const struct reader *r)
{
    const char *parallelism = header(r, "send_batch_parallelism");
    const char *memory = header(r, "exec_mem_limit");
    int64_t number;

    if (memory != NULL) {
        char *end;
        strtoll(memory, &end, 10);
        if (end == memory)
            return tg_fail(r->msg, TG_INVALID, INVALID "Invalid mem limit format, stoll");
    }
    return parallelism == NULL ? 0 : parse_int(r, "send_batch_parallelism", parallelism, &number);
}

int load_options_parse(load_header_lookup *lookup, void *ctx, const char *default_label,
                       struct load_options *options, struct tg_errmsg *msg)
{
    /* Transaction and label first: the answer to whatever fails later echoes them. */
    static int (*const READERS[])(const struct reader *) = {
        read_transaction, read_label,   read_format, read_compression,   read_limits,   read_csv,
        read_json,        read_columns, read_merge,  refuse_unsupported, check_harmless};
    struct reader reader = {lookup, ctx, default_label, options, msg};

    *options = (struct load_options){.enclose = -1, .escape = -1};
    for (size_t i = 0; i < sizeof READERS / sizeof READERS[0]; i++) {
        int err = READERS[i](&reader);
        if (err != 0) {
            if (options->label[0] == 0 && options->join == 0 && i == 0)
                snprintf(options->label, sizeof options->label, "%s", default_label);
            return err;
        }
    }
    return 0;
}

void load_options_close(struct load_options *options)
{
    load_names_close(&options->columns);
    json_path_close(&options->json_root);
    json_paths_close(&options->jsonpaths);
    free(options->jsonpaths_text);
    options->jsonpaths_text = NULL;
}
