/* SPDX-License-Identifier: Apache-2.0 */
/* What a leader does next so that raft's configuration follows the list; who may be dropped; who may
 * start from an empty directory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "coordinator/members/members_plan.h"

static struct coordinators list_of(uint32_t count)
{
    struct coordinators list = {.next_id = count + 1, .count = count};

    for (uint32_t i = 0; i < count; i++) {
        list.list[i].id = i + 1;
        list.list[i].standing = COORDINATOR_VOTES;
    }
    return list;
}

static struct consensus_servers voters_of(uint32_t count)
{
    struct consensus_servers servers = {.count = count, .last_index = 10000};

    for (uint32_t i = 0; i < count; i++)
        servers.list[i] = (struct consensus_server){i + 1, CONSENSUS_VOTER, 10000};
    return servers;
}

static void expect(const struct coordinators *list, const struct consensus_servers *servers,
                   struct members_plan wanted)
{
    struct members_plan plan = members_plan(list, servers, 1);

    assert_int_equal(plan.act, wanted.act);
    assert_int_equal(plan.id, wanted.id);
    assert_int_equal(plan.command, wanted.command);
    assert_int_equal(plan.step, wanted.step);
}

static void test_a_list_at_rest_wants_nothing(void **state)
{
    struct coordinators list = list_of(3);
    struct consensus_servers servers = voters_of(3);

    (void)state;
    expect(&list, &servers, (struct members_plan){.act = MEMBERS_REST});
}

static void test_founders_are_written_down_in_the_order_of_ids(void **state)
{
    struct coordinators list = {0};
    struct consensus_servers servers = voters_of(3);

    (void)state;
    servers.list[0].id = 3;
    servers.list[2].id = 1;
    expect(&list, &servers,
           (struct members_plan){MEMBERS_PROPOSE, 1, COMMAND_COORDINATOR_FOUND, 0});
}

static void test_one_that_joins_goes_through_its_roles(void **state)
{
    struct coordinators list = list_of(4);
    struct consensus_servers servers = voters_of(3);
    struct consensus_server *fourth = &servers.list[3];

    (void)state;
    list.list[3].standing = COORDINATOR_JOINS;
    expect(&list, &servers, (struct members_plan){MEMBERS_STEP, 4, 0, CONSENSUS_STEP_ADD});
    servers.count = 4;
    *fourth = (struct consensus_server){4, CONSENSUS_SPARE, 0};
    expect(&list, &servers, (struct members_plan){MEMBERS_STEP, 4, 0, CONSENSUS_STEP_STANDBY});
    fourth->role = CONSENSUS_STANDBY;
    expect(&list, &servers, (struct members_plan){.act = MEMBERS_REST}); /* it has nothing yet */
    fourth->match_index = servers.last_index - MEMBERS_LAG_MAX - 1;
    expect(&list, &servers, (struct members_plan){.act = MEMBERS_REST}); /* too little */
    fourth->match_index++;
    expect(&list, &servers,
           (struct members_plan){MEMBERS_PROPOSE, 4, COMMAND_COORDINATOR_PROMOTE, 0});
    list.list[3].standing = COORDINATOR_VOTES;
    expect(&list, &servers, (struct members_plan){MEMBERS_STEP, 4, 0, CONSENSUS_STEP_VOTER});
    fourth->role = CONSENSUS_VOTER;
    expect(&list, &servers, (struct members_plan){.act = MEMBERS_REST});
}

static void test_one_that_leaves_is_removed_and_then_forgotten(void **state)
{
    struct coordinators list = list_of(3);
    struct consensus_servers servers = voters_of(3);

    (void)state;
    list.list[2].standing = COORDINATOR_LEAVES;
    expect(&list, &servers, (struct members_plan){MEMBERS_STEP, 3, 0, CONSENSUS_STEP_REMOVE});
    servers.count = 2;
    expect(&list, &servers, (struct members_plan){MEMBERS_PROPOSE, 3, COMMAND_COORDINATOR_GONE, 0});
}

static void test_a_leader_that_leaves_lets_another_lead_first(void **state)
{
    struct coordinators list = list_of(3);
    struct consensus_servers servers = voters_of(3);

    (void)state;
    list.list[0].standing = COORDINATOR_LEAVES;
    expect(&list, &servers, (struct members_plan){.act = MEMBERS_TRANSFER, .id = 1});
}

static void test_nothing_is_begun_while_a_change_is_under_way(void **state)
{
    struct coordinators list = list_of(3);
    struct consensus_servers servers = voters_of(3);

    (void)state;
    list.list[2].standing = COORDINATOR_LEAVES;
    servers.changing = true;
    expect(&list, &servers, (struct members_plan){.act = MEMBERS_REST});
}

static void test_who_was_cut_off_by_a_recovery_is_forgotten(void **state)
{
    struct coordinators list = list_of(3);
    struct consensus_servers servers = voters_of(1);

    (void)state;
    expect(&list, &servers, (struct members_plan){MEMBERS_PROPOSE, 2, COMMAND_COORDINATOR_GONE, 0});
}

static void test_a_drop_that_would_cost_the_majority_is_refused(void **state)
{
    struct consensus_servers servers = voters_of(3);
    struct members_alive two = {2, {1, 2}};
    struct members_alive three = {3, {1, 2, 3}};
    struct tg_errmsg msg = {{0}};

    (void)state;
    assert_int_equal(members_may_drop(&servers, &two, 3, &msg), 0); /* the dead one may go */
    assert_int_equal(members_may_drop(&servers, &two, 2, &msg), TG_REFUSED);
    assert_non_null(strstr(msg.text, "only 1 of the 2"));
    assert_int_equal(members_may_drop(&servers, &three, 2, &msg), 0);
    servers.list[2].role = CONSENSUS_STANDBY; /* does not vote: nothing is lost with it */
    assert_int_equal(members_may_drop(&servers, &two, 3, &msg), 0);
}

static void test_an_empty_directory_starts_only_if_the_log_admitted_it(void **state)
{
    struct coordinators list = list_of(3);
    struct tg_errmsg msg = {{0}};

    (void)state;
    assert_int_equal(members_may_start(&list, 4, 7, &msg), MEMBERS_ENTRY_WAIT);
    assert_int_equal(members_may_start(&list, 3, 7, &msg), MEMBERS_ENTRY_REFUSED);
    assert_non_null(strstr(msg.text, "the next free one is 4"));
    list = list_of(4);
    list.list[3].standing = COORDINATOR_JOINS;
    list.list[3].nonce = 7;
    assert_int_equal(members_may_start(&list, 4, 7, &msg), MEMBERS_ENTRY_START);
    assert_int_equal(members_may_start(&list, 4, 8, &msg), MEMBERS_ENTRY_REFUSED);
    list.list[3].standing = COORDINATOR_VOTES; /* its log was lost: it may have voted with it */
    assert_int_equal(members_may_start(&list, 4, 7, &msg), MEMBERS_ENTRY_REFUSED);
    list.count = 3; /* dropped */
    assert_int_equal(members_may_start(&list, 4, 7, &msg), MEMBERS_ENTRY_REFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_list_at_rest_wants_nothing),
        cmocka_unit_test(test_founders_are_written_down_in_the_order_of_ids),
        cmocka_unit_test(test_one_that_joins_goes_through_its_roles),
        cmocka_unit_test(test_one_that_leaves_is_removed_and_then_forgotten),
        cmocka_unit_test(test_a_leader_that_leaves_lets_another_lead_first),
        cmocka_unit_test(test_nothing_is_begun_while_a_change_is_under_way),
        cmocka_unit_test(test_who_was_cut_off_by_a_recovery_is_forgotten),
        cmocka_unit_test(test_a_drop_that_would_cost_the_majority_is_refused),
        cmocka_unit_test(test_an_empty_directory_starts_only_if_the_log_admitted_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
