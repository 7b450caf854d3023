/* SPDX-License-Identifier: Apache-2.0 */
/* How transactions are found: by id, and by hash. Both grow without ever moving what is in them, so
 * that no single command pays for a rehash of a million labels. */
#ifndef TG_COORDINATOR_STATE_TXN_INDEX_H
#define TG_COORDINATOR_STATE_TXN_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/ids.h"

struct txn;

/* By id: pages of pointers. Ids are given out in order, so that pages fill one after another and
 * fall empty from the front. */
enum { TXN_PAGE = 1024 };
struct txn_page {
    uint32_t count;
    struct txn *txns[TXN_PAGE];
};
struct txn_ids {
    uint64_t first_page; /* number of pages[0]: ids below it are not here */
    uint32_t page_count;
    uint32_t page_capacity;
    struct txn_page **pages; /* NULL where a page holds nothing */
};

void txn_ids_close(struct txn_ids *ids);
struct txn *txn_ids_find(const struct txn_ids *ids, txn_id id);
void txn_ids_add(struct txn_ids *ids, txn_id id, struct txn *txn);
void txn_ids_remove(struct txn_ids *ids, txn_id id);

/* By hash: chains of links that live inside the items. The number of chains grows by one with each
 * item (linear hashing): a growing table splits one chain at a time. */
struct index_link {
    struct index_link *next;
    uint64_t hash;
};
enum { INDEX_SEGMENT = 1024 }; /* chains a segment */
struct txn_index {
    uint64_t count;
    uint64_t chains; /* in use: 0, or a power of two plus those split since */
    uint32_t segment_capacity;
    struct index_link ***segments; /* [chain / INDEX_SEGMENT][chain % INDEX_SEGMENT] */
};

void txn_index_close(struct txn_index *index); /* the items are not touched */
/* First link of the chain that items with this hash are in; follow next and compare. NULL if empty.
 */
struct index_link *txn_index_first(const struct txn_index *index, uint64_t hash);
/* The same by number, below index->chains: to walk all. */
struct index_link *txn_index_chain(const struct txn_index *index, uint64_t chain);
void txn_index_add(struct txn_index *index, struct index_link *link, uint64_t hash);
void txn_index_remove(struct txn_index *index, struct index_link *link);

#endif
