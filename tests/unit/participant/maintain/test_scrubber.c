/* SPDX-License-Identifier: Apache-2.0 */
/* All that is bound is read, damage is told once, and a pass goes at its pace. */
#include "participant/maintain/scrubber.h"

#include <unistd.h>

#include "tests/lib/test_dir.h"
#include "tests/unit/participant/maintain/clone_fixture.h"

enum { WAIT_MS = 20000 };

static struct scrubber *begin(struct pair *pair, uint64_t bytes_per_s, uint64_t interval_ms)
{
    struct scrubber_options options = {.store = pair->here->store,
                                       .tablets = pair->here_set,
                                       .damage = &pair->damage,
                                       .clock = clock_system(),
                                       .bytes_per_s = bytes_per_s,
                                       .interval_ms = interval_ms};
    struct scrubber *scrubber = NULL;

    assert_int_equal(scrubber_open(&options, &scrubber), 0);
    return scrubber;
}

static struct scrubber_state wait_passes(struct scrubber *scrubber, uint64_t passes)
{
    struct scrubber_state state;
    uint64_t until = clock_monotonic_ms(clock_system()) + WAIT_MS;

    for (;;) {
        scrubber_look(scrubber, &state);
        if (state.passes >= passes)
            return state;
        if (clock_monotonic_ms(clock_system()) > until)
            fail_msg("only %lu passes", state.passes);
        usleep(1000);
    }
}

static uint32_t damage_count(struct pair *pair, version_t *version)
{
    struct damaged_version *list;
    uint32_t count;

    assert_int_equal(damage_list_copy(&pair->damage, &list, &count), 0);
    *version = count > 0 ? list[0].version : 0;
    free(list);
    return count;
}

static void a_pass_reads_everything_and_finds_nothing(void **state)
{
    struct pair *pair = *state;
    version_t version;

    for (version_t v = 1; v <= 3; v++)
        add_version(pair->here, pair->here_set, v, v == 2 ? LARGE : SMALL);
    struct scrubber *scrubber = begin(pair, 0, 3600 * 1000);
    struct scrubber_state seen = wait_passes(scrubber, 1);
    scrubber_close(scrubber);
    assert_int_equal(seen.bytes, LARGE + 2 * SMALL);
    assert_int_equal(seen.pass_bytes, LARGE + 2 * SMALL);
    assert_int_equal(seen.rowsets, 3);
    assert_int_equal(seen.damaged, 0);
    assert_int_equal(damage_count(pair, &version), 0);
}

static void damage_is_told_once_with_its_version(void **state)
{
    struct pair *pair = *state;
    version_t version;

    for (version_t v = 1; v <= 3; v++)
        add_version(pair->here, pair->here_set, v, LARGE / 4);
    /* Whatever a cache has: the disk counts. */
    assert_int_equal(fixture_check(pair->here, TABLET, 2, LARGE / 4), 0);
    spoil_rowset_2(pair->here);
    struct scrubber *scrubber = begin(pair, 0, 1);
    struct scrubber_state seen = wait_passes(scrubber, 3);
    scrubber_close(scrubber);
    assert_int_equal(seen.damaged, 1);
    assert_int_equal(damage_count(pair, &version), 1);
    assert_int_equal(version, 2);
}

static int spoil_inline(void *data, struct lmdb_txn *txn)
{
    struct store *store = data;
    struct store_key key;
    struct slice bytes;
    struct buf copy = BUF_INIT;

    store_key_rowset(&key, TABLET, 2);
    assert_true(lmdb_txn_get(txn, store->db_rowset, store_key_slice(&key), &bytes));
    buf_append(&copy, bytes.data, bytes.len);
    copy.data[copy.len - 1] ^= 1; /* the last byte of its content */
    lmdb_txn_put(txn, store->db_rowset, store_key_slice(&key), slice_of(copy.data, copy.len));
    buf_close(&copy);
    return txn->err;
}

static void damage_of_a_small_rowset_is_found_behind_the_cache(void **state)
{
    struct pair *pair = *state;
    version_t version;

    for (version_t v = 1; v <= 3; v++)
        add_version(pair->here, pair->here_set, v, SMALL);
    assert_int_equal(fixture_check(pair->here, TABLET, 2, SMALL), 0);
    assert_int_equal(store_writer_run(pair->here->store->meta_writer, false, 100, spoil_inline,
                                      pair->here->store),
                     0);
    assert_int_equal(fixture_check(pair->here, TABLET, 2, SMALL), 0); /* from memory */
    struct scrubber *scrubber = begin(pair, 0, 1);
    wait_passes(scrubber, 1);
    scrubber_close(scrubber);
    assert_int_equal(damage_count(pair, &version), 1);
    assert_int_equal(version, 2);
}

/* It ends at once in the middle of a pass that would take hours. */
static void it_goes_slowly_and_stops_at_once(void **state)
{
    struct pair *pair = *state;

    add_version(pair->here, pair->here_set, 1, LARGE);
    struct scrubber *scrubber = begin(pair, 1000, 1);
    usleep(50000);
    struct scrubber_state seen;
    scrubber_look(scrubber, &seen);
    uint64_t began = clock_monotonic_ms(clock_system());
    scrubber_close(scrubber);
    assert_true(clock_monotonic_ms(clock_system()) - began < WAIT_MS);
    assert_int_equal(seen.passes, 0);
    assert_true(seen.bytes < LARGE);
}

static void without_an_interval_nothing_is_read(void **state)
{
    struct pair *pair = *state;
    struct scrubber_state seen;

    add_version(pair->here, pair->here_set, 1, SMALL);
    struct scrubber *scrubber = begin(pair, 0, 0);
    usleep(50000);
    scrubber_look(scrubber, &seen);
    scrubber_close(scrubber);
    assert_int_equal(seen.bytes, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_pass_reads_everything_and_finds_nothing),
        TEST(damage_is_told_once_with_its_version),
        TEST(damage_of_a_small_rowset_is_found_behind_the_cache),
        TEST(it_goes_slowly_and_stops_at_once),
        TEST(without_an_interval_nothing_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
