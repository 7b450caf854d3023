/* SPDX-License-Identifier: Apache-2.0 */
/* The moves between transaction states, all of them. */
#include "common/model/txn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { STATES = TXN_PRECOMMITTED + 1 };

static void test_exactly_the_drawn_moves_are_allowed(void **state)
{
    (void)state;
    static const bool MAY[STATES][STATES] = {
        [TXN_UNKNOWN] = {[TXN_PREPARE] = true},
        [TXN_PREPARE] = {[TXN_PRECOMMITTED] = true, [TXN_COMMITTED] = true, [TXN_ABORTED] = true},
        [TXN_PRECOMMITTED] = {[TXN_COMMITTED] = true, [TXN_ABORTED] = true},
        [TXN_COMMITTED] = {[TXN_VISIBLE] = true},
    };
    for (int from = 0; from < STATES; from++) {
        for (int to = 0; to < STATES; to++)
            assert_int_equal(txn_state_may_move((enum txn_state)from, (enum txn_state)to),
                             MAY[from][to]);
    }
    assert_false(txn_state_may_move((enum txn_state)77, TXN_ABORTED));
}

static void test_final_states_allow_no_move(void **state)
{
    (void)state;
    for (int from = 0; from < STATES; from++) {
        bool any = false;
        for (int to = 0; to < STATES; to++)
            any = any || txn_state_may_move((enum txn_state)from, (enum txn_state)to);
        assert_int_equal(txn_state_is_final((enum txn_state)from), !any);
    }
}

static void test_states_have_the_names_that_clients_know(void **state)
{
    (void)state;
    assert_string_equal(txn_state_name(TXN_UNKNOWN), "UNKNOWN");
    assert_string_equal(txn_state_name(TXN_PREPARE), "PREPARE");
    assert_string_equal(txn_state_name(TXN_PRECOMMITTED), "PRECOMMITTED");
    assert_string_equal(txn_state_name(TXN_COMMITTED), "COMMITTED");
    assert_string_equal(txn_state_name(TXN_VISIBLE), "VISIBLE");
    assert_string_equal(txn_state_name(TXN_ABORTED), "ABORTED");
    assert_string_equal(txn_state_name((enum txn_state)77), "UNKNOWN");
    assert_string_equal(txn_state_job_status(TXN_PREPARE), "RUNNING");
    assert_string_equal(txn_state_job_status(TXN_PRECOMMITTED), "PRECOMMITTED");
    assert_string_equal(txn_state_job_status(TXN_COMMITTED), "FINISHED");
    assert_string_equal(txn_state_job_status(TXN_VISIBLE), "FINISHED");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exactly_the_drawn_moves_are_allowed),
        cmocka_unit_test(test_final_states_allow_no_move),
        cmocka_unit_test(test_states_have_the_names_that_clients_know),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
