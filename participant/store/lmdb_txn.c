/* SPDX-License-Identifier: Apache-2.0 */
/* LMDB transactions and cursors with a sticky error. */
#include "participant/store/lmdb_txn.h"

#include <string.h>

static int begin(struct lmdb_env *env, unsigned flags, struct lmdb_txn *txn)
{
    *txn = (struct lmdb_txn){.env = env};
    txn->err = lmdb_env_err(env, "begin", mdb_txn_begin(env->env, NULL, flags, &txn->txn));
    if (txn->err != 0)
        txn->txn = NULL;
    return txn->err;
}

int lmdb_txn_read(struct lmdb_env *env, struct lmdb_txn *txn)
{
    return begin(env, MDB_RDONLY, txn);
}

int lmdb_txn_write(struct lmdb_env *env, struct lmdb_txn *txn)
{
    return begin(env, 0, txn);
}

void lmdb_txn_abort(struct lmdb_txn *txn)
{
    if (txn->txn != NULL)
        mdb_txn_abort(txn->txn);
    txn->txn = NULL;
}

int lmdb_txn_commit(struct lmdb_txn *txn)
{
    if (txn->err != 0) {
        lmdb_txn_abort(txn);
        return txn->err;
    }
    /* The transaction is gone, whatever the commit says. */
    int code = mdb_txn_commit(txn->txn);
    txn->txn = NULL;
    txn->err = lmdb_env_commit_err(txn->env, code);
    return txn->err;
}

static MDB_val val_of(struct slice bytes)
{
    return (MDB_val){.mv_size = bytes.len, .mv_data = (void *)(uintptr_t)bytes.data};
}

/* 0, or MDB_NOTFOUND, or the error became sticky. */
static int note(struct lmdb_txn *txn, const char *what, int code)
{
    if (code != 0 && code != MDB_NOTFOUND)
        txn->err = lmdb_env_err(txn->env, what, code);
    return code;
}

bool lmdb_txn_get(struct lmdb_txn *txn, MDB_dbi database, struct slice key, struct slice *value)
{
    MDB_val at = val_of(key);
    MDB_val found;
    *value = slice_of(NULL, 0);
    if (txn->err != 0 || note(txn, "get", mdb_get(txn->txn, database, &at, &found)) != 0)
        return false;
    *value = slice_of(found.mv_data, found.mv_size);
    return true;
}

void lmdb_txn_put(struct lmdb_txn *txn, MDB_dbi database, struct slice key, struct slice value)
{
    MDB_val at = val_of(key);
    MDB_val bytes = val_of(value);
    if (txn->err == 0)
        (void)note(txn, "put", mdb_put(txn->txn, database, &at, &bytes, 0));
}

void lmdb_txn_delete(struct lmdb_txn *txn, MDB_dbi database, struct slice key)
{
    MDB_val at = val_of(key);
    if (txn->err == 0)
        (void)note(txn, "delete", mdb_del(txn->txn, database, &at, NULL));
}

bool lmdb_cursor_open(struct lmdb_cursor *cursor, struct lmdb_txn *txn, MDB_dbi database)
{
    memset(cursor, 0, sizeof *cursor);
    cursor->txn = txn;
    return txn->err == 0 &&
           note(txn, "cursor", mdb_cursor_open(txn->txn, database, &cursor->cursor)) == 0;
}

void lmdb_cursor_close(struct lmdb_cursor *cursor)
{
    mdb_cursor_close(cursor->cursor);
}

static bool move(struct lmdb_cursor *cursor, MDB_val *key, MDB_cursor_op operation)
{
    MDB_val value;
    if (cursor->txn->err != 0 ||
        note(cursor->txn, "cursor", mdb_cursor_get(cursor->cursor, key, &value, operation)) != 0)
        return false;
    cursor->key = slice_of(key->mv_data, key->mv_size);
    cursor->value = slice_of(value.mv_data, value.mv_size);
    return true;
}

bool lmdb_cursor_seek(struct lmdb_cursor *cursor, struct slice key)
{
    MDB_val at = val_of(key);
    return move(cursor, &at, MDB_SET_RANGE);
}

bool lmdb_cursor_seek_back(struct lmdb_cursor *cursor, struct slice key)
{
    MDB_val at = val_of(key);
    if (!move(cursor, &at, MDB_SET_RANGE))
        return move(cursor, &at, MDB_LAST);
    if (slice_equal(cursor->key, key))
        return true;
    return move(cursor, &at, MDB_PREV);
}

bool lmdb_cursor_next(struct lmdb_cursor *cursor)
{
    MDB_val at = {0};
    return move(cursor, &at, MDB_NEXT);
}

void lmdb_cursor_delete(struct lmdb_cursor *cursor)
{
    if (cursor->txn->err == 0)
        (void)note(cursor->txn, "delete", mdb_cursor_del(cursor->cursor, 0));
}
