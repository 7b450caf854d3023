/* SPDX-License-Identifier: Apache-2.0 */
/* Dropping takes what is dead and nothing else; a full store serves again afterwards. */
#include "participant/store/rowset_drop.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "common/base/failpoint.h"
#include "participant/store/store_internal.h"
#include "participant/store/store_keys.h"
#include "tests/lib/test_dir.h"
#include "tests/unit/participant/store/store_fixture.h"

enum { SMALL = 2000, LARGE = 400000 };

static enum publish_status decide_yes(const struct publish_bind *bind,
                                      const struct bind_facts *facts)
{
    for (uint32_t i = 0; i < bind->rowset_count; i++) {
        if (!facts->bound && !facts->staged[i].sealed)
            return PUBLISH_MISSING;
    }
    return PUBLISH_BOUND;
}

struct bind_wait {
    pthread_mutex_t lock;
    pthread_cond_t finished;
    bool is_done;
    int err;
};

static void bind_done(void *data, int err)
{
    struct bind_wait *wait = data;
    pthread_mutex_lock(&wait->lock);
    wait->err = err;
    wait->is_done = true;
    pthread_cond_signal(&wait->finished);
    pthread_mutex_unlock(&wait->lock);
}

static void bind_all(struct fixture *fixture, const struct publish_bind *binds, uint32_t count,
                     uint8_t *status)
{
    struct bind_wait wait = {.is_done = false};
    pthread_mutex_init(&wait.lock, NULL);
    pthread_cond_init(&wait.finished, NULL);
    assert_int_equal(
        version_store_bind(fixture->store, binds, count, 1, decide_yes, status, bind_done, &wait),
        0);
    pthread_mutex_lock(&wait.lock);
    while (!wait.is_done)
        pthread_cond_wait(&wait.finished, &wait.lock);
    pthread_mutex_unlock(&wait.lock);
    pthread_cond_destroy(&wait.finished);
    pthread_mutex_destroy(&wait.lock);
    assert_int_equal(wait.err, 0);
}

static struct publish_bind bind_of(const struct publish_rowset *rowset, txn_id txn,
                                   tablet_id tablet, version_t version)
{
    return (struct publish_bind){.tablet = tablet,
                                 .table = FIXTURE_TABLE,
                                 .version = version,
                                 .prev = version - 1,
                                 .txn = txn,
                                 .rowset_count = 1,
                                 .rowsets = (struct publish_rowset *)rowset};
}

/* Binds one rowset as one version; what became of it. */
static enum publish_status bind_one(struct fixture *fixture, txn_id txn, rowset_id rowset,
                                    tablet_id tablet, version_t version, size_t len)
{
    struct publish_rowset named = {.rowset = rowset, .digest = fixture_digest(rowset, len)};
    struct publish_bind bind = bind_of(&named, txn, tablet, version);
    uint8_t status = PUBLISH_FAILED;
    bind_all(fixture, &bind, 1, &status);
    return (enum publish_status)status;
}

static uint32_t staged_count(struct fixture *fixture)
{
    txn_id txns[16];
    uint32_t count;
    assert_int_equal(rowset_drop_list(fixture->store, 0, txns, 16, &count), 0);
    return count;
}

static void test_a_dead_transaction_leaves_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct store_usage before;
    struct store_usage after;
    struct rowset_reader reader;
    assert_int_equal(store_measure(fixture->store, &before), 0);
    assert_int_equal(fixture_put(fixture, 10, 1, 1, SMALL, SMALL), 0);
    assert_int_equal(fixture_put(fixture, 10, 2, 1, LARGE, LARGE), 0);
    assert_int_equal(fixture_put(fixture, 10, 2, 2, LARGE, LARGE), 0);
    assert_int_equal(fixture_put(fixture, 11, 3, 1, LARGE, LARGE), 0);
    assert_int_equal(fixture_check(fixture, 1, 2, LARGE), 0);
    assert_int_equal(rowset_drop_txn(fixture->store, 10), 0);
    assert_int_equal(rowset_reader_open(fixture->store, 1, 1, &reader), TG_NOT_FOUND);
    assert_int_equal(rowset_reader_open(fixture->store, 1, 2, &reader), TG_NOT_FOUND);
    assert_int_equal(rowset_reader_open(fixture->store, 2, 2, &reader), TG_NOT_FOUND);
    assert_int_equal(fixture_check(fixture, 1, 3, LARGE), 0);
    assert_int_equal(staged_count(fixture), 1);
    assert_int_equal(rowset_drop_txn(fixture->store, 11), 0);
    assert_int_equal(staged_count(fixture), 0);
    assert_int_equal(store_measure(fixture->store, &after), 0);
    assert_true(after.blocks_256k_bytes <= before.blocks_256k_bytes + 65536);
    assert_true(after.blocks_64k_bytes <= before.blocks_64k_bytes + 65536);
}

static void test_transactions_are_listed_in_turn(void **state)
{
    struct fixture *fixture = *state;
    txn_id txns[2];
    uint32_t count;
    assert_int_equal(fixture_put(fixture, 30, 1, 1, SMALL, SMALL), 0);
    assert_int_equal(fixture_put(fixture, 10, 2, 1, LARGE, LARGE), 0);
    assert_int_equal(fixture_put(fixture, 10, 2, 2, SMALL, SMALL), 0);
    assert_int_equal(fixture_send(fixture, 20, 3, 1, 0, slice_str("open"), NULL), 0);
    assert_int_equal(rowset_drop_list(fixture->store, 0, txns, 2, &count), 0);
    assert_int_equal(count, 2);
    assert_true(txns[0] == 10 && txns[1] == 20);
    assert_int_equal(rowset_drop_list(fixture->store, 20, txns, 2, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(txns[0], 30);
}

static void test_what_is_bound_is_not_dropped_with_its_transaction(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(fixture_put(fixture, 10, 1, 1, SMALL, SMALL), 0);
    assert_int_equal(fixture_put(fixture, 10, 2, 2, LARGE, LARGE), 0);
    assert_int_equal(bind_one(fixture, 10, 1, 1, 1, SMALL), PUBLISH_BOUND);
    assert_int_equal(bind_one(fixture, 10, 2, 2, 1, LARGE), PUBLISH_BOUND);
    assert_int_equal(rowset_drop_txn(fixture->store, 10), 0);
    assert_int_equal(fixture_check(fixture, 1, 1, SMALL), 0);
    assert_int_equal(fixture_check(fixture, 2, 2, LARGE), 0);
    fixture_reopen(fixture);
    assert_int_equal(fixture_check(fixture, 1, 1, SMALL), 0);
    assert_int_equal(fixture_check(fixture, 2, 2, LARGE), 0);
}

/* A collector runs in a loop while rowsets are sealed and bound; it is told of
 * transactions at the very moment they are bound. Each rowset is bound and whole, or was dropped
 * and did not bind. */
struct collector {
    struct fixture *fixture;
    atomic_ulong target;
    atomic_bool stop;
};

static void *collect(void *data)
{
    struct collector *collector = data;
    unsigned long last = 0;
    while (!atomic_load(&collector->stop)) {
        unsigned long target = atomic_load(&collector->target);
        if (target != last)
            assert_int_equal(rowset_drop_txn(collector->fixture->store, target), 0);
        last = target;
    }
    return NULL;
}

static void test_a_collector_beside_binding_never_takes_what_is_bound(void **state)
{
    struct fixture *fixture = *state;
    struct collector collector = {.fixture = fixture};
    pthread_t thread;
    enum { ROUNDS = 60 };
    bool bound[ROUNDS];
    version_t version = 0;
    assert_int_equal(pthread_create(&thread, NULL, collect, &collector), 0);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        txn_id txn = 1000 + i;
        size_t len = i % 3 == 0 ? LARGE : SMALL;
        assert_int_equal(fixture_put(fixture, txn, 5000 + i, 1, len, len), 0);
        if (i % 2 == 0)
            atomic_store(&collector.target, txn);
        enum publish_status status = bind_one(fixture, txn, 5000 + i, 1, version + 1, len);
        bound[i] = status == PUBLISH_BOUND;
        assert_true(bound[i] || (status == PUBLISH_MISSING && i % 2 == 0));
        version += bound[i] ? 1 : 0;
    }
    atomic_store(&collector.stop, true);
    pthread_join(thread, NULL);
    fixture_reopen(fixture);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        size_t len = i % 3 == 0 ? LARGE : SMALL;
        struct rowset_reader reader;
        if (bound[i])
            assert_int_equal(fixture_check(fixture, 1, 5000 + i, len), 0);
        else
            assert_int_equal(rowset_reader_open(fixture->store, 1, 5000 + i, &reader),
                             TG_NOT_FOUND);
    }
}

static int count_version(void *data, const struct version_record *record)
{
    (void)record;
    (*(uint32_t *)data)++;
    return 0;
}

static void test_a_dropped_tablet_leaves_nothing_and_others_alone(void **state)
{
    struct fixture *fixture = *state;
    struct rowset_reader reader;
    uint32_t versions = 0;
    for (uint32_t i = 1; i <= 20; i++) {
        size_t len = i % 5 == 0 ? LARGE : SMALL;
        assert_int_equal(fixture_put(fixture, 10 + i, i, 1, len, len), 0);
        assert_int_equal(bind_one(fixture, 10 + i, i, 1, i, len), PUBLISH_BOUND);
    }
    assert_int_equal(fixture_put(fixture, 50, 50, 1, LARGE, LARGE), 0);
    assert_int_equal(fixture_put(fixture, 50, 50, 2, LARGE, LARGE), 0);
    assert_int_equal(bind_one(fixture, 50, 50, 2, 1, LARGE), PUBLISH_BOUND);
    assert_int_equal(rowset_drop_tablet(fixture->store, 1), 0);
    assert_int_equal(rowset_drop_tablet(fixture->store, 1), 0);
    for (uint32_t i = 1; i <= 20; i++)
        assert_int_equal(rowset_reader_open(fixture->store, 1, i, &reader), TG_NOT_FOUND);
    assert_int_equal(rowset_reader_open(fixture->store, 1, 50, &reader), TG_NOT_FOUND);
    assert_int_equal(fixture_check(fixture, 2, 50, LARGE), 0);
    assert_int_equal(staged_count(fixture), 0);
    fixture_reopen(fixture);
    assert_int_equal(version_store_each(fixture->store, count_version, &versions), 0);
    assert_int_equal(versions, 1);
}

static void test_a_full_map_refuses_cleanly_and_serves_after_a_drop(void **state)
{
    struct fixture *fixture = *state;
    fixture_close(fixture);
    fixture->options.blocks_map_bytes = 8u << 20;
    fixture_open(fixture);
    for (uint32_t round = 0; round < 3; round++) {
        uint32_t put = 0;
        rowset_id first = 1000 * (round + 1);
        int err = 0;
        while (put < 200 && err == 0) {
            err = fixture_put(fixture, first + put, first + put, 1, LARGE, LARGE);
            put++;
        }
        assert_int_equal(err, TG_NOSPACE);
        assert_true(put > 8);
        /* What was sealed is whole, what was refused is not there. */
        struct rowset_reader reader;
        for (uint32_t i = 0; i + 1 < put; i++)
            assert_int_equal(fixture_check(fixture, 1, first + i, LARGE), 0);
        assert_int_equal(rowset_reader_open(fixture->store, 1, first + put - 1, &reader),
                         TG_NOT_FOUND);
        for (uint32_t i = 0; i < put; i++)
            assert_int_equal(rowset_drop_txn(fixture->store, first + i), 0);
        assert_int_equal(staged_count(fixture), 0);
    }
}

static void test_a_full_meta_map_refuses_cleanly_and_still_binds(void **state)
{
    struct fixture *fixture = *state;
    fixture_close(fixture);
    fixture->options.meta_map_bytes = 2u << 20;
    fixture_open(fixture);
    uint32_t put = 0;
    int err = 0;
    while (put < 1000 && err == 0) {
        err = fixture_put(fixture, 10, 100 + put, 1, 16000, 16000);
        put++;
    }
    assert_int_equal(err, TG_NOSPACE);
    assert_true(put > 20);
    assert_int_equal(bind_one(fixture, 10, 100, 1, 1, 16000), PUBLISH_BOUND);
    assert_int_equal(rowset_drop_txn(fixture->store, 10), 0);
    assert_int_equal(fixture_check(fixture, 1, 100, 16000), 0);
    assert_int_equal(fixture_put(fixture, 11, 5000, 1, 16000, 16000), 0);
}

static void test_what_is_staged_for_a_tablet_that_is_cloned_stays(void **state)
{
    struct fixture *fixture = *state;
    struct rowset_reader reader;
    assert_int_equal(rowset_store_hold(fixture->store, 1), 0);
    assert_int_equal(fixture_put(fixture, 10, 1, 1, LARGE, LARGE), 0);
    assert_int_equal(fixture_put(fixture, 10, 1, 2, LARGE, LARGE), 0);
    assert_int_equal(rowset_drop_txn(fixture->store, 10), 0);
    assert_int_equal(fixture_check(fixture, 1, 1, LARGE), 0);
    assert_int_equal(rowset_reader_open(fixture->store, 2, 1, &reader), TG_NOT_FOUND);
    rowset_store_let_go(fixture->store, 1);
    assert_int_equal(rowset_drop_txn(fixture->store, 10), 0);
    assert_int_equal(rowset_reader_open(fixture->store, 1, 1, &reader), TG_NOT_FOUND);
}

/* What the collector has seen staged is bound before it deletes: it has to look again. Held at a
 * failpoint, so only in builds that have them. */
static void test_what_is_bound_after_the_collector_looked_stays(void **state)
{
#ifdef TG_FAILPOINTS
    struct fixture *fixture = *state;
    struct collector collector = {.fixture = fixture};
    char path[TEST_PATH_SIZE];
    pthread_t thread;
    for (uint32_t i = 0; i < 2; i++) {
        size_t len = i == 0 ? SMALL : LARGE;
        test_dir_path(&fixture->dir, i == 0 ? "first" : "second", path);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fprintf(file, "gc.after_scan hold:%u 1\n", 3000 + i);
        fclose(file);
        assert_int_equal(fixture_put(fixture, 10 + i, 1 + i, 1, len, len), 0);
        unsigned before = failpoint_done("gc.after_scan");
        setenv("TIDEGATE_FAILPOINTS", path, 1);
        atomic_store(&collector.stop, false);
        atomic_store(&collector.target, 10 + i);
        assert_int_equal(pthread_create(&thread, NULL, collect, &collector), 0);
        while (failpoint_done("gc.after_scan") == before)
            usleep(1000);
        assert_int_equal(bind_one(fixture, 10 + i, 1 + i, 1, 1 + i, len), PUBLISH_BOUND);
        atomic_store(&collector.stop, true);
        pthread_join(thread, NULL);
        unsetenv("TIDEGATE_FAILPOINTS");
    }
    assert_int_equal(fixture_check(fixture, 1, 1, SMALL), 0);
    assert_int_equal(fixture_check(fixture, 1, 2, LARGE), 0);
#else
    (void)state;
    skip();
#endif
}

/* ---- damaged records ---- */

struct spoil {
    MDB_dbi database;
    struct store_key key;
};

/* The second byte of each record says what it is: a state or flags. */
static int apply_spoil(void *data, struct lmdb_txn *txn)
{
    struct spoil *spoil = data;
    struct slice bytes;
    uint8_t copy[4096];
    assert_true(lmdb_txn_get(txn, spoil->database, store_key_slice(&spoil->key), &bytes));
    assert_true(bytes.len <= sizeof copy);
    memcpy(copy, bytes.data, bytes.len);
    copy[1] = 99;
    lmdb_txn_put(txn, spoil->database, store_key_slice(&spoil->key), slice_of(copy, bytes.len));
    return txn->err;
}

static void spoil(struct fixture *fixture, struct spoil *record)
{
    assert_int_equal(store_writer_run(fixture->store->meta_writer, true, 4096, apply_spoil, record),
                     0);
}

static void test_a_damaged_record_holds_nobody_else_up(void **state)
{
    struct fixture *fixture = *state;
    struct spoil record = {.database = fixture->store->db_staged};
    assert_int_equal(fixture_put(fixture, 10, 1, 1, SMALL, SMALL), 0);
    assert_int_equal(fixture_put(fixture, 10, 1, 2, SMALL, SMALL), 0);
    store_key_staged(&record.key, 10, 1, 1);
    spoil(fixture, &record);
    struct publish_rowset named = {.rowset = 1, .digest = fixture_digest(1, SMALL)};
    struct publish_bind binds[] = {bind_of(&named, 10, 1, 1), bind_of(&named, 10, 2, 1)};
    uint8_t status[2] = {PUBLISH_FAILED, PUBLISH_FAILED};
    bind_all(fixture, binds, 2, status);
    assert_int_equal(status[0], PUBLISH_MISSING);
    assert_int_equal(status[1], PUBLISH_BOUND);
}

static void test_a_tablet_with_damaged_records_can_be_dropped_and_made_anew(void **state)
{
    struct fixture *fixture = *state;
    struct spoil rowset = {.database = fixture->store->db_rowset};
    struct spoil tablet = {.database = fixture->store->db_tablet};
    bool unfinished;
    assert_int_equal(fixture_put(fixture, 10, 1, 1, SMALL, SMALL), 0);
    assert_int_equal(bind_one(fixture, 10, 1, 1, 1, SMALL), PUBLISH_BOUND);
    store_key_rowset(&rowset.key, 1, 1);
    spoil(fixture, &rowset);
    store_key_tablet(&tablet.key, 1);
    spoil(fixture, &tablet);
    assert_int_equal(rowset_drop_tablet_unfinished(fixture->store, 1, &unfinished), 0);
    assert_true(unfinished);
    assert_int_equal(rowset_drop_tablet(fixture->store, 1), 0);
    assert_int_equal(rowset_drop_tablet_unfinished(fixture->store, 1, &unfinished), 0);
    assert_false(unfinished);
    assert_int_equal(fixture_put(fixture, 11, 2, 1, SMALL, SMALL), 0);
    assert_int_equal(bind_one(fixture, 11, 2, 1, 1, SMALL), PUBLISH_BOUND);
    assert_int_equal(fixture_check(fixture, 1, 2, SMALL), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_dead_transaction_leaves_nothing),
        TEST(test_transactions_are_listed_in_turn),
        TEST(test_what_is_bound_is_not_dropped_with_its_transaction),
        TEST(test_a_collector_beside_binding_never_takes_what_is_bound),
        TEST(test_a_dropped_tablet_leaves_nothing_and_others_alone),
        TEST(test_a_full_map_refuses_cleanly_and_serves_after_a_drop),
        TEST(test_a_full_meta_map_refuses_cleanly_and_still_binds),
        TEST(test_what_is_staged_for_a_tablet_that_is_cloned_stays),
        TEST(test_what_is_bound_after_the_collector_looked_stays),
        TEST(test_a_damaged_record_holds_nobody_else_up),
        TEST(test_a_tablet_with_damaged_records_can_be_dropped_and_made_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
