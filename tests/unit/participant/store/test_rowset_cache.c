/* SPDX-License-Identifier: Apache-2.0 */
/* The cache keeps what was used last, within its bytes, and never takes an entry from its user. */
#include "participant/store/rowset_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { CACHE_BYTES = 64 * 1024, ENTRY_BYTES = 4096 };

static void put(struct rowset_cache *cache, tablet_id tablet, rowset_id rowset, size_t bytes)
{
    struct rowset_cached *cached = rowset_cached_new();
    assert_non_null(cached);
    cached->meta.tablet = tablet;
    cached->meta.rowset = rowset;
    uint8_t *content = buf_extend(&cached->content, bytes);
    assert_non_null(content);
    memset(content, 1, bytes);
    rowset_cache_put(cache, cached);
    rowset_cached_release(cached);
}

static bool has(struct rowset_cache *cache, tablet_id tablet, rowset_id rowset)
{
    struct rowset_cached *cached = rowset_cache_find(cache, tablet, rowset);
    rowset_cached_release(cached);
    return cached != NULL;
}

static void test_the_least_recently_used_go_first(void **state)
{
    (void)state;
    struct rowset_cache *cache;
    assert_int_equal(rowset_cache_init(CACHE_BYTES, &cache), 0);
    for (rowset_id rowset = 1; rowset <= 100; rowset++) {
        put(cache, 1, rowset, ENTRY_BYTES);
        assert_true(has(cache, 1, 1));
    }
    assert_true(has(cache, 1, 100));
    assert_false(has(cache, 1, 50));
    assert_false(has(cache, 2, 100));
    rowset_cache_remove(cache, 1, 1);
    rowset_cache_remove(cache, 1, 1);
    assert_false(has(cache, 1, 1));
    rowset_cache_free(cache);
}

static void test_an_entry_in_use_outlives_its_removal(void **state)
{
    (void)state;
    struct rowset_cache *cache;
    assert_int_equal(rowset_cache_init(CACHE_BYTES, &cache), 0);
    put(cache, 1, 1, ENTRY_BYTES);
    struct rowset_cached *used = rowset_cache_find(cache, 1, 1);
    assert_non_null(used);
    for (rowset_id rowset = 2; rowset <= 100; rowset++)
        put(cache, 1, rowset, ENTRY_BYTES);
    assert_false(has(cache, 1, 1));
    assert_int_equal(used->content.len, ENTRY_BYTES);
    assert_int_equal(used->content.data[ENTRY_BYTES - 1], 1);
    rowset_cached_release(used);
    rowset_cache_free(cache);
}

static void test_a_very_large_entry_is_not_kept(void **state)
{
    (void)state;
    struct rowset_cache *cache;
    assert_int_equal(rowset_cache_init(CACHE_BYTES, &cache), 0);
    put(cache, 1, 1, ENTRY_BYTES);
    put(cache, 1, 2, CACHE_BYTES / 2);
    assert_true(has(cache, 1, 1));
    assert_false(has(cache, 1, 2));
    rowset_cache_free(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_least_recently_used_go_first),
        cmocka_unit_test(test_an_entry_in_use_outlives_its_removal),
        cmocka_unit_test(test_a_very_large_entry_is_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
