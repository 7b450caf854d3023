/* SPDX-License-Identifier: Apache-2.0 */
/* What of rowsets lies in the store. Four sources are read into one array, each with what it knows
 * of a rowset; sorted, all that is known of one stands together. */
#include "participant/store/rowset_list.h"

#include <stdlib.h>
#include <string.h>

#include "participant/store/store_internal.h"
#include "participant/store/store_keys.h"

enum { LIST_MIN = 256 };

enum known { KNOWN_EXTENTS = 1, KNOWN_RECORD = 2, KNOWN_BOUND = 4, KNOWN_STAGED = 8 };

struct fact {
    tablet_id tablet;
    rowset_id rowset;
    txn_id txn;
    uint8_t known;  /* one of enum known */
    uint8_t staged; /* KNOWN_STAGED: enum staged_state */
};

struct facts {
    struct fact *facts;
    uint32_t count;
    uint32_t capacity;
};

static int add(struct facts *facts, const struct fact *fact)
{
    if (facts->count == 4u * ROWSET_LIST_MAX)
        return TG_LIMIT;
    if (facts->count == facts->capacity) {
        uint32_t capacity = facts->capacity == 0 ? LIST_MIN : facts->capacity * 2;
        struct fact *more = realloc(facts->facts, capacity * sizeof *more);

        if (more == NULL)
            return TG_NOMEM;
        facts->facts = more;
        facts->capacity = capacity;
    }
    facts->facts[facts->count++] = *fact;
    return 0;
}

/* ---- the sources ---- */

/* From one rowset's extents to the next one's. */
static int take_extents(struct store *store, enum block_class class, struct facts *facts)
{
    struct lmdb_txn txn;
    struct lmdb_cursor cursor;
    struct store_key key;
    uint64_t numbers[3];
    int err = lmdb_txn_read(&store->blocks[class], &txn);

    if (err != 0)
        return err;
    if (lmdb_cursor_open(&cursor, &txn, store->db_block[class])) {
        bool there = lmdb_cursor_next(&cursor);

        while (there && err == 0) {
            err = store_key_parse(cursor.key, 3, numbers);
            if (err == 0)
                err = add(facts, &(struct fact){.tablet = numbers[0],
                                                .rowset = numbers[1],
                                                .known = KNOWN_EXTENTS});
            store_key_block(&key, numbers[0], numbers[1], UINT64_MAX);
            there = err == 0 && lmdb_cursor_seek(&cursor, store_key_slice(&key));
        }
        lmdb_cursor_close(&cursor);
    }
    if (err == 0)
        err = txn.err;
    lmdb_txn_abort(&txn);
    return err;
}

static int take_record(struct slice key, struct slice bytes, struct facts *facts)
{
    struct rowset_value value;
    uint64_t numbers[2];
    int err = store_key_parse(key, 2, numbers);

    if (err == 0)
        err = rowset_value_peek(bytes, &value);
    if (err != 0)
        return err;
    return add(facts, &(struct fact){.tablet = numbers[0],
                                     .rowset = numbers[1],
                                     .txn = value.txn,
                                     .known = KNOWN_RECORD});
}

static int take_staged(struct slice key, struct slice bytes, struct facts *facts)
{
    struct staged_value value;
    uint64_t numbers[3];
    int err = store_key_parse(key, 3, numbers);

    if (err == 0)
        err = staged_value_decode(bytes, &value);
    if (err != 0)
        return err;
    return add(facts, &(struct fact){.txn = numbers[0],
                                     .rowset = numbers[1],
                                     .tablet = numbers[2],
                                     .known = KNOWN_STAGED,
                                     .staged = value.state});
}

static int take_version(struct slice key, struct slice bytes, struct facts *facts)
{
    struct version_value value;
    uint64_t numbers[2];
    int err = store_key_parse(key, 2, numbers);

    if (err == 0)
        err = version_value_decode(bytes, &value);
    for (uint32_t i = 0; err == 0 && i < value.rowset_count; i++) {
        struct publish_rowset rowset;

        version_value_rowset(&value, i, &rowset);
        err = add(facts, &(struct fact){.tablet = numbers[0],
                                        .rowset = rowset.rowset,
                                        .txn = value.txn,
                                        .known = KNOWN_BOUND});
    }
    return err;
}

static int take_all(struct lmdb_txn *txn, MDB_dbi database,
                    int (*take)(struct slice key, struct slice bytes, struct facts *facts),
                    struct facts *facts)
{
    struct lmdb_cursor cursor;
    int err = 0;

    if (!lmdb_cursor_open(&cursor, txn, database))
        return txn->err;
    for (bool there = lmdb_cursor_next(&cursor); there && err == 0;
         there = lmdb_cursor_next(&cursor))
        err = take(cursor.key, cursor.value, facts);
    lmdb_cursor_close(&cursor);
    return err != 0 ? err : txn->err;
}

static int take_meta(struct store *store, struct facts *facts)
{
    struct lmdb_txn txn;
    int err = lmdb_txn_read(&store->meta, &txn);

    if (err != 0)
        return err;
    err = take_all(&txn, store->db_rowset, take_record, facts);
    if (err == 0)
        err = take_all(&txn, store->db_staged, take_staged, facts);
    if (err == 0)
        err = take_all(&txn, store->db_version, take_version, facts);
    lmdb_txn_abort(&txn);
    return err;
}

/* ---- what they say together ---- */

static int by_rowset(const void *a, const void *b)
{
    const struct fact *x = a;
    const struct fact *y = b;

    if (x->tablet != y->tablet)
        return x->tablet < y->tablet ? -1 : 1;
    return x->rowset < y->rowset ? -1 : x->rowset > y->rowset;
}

static enum rowset_standing standing_of(unsigned known, unsigned staged)
{
    if ((known & KNOWN_STAGED) != 0 && staged == STAGED_DROPPING)
        return ROWSET_STANDING_DROPPING;
    if ((known & KNOWN_BOUND) != 0 && (known & KNOWN_RECORD) == 0)
        return ROWSET_STANDING_MISSING;
    if ((known & KNOWN_STAGED) != 0)
        return staged == STAGED_SEALED ? ROWSET_STANDING_SEALED : ROWSET_STANDING_OPEN;
    return (known & KNOWN_BOUND) != 0 ? ROWSET_STANDING_BOUND : ROWSET_STANDING_LEAKED;
}

static int join(const struct facts *facts, struct rowset_listed **list, uint32_t *count)
{
    struct rowset_listed *joined = malloc((facts->count + (size_t)1) * sizeof *joined);

    if (joined == NULL)
        return TG_NOMEM;
    *count = 0;
    for (uint32_t i = 0; i < facts->count;) {
        struct rowset_listed *one = &joined[(*count)++];
        unsigned known = 0;
        unsigned staged = 0;

        *one = (struct rowset_listed){.tablet = facts->facts[i].tablet,
                                      .rowset = facts->facts[i].rowset};
        for (; i < facts->count && facts->facts[i].tablet == one->tablet &&
               facts->facts[i].rowset == one->rowset;
             i++) {
            known |= facts->facts[i].known;
            staged |= facts->facts[i].staged;
            if (facts->facts[i].txn != 0)
                one->txn = facts->facts[i].txn;
        }
        one->standing = standing_of(known, staged);
    }
    *list = joined;
    return *count > ROWSET_LIST_MAX ? TG_LIMIT : 0;
}

int rowset_list(struct store *store, struct rowset_listed **list, uint32_t *count)
{
    struct facts facts = {0};

    *list = NULL;
    *count = 0;
    /* Extents first: those that are seen have had their staged record before. */
    int err = take_extents(store, BLOCKS_64K, &facts);
    if (err == 0)
        err = take_extents(store, BLOCKS_256K, &facts);
    if (err == 0)
        err = take_meta(store, &facts);
    if (err == 0 && facts.count > 0)
        qsort(facts.facts, facts.count, sizeof *facts.facts, by_rowset);
    if (err == 0)
        err = join(&facts, list, count);
    free(facts.facts);
    if (err != 0) {
        free(*list);
        *list = NULL;
    }
    return err;
}
