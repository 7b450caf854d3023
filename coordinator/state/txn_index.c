/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of transactions by id, and chains by hash that split one at a time. */
#include "coordinator/state/txn_index.h"

#include "coordinator/state/apply.h"

void txn_ids_close(struct txn_ids *ids)
{
    for (uint32_t i = 0; i < ids->page_count; i++)
        free(ids->pages[i]);
    free(ids->pages);
    *ids = (struct txn_ids){0};
}

struct txn *txn_ids_find(const struct txn_ids *ids, txn_id id)
{
    uint64_t page = id / TXN_PAGE;
    if (page < ids->first_page || page - ids->first_page >= ids->page_count)
        return NULL;
    const struct txn_page *at = ids->pages[page - ids->first_page];
    return at == NULL ? NULL : at->txns[id % TXN_PAGE];
}

/* Makes the directory reach from page `from` on over `count` pages. */
static void cover(struct txn_ids *ids, uint64_t from, uint64_t count)
{
    TG_CHECK(count <= UINT32_MAX / 2);
    if (count > ids->page_capacity) {
        uint32_t capacity = ids->page_capacity > 0 ? ids->page_capacity : 16;
        while (capacity < count)
            capacity *= 2;
        ids->pages = state_realloc(ids->pages, capacity, sizeof *ids->pages);
        ids->page_capacity = capacity;
    }
    uint64_t front = ids->page_count > 0 ? ids->first_page - from : 0;
    if (front > 0) {
        memmove(ids->pages + front, ids->pages, ids->page_count * sizeof *ids->pages);
        memset(ids->pages, 0, front * sizeof *ids->pages);
    }
    uint64_t filled = front + ids->page_count;
    memset(ids->pages + filled, 0, (count - filled) * sizeof *ids->pages);
    ids->first_page = from;
    ids->page_count = (uint32_t)count;
}

void txn_ids_add(struct txn_ids *ids, txn_id id, struct txn *txn)
{
    uint64_t page = id / TXN_PAGE;
    if (ids->page_count == 0)
        cover(ids, page, 1);
    else if (page < ids->first_page)
        cover(ids, page, ids->first_page + ids->page_count - page);
    else if (page - ids->first_page >= ids->page_count)
        cover(ids, ids->first_page, page - ids->first_page + 1);

    struct txn_page **at = &ids->pages[page - ids->first_page];
    if (*at == NULL)
        *at = state_alloc(1, sizeof **at);
    TG_CHECK((*at)->txns[id % TXN_PAGE] == NULL);
    (*at)->txns[id % TXN_PAGE] = txn;
    (*at)->count++;
}

void txn_ids_remove(struct txn_ids *ids, txn_id id)
{
    uint64_t page = id / TXN_PAGE;
    TG_CHECK(txn_ids_find(ids, id) != NULL);
    struct txn_page **at = &ids->pages[page - ids->first_page];
    (*at)->txns[id % TXN_PAGE] = NULL;
    if (--(*at)->count > 0)
        return;
    free(*at);
    *at = NULL;

    uint32_t empty = 0;
    while (empty < ids->page_count && ids->pages[empty] == NULL)
        empty++;
    if (empty == 0)
        return;
    ids->page_count -= empty;
    ids->first_page += empty;
    memmove(ids->pages, ids->pages + empty, ids->page_count * sizeof *ids->pages);
}

void txn_index_close(struct txn_index *index)
{
    for (uint64_t i = 0; i * INDEX_SEGMENT < index->chains; i++)
        free(index->segments[i]);
    free(index->segments);
    *index = (struct txn_index){0};
}

/* With n chains, p the largest power of two in n: chains below n - p are already split, so that one
 * more bit of the hash decides for them and for their other halves. */
static uint64_t power_below(uint64_t chains)
{
    return UINT64_C(1) << (63 - __builtin_clzll(chains));
}

static uint64_t chain_of(uint64_t chains, uint64_t hash)
{
    uint64_t power = power_below(chains);
    uint64_t chain = hash & (2 * power - 1);
    return chain < chains ? chain : hash & (power - 1);
}

static struct index_link **chain_at(const struct txn_index *index, uint64_t chain)
{
    return &index->segments[chain / INDEX_SEGMENT][chain % INDEX_SEGMENT];
}

static void add_chain(struct txn_index *index)
{
    uint64_t chain = index->chains;
    uint64_t segment = chain / INDEX_SEGMENT;
    if (chain % INDEX_SEGMENT == 0) {
        if (segment >= index->segment_capacity) {
            uint32_t capacity = index->segment_capacity > 0 ? index->segment_capacity * 2 : 16;
            index->segments = state_realloc(index->segments, capacity, sizeof *index->segments);
            index->segment_capacity = capacity;
        }
        index->segments[segment] = state_alloc(INDEX_SEGMENT, sizeof **index->segments);
    }
    index->chains++;
    if (chain == 0)
        return;
    struct index_link **from = chain_at(index, chain - power_below(chain));
    struct index_link **to = chain_at(index, chain);
    while (*from != NULL) {
        struct index_link *link = *from;
        if (chain_of(index->chains, link->hash) == chain) {
            *from = link->next;
            link->next = *to;
            *to = link;
        } else {
            from = &link->next;
        }
    }
}

struct index_link *txn_index_first(const struct txn_index *index, uint64_t hash)
{
    return index->chains == 0 ? NULL : *chain_at(index, chain_of(index->chains, hash));
}

struct index_link *txn_index_chain(const struct txn_index *index, uint64_t chain)
{
    return *chain_at(index, chain);
}

void txn_index_add(struct txn_index *index, struct index_link *link, uint64_t hash)
{
    if (index->count >= index->chains)
        add_chain(index);
    struct index_link **chain = chain_at(index, chain_of(index->chains, hash));
    link->hash = hash;
    link->next = *chain;
    *chain = link;
    index->count++;
}

void txn_index_remove(struct txn_index *index, struct index_link *link)
{
    struct index_link **at = chain_at(index, chain_of(index->chains, link->hash));
    while (*at != link) {
        TG_CHECK(*at != NULL);
        at = &(*at)->next;
    }
    *at = link->next;
    link->next = NULL;
    index->count--;
}
