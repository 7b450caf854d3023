/* SPDX-License-Identifier: Apache-2.0 */
/* Columns and keys of a table: validated, found by name, encoded. */
#ifndef TG_COMMON_MODEL_SCHEMA_H
#define TG_COMMON_MODEL_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/model/ids.h"
#include "common/model/types.h"

enum { SCHEMA_COMMENT_MAX = 4096 }; /* bytes of a column's comment */

enum key_model { KEY_DUPLICATE = 1, KEY_UNIQUE = 2, KEY_AGGREGATE = 3 };

/* Column ids of hidden columns, in rowsets of UNIQUE tables. */
#define COLUMN_ID_DELETE_SIGN   0xFFFFFF01u /* TINYINT NOT NULL: 1 = this row deletes its key */
#define COLUMN_ID_SEQUENCE      0xFFFFFF02u /* reserved: the sequence value of a row */

#define COLUMN_NAME_DELETE_SIGN "__DORIS_DELETE_SIGN__"

enum schema_default { DEFAULT_NONE = 0, DEFAULT_TEXT = 1, DEFAULT_NULL = 2, DEFAULT_NOW = 3 };

struct schema_column {
    uint32_t id; /* given at creation, kept through every later change */
    char name[NAME_BYTES];
    struct column_type type;
    bool nullable;
    bool is_key;
    uint8_t default_kind; /* enum schema_default */
    char *default_text;   /* for DEFAULT_TEXT, owned */
    char *comment;        /* owned, NULL if none */
};

struct schema {
    uint32_t id;           /* 1 for a new table */
    uint8_t key_model;     /* enum key_model */
    uint32_t column_count; /* visible columns, key columns first */
    uint32_t key_count;
    struct schema_column *columns; /* owned */
    uint32_t next_column_id;
};

void schema_init(struct schema *schema);
void schema_close(struct schema *schema);
int schema_copy(const struct schema *from, struct schema *to); /* 0 or TG_NOMEM */
/* Appends a column (name and texts copied), gives it an id. TG_EXISTS, TG_LIMIT, TG_INVALID with a
 * reason. */
int schema_add_column(struct schema *schema, const struct schema_column *column,
                      struct tg_errmsg *msg);
/* The rules of a whole: at least one column, keys first and present, key types allowed (no
 * FLOAT/DOUBLE/STRING/JSON keys), defaults parse. */
int schema_validate(const struct schema *schema, struct tg_errmsg *msg);
/* Index by name, ASCII case-insensitive; -1 if none. */
int schema_find(const struct schema *schema, const char *name, size_t len);
int schema_find_id(const struct schema *schema, uint32_t column_id);

/* The columns of a rowset: the visible ones in order, then for UNIQUE tables the delete sign. */
uint32_t schema_stored_count(const struct schema *schema);
uint32_t schema_stored_id(const struct schema *schema, uint32_t index);
struct column_type schema_stored_type(const struct schema *schema, uint32_t index);

void schema_encode(const struct schema *schema, struct buf *out); /* msgpack, versioned */
/* Into an initialised schema. TG_CORRUPT or TG_NOMEM (also sticky in the cursor). */
int schema_decode(struct cursor *cursor, struct schema *schema);

#endif
