/* SPDX-License-Identifier: Apache-2.0 */
/* The digest over a tablet's versions tells apart whatever differs. */
#include "common/model/version_chain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct digest chain_of(struct chain_version version, rowset_id rowset, uint8_t byte)
{
    struct digest chain = {0};
    struct digest digest = {{byte}};

    version_chain_add(&chain, &version);
    if (version.rowset_count > 0)
        version_chain_add_rowset(&chain, rowset, &digest);
    return chain;
}

static void test_every_part_of_a_version_counts(void **state)
{
    (void)state;
    const struct chain_version version = {
        .version = 3, .prev = 2, .txn = 7, .replace = false, .rowset_count = 1};
    const struct chain_version others[] = {
        {.version = 4, .prev = 2, .txn = 7, .rowset_count = 1},
        {.version = 3, .prev = 1, .txn = 7, .rowset_count = 1},
        {.version = 3, .prev = 2, .txn = 8, .rowset_count = 1},
        {.version = 3, .prev = 2, .txn = 7, .replace = true, .rowset_count = 1},
        {.version = 3, .prev = 2, .txn = 7, .rowset_count = 0},
    };
    struct digest chain = chain_of(version, 5, 1);
    struct digest same = chain_of(version, 5, 1);
    assert_true(digest_equal(&chain, &same));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct digest other = chain_of(others[i], 5, 1);
        assert_false(digest_equal(&chain, &other));
    }
    struct digest other = chain_of(version, 6, 1);
    assert_false(digest_equal(&chain, &other));
    other = chain_of(version, 5, 2);
    assert_false(digest_equal(&chain, &other));
}

static void test_order_counts(void **state)
{
    (void)state;
    const struct chain_version a = {.version = 1, .txn = 1};
    const struct chain_version b = {.version = 2, .prev = 1, .txn = 2};
    struct digest one = {0};
    struct digest two = {0};
    version_chain_add(&one, &a);
    version_chain_add(&one, &b);
    version_chain_add(&two, &b);
    version_chain_add(&two, &a);
    assert_false(digest_equal(&one, &two));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_part_of_a_version_counts),
        cmocka_unit_test(test_order_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
