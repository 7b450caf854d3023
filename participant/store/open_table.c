/* SPDX-License-Identifier: Apache-2.0 */
/* Which rowsets are being written, and which transactions are known to be dead. */
#include <stdlib.h>

#include "common/base/check.h"
#include "common/base/err.h"
#include "participant/store/open_table_internal.h"
#include "participant/store/rowset_open.h"
#include "participant/store/rowset_store.h"

int open_table_init(struct open_table **table)
{
    struct open_table *made = calloc(1, sizeof *made);
    if (made == NULL)
        return TG_NOMEM;
    pthread_mutex_init(&made->lock, NULL);
    *table = made;
    return 0;
}

void open_table_free(struct open_table *table)
{
    if (table == NULL)
        return;
    for (uint32_t i = 0; i < OPEN_BUCKETS; i++) {
        while (table->buckets[i] != NULL) {
            struct open_rowset *open = table->buckets[i];
            table->buckets[i] = open->next;
            open_rowset_release(open);
        }
    }
    pthread_mutex_destroy(&table->lock);
    free(table);
}

static struct open_rowset **bucket_of(struct open_table *table, tablet_id tablet, rowset_id rowset)
{
    uint64_t mixed = (tablet * 0x9E3779B97F4A7C15u) ^ (rowset * 0xC2B2AE3D27D4EB4Fu);
    return &table->buckets[(mixed >> 32) % OPEN_BUCKETS];
}

/* Under the table's lock: where the pointer to it is, or would be. */
static struct open_rowset **find_link(struct open_table *table, tablet_id tablet, rowset_id rowset)
{
    struct open_rowset **link = bucket_of(table, tablet, rowset);
    while (*link != NULL && ((*link)->tablet != tablet || (*link)->rowset != rowset))
        link = &(*link)->next;
    return link;
}

struct open_rowset *open_table_find(struct open_table *table, tablet_id tablet, rowset_id rowset)
{
    pthread_mutex_lock(&table->lock);
    struct open_rowset *open = *find_link(table, tablet, rowset);
    if (open != NULL)
        atomic_fetch_add(&open->refs, 1);
    pthread_mutex_unlock(&table->lock);
    return open;
}

static struct open_rowset *make(struct open_table *table, txn_id txn, rowset_id rowset,
                                table_id of_table, tablet_id tablet)
{
    struct open_rowset *open = calloc(1, sizeof *open);
    struct digest_stream *digest = digest_stream_open();
    if (open == NULL || digest == NULL) {
        if (digest != NULL)
            digest_stream_close(digest);
        free(open);
        return NULL;
    }
    open->table = table;
    open->tablet = tablet;
    open->rowset = rowset;
    open->txn = txn;
    open->table_id = of_table;
    open->digest = digest;
    atomic_init(&open->refs, 2); /* the table's and the caller's */
    pthread_mutex_init(&open->lock, NULL);
    pthread_cond_init(&open->staged_changed, NULL);
    return open;
}

static bool is_dead(const struct open_table *table, txn_id txn)
{
    return txn < table->low_water || table->dead[txn % OPEN_DEAD_MAX] == txn;
}

static bool is_held(const struct open_table *table, tablet_id tablet)
{
    for (unsigned i = 0; i < OPEN_HELD_MAX; i++)
        if (table->held[i] == tablet)
            return true;
    return false;
}

int open_table_hold(struct open_table *table, tablet_id tablet)
{
    int err = TG_BUSY;
    pthread_mutex_lock(&table->lock);
    for (unsigned i = 0; i < OPEN_HELD_MAX && !is_held(table, tablet); i++) {
        if (table->held[i] == 0) {
            table->held[i] = tablet;
            err = 0;
        }
    }
    pthread_mutex_unlock(&table->lock);
    return err;
}

void open_table_let_go(struct open_table *table, tablet_id tablet)
{
    pthread_mutex_lock(&table->lock);
    for (unsigned i = 0; i < OPEN_HELD_MAX; i++)
        if (table->held[i] == tablet)
            table->held[i] = 0;
    pthread_mutex_unlock(&table->lock);
}

bool open_table_is_held(struct open_table *table, tablet_id tablet)
{
    pthread_mutex_lock(&table->lock);
    bool held = is_held(table, tablet);
    pthread_mutex_unlock(&table->lock);
    return held;
}

int open_table_add(struct open_table *table, txn_id txn, rowset_id rowset, table_id of_table,
                   tablet_id tablet, struct open_rowset **open)
{
    struct open_rowset *made = make(table, txn, rowset, of_table, tablet);
    if (made == NULL)
        return TG_NOMEM;
    int err = 0;
    pthread_mutex_lock(&table->lock);
    struct open_rowset **link = find_link(table, tablet, rowset);
    if (is_dead(table, txn) && !is_held(table, tablet))
        err = TG_REFUSED;
    else if (table->count >= ROWSET_OPEN_MAX || *link != NULL)
        err = TG_BUSY;
    if (err == 0) {
        *link = made;
        table->count++;
    }
    pthread_mutex_unlock(&table->lock);
    if (err != 0) {
        atomic_store(&made->refs, 1);
        open_rowset_release(made);
        return err;
    }
    *open = made;
    return 0;
}

/* Nobody may be left waiting for what will not go on. */
static void spoil(struct open_rowset *open, int err)
{
    pthread_mutex_lock(&open->lock);
    if (open->err == 0)
        open->err = err;
    pthread_cond_broadcast(&open->staged_changed);
    pthread_mutex_unlock(&open->lock);
}

void open_table_remove(struct open_table *table, struct open_rowset *open, int err)
{
    pthread_mutex_lock(&table->lock);
    struct open_rowset **link = find_link(table, open->tablet, open->rowset);
    bool found = *link == open;
    if (found) {
        *link = open->next;
        table->count--;
    }
    pthread_mutex_unlock(&table->lock);
    spoil(open, err);
    if (found)
        open_rowset_release(open);
}

void open_rowset_release(struct open_rowset *open)
{
    if (atomic_fetch_sub(&open->refs, 1) != 1)
        return;
    atomic_fetch_sub(&open->table->tail_bytes, open->tail.len);
    digest_stream_close(open->digest);
    buf_close(&open->tail);
    pthread_cond_destroy(&open->staged_changed);
    pthread_mutex_destroy(&open->lock);
    free(open);
}

bool open_table_is_dead(struct open_table *table, txn_id txn, tablet_id tablet)
{
    pthread_mutex_lock(&table->lock);
    bool dead = is_dead(table, txn) && !is_held(table, tablet);
    pthread_mutex_unlock(&table->lock);
    return dead;
}

void open_table_set_low_water(struct open_table *table, txn_id low_water)
{
    pthread_mutex_lock(&table->lock);
    if (low_water > table->low_water)
        table->low_water = low_water;
    pthread_mutex_unlock(&table->lock);
}

void open_table_kill(struct open_table *table, txn_id txn)
{
    struct open_rowset *killed = NULL;
    pthread_mutex_lock(&table->lock);
    table->dead[txn % OPEN_DEAD_MAX] = txn;
    for (uint32_t i = 0; i < OPEN_BUCKETS && table->count > 0; i++) {
        struct open_rowset **link = &table->buckets[i];
        while (*link != NULL) {
            struct open_rowset *open = *link;
            if (open->txn != txn || is_held(table, open->tablet)) {
                link = &open->next;
                continue;
            }
            *link = open->next;
            open->next = killed;
            killed = open;
            table->count--;
        }
    }
    pthread_mutex_unlock(&table->lock);
    while (killed != NULL) {
        struct open_rowset *next = killed->next;
        spoil(killed, TG_REFUSED);
        open_rowset_release(killed);
        killed = next;
    }
}

void open_table_count(struct open_table *table, uint64_t *rowsets, uint64_t *bytes)
{
    pthread_mutex_lock(&table->lock);
    *rowsets = table->count;
    pthread_mutex_unlock(&table->lock);
    *bytes = atomic_load(&table->tail_bytes);
}

int open_table_txns(struct open_table *table, txn_id after, txn_id **txns, uint32_t *count)
{
    *txns = NULL;
    *count = 0;
    pthread_mutex_lock(&table->lock);
    int err = 0;
    if (table->count > 0) {
        *txns = malloc(table->count * sizeof **txns);
        err = *txns == NULL ? TG_NOMEM : 0;
    }
    for (uint32_t i = 0; i < OPEN_BUCKETS && *txns != NULL; i++) {
        for (struct open_rowset *open = table->buckets[i]; open != NULL; open = open->next) {
            if (open->txn > after)
                (*txns)[(*count)++] = open->txn;
        }
    }
    pthread_mutex_unlock(&table->lock);
    return err;
}
