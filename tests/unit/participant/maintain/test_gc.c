/* SPDX-License-Identifier: Apache-2.0 */
/* Drops happen on the coordinators' word and on nothing else; in the background, each once,
 * and never more than fit. */
#include <unistd.h>

#include "participant/maintain/gc.h"
#include "tests/lib/test_dir.h"
#include "tests/unit/participant/tablet/publish_fixture.h"

enum { TABLET = 5, OTHER = 6, BYTES = 100000 };

struct gc_fixture {
    struct fixture *store;
    struct tablet_set *tablets;
    struct gc *gc;
};

static int setup(void **state)
{
    struct gc_fixture *f = calloc(1, sizeof *f);

    fixture_setup((void **)&f->store);
    assert_int_equal(tablet_set_open(f->store->store, &f->tablets), 0);
    assert_int_equal(gc_open(f->store->store, f->tablets, &f->gc), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct gc_fixture *f = *state;

    gc_close(f->gc);
    tablet_set_close(f->tablets);
    fixture_teardown((void **)&f->store);
    free(f);
    return 0;
}

static void wait_for(struct gc_fixture *f, uint64_t dropped)
{
    for (unsigned ms = 0; gc_dropped(f->gc) < dropped; ms++) {
        assert_true(ms < 20000);
        usleep(1000);
    }
}

static bool is_there(struct gc_fixture *f, tablet_id tablet, rowset_id rowset)
{
    int err = fixture_check(f->store, tablet, rowset, BYTES);

    assert_true(err == 0 || err == TG_NOT_FOUND);
    return err == 0;
}

static void bind_rowset(struct gc_fixture *f, tablet_id tablet, version_t version, version_t prev,
                        txn_id txn, rowset_id rowset)
{
    struct publish_rowset named = {.rowset = rowset, .digest = fixture_digest(rowset, BYTES)};
    struct publish_bind one = publish_bind_of(tablet, version, prev, txn, &named);
    struct publish_wait wait;

    publish_and_wait(f->store, f->tablets, &one, 1, &wait);
    assert_int_equal(wait.status[0], PUBLISH_BOUND);
}

static void test_only_what_is_named_is_dropped(void **state)
{
    struct gc_fixture *f = *state;

    assert_int_equal(fixture_put(f->store, 41, 1, TABLET, BYTES, 30000), 0);
    assert_int_equal(fixture_put(f->store, 42, 2, TABLET, BYTES, 30000), 0);
    usleep(100 * 1000);
    assert_true(is_there(f, TABLET, 1) && is_there(f, TABLET, 2));
    assert_true(gc_drop_txn(f->gc, 41));
    wait_for(f, 1);
    assert_false(is_there(f, TABLET, 1));
    assert_true(is_there(f, TABLET, 2));
    /* Late pieces of the dead transaction are refused. */
    assert_int_equal(fixture_put(f->store, 41, 3, TABLET, BYTES, 30000), TG_REFUSED);
}

static void test_what_a_version_binds_stays_whatever_is_said_of_its_transaction(void **state)
{
    struct gc_fixture *f = *state;

    assert_int_equal(fixture_put(f->store, 41, 1, TABLET, BYTES, 30000), 0);
    bind_rowset(f, TABLET, 1, 0, 41, 1);
    assert_true(gc_drop_txn(f->gc, 41));
    wait_for(f, 1);
    assert_true(is_there(f, TABLET, 1));
}

static void test_a_dropped_tablet_goes_with_all_it_holds(void **state)
{
    struct gc_fixture *f = *state;
    tablet_id listed[4];

    assert_int_equal(fixture_put(f->store, 41, 1, TABLET, BYTES, 30000), 0);
    assert_int_equal(fixture_put(f->store, 42, 2, TABLET, BYTES, 30000), 0);
    assert_int_equal(fixture_put(f->store, 43, 3, OTHER, BYTES, 30000), 0);
    bind_rowset(f, TABLET, 1, 0, 41, 1);
    bind_rowset(f, OTHER, 1, 0, 43, 3);
    assert_int_equal(tablet_set_list(f->tablets, 0, listed, 4), 2);
    assert_true(gc_drop_tablet(f->gc, TABLET));
    wait_for(f, 1);
    assert_int_equal(tablet_set_list(f->tablets, 0, listed, 4), 1);
    assert_int_equal(listed[0], OTHER);
    assert_false(is_there(f, TABLET, 1) || is_there(f, TABLET, 2));
    assert_true(is_there(f, OTHER, 3));
}

static void test_ids_of_tablets_and_transactions_do_not_mix(void **state)
{
    struct gc_fixture *f = *state;

    assert_int_equal(fixture_put(f->store, TABLET, 1, OTHER, BYTES, 30000), 0);
    assert_true(gc_drop_tablet(f->gc, TABLET)); /* not transaction TABLET */
    wait_for(f, 1);
    assert_true(is_there(f, OTHER, 1));
    assert_true(gc_drop_txn(f->gc, TABLET));
    wait_for(f, 2);
    assert_false(is_there(f, OTHER, 1));
}

/* A clone of a tablet that is about to be dropped has to wait. */
static void test_a_tablet_is_known_to_be_dropped_until_it_is(void **state)
{
    struct gc_fixture *f = *state;
    txn_id txns = 2000;

    for (txn_id txn = 1; txn <= txns; txn++)
        assert_true(gc_drop_txn(f->gc, txn));
    assert_false(gc_drops_tablet(f->gc, TABLET));
    assert_true(gc_drop_tablet(f->gc, TABLET));
    assert_true(gc_drops_tablet(f->gc, TABLET)); /* the others come first */
    assert_false(gc_drops_tablet(f->gc, OTHER));
    wait_for(f, (unsigned)txns + 1);
    while (gc_drops_tablet(f->gc, TABLET)) /* until its thread has said that it is done */
        ;
}

static void test_what_is_named_again_and_again_is_queued_once(void **state)
{
    struct gc_fixture *f = *state;

    /* Heartbeats name 1 000 transactions fifty times while they are being dropped. */
    for (unsigned round = 0; round < 50; round++)
        for (txn_id txn = 1; txn <= 1000; txn++)
            assert_true(gc_drop_txn(f->gc, txn));
    wait_for(f, 1000);
}

static void test_the_queue_is_bounded_and_what_does_not_fit_may_come_again(void **state)
{
    struct gc_fixture *f = *state;
    txn_id refused = 0;

    for (txn_id txn = 1; txn <= 3 * GC_QUEUE_MAX && refused == 0; txn++)
        if (!gc_drop_txn(f->gc, txn))
            refused = txn;
    assert_true(refused > GC_QUEUE_MAX);
    for (unsigned ms = 0; !gc_drop_txn(f->gc, refused); ms++) {
        assert_true(ms < 20000);
        usleep(1000);
    }
    /* Closing forgets the rest. */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_only_what_is_named_is_dropped),
        TEST(test_what_a_version_binds_stays_whatever_is_said_of_its_transaction),
        TEST(test_a_dropped_tablet_goes_with_all_it_holds),
        TEST(test_ids_of_tablets_and_transactions_do_not_mix),
        TEST(test_a_tablet_is_known_to_be_dropped_until_it_is),
        TEST(test_what_is_named_again_and_again_is_queued_once),
        TEST(test_the_queue_is_bounded_and_what_does_not_fit_may_come_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
