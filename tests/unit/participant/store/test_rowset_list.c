/* SPDX-License-Identifier: Apache-2.0 */
/* Every rowset of the store is listed with its standing, and what belongs to nothing is found. */
#include "participant/store/rowset_list.h"

#include "participant/store/store_internal.h"
#include "participant/store/store_keys.h"
#include "tests/lib/test_dir.h"
#include "tests/unit/participant/store/store_fixture.h"

enum { TABLET = 5, LARGE = 300000, SMALL = 1000 };

static enum rowset_standing standing_of(struct fixture *fixture, rowset_id rowset, uint32_t *all)
{
    struct rowset_listed *list;
    enum rowset_standing standing = 0;

    assert_int_equal(rowset_list(fixture->store, &list, all), 0);
    for (uint32_t i = 0; i < *all; i++) {
        assert_true(i == 0 || list[i - 1].tablet < list[i].tablet ||
                    list[i - 1].rowset < list[i].rowset);
        if (list[i].rowset == rowset)
            standing = list[i].standing;
    }
    free(list);
    return standing;
}

static void test_what_is_staged_is_listed(void **state)
{
    struct fixture *fixture = *state;
    uint32_t count;
    struct buf content = BUF_INIT;

    assert_int_equal(standing_of(fixture, 1, &count), 0);
    assert_int_equal(count, 0);
    assert_int_equal(fixture_put(fixture, 100, 1, TABLET, SMALL, SMALL), 0);
    assert_int_equal(fixture_put(fixture, 100, 2, TABLET, LARGE, LARGE), 0);
    fixture_content(3, LARGE, &content);
    assert_int_equal(
        fixture_send(fixture, 101, 3, TABLET, 0, slice_of(content.data, content.len), NULL), 0);
    buf_close(&content);
    fixture_reopen(fixture); /* the third is left in the middle */
    assert_int_equal(standing_of(fixture, 1, &count), ROWSET_STANDING_SEALED);
    assert_int_equal(standing_of(fixture, 2, &count), ROWSET_STANDING_SEALED);
    assert_int_equal(standing_of(fixture, 3, &count), ROWSET_STANDING_OPEN);
    assert_int_equal(count, 3);
    assert_int_equal(rowset_drop_txn(fixture->store, 100), 0);
    assert_int_equal(rowset_drop_txn(fixture->store, 101), 0);
    assert_int_equal(standing_of(fixture, 1, &count), 0);
    assert_int_equal(count, 0);
}

static int plant_extent(void *data, struct lmdb_txn *txn)
{
    struct store *store = data;
    struct store_key key;

    store_key_block(&key, TABLET, 77, 0);
    lmdb_txn_put(txn, store->db_block[BLOCKS_64K], store_key_slice(&key), slice_str("lost"));
    return txn->err;
}

static int forget_staged(void *data, struct lmdb_txn *txn)
{
    struct store *store = data;
    struct store_key key;

    store_key_staged(&key, 100, 1, TABLET);
    lmdb_txn_delete(txn, store->db_staged, store_key_slice(&key));
    return txn->err;
}

static void test_what_belongs_to_nothing_is_found(void **state)
{
    struct fixture *fixture = *state;
    struct store *store = fixture->store;
    uint32_t count;

    assert_int_equal(
        store_writer_run(store->block_writer[BLOCKS_64K], false, 10, plant_extent, store), 0);
    assert_int_equal(standing_of(fixture, 77, &count), ROWSET_STANDING_LEAKED);
    assert_int_equal(fixture_put(fixture, 100, 1, TABLET, SMALL, SMALL), 0);
    assert_int_equal(store_writer_run(store->meta_writer, false, 10, forget_staged, store), 0);
    assert_int_equal(standing_of(fixture, 1, &count), ROWSET_STANDING_LEAKED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_staged_is_listed, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_what_belongs_to_nothing_is_found, fixture_setup,
                                        fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
