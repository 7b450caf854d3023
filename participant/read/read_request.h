/* SPDX-License-Identifier: Apache-2.0 */
/* What a read asks for, from the query string and, once the schema is known, in its terms. Pure. */
#ifndef TG_PARTICIPANT_READ_READ_REQUEST_H
#define TG_PARTICIPANT_READ_READ_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/model/ids.h"
#include "common/proto/msg_read.h"
#include "participant/read/result_writer.h"

enum read_kind { READ_SCAN, READ_GET, READ_RANGE, READ_CHANGES };

enum {
    READ_TEXT_BYTES = 8192, /* of one query parameter */
    READ_KEYS_MAX = 64,     /* key columns that may be named */
    READ_WAIT_MS_MAX = 60000,
    READ_CHANGES_LIMIT_MAX = 100000, /* rows of one limited answer of _changes */
    READ_TOKEN_BYTES = 72
};

struct read_request {
    enum read_kind kind;
    char db[NAME_BYTES];
    char table[NAME_BYTES];
    struct read_bound bound;       /* version=, as_of=, until= */
    struct read_bound after;       /* _changes */
    table_id token_table;          /* _changes: whose token it is, 0 = none was given */
    uint64_t skip;                 /* _changes: rows of version after+1 that were given already */
    bool local;                    /* consistency=local */
    char columns[READ_TEXT_BYTES]; /* "" = all visible ones */
    uint64_t limit;                /* 0 = all */
    bool in_key_order;
    bool include_deleted;
    enum result_format format;
    uint64_t wait_ms;    /* _changes: long poll */
    uint32_t from_count; /* key= (get), from= */
    uint32_t to_count;
    struct buf from[READ_KEYS_MAX]; /* texts: owned */
    struct buf to[READ_KEYS_MAX];
};

/* Fetches the nth value of a query parameter: 0, TG_NOT_FOUND, TG_INVALID, TG_TOO_LARGE. */
typedef int read_request_lookup(void *ctx, const char *name, unsigned nth, char *out, size_t cap);

/* TG_INVALID with a sentence that names the parameter. Close it either way. */
int read_request_parse(enum read_kind kind, const char *db, const char *table,
                       read_request_lookup *lookup, void *ctx, struct read_request *request,
                       struct tg_errmsg *msg);
/* The names of the parameters that such a read knows. */
const char *const *read_request_parameters(enum read_kind kind, size_t *count);
void read_request_close(struct read_request *request);
void read_request_point(const struct read_request *request, struct msg_read_point *message);

/* The request in terms of the schema. */
struct read_terms {
    uint32_t column_count;
    uint32_t *ids; /* stored column ids to read: those shown, then the delete sign if it is needed:
                      owned */
    uint32_t shown_count;
    struct result_column *shown; /* names point into the schema: owned */
    int delete_sign;             /* index in ids, -1 if not read */
    struct buf from, to;         /* encoded keys: owned */
    int64_t bucket;              /* the only tablet that can hold the key, -1 if unknown */
};
/* TG_INVALID (unknown column, a key value that does not parse, more values than key columns),
 * TG_NOMEM. Close it either way. */
int read_terms_make(const struct read_request *request, const struct msg_read_point_reply *point,
                    struct read_terms *terms, struct tg_errmsg *msg);
void read_terms_close(struct read_terms *terms);

/* Where a limited answer of _changes ended: every row of versions of that table up to `version`,
 * and `skip` rows of the next one. */
void read_token_print(table_id table, version_t version, uint64_t skip, char out[READ_TOKEN_BYTES]);

#endif
