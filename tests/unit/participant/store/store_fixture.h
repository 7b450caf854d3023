/* SPDX-License-Identifier: Apache-2.0 */
/* A store in a temporary directory, and rowsets with predictable content to put in. */
#ifndef TG_TESTS_UNIT_PARTICIPANT_STORE_STORE_FIXTURE_H
#define TG_TESTS_UNIT_PARTICIPANT_STORE_STORE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/err.h"
#include "participant/store/rowset_drop.h"
#include "participant/store/rowset_reader.h"
#include "participant/store/rowset_store.h"
#include "participant/store/store.h"
#include "participant/store/version_store.h"
#include "tests/lib/test_dir.h"

enum { FIXTURE_TABLE = 7, FIXTURE_BLOCK_BYTES = 50000 };

struct fixture {
    struct test_dir dir;
    struct store_options options;
    struct store *store;
};

static inline void fixture_open(struct fixture *fixture)
{
    struct tg_errmsg msg = {""};
    int err = store_open(fixture->dir.path, &fixture->options, &fixture->store, &msg);
    if (err != 0)
        fail_msg("open: %s", msg.text);
}

static inline void fixture_close(struct fixture *fixture)
{
    store_close(fixture->store);
    fixture->store = NULL;
}

static inline void fixture_reopen(struct fixture *fixture)
{
    fixture_close(fixture);
    fixture_open(fixture);
}

static inline int fixture_setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    test_dir_make(&fixture->dir);
    store_options_init(&fixture->options);
    fixture->options.meta_map_bytes = 64u << 20;
    fixture->options.blocks_map_bytes = 256u << 20;
    fixture->options.disk_reserve_bytes = 0;
    fixture_open(fixture);
    *state = fixture;
    return 0;
}

static inline int fixture_teardown(void **state)
{
    struct fixture *fixture = *state;
    fixture_close(fixture);
    test_dir_remove(&fixture->dir);
    free(fixture);
    return 0;
}

/* Content that differs for every seed. */
static inline void fixture_content(uint64_t seed, size_t len, struct buf *out)
{
    uint64_t at = seed * 0x9E3779B97F4A7C15u + 1;
    for (size_t i = 0; i < len; i++) {
        at ^= at << 13;
        at ^= at >> 7;
        at ^= at << 17;
        buf_append_u8(out, (uint8_t)at);
    }
    assert_int_equal(out->err, 0);
}

static inline void fixture_meta(struct rowset_meta *meta, txn_id txn, rowset_id rowset,
                                tablet_id tablet, struct slice content)
{
    rowset_meta_init(meta);
    meta->tablet = tablet;
    meta->rowset = rowset;
    meta->table = FIXTURE_TABLE;
    meta->txn = txn;
    meta->schema_id = 1;
    meta->load_no = 1;
    meta->bytes = content.len;
    meta->digest = digest_of(content.data, content.len);
    for (size_t at = 0; at < content.len;) {
        size_t left = content.len - at;
        size_t len = left < FIXTURE_BLOCK_BYTES ? left : FIXTURE_BLOCK_BYTES;
        assert_int_equal(
            rowset_meta_add_block(meta, at, (uint32_t)len, 10, 0, slice_str("a"), slice_str("z")),
            0);
        meta->rows += 10;
        at += len;
    }
}

/* One piece, and a seal if meta is not NULL. */
static inline int fixture_send(struct fixture *fixture, txn_id txn, rowset_id rowset,
                               tablet_id tablet, uint64_t offset, struct slice bytes,
                               struct rowset_meta *meta)
{
    struct replicate_piece piece = {.tablet = tablet, .offset = offset, .len = (uint32_t)bytes.len};
    struct msg_replicate message = {.sender = 1,
                                    .receiver = 2,
                                    .txn = txn,
                                    .rowset = rowset,
                                    .table = FIXTURE_TABLE,
                                    .piece_count = bytes.len > 0 ? 1 : 0,
                                    .pieces = &piece,
                                    .seal_count = meta != NULL ? 1 : 0,
                                    .seals = meta};
    return rowset_store_replicate_wait(fixture->store, &message, bytes);
}

/* Content in pieces of at most piece_bytes, then the seal. The content's seed is the rowset's
 * number. */
static inline int fixture_put(struct fixture *fixture, txn_id txn, rowset_id rowset,
                              tablet_id tablet, size_t len, size_t piece_bytes)
{
    struct buf content = BUF_INIT;
    struct rowset_meta meta;
    fixture_content(rowset, len, &content);
    fixture_meta(&meta, txn, rowset, tablet, slice_of(content.data, content.len));
    int err = 0;
    for (size_t at = 0; at < len && err == 0;) {
        size_t take = len - at < piece_bytes ? len - at : piece_bytes;
        err =
            fixture_send(fixture, txn, rowset, tablet, at, slice_of(content.data + at, take), NULL);
        at += take;
    }
    if (err == 0)
        err = fixture_send(fixture, txn, rowset, tablet, 0, slice_of(NULL, 0), &meta);
    rowset_meta_close(&meta);
    buf_close(&content);
    return err;
}

static inline struct digest fixture_digest(rowset_id rowset, size_t len)
{
    struct buf content = BUF_INIT;
    fixture_content(rowset, len, &content);
    struct digest digest = digest_of(content.data, content.len);
    buf_close(&content);
    return digest;
}

/* All blocks of a rowset, compared with what fixture_put wrote. */
static inline int fixture_check(struct fixture *fixture, tablet_id tablet, rowset_id rowset,
                                size_t len)
{
    struct rowset_reader reader;
    int err = rowset_reader_open(fixture->store, tablet, rowset, &reader);
    if (err != 0)
        return err;
    struct buf content = BUF_INIT;
    struct buf scratch = BUF_INIT;
    fixture_content(rowset, len, &content);
    size_t at = 0;
    for (uint32_t i = 0; i < reader.meta->block_count && err == 0; i++) {
        struct slice bytes;
        err = rowset_reader_block(&reader, i, &scratch, &bytes);
        if (err == 0) {
            assert_true(at + bytes.len <= content.len);
            assert_memory_equal(bytes.data, content.data + at, bytes.len);
            at += bytes.len;
        }
    }
    if (err == 0)
        assert_int_equal(at, len);
    if (err == 0)
        err = rowset_reader_verify(&reader);
    buf_close(&scratch);
    buf_close(&content);
    rowset_reader_close(&reader);
    return err;
}

#endif
