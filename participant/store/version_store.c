/* SPDX-License-Identifier: Apache-2.0 */
/* Versions of tablets: binding under the meta writer, and reading them all at start. */
#include "participant/store/version_store.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/failpoint.h"
#include "common/base/log.h"
#include "participant/store/store_internal.h"
#include "participant/store/store_keys.h"

enum { BIND_BYTES = 160, BIND_ROWSET_BYTES = 96 };

struct bind_job {
    struct store_job job; /* first */
    struct store *store;
    const struct publish_bind *binds;
    uint32_t count;
    uint64_t now_us;
    bind_decide decide;
    uint8_t *status;
    version_store_done done;
    void *data;
    struct bind_staged staged[LOADS_PER_TXN_MAX]; /* of the bind that is looked at */
};

/* The tablet's last version; a tablet that is being dropped takes none. */
static int read_tablet(struct bind_job *self, struct lmdb_txn *txn, const struct publish_bind *bind,
                       struct tablet_value *value)
{
    struct store_key key;
    struct slice bytes;
    store_key_tablet(&key, bind->tablet);
    *value = (struct tablet_value){
        .state = TABLET_LIVE, .table = bind->table, .partition = STORE_PARTITION, .schema = 1};
    if (!lmdb_txn_get(txn, self->store->db_tablet, store_key_slice(&key), &bytes))
        return txn->err;
    return tablet_value_decode(bytes, value);
}

static bool same_version(const struct version_value *value, const struct publish_bind *bind)
{
    if (value->txn != bind->txn || value->prev != bind->prev || value->replace != bind->replace ||
        value->rowset_count != bind->rowset_count)
        return false;
    for (uint32_t i = 0; i < bind->rowset_count; i++) {
        struct publish_rowset rowset;
        version_value_rowset(value, i, &rowset);
        if (rowset.rowset != bind->rowsets[i].rowset ||
            !digest_equal(&rowset.digest, &bind->rowsets[i].digest))
            return false;
    }
    return true;
}

static int read_facts(struct bind_job *self, struct lmdb_txn *txn, const struct publish_bind *bind,
                      struct bind_facts *facts)
{
    struct store_key key;
    struct slice bytes;
    struct version_value version;
    store_key_version(&key, bind->tablet, bind->version);
    facts->bound = lmdb_txn_get(txn, self->store->db_version, store_key_slice(&key), &bytes);
    if (facts->bound) {
        int err = version_value_decode(bytes, &version);
        if (err != 0)
            return err;
        facts->bound_same = same_version(&version, bind);
    }
    for (uint32_t i = 0; i < bind->rowset_count; i++) {
        struct staged_value staged;
        self->staged[i].sealed = false;
        store_key_staged(&key, bind->txn, bind->rowsets[i].rowset, bind->tablet);
        if (!lmdb_txn_get(txn, self->store->db_staged, store_key_slice(&key), &bytes))
            continue;
        int err = staged_value_decode(bytes, &staged);
        if (err != 0)
            return err;
        self->staged[i] = (struct bind_staged){staged.state == STAGED_SEALED, staged.digest};
    }
    facts->staged = self->staged;
    return txn->err;
}

/* They are bound, so they are staged no longer. Also for a version that was bound before, when a
 * repair has staged one of its rowsets again; what is not complete stays as it is. */
static int end_staged(struct bind_job *self, struct lmdb_txn *txn, const struct publish_bind *bind)
{
    for (uint32_t i = 0; i < bind->rowset_count; i++) {
        struct store_key key;
        store_key_staged(&key, bind->txn, bind->rowsets[i].rowset, bind->tablet);
        if (self->staged[i].sealed &&
            digest_equal(&self->staged[i].digest, &bind->rowsets[i].digest))
            lmdb_txn_delete(txn, self->store->db_staged, store_key_slice(&key));
    }
    return txn->err;
}

static int write_bind(struct bind_job *self, struct lmdb_txn *txn, const struct publish_bind *bind,
                      struct tablet_value *tablet)
{
    struct version_value version = {.replace = bind->replace,
                                    .prev = bind->prev,
                                    .txn = bind->txn,
                                    .table = bind->table,
                                    .bound_us = self->now_us,
                                    .rowset_count = bind->rowset_count};
    struct buf bytes = BUF_INIT;
    struct store_key key;
    version_value_encode(&version, bind->rowsets, &bytes);
    store_key_version(&key, bind->tablet, bind->version);
    lmdb_txn_put(txn, self->store->db_version, store_key_slice(&key),
                 slice_of(bytes.data, bytes.len));
    size_t version_len = bytes.len;
    tablet->last = bind->version;
    tablet_value_encode(tablet, &bytes);
    store_key_tablet(&key, bind->tablet);
    if (bytes.err == 0)
        lmdb_txn_put(txn, self->store->db_tablet, store_key_slice(&key),
                     slice_of(bytes.data + version_len, bytes.len - version_len));
    int err = bytes.err;
    buf_close(&bytes);
    return err != 0 ? err : end_staged(self, txn, bind);
}

static int apply_bind(struct bind_job *self, struct lmdb_txn *txn, const struct publish_bind *bind,
                      uint8_t *status)
{
    struct tablet_value tablet;
    struct bind_facts facts = {0};
    int err = read_tablet(self, txn, bind, &tablet);
    if (err == 0 && tablet.state == TABLET_DROPPING) {
        *status = PUBLISH_BEHIND;
        return 0;
    }
    facts.last = tablet.last;
    if (err == 0)
        err = read_facts(self, txn, bind, &facts);
    if (err != 0)
        return err;
    *status = (uint8_t)self->decide(bind, &facts);
    if (*status != PUBLISH_BOUND)
        return 0;
    return facts.bound ? end_staged(self, txn, bind) : write_bind(self, txn, bind, &tablet);
}

static int bind_apply(struct store_job *job, struct lmdb_txn *txn)
{
    struct bind_job *self = (struct bind_job *)job;
    for (uint32_t i = 0; i < self->count; i++) {
        int err = apply_bind(self, txn, &self->binds[i], &self->status[i]);
        if (err == TG_CORRUPT && txn->err == 0) {
            /* A damaged record was read, before anything of this bind was written. The others are
             * not held up by it; the publisher puts this replica behind, so that it is repaired. */
            log_error("store", "damaged record tablet=%lu version=%lu txn=%lu",
                      self->binds[i].tablet, self->binds[i].version, self->binds[i].txn);
            self->status[i] = PUBLISH_MISSING;
            continue;
        }
        if (err != 0) {
            /* Earlier binds of the message may be in the transaction already: all or nothing. */
            txn->err = err;
            return err;
        }
    }
    FAILPOINT("part.bind_before_commit");
    return 0;
}

static void bind_done(struct store_job *job, int err)
{
    struct bind_job *self = (struct bind_job *)job;
    if (err != 0)
        memset(self->status, PUBLISH_FAILED, self->count);
    self->done(self->data, err);
    free(self);
}

int version_store_bind(struct store *store, const struct publish_bind *binds, uint32_t count,
                       uint64_t now_us, bind_decide decide, uint8_t *status,
                       version_store_done done, void *data)
{
    struct bind_job *self = calloc(1, sizeof *self);
    if (self == NULL)
        return TG_NOMEM;
    /* Binding finishes what was promised: it may use the reserve, also when the map is full. */
    self->job = (struct store_job){.shrinks = true, .apply = bind_apply, .done = bind_done};
    self->store = store;
    self->binds = binds;
    self->count = count;
    self->now_us = now_us;
    self->decide = decide;
    self->status = status;
    self->done = done;
    self->data = data;
    for (uint32_t i = 0; i < count; i++)
        self->job.bytes += BIND_BYTES + (size_t)binds[i].rowset_count * BIND_ROWSET_BYTES;
    int err = store_writer_submit(store->meta_writer, &self->job);
    if (err != 0)
        free(self);
    return err;
}

/* ---- all versions ---- */
struct walk {
    tablet_id tablet; /* where the chain below is; 0 = none yet */
    version_t last;
    bool dropping;
    version_t recorded; /* the tablet's own record of its last version */
    struct publish_rowset rowsets[LOADS_PER_TXN_MAX];
};

static int end_chain(const struct walk *walk)
{
    if (walk->tablet == 0 || walk->dropping || walk->last == walk->recorded)
        return 0;
    log_error("store", "broken version chain tablet=%lu last=%lu recorded=%lu", walk->tablet,
              walk->last, walk->recorded);
    return TG_CORRUPT;
}

static int begin_chain(struct store *store, struct lmdb_txn *txn, tablet_id tablet,
                       struct walk *walk)
{
    struct store_key key;
    struct slice bytes;
    struct tablet_value value;
    int err = end_chain(walk);
    if (err != 0)
        return err;
    store_key_tablet(&key, tablet);
    if (!lmdb_txn_get(txn, store->db_tablet, store_key_slice(&key), &bytes))
        return txn->err != 0 ? txn->err : TG_CORRUPT;
    err = tablet_value_decode(bytes, &value);
    walk->tablet = tablet;
    walk->last = 0;
    walk->dropping = value.state == TABLET_DROPPING;
    walk->recorded = value.last;
    return err;
}

static int walk_one(struct store *store, struct lmdb_txn *txn, struct lmdb_cursor *cursor,
                    struct walk *walk, int (*fn)(void *, const struct version_record *), void *data)
{
    uint64_t numbers[2];
    struct version_value value;
    int err = store_key_parse(cursor->key, 2, numbers);
    if (err == 0)
        err = version_value_decode(cursor->value, &value);
    if (err == 0 && numbers[0] != walk->tablet)
        err = begin_chain(store, txn, numbers[0], walk);
    if (err != 0 || walk->dropping)
        return err;
    /* The first one that is kept may have a prev that was cleaned away. */
    if (walk->last != 0 && value.prev != walk->last) {
        log_error("store", "hole in the versions tablet=%lu version=%lu prev=%lu last=%lu",
                  numbers[0], numbers[1], value.prev, walk->last);
        return TG_CORRUPT;
    }
    walk->last = numbers[1];
    for (uint32_t i = 0; i < value.rowset_count; i++)
        version_value_rowset(&value, i, &walk->rowsets[i]);
    struct version_record record = {.tablet = numbers[0],
                                    .table = value.table,
                                    .version = numbers[1],
                                    .prev = value.prev,
                                    .txn = value.txn,
                                    .replace = value.replace,
                                    .bound_us = value.bound_us,
                                    .rowset_count = value.rowset_count,
                                    .rowsets = walk->rowsets};
    return fn(data, &record);
}

int version_store_each(struct store *store, int (*fn)(void *data, const struct version_record *),
                       void *data)
{
    struct lmdb_txn txn;
    struct lmdb_cursor cursor;
    struct walk *walk = calloc(1, sizeof *walk);
    if (walk == NULL)
        return TG_NOMEM;
    int err = lmdb_txn_read(&store->meta, &txn);
    if (err != 0) {
        free(walk);
        return err;
    }
    if (lmdb_cursor_open(&cursor, &txn, store->db_version)) {
        while (err == 0 && lmdb_cursor_next(&cursor))
            err = walk_one(store, &txn, &cursor, walk, fn, data);
        lmdb_cursor_close(&cursor);
    }
    if (err == 0)
        err = txn.err;
    if (err == 0)
        err = end_chain(walk);
    lmdb_txn_abort(&txn);
    free(walk);
    return err;
}
