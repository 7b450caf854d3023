/* SPDX-License-Identifier: Apache-2.0 */
/* Finished transactions that are kept encoded are what an encoder would make of them now. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "coordinator/state/apply.h"
#include "tests/lib/state_builder.h"

enum { TXNS = 1200 };

static void setup(struct state_builder *b)
{
    state_builder_init(b);
    b->state.limits.label_keep_ms = 0;
    state_builder_members(b, 1, 1);
    assert_int_equal(state_builder_db(b, "d"), 0);
    struct state_builder_table table = {.db = "d", .table = "t", .buckets = 1, .replication = 1};
    assert_int_equal(state_builder_table(b, &table), 0);
}

static void finish_one(struct state_builder *b, int i)
{
    char label[32];

    snprintf(label, sizeof label, "label-%d", i);
    if (i % 3 == 0) {
        assert_int_equal(state_builder_begin(b, 1, "d", "t", label, true), 0);
        assert_int_equal(state_builder_finish(b, COMMAND_TXN_ABORT, b->last.txn), 0);
    } else {
        state_builder_load(b, "d", "t", label);
    }
}

static void check_bytes(const struct state *state)
{
    struct buf kept = BUF_INIT;
    struct buf fresh = BUF_INIT;

    txn_shelves_encode(&state->txns, &kept);
    for (const struct txn *txn = state->txns.finished.first; txn != NULL; txn = txn->next)
        txn_encode(txn, &fresh);
    assert_int_equal(kept.len, fresh.len);
    if (fresh.len > 0)
        assert_memory_equal(kept.data, fresh.data, fresh.len);
    buf_close(&kept);
    buf_close(&fresh);
}

static void forget(struct state_builder *b, txn_id txn)
{
    assert_int_equal(state_builder_forget(b, txn), 0);
    assert_null(txn_table_find(&b->state.txns, txn));
}

static void test_what_is_kept_encoded_is_what_the_list_holds(void **unused)
{
    (void)unused;
    struct state_builder b;
    setup(&b);
    for (int i = 0; i < TXNS; i++) {
        finish_one(&b, i);
        if (i % 100 == 99)
            check_bytes(&b.state);
    }
    /* A whole shelf from its front, one in the middle from its end, some here and there. */
    txn_id first = b.state.txns.finished.first->id;
    for (txn_id id = first; id < first + 300; id++)
        forget(&b, id);
    check_bytes(&b.state);
    for (txn_id id = first + 800; id > first + 500; id--)
        forget(&b, id);
    check_bytes(&b.state);
    for (txn_id id = first + 900; id < first + TXNS; id += 7)
        forget(&b, id);
    check_bytes(&b.state);
    uint64_t hash = state_hash(&b.state);
    state_builder_restore(&b); /* whose shelves begin and end elsewhere */
    assert_int_equal(state_hash(&b.state), hash);
    check_bytes(&b.state);
    while (b.state.txns.finished.first != NULL)
        forget(&b, b.state.txns.finished.first->id);
    check_bytes(&b.state);
    for (int i = 0; i < 300; i++)
        finish_one(&b, TXNS + i);
    check_bytes(&b.state);
    state_builder_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_kept_encoded_is_what_the_list_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
