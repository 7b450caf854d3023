/* SPDX-License-Identifier: Apache-2.0 */
/* Finished transactions on shelves of SHELF_TXNS, each shelf encoded once when it is full.
 *
 * A snapshot pauses the coordinator for as long as it takes to encode the state, and nearly all of
 * the state are finished transactions, which never change again: so they are encoded a few at a
 * time as they come, and a snapshot copies the bytes. A shelf from which some were forgotten is
 * encoded anew by each snapshot; as the oldest are forgotten first, that is one or two of them. */
#include "coordinator/state/apply.h"

enum { SHELF_TXNS = 256 };

struct txn_shelf {
    struct txn_shelf *prev, *next;
    struct txn *first; /* its transactions are neighbours on the finished list */
    uint32_t count;
    uint32_t added; /* with those that are forgotten since */
    struct buf
        bytes; /* of all of them; empty while it is not full, and from the first forgotten on */
};

static void encode(const struct txn_shelf *shelf, struct buf *out)
{
    const struct txn *txn = shelf->first;
    for (uint32_t i = 0; i < shelf->count; i++, txn = txn->next)
        txn_encode(txn, out);
}

void txn_shelf_add(struct txn_table *txns, struct txn *txn)
{
    struct txn_shelf *shelf = txns->last_shelf;
    if (shelf == NULL || shelf->added == SHELF_TXNS) {
        shelf = state_alloc(1, sizeof *shelf);
        shelf->prev = txns->last_shelf;
        *(shelf->prev != NULL ? &shelf->prev->next : &txns->first_shelf) = shelf;
        txns->last_shelf = shelf;
    }
    if (shelf->count == 0)
        shelf->first = txn;
    txn->shelf = shelf;
    shelf->count++;
    if (++shelf->added < SHELF_TXNS || shelf->count < SHELF_TXNS)
        return;
    struct buf bytes = BUF_INIT;
    encode(shelf, &bytes);
    buf_append(&shelf->bytes, bytes.data, bytes.len); /* without the room it grew by */
    TG_CHECK(bytes.err == 0 && shelf->bytes.err == 0);
    buf_close(&bytes);
}

void txn_shelf_remove(struct txn_table *txns, struct txn *txn)
{
    struct txn_shelf *shelf = txn->shelf;
    buf_close(&shelf->bytes);
    if (shelf->first == txn)
        shelf->first = txn->next;
    txn->shelf = NULL;
    if (--shelf->count > 0 || shelf->added < SHELF_TXNS)
        return;
    *(shelf->prev != NULL ? &shelf->prev->next : &txns->first_shelf) = shelf->next;
    *(shelf->next != NULL ? &shelf->next->prev : &txns->last_shelf) = shelf->prev;
    free(shelf);
}

void txn_shelves_encode(const struct txn_table *txns, struct buf *out)
{
    size_t bytes = 0;
    for (const struct txn_shelf *shelf = txns->first_shelf; shelf != NULL; shelf = shelf->next)
        bytes += shelf->bytes.len;
    buf_reserve(out, bytes);
    for (const struct txn_shelf *shelf = txns->first_shelf; shelf != NULL; shelf = shelf->next) {
        if (shelf->bytes.len > 0)
            buf_append(out, shelf->bytes.data, shelf->bytes.len);
        else
            encode(shelf, out);
    }
}

void txn_shelves_close(struct txn_table *txns)
{
    for (struct txn_shelf *shelf = txns->first_shelf, *next; shelf != NULL; shelf = next) {
        next = shelf->next;
        buf_close(&shelf->bytes);
        free(shelf);
    }
    txns->first_shelf = txns->last_shelf = NULL;
}
