/* SPDX-License-Identifier: Apache-2.0 */
/* A data directory proves who it is by the nonce of its last start (rule 13). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/state_builder.h"

static int setup(void **state)
{
    static struct state_builder builder;
    state_builder_init(&builder);
    *state = &builder;
    return 0;
}
static int teardown(void **state)
{
    state_builder_close(*state);
    return 0;
}

static int enter(struct state_builder *b, node_id wanted, const char *uuid, uint64_t previous,
                 uint64_t nonce)
{
    struct command command = {.type = COMMAND_MEMBER_REGISTER};
    struct msg_register *message = &command.member.message;
    message->wanted = wanted;
    snprintf(message->node_uuid, sizeof message->node_uuid, "%s", uuid);
    message->previous_nonce = previous;
    message->new_nonce = nonce;
    if (previous != 0)
        memcpy(message->cluster_uuid, b->state.cluster_uuid, sizeof message->cluster_uuid);
    snprintf(message->rpc, sizeof message->rpc, "127.0.0.1:%u", (unsigned)(9000 + nonce));
    return state_builder_apply(b, &command);
}

static void test_new_directories_get_the_smallest_free_ids(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(enter(b, 2, "two", 0, 10), 0);
    assert_int_equal(b->last.node, 2);
    assert_int_equal(enter(b, 0, "one", 0, 11), 0);
    assert_int_equal(b->last.node, 1);
    assert_int_equal(enter(b, 0, "three", 0, 12), 0);
    assert_int_equal(b->last.node, 3);
    assert_int_equal(enter(b, 2, "four", 0, 13), TG_REFUSED);
    assert_int_equal(b->state.members.count, 3);
}

static void test_a_restart_gets_a_larger_epoch_and_its_new_address(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(enter(b, 0, "a", 0, 10), 0);
    uint64_t first = b->last.epoch;
    assert_int_equal(enter(b, 0, "b", 0, 20), 0);
    assert_true(b->last.epoch > first);
    assert_int_equal(enter(b, 1, "a", 10, 11), 0);
    assert_int_equal(b->last.node, 1);
    assert_true(b->last.epoch > first + 1);
    assert_true(members_is_current(&b->state.members, 1, b->last.epoch));
    assert_false(members_is_current(&b->state.members, 1, first));
    assert_string_equal(members_find(&b->state.members, 1)->rpc, "127.0.0.1:9011");
}

static void test_a_repeated_registration_changes_nothing(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(enter(b, 0, "a", 0, 10), 0);
    uint64_t epoch = b->last.epoch;
    assert_int_equal(enter(b, 0, "a", 0, 10), 0);
    assert_true(b->last.repeated);
    assert_int_equal(b->last.epoch, epoch);
    assert_int_equal(enter(b, 1, "a", 10, 11), 0);
    epoch = b->last.epoch;
    assert_int_equal(enter(b, 1, "a", 10, 11), 0);
    assert_true(b->last.repeated);
    assert_int_equal(b->last.epoch, epoch);
}

static void test_a_copied_directory_is_fenced(void **state)
{
    struct state_builder *b = *state;
    assert_int_equal(enter(b, 0, "a", 0, 10), 0);
    /* Two processes start from the same directory: both present nonce 10. */
    assert_int_equal(enter(b, 1, "a", 10, 11), 0);
    assert_int_equal(enter(b, 1, "a", 10, 12), TG_FENCED);
    assert_true(members_is_current(&b->state.members, 1, 2));
    /* An emptied directory with a copied uuid. */
    assert_int_equal(enter(b, 1, "a", 0, 13), TG_FENCED);
}

static void test_strangers_are_refused(void **state)
{
    struct state_builder *b = *state;
    struct command command = {.type = COMMAND_MEMBER_REGISTER};
    strcpy(command.member.message.node_uuid, "a");
    strcpy(command.member.message.cluster_uuid, "another-cluster");
    command.member.message.new_nonce = 1;
    assert_int_equal(state_builder_apply(b, &command), TG_REFUSED);
    assert_non_null(strstr(b->last.msg.text, "another-cluster"));
    /* A directory that names this cluster but that the log does not know. */
    assert_int_equal(enter(b, 0, "a", 5, 6), TG_REFUSED);
    /* A known directory under another number. */
    assert_int_equal(enter(b, 1, "a", 0, 10), 0);
    assert_int_equal(enter(b, 2, "a", 10, 11), TG_REFUSED);
    assert_int_equal(b->state.members.count, 1);
}

static void test_there_is_a_limit_of_members(void **state)
{
    struct state_builder *b = *state;
    state_builder_members(b, 1, NODES_MAX);
    assert_int_equal(enter(b, 0, "one too many", 0, 10000), TG_LIMIT);
}

static void test_nobody_registers_before_the_cluster_is_formed(void **state)
{
    struct state_builder *b = *state;
    struct state empty;
    assert_int_equal(state_init(&empty), 0);
    struct command command = {.type = COMMAND_MEMBER_REGISTER};
    strcpy(command.member.message.node_uuid, "a");
    command.member.message.new_nonce = 1;
    struct apply_result result;
    state_apply(&empty, &command, &result);
    assert_int_equal(result.err, TG_REFUSED);
    state_close(&empty);
    /* A second uuid changes nothing. */
    struct command init = {.type = COMMAND_CLUSTER_INIT};
    strcpy(init.cluster_init.uuid, "other");
    char before[UUID_BYTES];
    memcpy(before, b->state.cluster_uuid, sizeof before);
    assert_int_equal(state_builder_apply(b, &init), 0);
    assert_true(b->last.repeated);
    assert_string_equal(b->state.cluster_uuid, before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_new_directories_get_the_smallest_free_ids),
        TEST(test_a_restart_gets_a_larger_epoch_and_its_new_address),
        TEST(test_a_repeated_registration_changes_nothing),
        TEST(test_a_copied_directory_is_fenced),
        TEST(test_strangers_are_refused),
        TEST(test_there_is_a_limit_of_members),
        TEST(test_nobody_registers_before_the_cluster_is_formed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
