/* SPDX-License-Identifier: Apache-2.0 */
/* Publishing binds what fits, once, durably and in order; readers beside it see whole versions. */
#include "participant/tablet/publish.h"

#include <stdatomic.h>

#include "tests/lib/test_dir.h"
#include "tests/unit/participant/store/store_fixture.h"
#include "tests/unit/participant/tablet/publish_fixture.h"

enum { LEN = 3000 };

static struct tablet_set *open_set(struct fixture *fixture)
{
    struct tablet_set *set;
    assert_int_equal(tablet_set_open(fixture->store, &set), 0);
    return set;
}

static struct publish_rowset put(struct fixture *fixture, txn_id txn, rowset_id rowset,
                                 tablet_id tablet)
{
    assert_int_equal(fixture_put(fixture, txn, rowset, tablet, LEN, LEN), 0);
    return (struct publish_rowset){.rowset = rowset, .digest = fixture_digest(rowset, LEN)};
}

static void test_a_chain_is_bound_in_one_message_and_survives(void **state)
{
    struct fixture *fixture = *state;
    struct tablet_set *set = open_set(fixture);
    struct publish_wait wait;
    struct publish_rowset rowsets[3];
    for (uint32_t i = 0; i < 3; i++)
        rowsets[i] = put(fixture, 10 + i, 1 + i, 1);
    struct publish_bind binds[] = {publish_bind_of(1, 2, 0, 10, &rowsets[0]),
                                   publish_bind_of(1, 4, 2, 11, &rowsets[1]),
                                   publish_bind_of(1, 9, 4, 12, &rowsets[2])};
    publish_and_wait(fixture, set, binds, 3, &wait);
    assert_int_equal(wait.err, 0);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(wait.status[i], PUBLISH_BOUND);
    assert_int_equal(tablet_set_last(set, 1), 9);

    tablet_set_close(set);
    fixture_reopen(fixture);
    set = open_set(fixture);
    assert_int_equal(tablet_set_last(set, 1), 9);
    struct version_map share;
    struct version_view view;
    tablet_set_share(set, 1, &share);
    assert_int_equal(version_map_at(&share, 5, 4, &view), 0);
    assert_int_equal(view.count, 2);
    assert_int_equal(view.rowsets[1].rowset, 2);
    version_map_close(&share);
    uint32_t count;
    txn_id txns[4];
    assert_int_equal(rowset_drop_list(fixture->store, 0, txns, 4, &count), 0);
    assert_int_equal(count, 0);
    tablet_set_close(set);
}

static void test_a_repeated_publish_changes_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct tablet_set *set = open_set(fixture);
    struct publish_wait wait;
    struct publish_rowset rowset = put(fixture, 10, 1, 1);
    struct publish_bind bind = publish_bind_of(1, 2, 0, 10, &rowset);
    for (int i = 0; i < 3; i++) {
        publish_and_wait(fixture, set, &bind, 1, &wait);
        assert_int_equal(wait.status[0], PUBLISH_BOUND);
    }
    tablet_set_close(set);
    fixture_reopen(fixture);
    set = open_set(fixture);
    publish_and_wait(fixture, set, &bind, 1, &wait);
    assert_int_equal(wait.status[0], PUBLISH_BOUND);
    assert_int_equal(tablet_set_last(set, 1), 2);
    tablet_set_close(set);
}

static void test_each_bind_gets_its_own_verdict(void **state)
{
    struct fixture *fixture = *state;
    struct tablet_set *set = open_set(fixture);
    struct publish_wait wait;
    struct publish_rowset good = put(fixture, 10, 1, 1);
    struct publish_rowset gap = put(fixture, 10, 1, 2);
    struct publish_rowset wrong = put(fixture, 10, 1, 3);
    struct publish_rowset missing = {.rowset = 77};
    wrong.digest.bytes[3] ^= 1;
    struct publish_bind binds[] = {
        publish_bind_of(2, 5, 4, 10, &gap), publish_bind_of(3, 5, 0, 10, &wrong),
        publish_bind_of(4, 5, 0, 10, &missing), publish_bind_of(1, 5, 0, 10, &good)};
    publish_and_wait(fixture, set, binds, 4, &wait);
    assert_int_equal(wait.err, 0);
    assert_int_equal(wait.status[0], PUBLISH_BEHIND);
    assert_int_equal(wait.status[1], PUBLISH_DIGEST);
    assert_int_equal(wait.status[2], PUBLISH_MISSING);
    assert_int_equal(wait.status[3], PUBLISH_BOUND);
    assert_int_equal(tablet_set_last(set, 1), 5);
    for (tablet_id tablet = 2; tablet <= 4; tablet++)
        assert_int_equal(tablet_set_last(set, tablet), 0);
    tablet_set_close(set);
}

static void test_a_truncate_replaces_what_is_below(void **state)
{
    struct fixture *fixture = *state;
    struct tablet_set *set = open_set(fixture);
    struct publish_wait wait;
    struct publish_rowset rowset = put(fixture, 10, 1, 1);
    struct publish_bind binds[] = {publish_bind_of(1, 1, 0, 10, &rowset),
                                   publish_bind_of(1, 2, 1, 11, NULL)};
    binds[1].replace = true;
    publish_and_wait(fixture, set, binds, 2, &wait);
    assert_int_equal(wait.status[1], PUBLISH_BOUND);
    tablet_set_close(set);
    fixture_reopen(fixture);
    set = open_set(fixture);
    struct version_map share;
    struct version_view view;
    tablet_set_share(set, 1, &share);
    assert_int_equal(version_map_at(&share, 2, 2, &view), 0);
    assert_int_equal(view.count, 0);
    assert_int_equal(version_map_at(&share, 1, 1, &view), 0);
    assert_int_equal(view.count, 1);
    version_map_close(&share);
    tablet_set_close(set);
}

static void test_a_dropped_tablet_takes_no_more_versions(void **state)
{
    struct fixture *fixture = *state;
    struct tablet_set *set = open_set(fixture);
    struct publish_wait wait;
    tablet_id tablets[4];
    struct publish_rowset rowset = put(fixture, 10, 1, 1);
    struct publish_bind bind = publish_bind_of(1, 1, 0, 10, &rowset);
    publish_and_wait(fixture, set, &bind, 1, &wait);
    assert_int_equal(tablet_set_list(set, 0, tablets, 4), 1);
    assert_int_equal(rowset_drop_tablet(fixture->store, 1), 0);
    tablet_set_remove(set, 1);
    assert_int_equal(tablet_set_list(set, 0, tablets, 4), 0);
    struct publish_rowset later = put(fixture, 11, 2, 1);
    bind = publish_bind_of(1, 2, 1, 11, &later);
    publish_and_wait(fixture, set, &bind, 1, &wait);
    assert_int_equal(wait.status[0], PUBLISH_BEHIND);
    tablet_set_close(set);
}

static void test_an_empty_publish_is_answered(void **state)
{
    struct fixture *fixture = *state;
    struct tablet_set *set = open_set(fixture);
    struct publish_wait wait;
    struct publish_bind none = {0};
    publish_and_wait(fixture, set, &none, 0, &wait);
    assert_int_equal(wait.err, 0);
    assert_int_equal(wait.count, 0);
    tablet_set_close(set);
}

/* Readers take shares and read rowsets while versions are published: at each version exactly its
 * rowsets, all readable. */
struct readers {
    struct fixture *fixture;
    struct tablet_set *set;
    atomic_bool stop;
    atomic_uint reads;
};

static void *read_on(void *data)
{
    struct readers *readers = data;
    while (!atomic_load(&readers->stop)) {
        struct version_map share;
        struct version_view view;
        tablet_set_share(readers->set, 1, &share);
        version_t last = version_map_last(&share);
        assert_int_equal(version_map_at(&share, last, last, &view), 0);
        assert_int_equal(view.count, last);
        for (uint32_t i = 0; i < view.count; i++) {
            struct rowset_reader reader;
            struct buf scratch = BUF_INIT;
            struct slice bytes;
            assert_int_equal(
                rowset_reader_open(readers->fixture->store, 1, view.rowsets[i].rowset, &reader), 0);
            assert_int_equal(rowset_reader_block(&reader, 0, &scratch, &bytes), 0);
            rowset_reader_close(&reader);
            buf_close(&scratch);
        }
        version_map_close(&share);
        atomic_fetch_add(&readers->reads, 1);
    }
    return NULL;
}

static void test_readers_beside_publishing_see_whole_versions(void **state)
{
    struct fixture *fixture = *state;
    enum { READERS = 3, VERSIONS = 60 };
    struct readers readers = {.fixture = fixture, .set = open_set(fixture)};
    pthread_t threads[READERS];
    for (uint32_t i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_on, &readers), 0);
    for (version_t version = 1; version <= VERSIONS; version++) {
        struct publish_wait wait;
        struct publish_rowset rowset;
        size_t len = version % 10 == 0 ? 100000 : LEN;
        rowset.rowset = version;
        rowset.digest = fixture_digest(version, len);
        assert_int_equal(fixture_put(fixture, 100 + version, version, 1, len, len), 0);
        struct publish_bind bind = publish_bind_of(1, version, version - 1, 100 + version, &rowset);
        publish_and_wait(fixture, readers.set, &bind, 1, &wait);
        assert_int_equal(wait.status[0], PUBLISH_BOUND);
    }
    atomic_store(&readers.stop, true);
    for (uint32_t i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    assert_true(atomic_load(&readers.reads) > 0);
    tablet_set_close(readers.set);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_chain_is_bound_in_one_message_and_survives),
        TEST(test_a_repeated_publish_changes_nothing),
        TEST(test_each_bind_gets_its_own_verdict),
        TEST(test_a_truncate_replaces_what_is_below),
        TEST(test_a_dropped_tablet_takes_no_more_versions),
        TEST(test_an_empty_publish_is_answered),
        TEST(test_readers_beside_publishing_see_whole_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
