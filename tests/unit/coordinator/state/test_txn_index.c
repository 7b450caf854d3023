/* SPDX-License-Identifier: Apache-2.0 */
/* The two indexes keep what was put into them, through growth, removal and bad hashes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "coordinator/state/txn_index.h"

enum { ITEMS = 20000 };

struct item {
    struct index_link link;
    uint64_t key;
};

static uint64_t mix(uint64_t key)
{
    key *= UINT64_C(0x9E3779B97F4A7C15);
    return key ^ key >> 29;
}

static struct item *find(const struct txn_index *index, uint64_t hash, uint64_t key)
{
    struct index_link *link = txn_index_first(index, hash);
    for (; link != NULL; link = link->next) {
        if (((struct item *)link)->key == key)
            return (struct item *)link;
    }
    return NULL;
}

static void test_items_are_found_while_the_index_grows(void **state)
{
    (void)state;
    struct txn_index index = {0};
    struct item *items = calloc(ITEMS, sizeof *items);
    assert_null(txn_index_first(&index, 5));
    for (uint64_t i = 0; i < ITEMS; i++) {
        items[i].key = i;
        txn_index_add(&index, &items[i].link, mix(i));
        assert_ptr_equal(find(&index, mix(i), i), &items[i]);
        assert_ptr_equal(find(&index, mix(i / 2), i / 2), &items[i / 2]);
    }
    assert_int_equal(index.count, ITEMS);
    uint64_t seen = 0;
    uint64_t longest = 0;
    for (uint64_t chain = 0; chain < index.chains; chain++) {
        uint64_t length = 0;
        for (struct index_link *link = txn_index_chain(&index, chain); link != NULL;
             link = link->next)
            length++;
        seen += length;
        longest = length > longest ? length : longest;
    }
    assert_int_equal(seen, ITEMS);
    assert_true(longest < 20);
    for (uint64_t i = 0; i < ITEMS; i += 2)
        txn_index_remove(&index, &items[i].link);
    for (uint64_t i = 0; i < ITEMS; i++)
        assert_ptr_equal(find(&index, mix(i), i), i % 2 == 0 ? NULL : &items[i]);
    txn_index_close(&index);
    free(items);
}

static void test_equal_hashes_share_a_chain(void **state)
{
    (void)state;
    struct txn_index index = {0};
    struct item items[100];
    for (uint64_t i = 0; i < 100; i++) {
        items[i].key = i;
        txn_index_add(&index, &items[i].link, 7);
    }
    for (uint64_t i = 0; i < 100; i++)
        assert_ptr_equal(find(&index, 7, i), &items[i]);
    txn_index_remove(&index, &items[50].link);
    assert_null(find(&index, 7, 50));
    txn_index_close(&index);
}

static void *const_of(uint64_t id)
{
    return (void *)(uintptr_t)(id * 16);
}

static void test_ids_are_found_in_any_order_of_coming_and_going(void **state)
{
    (void)state;
    struct txn_ids ids = {0};
    /* As after a snapshot: not in the order of ids. */
    for (uint64_t i = 0; i < ITEMS; i++) {
        uint64_t id = 1000000 + i * 7919 % ITEMS;
        txn_ids_add(&ids, id, const_of(id));
    }
    assert_null(txn_ids_find(&ids, 0));
    assert_null(txn_ids_find(&ids, 999999));
    assert_null(txn_ids_find(&ids, 1000000 + ITEMS));
    assert_null(txn_ids_find(&ids, UINT64_MAX));
    for (uint64_t id = 1000000; id < 1000000 + ITEMS; id++)
        assert_ptr_equal(txn_ids_find(&ids, id), const_of(id));
    for (uint64_t id = 1000000; id < 1000000 + ITEMS; id++) {
        txn_ids_remove(&ids, id);
        assert_null(txn_ids_find(&ids, id));
    }
    assert_int_equal(ids.page_count, 0);
    txn_ids_add(&ids, 5, const_of(5));
    assert_ptr_equal(txn_ids_find(&ids, 5), const_of(5));
    txn_ids_close(&ids);
}

static void test_pages_go_when_they_are_empty(void **state)
{
    (void)state;
    struct txn_ids ids = {0};
    for (uint64_t id = 1; id < 10 * TXN_PAGE; id++)
        txn_ids_add(&ids, id, const_of(id));
    for (uint64_t id = 1; id < 9 * TXN_PAGE; id++) {
        if (id != 4 * TXN_PAGE + 3)
            txn_ids_remove(&ids, id);
    }
    /* An old unfinished one keeps the directory, but not the pages behind it. */
    assert_int_equal(ids.page_count, 6);
    assert_null(ids.pages[1]);
    txn_ids_remove(&ids, 4 * TXN_PAGE + 3);
    assert_int_equal(ids.page_count, 1);
    txn_ids_close(&ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_items_are_found_while_the_index_grows),
        cmocka_unit_test(test_equal_hashes_share_a_chain),
        cmocka_unit_test(test_ids_are_found_in_any_order_of_coming_and_going),
        cmocka_unit_test(test_pages_go_when_they_are_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
