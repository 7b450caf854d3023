/* SPDX-License-Identifier: Apache-2.0 */
/* The table of transactions: creating and forgetting them, and finding them by id, label and
 * request. */
#include "coordinator/state/txn_table.h"

#include "coordinator/state/apply.h"

/* A request that began a transaction or started a load in one. */
struct txn_request {
    struct index_link link;
    struct request_key key;
    struct txn *txn;
    uint32_t load_index; /* TXN_NO_LOAD: begun without a load */
};

/* What a finished record counts for. Numbers of the format, not sizeof: the limit on them must be
 * reached at the same command by every coordinator. */
enum {
    RECORD_BYTES = 400, /* the transaction, its label's link, its request, its share of the pages */
    RECORD_LOAD_BYTES = 200,
    RECORD_TABLE_BYTES = 24
};

static uint64_t key_hash(const struct request_key *key)
{
    uint64_t words[3] = {key->node, key->epoch, key->request};
    return checksum64(words, sizeof words);
}

static uint64_t label_hash(db_id db, const char *label)
{
    uint8_t bytes[sizeof db + LABEL_BYTES];
    size_t len = strnlen(label, LABEL_BYTES);
    memcpy(bytes, &db, sizeof db);
    memcpy(bytes + sizeof db, label, len);
    return checksum64(bytes, sizeof db + len);
}

static struct txn *txn_of_label_link(struct index_link *link)
{
    return (struct txn *)((char *)link - offsetof(struct txn, label_link));
}

void txn_list_append(struct txn_list *list, struct txn *txn)
{
    txn->prev = list->last;
    txn->next = NULL;
    if (list->last != NULL)
        list->last->next = txn;
    else
        list->first = txn;
    list->last = txn;
    list->count++;
}

void txn_list_remove(struct txn_list *list, struct txn *txn)
{
    *(txn->prev != NULL ? &txn->prev->next : &list->first) = txn->next;
    *(txn->next != NULL ? &txn->next->prev : &list->last) = txn->prev;
    txn->prev = txn->next = NULL;
    list->count--;
}

struct txn *txn_table_find(const struct txn_table *txns, txn_id id)
{
    return txn_ids_find(&txns->by_id, id);
}

struct txn *txn_table_find_label(const struct txn_table *txns, db_id db, const char *label)
{
    uint64_t hash = label_hash(db, label);
    struct index_link *link = txn_index_first(&txns->by_label, hash);
    for (; link != NULL; link = link->next) {
        struct txn *txn = txn_of_label_link(link);
        if (link->hash == hash && txn->db == db && strcmp(txn->label, label) == 0)
            return txn;
    }
    return NULL;
}

static struct txn_request *find_request(const struct txn_table *txns, const struct request_key *key)
{
    uint64_t hash = key_hash(key);
    struct index_link *link = txn_index_first(&txns->by_request, hash);
    for (; link != NULL; link = link->next) {
        struct txn_request *request = (struct txn_request *)link;
        if (link->hash == hash && request_key_equal(&request->key, key))
            return request;
    }
    return NULL;
}

struct txn *txn_table_find_request(const struct txn_table *txns, const struct request_key *key)
{
    const struct txn_request *request = find_request(txns, key);
    return request == NULL ? NULL : request->txn;
}

struct txn_load *txn_table_find_request_load(const struct txn_table *txns,
                                             const struct request_key *key)
{
    const struct txn_request *request = find_request(txns, key);
    if (request == NULL || request->load_index >= request->txn->load_count)
        return NULL;
    return &request->txn->loads[request->load_index];
}

void txn_table_add_request(struct txn_table *txns, const struct request_key *key, struct txn *txn,
                           uint32_t load_index)
{
    if (request_key_is_zero(key))
        return;
    struct txn_request *request = state_alloc(1, sizeof *request);
    request->key = *key;
    request->txn = txn;
    request->load_index = load_index;
    txn_index_add(&txns->by_request, &request->link, key_hash(key));
}

/* Only if the request is this transaction's: a key belongs to whom it was first given. */
static void remove_request(struct txn_table *txns, const struct request_key *key,
                           const struct txn *txn)
{
    struct txn_request *request = find_request(txns, key);
    if (request == NULL || request->txn != txn)
        return;
    txn_index_remove(&txns->by_request, &request->link);
    free(request);
}

static struct txn_fence *find_fence(const struct txn_table *txns, const struct request_key *key)
{
    uint64_t hash = key_hash(key);
    struct index_link *link = txn_index_first(&txns->by_fence, hash);
    for (; link != NULL; link = link->next) {
        struct txn_fence *fence = (struct txn_fence *)link;
        if (link->hash == hash && request_key_equal(&fence->key, key))
            return fence;
    }
    return NULL;
}

bool txn_table_is_fenced(const struct txn_table *txns, const struct request_key *key)
{
    return find_fence(txns, key) != NULL;
}

void txn_table_add_fence(struct txn_table *txns, const struct request_key *key)
{
    struct txn_fence *fence = state_alloc(1, sizeof *fence);
    fence->key = *key;
    fence->prev = txns->last_fence;
    *(fence->prev != NULL ? &fence->prev->next : &txns->first_fence) = fence;
    txns->last_fence = fence;
    txns->fence_count++;
    txn_index_add(&txns->by_fence, &fence->link, key_hash(key));
}

static void drop_fence(struct txn_table *txns, struct txn_fence *fence)
{
    *(fence->prev != NULL ? &fence->prev->next : &txns->first_fence) = fence->next;
    *(fence->next != NULL ? &fence->next->prev : &txns->last_fence) = fence->prev;
    txns->fence_count--;
    txn_index_remove(&txns->by_fence, &fence->link);
    free(fence);
}

void txn_table_drop_fences(struct txn_table *txns, node_id node, uint64_t epoch)
{
    for (struct txn_fence *fence = txns->first_fence, *next; fence != NULL; fence = next) {
        next = fence->next;
        if (fence->key.node == node && fence->key.epoch < epoch)
            drop_fence(txns, fence);
    }
}

/* Names are few, since only users that may log in appear: never freed one by one. */
const char *txn_table_user(struct txn_table *txns, const char *name)
{
    for (struct txn_user *user = txns->users; user != NULL; user = user->next) {
        if (strcmp(user->name, name) == 0)
            return user->name;
    }
    struct txn_user *user = state_alloc(1, sizeof *user);
    memcpy(user->name, name, strnlen(name, sizeof user->name - 1));
    user->next = txns->users;
    txns->users = user;
    return user->name;
}

/* The newest of a label is in the index, older ones hang behind it. */
static void add_label(struct txn_table *txns, struct txn *txn)
{
    struct txn *head = txn_table_find_label(txns, txn->db, txn->label);
    if (head == NULL || head->id < txn->id) {
        if (head != NULL) {
            txn_index_remove(&txns->by_label, &head->label_link);
            head->newer_label = txn;
        }
        txn->same_label = head;
        txn_index_add(&txns->by_label, &txn->label_link, label_hash(txn->db, txn->label));
        return;
    }
    struct txn *newer = head;
    while (newer->same_label != NULL && newer->same_label->id > txn->id)
        newer = newer->same_label;
    txn->same_label = newer->same_label;
    txn->newer_label = newer;
    if (txn->same_label != NULL)
        txn->same_label->newer_label = txn;
    newer->same_label = txn;
}

static void remove_label(struct txn_table *txns, struct txn *txn)
{
    struct txn *older = txn->same_label;
    if (older != NULL)
        older->newer_label = txn->newer_label;
    if (txn->newer_label != NULL) {
        txn->newer_label->same_label = older;
        return;
    }
    txn_index_remove(&txns->by_label, &txn->label_link);
    if (older != NULL)
        txn_index_add(&txns->by_label, &older->label_link, label_hash(txn->db, txn->label));
}

void txn_table_add(struct txn_table *txns, struct txn *txn)
{
    txn_ids_add(&txns->by_id, txn->id, txn);
    add_label(txns, txn);
}

struct txn *txn_table_create(struct state *state, struct database *database, const char *label,
                             const char *user)
{
    struct txn *txn = state_alloc(1, sizeof *txn);
    txn->id = state->next_txn++;
    txn->db = database->id;
    txn->label = state_strdup(label);
    txn->user = txn_table_user(&state->txns, user);
    txn->state = TXN_PREPARE;
    txn->state_seq = state->seq;
    txn->begin_elapsed_ms = state->elapsed_ms;
    txn->begin_us = state_take_time(state);
    database->running_txns++;
    txn_table_add(&state->txns, txn);
    txn_list_append(&state->txns.open, txn);
    return txn;
}

void txn_free(struct txn *txn)
{
    for (uint32_t i = 0; i < txn->load_count; i++)
        free(txn->loads[i].tablets);
    free(txn->loads);
    free(txn->tables);
    free(txn->publish);
    free(txn->label);
    free(txn->reason);
    free(txn);
}

uint64_t txn_record_bytes(const struct txn *txn)
{
    return RECORD_BYTES + strlen(txn->label) + (txn->reason != NULL ? strlen(txn->reason) : 0) +
           (uint64_t)txn->load_count * RECORD_LOAD_BYTES +
           (uint64_t)txn->table_count * RECORD_TABLE_BYTES;
}

void txn_table_add_finished(struct txn_table *txns, struct txn *txn)
{
    txn_list_append(&txns->finished, txn);
    txn_shelf_add(txns, txn);
    txns->finished_bytes += txn_record_bytes(txn);
}

void txn_table_forget(struct txn_table *txns, struct txn *txn)
{
    txn_shelf_remove(txns, txn);
    txn_list_remove(&txns->finished, txn);
    txns->finished_bytes -= txn_record_bytes(txn);
    remove_label(txns, txn);
    remove_request(txns, &txn->begin_key, txn);
    for (uint32_t i = 0; i < txn->load_count; i++)
        remove_request(txns, &txn->loads[i].key, txn);
    txn_ids_remove(&txns->by_id, txn->id);
    txn_free(txn);
}

static void free_list(struct txn_list *list)
{
    for (struct txn *txn = list->first, *next; txn != NULL; txn = next) {
        next = txn->next;
        txn_free(txn);
    }
}

void txn_table_close(struct txn_table *txns)
{
    for (uint64_t i = 0; i < txns->by_request.chains; i++) {
        struct index_link *link = txn_index_chain(&txns->by_request, i);
        for (struct index_link *next; link != NULL; link = next) {
            next = link->next;
            free(link);
        }
    }
    for (struct txn_fence *fence = txns->first_fence, *next; fence != NULL; fence = next) {
        next = fence->next;
        free(fence);
    }
    for (struct txn_user *user = txns->users, *next; user != NULL; user = next) {
        next = user->next;
        free(user);
    }
    txn_shelves_close(txns);
    free_list(&txns->open);
    free_list(&txns->publishing);
    free_list(&txns->finished);
    txn_index_close(&txns->by_label);
    txn_index_close(&txns->by_request);
    txn_index_close(&txns->by_fence);
    txn_ids_close(&txns->by_id);
    *txns = (struct txn_table){0};
}

struct txn_load *txn_find_load(const struct txn *txn, rowset_id rowset)
{
    for (uint32_t i = 0; i < txn->load_count; i++) {
        if (txn->loads[i].rowset == rowset)
            return &txn->loads[i];
    }
    return NULL;
}

version_t txn_table_version(const struct txn *txn, table_id table)
{
    for (uint32_t i = 0; i < txn->table_count; i++) {
        if (txn->tables[i].table == table)
            return txn->tables[i].version;
    }
    return 0;
}
