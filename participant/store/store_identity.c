/* SPDX-License-Identifier: Apache-2.0 */
/* Who this node is: six values in the sub-database `meta`. */
#include <string.h>

#include "common/base/endian.h"
#include "participant/store/store.h"
#include "participant/store/store_internal.h"

enum { NUMBER_BYTES = 8, IDENTITY_BYTES = 512 };

static void get_text(struct lmdb_txn *txn, MDB_dbi db, const char *name, char *out, size_t cap,
                     int *err)
{
    struct slice value;
    out[0] = '\0';
    if (!lmdb_txn_get(txn, db, slice_str(name), &value))
        return;
    if (value.len >= cap) {
        *err = TG_CORRUPT;
        return;
    }
    memcpy(out, value.data, value.len);
    out[value.len] = '\0';
}

static uint64_t get_number(struct lmdb_txn *txn, MDB_dbi db, const char *name, int *err)
{
    struct slice value;
    if (!lmdb_txn_get(txn, db, slice_str(name), &value))
        return 0;
    if (value.len != NUMBER_BYTES) {
        *err = TG_CORRUPT;
        return 0;
    }
    return load_u64le(value.data);
}

int store_identity_load(struct store *store, struct store_identity *identity)
{
    struct lmdb_txn txn;
    MDB_dbi db = store->db_meta;
    memset(identity, 0, sizeof *identity);
    int err = lmdb_txn_read(&store->meta, &txn);
    if (err != 0)
        return err;
    get_text(&txn, db, "node_uuid", identity->node_uuid, sizeof identity->node_uuid, &err);
    get_text(&txn, db, "cluster_uuid", identity->cluster_uuid, sizeof identity->cluster_uuid, &err);
    uint64_t node = get_number(&txn, db, "node", &err);
    identity->nonce = get_number(&txn, db, "nonce", &err);
    identity->pending_nonce = get_number(&txn, db, "pending_nonce", &err);
    identity->epoch = get_number(&txn, db, "epoch", &err);
    identity->node = (node_id)node;
    if (node > UINT32_MAX)
        err = TG_CORRUPT;
    if (err == 0)
        err = txn.err;
    lmdb_txn_abort(&txn);
    return err;
}

struct save {
    const struct store *store;
    const struct store_identity *identity;
};

static void put_number(struct lmdb_txn *txn, MDB_dbi db, const char *name, uint64_t number)
{
    uint8_t bytes[NUMBER_BYTES];
    store_u64le(bytes, number);
    lmdb_txn_put(txn, db, slice_str(name), slice_of(bytes, sizeof bytes));
}

static int apply_save(void *data, struct lmdb_txn *txn)
{
    const struct save *save = data;
    MDB_dbi db = save->store->db_meta;
    lmdb_txn_put(txn, db, slice_str("node_uuid"), slice_str(save->identity->node_uuid));
    lmdb_txn_put(txn, db, slice_str("cluster_uuid"), slice_str(save->identity->cluster_uuid));
    put_number(txn, db, "node", save->identity->node);
    put_number(txn, db, "nonce", save->identity->nonce);
    put_number(txn, db, "pending_nonce", save->identity->pending_nonce);
    put_number(txn, db, "epoch", save->identity->epoch);
    return 0;
}

int store_identity_save(struct store *store, const struct store_identity *identity)
{
    struct save save = {store, identity};
    /* It may use the reserve: a node with a full disk must be able to start. */
    return store_writer_run(store->meta_writer, true, IDENTITY_BYTES, apply_save, &save);
}
