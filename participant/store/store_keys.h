/* SPDX-License-Identifier: Apache-2.0 */
/* Every key and value of the store, byte by byte; docs/formats.md, "LMDB layout", is the same as
 * tables. Ids in keys are big-endian, so that LMDB's order is their order; numbers in values are
 * little-endian. A value begins with its format's number; an unknown one is refused.
 *
 *   environment meta
 *     meta     name                              → 32-bit format, 64-bit numbers, uuid texts
 *     tablet   │ tablet 8 │                      → struct tablet_value
 *     staged   │ txn 8 │ rowset 8 │ tablet 8 │   → struct staged_value; gone once it is bound
 *     rowset   │ tablet 8 │ rowset 8 │           → struct rowset_value: sealed ones only
 *     version  │ tablet 8 │ version 8 │          → struct version_value
 *   environments blocks-64k and blocks-256k
 *     block    │ tablet 8 │ rowset 8 │ offset 8 │→ the content's bytes from offset on
 *
 * Staged but not bound = has a staged record; bound = has a rowset record and no staged one. So
 * what may be dropped with a transaction is exactly what lies in `staged`. */
#ifndef TG_PARTICIPANT_STORE_STORE_KEYS_H
#define TG_PARTICIPANT_STORE_STORE_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/checksum.h"
#include "common/model/ids.h"
#include "common/proto/msg_publish.h"

enum {
    STORE_FORMAT = 1, /* of the store as a whole, in meta "format" */
    STORE_KEY_MAX = 24,
    EXTENT_64K_BYTES = 65520,   /* 16 pages less LMDB's header of 16 bytes */
    EXTENT_256K_BYTES = 262128, /* 64 pages less 16 */
    STORE_PARTITION = 1         /* the one implicit partition of every table, for now */
};

struct store_key {
    uint8_t bytes[STORE_KEY_MAX];
    size_t len;
};
static inline struct slice store_key_slice(const struct store_key *key)
{
    return slice_of(key->bytes, key->len);
}

void store_key_tablet(struct store_key *key, tablet_id tablet);
void store_key_staged(struct store_key *key, txn_id txn, rowset_id rowset, tablet_id tablet);
void store_key_rowset(struct store_key *key, tablet_id tablet, rowset_id rowset);
void store_key_version(struct store_key *key, tablet_id tablet, version_t version);
void store_key_block(struct store_key *key, tablet_id tablet, rowset_id rowset, uint64_t offset);

/* The three numbers (or less) of a key; TG_CORRUPT if it has another length. */
int store_key_parse(struct slice key, uint32_t count, uint64_t *numbers);

enum tablet_state { TABLET_LIVE = 1, TABLET_DROPPING = 2 };
struct tablet_value {
    uint8_t state; /* enum tablet_state */
    table_id table;
    uint64_t partition;
    uint32_t schema;
    version_t last; /* the last bound version */
};
void tablet_value_encode(const struct tablet_value *value, struct buf *out);
int tablet_value_decode(struct slice bytes, struct tablet_value *value);

enum staged_state {
    STAGED_OPEN = 1,    /* extents are coming; left by a crash if nobody writes it now */
    STAGED_SEALED = 2,  /* there is a rowset record, complete */
    STAGED_DROPPING = 3 /* its transaction is dead; extents are being deleted */
};
struct staged_value {
    uint8_t state; /* enum staged_state */
    bool extents;  /* something of it lies in the block environments */
    table_id table;
    struct digest digest; /* STAGED_SEALED */
};
void staged_value_encode(const struct staged_value *value, struct buf *out);
int staged_value_decode(struct slice bytes, struct staged_value *value);

/* A sealed rowset: its description (rowset_meta_encode) and, if small, its content. */
struct rowset_value {
    bool is_inline;
    txn_id txn;
    /* Of the content: the same as in the description, to be had without decoding it. */
    struct digest digest;
    struct slice meta;
    struct slice content; /* is_inline */
};
void rowset_value_encode(const struct rowset_value *value, struct buf *out);
/* Slices point into bytes. Checks the description's checksum. */
int rowset_value_decode(struct slice bytes, struct rowset_value *value);
/* Without touching the description. */
int rowset_value_peek(struct slice bytes, struct rowset_value *value);

/* A bound version. */
struct version_value {
    bool replace;
    version_t prev;
    txn_id txn;
    table_id table;
    uint64_t bound_us;
    uint32_t rowset_count;
    const uint8_t *rowsets; /* when decoded: rowset_count items, see version_value_rowset */
};
/* rowsets: value->rowset_count items. */
void version_value_encode(const struct version_value *value, const struct publish_rowset *rowsets,
                          struct buf *out);
int version_value_decode(struct slice bytes, struct version_value *value);
void version_value_rowset(const struct version_value *value, uint32_t index,
                          struct publish_rowset *rowset);

#endif
