/* SPDX-License-Identifier: Apache-2.0 */
/* LMDB transactions and cursors with a sticky error: a straight line of gets and puts whose outcome
 * is looked at once. */
#ifndef TG_PARTICIPANT_STORE_LMDB_TXN_H
#define TG_PARTICIPANT_STORE_LMDB_TXN_H

#include <stdbool.h>

#include "common/base/buf.h"
#include "participant/store/lmdb_env.h"

/* Keys and values that are read lie in the map: good until the transaction ends or, in a writing
 * one, until its next change. */
struct lmdb_txn {
    struct lmdb_env *env;
    MDB_txn *txn;
    int err; /* the first error, TG_NOSPACE for instance; "not there" is none */
};

/* 0, or why it could not begin (TG_BUSY: LMDB_READERS_MAX): then there is nothing to end. */
int lmdb_txn_read(struct lmdb_env *env, struct lmdb_txn *txn);
/* One at a time; must end on the thread that began it. */
int lmdb_txn_write(struct lmdb_env *env, struct lmdb_txn *txn);
void lmdb_txn_abort(struct lmdb_txn *txn);
/* Durable if 0. A sticky error aborts and comes back. */
int lmdb_txn_commit(struct lmdb_txn *txn);

/* False if there is no such key, or on an error. */
bool lmdb_txn_get(struct lmdb_txn *txn, MDB_dbi database, struct slice key, struct slice *value);
void lmdb_txn_put(struct lmdb_txn *txn, MDB_dbi database, struct slice key, struct slice value);
/* Deleting what is not there is no error. */
void lmdb_txn_delete(struct lmdb_txn *txn, MDB_dbi database, struct slice key);

struct lmdb_cursor {
    struct lmdb_txn *txn;
    MDB_cursor *cursor;
    struct slice key; /* of the place it stands at */
    struct slice value;
};

/* False on an error (sticky); then there is nothing to close. */
bool lmdb_cursor_open(struct lmdb_cursor *cursor, struct lmdb_txn *txn, MDB_dbi database);
void lmdb_cursor_close(struct lmdb_cursor *cursor);
/* To the first key at or above `key`; false if there is none, or on an error. */
bool lmdb_cursor_seek(struct lmdb_cursor *cursor, struct slice key);
/* To the last key at or below `key`. */
bool lmdb_cursor_seek_back(struct lmdb_cursor *cursor, struct slice key);
bool lmdb_cursor_next(struct lmdb_cursor *cursor);
/* Deletes the entry it stands at; lmdb_cursor_next then goes to the one behind. */
void lmdb_cursor_delete(struct lmdb_cursor *cursor);

#endif
