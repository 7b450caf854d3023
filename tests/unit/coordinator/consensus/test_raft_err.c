/* SPDX-License-Identifier: Apache-2.0 */
/* raft's codes: each has a name and an error of ours, and what leaves an outcome open says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <raft.h>

#include "common/base/err.h"
#include "coordinator/consensus/raft_err.h"

static void test_every_code_is_known(void **state)
{
    (void)state;
    assert_int_equal(raft_err(0), 0);
    assert_string_equal(raft_err_name(0), "OK");
    for (int code = RAFT_NOMEM; code <= RAFT_TOOMANY; code++) {
        assert_true(raft_err(code) < 0);
        assert_string_not_equal(raft_err_name(code), "UNKNOWN");
        assert_string_not_equal(tg_err_name(raft_err(code)), "UNKNOWN");
    }
    assert_int_equal(raft_err(RAFT_TOOMANY + 1), TG_IO);
    assert_string_equal(raft_err_name(RAFT_TOOMANY + 1), "UNKNOWN");
}

static void test_open_outcomes_stay_open_and_refusals_are_definite(void **state)
{
    (void)state;
    assert_int_equal(raft_err(RAFT_LEADERSHIPLOST), TG_UNKNOWN_OUTCOME);
    assert_int_equal(raft_err(RAFT_CANCELED), TG_UNKNOWN_OUTCOME);
    assert_int_equal(raft_err(RAFT_SHUTDOWN), TG_UNKNOWN_OUTCOME);
    assert_int_equal(raft_err(RAFT_NOTLEADER), TG_NOT_LEADER);
    assert_int_equal(raft_err(RAFT_NOSPACE), TG_NOSPACE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_code_is_known),
        cmocka_unit_test(test_open_outcomes_stay_open_and_refusals_are_definite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
