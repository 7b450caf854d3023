/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as what a participant's store holds: keys, records, descriptions of rowsets, schemas.
 * Refused, or the same after one more journey. The first byte says which. */
#include <stdint.h>
#include <stdlib.h>

#include "common/base/check.h"
#include "common/model/rowset.h"
#include "common/model/schema.h"
#include "participant/store/store_keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect_same(struct buf *once, struct buf *twice)
{
    TG_CHECK(once->err == 0 && twice->err == 0);
    TG_CHECK(slice_equal(slice_of(once->data, once->len), slice_of(twice->data, twice->len)));
    buf_close(once);
    buf_close(twice);
}

static void try_key(struct slice bytes)
{
    uint64_t numbers[3];
    for (uint32_t count = 1; count <= 3; count++)
        (void)store_key_parse(bytes, count, numbers);
}

#define FIXED(name)                                                          \
    static void try_##name(struct slice bytes)                               \
    {                                                                        \
        struct name first, again;                                            \
        struct buf once = BUF_INIT, twice = BUF_INIT;                        \
        if (name##_decode(bytes, &first) != 0)                               \
            return;                                                          \
        name##_encode(&first, &once);                                        \
        TG_CHECK(name##_decode(slice_of(once.data, once.len), &again) == 0); \
        name##_encode(&again, &twice);                                       \
        expect_same(&once, &twice);                                          \
    }

FIXED(tablet_value)
FIXED(staged_value)

/* The checksum in it is right only by chance, so it is also read as written by us. */
static void try_rowset_value(struct slice bytes)
{
    struct rowset_value value, again;
    (void)rowset_value_peek(bytes, &value);
    if (rowset_value_decode(bytes, &value) == 0)
        return;
    size_t half = bytes.len / 2;
    value = (struct rowset_value){.is_inline = bytes.len % 2 == 1,
                                  .txn = bytes.len,
                                  .meta = slice_of(bytes.data, half),
                                  .content = slice_of(bytes.data + half, bytes.len - half)};
    if (!value.is_inline)
        value.content.len = 0;
    struct buf once = BUF_INIT;
    rowset_value_encode(&value, &once);
    TG_CHECK(once.err == 0);
    TG_CHECK(rowset_value_decode(slice_of(once.data, once.len), &again) == 0);
    TG_CHECK(slice_equal(again.meta, value.meta) && slice_equal(again.content, value.content));
    buf_close(&once);
}

static void try_version_value(struct slice bytes)
{
    struct version_value value;
    struct publish_rowset *rowsets;
    struct buf once = BUF_INIT;
    if (version_value_decode(bytes, &value) != 0)
        return;
    rowsets = calloc(value.rowset_count + 1u, sizeof *rowsets);
    TG_CHECK(rowsets != NULL);
    for (uint32_t i = 0; i < value.rowset_count; i++)
        version_value_rowset(&value, i, &rowsets[i]);
    version_value_encode(&value, rowsets, &once);
    TG_CHECK(once.err == 0 && version_value_decode(slice_of(once.data, once.len), &value) == 0);
    free(rowsets);
    buf_close(&once);
}

#define LISTED(name, target)                               \
    static void try_##name(struct slice bytes)             \
    {                                                      \
        struct target first, again;                        \
        struct cursor cursor;                              \
        struct buf once = BUF_INIT, twice = BUF_INIT;      \
        name##_init(&first);                               \
        name##_init(&again);                               \
        cursor_init(&cursor, bytes.data, bytes.len);       \
        if (name##_decode(&cursor, &first) == 0) {         \
            name##_encode(&first, &once);                  \
            cursor_init(&cursor, once.data, once.len);     \
            TG_CHECK(name##_decode(&cursor, &again) == 0); \
            name##_encode(&again, &twice);                 \
        }                                                  \
        expect_same(&once, &twice);                        \
        name##_close(&first);                              \
        name##_close(&again);                              \
    }

LISTED(rowset_meta, rowset_meta)
LISTED(schema, schema)

static void (*const tries[])(struct slice) = {try_key,          try_tablet_value,  try_staged_value,
                                              try_rowset_value, try_version_value, try_rowset_meta,
                                              try_schema};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0)
        tries[data[0] % (sizeof tries / sizeof tries[0])](slice_of(data + 1, size - 1));
    return 0;
}
