/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, identity, format, and the lock on the directory. */
#include "participant/store/store.h"

#include "tests/lib/test_dir.h"
#include "tests/unit/participant/store/store_fixture.h"

static void test_identity_survives_a_restart(void **state)
{
    struct fixture *fixture = *state;
    struct store_identity identity;
    assert_int_equal(store_identity_load(fixture->store, &identity), 0);
    assert_string_equal(identity.node_uuid, "");
    assert_int_equal(identity.nonce, 0);
    strcpy(identity.node_uuid, "6ecd8c99-4036-403d-bf84-cf8400f67836");
    strcpy(identity.cluster_uuid, "3f333df6-90a4-4fda-8dd3-9485d27cee36");
    identity.node = 3;
    identity.nonce = UINT64_MAX;
    identity.epoch = 12;
    assert_int_equal(store_identity_save(fixture->store, &identity), 0);
    fixture_reopen(fixture);
    struct store_identity again;
    assert_int_equal(store_identity_load(fixture->store, &again), 0);
    assert_memory_equal(again.node_uuid, identity.node_uuid, STORE_UUID_BYTES);
    assert_memory_equal(again.cluster_uuid, identity.cluster_uuid, STORE_UUID_BYTES);
    assert_int_equal(again.node, 3);
    assert_true(again.nonce == UINT64_MAX);
    assert_int_equal(again.epoch, 12);
}

static void test_a_directory_opens_once(void **state)
{
    struct fixture *fixture = *state;
    struct store *second;
    struct tg_errmsg msg = {""};
    assert_int_equal(store_open(fixture->dir.path, &fixture->options, &second, &msg), TG_BUSY);
    assert_non_null(strstr(msg.text, "another process"));
}

static void test_a_missing_directory_is_an_error(void **state)
{
    struct fixture *fixture = *state;
    struct store *second;
    struct tg_errmsg msg = {""};
    assert_int_equal(store_open("/nonexistent/tidegate", &fixture->options, &second, &msg), TG_IO);
    assert_non_null(strstr(msg.text, "/nonexistent/tidegate"));
}

static void test_usage_grows_with_content(void **state)
{
    struct fixture *fixture = *state;
    struct store_usage before;
    struct store_usage after;
    assert_int_equal(store_measure(fixture->store, &before), 0);
    assert_int_equal(fixture_put(fixture, 1, 1, 1, 1000000, 100000), 0);
    assert_int_equal(store_measure(fixture->store, &after), 0);
    assert_true(after.blocks_256k_bytes >= before.blocks_256k_bytes + 3 * 262128);
    assert_true(after.blocks_64k_bytes > before.blocks_64k_bytes);
    uint64_t free_bytes;
    uint64_t total_bytes;
    assert_int_equal(store_disk(fixture->store, &free_bytes, &total_bytes), 0);
    assert_true(free_bytes > 0 && free_bytes <= total_bytes);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_identity_survives_a_restart),
        TEST(test_a_directory_opens_once),
        TEST(test_a_missing_directory_is_an_error),
        TEST(test_usage_grows_with_content),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
