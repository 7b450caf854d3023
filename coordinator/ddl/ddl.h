/* SPDX-License-Identifier: Apache-2.0 */
/* Statements as text, in Doris's syntax, to plain values: CREATE, DROP, TRUNCATE, SHOW, DESCRIBE.
 * Pure. A mistake is reported with line, column and the text found there. */
#ifndef TG_COORDINATOR_DDL_DDL_H
#define TG_COORDINATOR_DDL_DDL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/model/ids.h"
#include "common/model/schema.h"

enum { DDL_DISTRIBUTION_MAX = 64, DDL_BUCKETS_DEFAULT = 10, DDL_PATTERN_BYTES = 256 };

enum ddl_kind {
    DDL_CREATE_DATABASE,
    DDL_DROP_DATABASE,
    DDL_CREATE_TABLE,
    DDL_DROP_TABLE,
    DDL_TRUNCATE_TABLE,
    DDL_SHOW_DATABASES,
    DDL_SHOW_TABLES,
    DDL_SHOW_CREATE_TABLE,
    DDL_SHOW_TRANSACTION,
    DDL_DESCRIBE
};

enum ddl_filter {
    DDL_FILTER_NONE,
    DDL_FILTER_ID,
    DDL_FILTER_LABEL,
    DDL_FILTER_LIKE,
    DDL_FILTER_STATUS
};

struct ddl {
    enum ddl_kind kind;
    bool if_exists;      /* IF EXISTS, or IF NOT EXISTS for CREATE */
    bool force;          /* DROP … FORCE */
    char db[NAME_BYTES]; /* "" = the database of the request */
    char table[NAME_BYTES];
    /* CREATE TABLE */
    struct schema schema; /* owned */
    uint32_t distribution_count;
    uint32_t distribution[DDL_DISTRIBUTION_MAX];
    uint32_t bucket_count;
    uint8_t replication; /* 0 = not given */
    bool write_all;
    bool occ;
    char *comment; /* owned, NULL if none */
    /* SHOW */
    enum ddl_filter filter;
    uint64_t filter_id;
    char pattern[DDL_PATTERN_BYTES]; /* LIKE pattern, label or status */
};

/* Parses one statement (a trailing ';' is fine). TG_SYNTAX with "line 2, column 7: expected …,
 * found …", TG_UNSUPPORTED for what Doris knows and we do not, TG_INVALID for what cannot be (a key
 * column of type STRING). On error nothing is owned. */
int ddl_parse(const char *text, size_t len, struct ddl *ddl, struct tg_errmsg *msg);
void ddl_close(struct ddl *ddl);

/* SQL LIKE: '%' any run, '_' one byte, '\' escapes. */
bool ddl_like(const char *pattern, const char *text);

#endif
