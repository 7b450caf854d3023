/* SPDX-License-Identifier: Apache-2.0 */
/* The headers of a _stream_load request as one checked value. Pure: what is asked for is judged
 * here before any transaction begins; what depends on the table is judged once its schema is known
 * (row_mapping.h). Semantics: those of Doris 4.x. */
#ifndef TG_PARTICIPANT_INGEST_LOAD_OPTIONS_H
#define TG_PARTICIPANT_INGEST_LOAD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/model/ids.h"
#include "participant/ingest/json_path.h"
#include "participant/ingest/load_text.h"

enum load_format { LOAD_CSV = 1, LOAD_JSON = 2 };
enum load_compression {
    LOAD_PLAIN = 0,
    LOAD_GZ = 1,
    LOAD_DEFLATE = 2, /* raw, without a zlib header */
    LOAD_BZ2 = 3,
    LOAD_LZ4 = 4 /* frames */
};

enum {
    LOAD_TIMEOUT_S_MIN = 1,
    LOAD_TIMEOUT_S_MAX = 259200,
    LOAD_TIMEOUT_S_DEFAULT = 259200,
    LOAD_COMMENT_MAX = 1024 /* bytes that are echoed */
};

struct load_options {
    char label[LABEL_BYTES]; /* given, or the caller's; "" for a load in a begun transaction */
    char comment[LOAD_COMMENT_MAX];
    enum load_format format;
    enum load_compression compression;
    uint64_t timeout_ms;
    bool two_phase_commit;
    txn_id join; /* header txn_id: the transaction this load belongs to; 0 = one of its own */

    double max_filter_ratio;
    bool strict_mode;
    int64_t tz_offset_us;
    bool delete_rows; /* merge_type DELETE: every row deletes its key */
    struct load_names columns;
    bool hidden_delete_sign; /* hidden_columns: one more field, the delete sign */

    struct load_separator column_separator;
    struct load_separator line_delimiter;
    bool strip_cr; /* the default line delimiter: a '\r' before it goes too */
    int enclose;   /* byte, -1 = none */
    int escape;    /* byte, -1 = none */
    bool trim_double_quotes;
    bool empty_field_as_null;
    uint32_t skip_lines;

    bool by_line;
    bool strip_outer_array;
    bool has_json_root;
    struct json_path json_root;
    struct json_paths jsonpaths;
    char *jsonpaths_text; /* as given, for messages; NULL if none. owned */
};

/* The value of a header (name in lower case), NULL if absent or empty. */
typedef const char *load_header_lookup(void *ctx, const char *name);

/* default_label: used when none is given and the load has a transaction of its own. On failure
 * (TG_INVALID, TG_UNSUPPORTED, TG_LIMIT, TG_NOMEM) msg is the Message for the client; label,
 * comment and two_phase_commit are set as far as they could be read, for the answer. Close it
 * either way. */
int load_options_parse(load_header_lookup *lookup, void *ctx, const char *default_label,
                       struct load_options *options, struct tg_errmsg *msg);
void load_options_close(struct load_options *options);

#endif
