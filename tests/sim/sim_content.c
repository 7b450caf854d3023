/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of rowsets. */
#include "tests/sim/sim_content.h"

#include <string.h>

#include "common/base/check.h"

enum {
    PIECE_BYTES = 64 * 1024,
    SMALL_BYTES = 48,
    SMALL_SPREAD = 300,
    MIDDLE_BYTES = 17 * 1000,
    MIDDLE_SPREAD = 40 * 1000,
    LARGE_BYTES = 66 * 1000,
    LARGE_SPREAD = 210 * 1000,
    MIDDLE_FROM = 920, /* of a thousand */
    LARGE_FROM = 980
};

static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xBF58476D1CE4E5B9);
    x ^= x >> 27;
    x *= UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

uint32_t sim_content_bytes(rowset_id rowset)
{
    uint64_t hash = mix(rowset + 77);
    uint64_t kind = hash % 1000;
    hash >>= 20;
    if (kind >= LARGE_FROM)
        return (uint32_t)(LARGE_BYTES + hash % LARGE_SPREAD);
    if (kind >= MIDDLE_FROM)
        return (uint32_t)(MIDDLE_BYTES + hash % MIDDLE_SPREAD);
    return (uint32_t)(SMALL_BYTES + hash % SMALL_SPREAD);
}

void sim_content_make(tablet_id tablet, rowset_id rowset, struct buf *out)
{
    uint32_t bytes = sim_content_bytes(rowset);
    size_t from = out->len;
    uint64_t seed = mix(tablet * UINT64_C(0x9E3779B97F4A7C15) ^ rowset);
    buf_append(out, SIM_CONTENT_MAGIC, sizeof SIM_CONTENT_MAGIC - 1);
    buf_append(out, &tablet, sizeof tablet);
    buf_append(out, &rowset, sizeof rowset);
    while (out->len - from < bytes) {
        seed = seed * UINT64_C(6364136223846793005) + 1;
        buf_append(out, &seed, sizeof seed);
    }
    TG_CHECK(out->err == 0);
    out->len = from + bytes;
}

bool sim_content_is(tablet_id tablet, rowset_id rowset, struct slice bytes)
{
    struct buf expected = BUF_INIT;
    sim_content_make(tablet, rowset, &expected);
    bool same = bytes.len == expected.len && memcmp(bytes.data, expected.data, bytes.len) == 0;
    buf_close(&expected);
    return same;
}

struct digest sim_content_digest(tablet_id tablet, rowset_id rowset)
{
    struct buf content = BUF_INIT;
    sim_content_make(tablet, rowset, &content);
    struct digest digest = digest_of(content.data, content.len);
    buf_close(&content);
    return digest;
}

void sim_content_meta(tablet_id tablet, rowset_id rowset, table_id table, txn_id txn,
                      struct rowset_meta *meta)
{
    uint32_t bytes = sim_content_bytes(rowset);
    rowset_meta_init(meta);
    meta->tablet = tablet;
    meta->rowset = rowset;
    meta->table = table;
    meta->txn = txn;
    meta->load_no = 1;
    TG_CHECK(rowset_meta_add_block(meta, 0, bytes, 1, 0, slice_str("k"), slice_str("k")) == 0);
    meta->rows = 1;
    meta->bytes = bytes;
    meta->digest = sim_content_digest(tablet, rowset);
}

uint32_t sim_content_piece(struct msg_replicate *message, tablet_id tablet,
                           const struct buf *content, uint32_t sent, struct buf *head,
                           struct buf *payload)
{
    uint32_t left = (uint32_t)content->len - sent;
    uint32_t len = left < PIECE_BYTES ? left : PIECE_BYTES;
    struct replicate_piece piece = {.tablet = tablet, .offset = sent, .len = len};
    struct rowset_meta meta;
    sim_content_meta(tablet, message->rowset, message->table, message->txn, &meta);
    message->piece_count = 1;
    message->pieces = &piece;
    message->seal_count = len == left;
    message->seals = &meta;
    msg_replicate_encode(message, head);
    rowset_meta_close(&meta);
    buf_append(payload, content->data + sent, len);
    return len;
}
