/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of statements done lately, and its part of a snapshot. */
#include "coordinator/state/statements.h"

#include "common/base/msgpack.h"
#include "coordinator/state/apply.h"

enum { STATEMENT_FIELDS = 6 };

static uint32_t place(const struct statements *statements, uint32_t i)
{
    return (statements->oldest + i) % STATEMENTS_KEPT;
}

const struct done_statement *statements_find(const struct statements *statements,
                                             const struct request_key *key)
{
    if (request_key_is_zero(key))
        return NULL;
    /* From the newest: whoever asks again does so soon. */
    for (uint32_t i = statements->count; i > 0; i--) {
        const struct done_statement *done = &statements->list[place(statements, i - 1)];
        if (request_key_equal(&done->key, key))
            return done;
    }
    return NULL;
}

static struct done_statement *add(struct statements *statements)
{
    if (statements->count == STATEMENTS_KEPT)
        statements->oldest = place(statements, 1);
    else
        statements->count++;
    return &statements->list[place(statements, statements->count - 1)];
}

void statements_add(struct statements *statements, const struct request_key *key,
                    const struct apply_result *result)
{
    if (request_key_is_zero(key))
        return;
    *add(statements) = (struct done_statement){
        .key = *key, .table = result->table, .txn = result->txn, .time_us = result->time_us};
}

void statements_encode(const struct statements *statements, struct buf *out)
{
    mp_array(out, statements->count * STATEMENT_FIELDS);
    for (uint32_t i = 0; i < statements->count; i++) {
        const struct done_statement *done = &statements->list[place(statements, i)];
        mp_uint(out, done->key.node);
        mp_uint(out, done->key.epoch);
        mp_uint(out, done->key.request);
        mp_uint(out, done->table);
        mp_uint(out, done->txn);
        mp_uint(out, done->time_us);
    }
}

void statements_decode(struct cursor *cursor, struct statements *statements)
{
    uint32_t items = mp_read_array(cursor, STATEMENTS_KEPT * STATEMENT_FIELDS);

    if (items % STATEMENT_FIELDS != 0)
        cursor_fail(cursor, TG_CORRUPT);
    for (uint32_t i = 0; cursor->err == 0 && i < items / STATEMENT_FIELDS; i++) {
        struct done_statement *done = add(statements);
        done->key.node = (node_id)mp_read_uint_max(cursor, UINT32_MAX);
        done->key.epoch = mp_read_uint(cursor);
        done->key.request = mp_read_uint(cursor);
        done->table = mp_read_uint(cursor);
        done->txn = mp_read_uint(cursor);
        done->time_us = mp_read_uint(cursor);
        if (request_key_is_zero(&done->key))
            cursor_fail(cursor, TG_CORRUPT);
    }
}
