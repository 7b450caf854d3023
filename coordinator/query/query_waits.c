/* SPDX-License-Identifier: Apache-2.0 */
/* Statements that are decided and wait until their transaction is visible. */
#include "coordinator/query/query_waits.h"

#include "coordinator/query/query_call.h"

static void leave(struct query_waits *waits, struct query_call *call)
{
    if (call->prev != NULL)
        call->prev->next = call->next;
    else
        waits->first = call->next;
    if (call->next != NULL)
        call->next->prev = call->prev;
}

static bool is_on_its_way(const struct state *state, txn_id id)
{
    const struct txn *txn = txn_table_find(&state->txns, id);

    return txn != NULL && txn->state == TXN_COMMITTED;
}

void query_wait_visible(struct query_call *call, txn_id txn)
{
    struct query_waits *waits = call->context.waits;

    if (waits == NULL || !is_on_its_way(query_state(call), txn)) {
        query_answer_done(call);
        return;
    }
    call->waits_for = txn;
    call->until_ms = query_now_ms(call) + QUERY_VISIBLE_WAIT_MS;
    call->next = waits->first;
    if (waits->first != NULL)
        waits->first->prev = call;
    waits->first = call;
}

void query_waits_run(struct query_waits *waits, const struct state *state, uint64_t now_ms)
{
    struct query_call *next;

    for (struct query_call *call = waits->first; call != NULL; call = next) {
        next = call->next;
        if (is_on_its_way(state, call->waits_for) && now_ms < call->until_ms)
            continue;
        leave(waits, call);
        query_answer_done(call);
    }
}

void query_waits_end(struct query_waits *waits)
{
    while (waits->first != NULL) {
        struct query_call *call = waits->first;

        leave(waits, call);
        query_answer_done(call);
    }
}
