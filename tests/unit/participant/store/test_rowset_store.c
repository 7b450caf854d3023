/* SPDX-License-Identifier: Apache-2.0 */
/* Rowsets come in by pieces, are sealed whole or not at all, and are read back as they were. */
#include "participant/store/rowset_store.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "participant/store/store_internal.h"
#include "tests/lib/test_dir.h"
#include "tests/unit/participant/store/store_fixture.h"

static const size_t sizes[] = {0, 1, 5000, 16384, 16385, 65520, 65521, 262128, 262129, 900000};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void test_rowsets_of_all_sizes_come_back(void **state)
{
    struct fixture *fixture = *state;
    for (uint32_t i = 0; i < SIZES; i++) {
        assert_int_equal(fixture_put(fixture, 10, 100 + i, 1, sizes[i], 70001), 0);
        assert_int_equal(fixture_check(fixture, 1, 100 + i, sizes[i]), 0);
    }
}

static void test_sealed_rowsets_survive_a_restart(void **state)
{
    struct fixture *fixture = *state;
    for (uint32_t i = 0; i < SIZES; i++)
        assert_int_equal(fixture_put(fixture, 10, 100 + i, 1, sizes[i], 1 << 20), 0);
    fixture_reopen(fixture);
    for (uint32_t i = 0; i < SIZES; i++)
        assert_int_equal(fixture_check(fixture, 1, 100 + i, sizes[i]), 0);
}

static void test_an_unsealed_rowset_cannot_be_read(void **state)
{
    struct fixture *fixture = *state;
    struct rowset_reader reader;
    assert_int_equal(fixture_send(fixture, 10, 1, 1, 0, slice_str("hello"), NULL), 0);
    assert_int_equal(rowset_reader_open(fixture->store, 1, 1, &reader), TG_NOT_FOUND);
    uint64_t rowsets;
    uint64_t bytes;
    rowset_store_open_count(fixture->store, &rowsets, &bytes);
    assert_int_equal(rowsets, 1);
    assert_int_equal(bytes, 5);
}

static void test_a_piece_that_does_not_follow_is_stale(void **state)
{
    struct fixture *fixture = *state;
    struct slice five = slice_str("hello");
    assert_int_equal(fixture_send(fixture, 10, 1, 1, 5, five, NULL), TG_STALE);
    assert_int_equal(fixture_send(fixture, 10, 1, 1, 0, five, NULL), 0);
    assert_int_equal(fixture_send(fixture, 10, 1, 1, 6, five, NULL), TG_STALE);
    assert_int_equal(fixture_send(fixture, 10, 1, 1, 3, five, NULL), TG_STALE);
}

static void test_pieces_and_seals_may_be_repeated(void **state)
{
    struct fixture *fixture = *state;
    struct buf content = BUF_INIT;
    struct rowset_meta meta;
    fixture_content(1, 300000, &content);
    struct slice all = slice_of(content.data, content.len);
    fixture_meta(&meta, 10, 1, 1, all);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fixture_send(fixture, 10, 1, 1, 0, all, NULL), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fixture_send(fixture, 10, 1, 1, 0, all, &meta), 0);
    fixture_reopen(fixture);
    assert_int_equal(fixture_send(fixture, 10, 1, 1, 0, all, &meta), 0);
    assert_int_equal(fixture_check(fixture, 1, 1, 300000), 0);
    rowset_meta_close(&meta);
    buf_close(&content);
}

static void test_a_wrong_digest_or_count_is_refused(void **state)
{
    struct fixture *fixture = *state;
    for (size_t len = 1000; len <= 300000; len += 299000) {
        struct buf content = BUF_INIT;
        struct rowset_meta meta;
        struct rowset_reader reader;
        rowset_id rowset = len;
        fixture_content(rowset, len, &content);
        struct slice all = slice_of(content.data, content.len);
        fixture_meta(&meta, 10, rowset, 1, all);
        content.data[len / 2] ^= 1;
        assert_int_equal(fixture_send(fixture, 10, rowset, 1, 0, all, &meta), TG_DIGEST);
        assert_int_equal(rowset_reader_open(fixture->store, 1, rowset, &reader), TG_NOT_FOUND);
        rowset_meta_close(&meta);

        /* One byte is missing. */
        content.data[len / 2] ^= 1;
        fixture_meta(&meta, 10, rowset + 1, 1, all);
        assert_int_equal(
            fixture_send(fixture, 10, rowset + 1, 1, 0, slice_of(all.data, all.len - 1), &meta),
            TG_DIGEST);
        assert_int_equal(rowset_reader_open(fixture->store, 1, rowset + 1, &reader), TG_NOT_FOUND);
        rowset_meta_close(&meta);
        buf_close(&content);
    }
}

static void test_a_seal_that_differs_from_what_is_sealed_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct rowset_meta meta;
    assert_int_equal(fixture_put(fixture, 10, 1, 1, 1000, 1000), 0);
    fixture_meta(&meta, 10, 1, 1, slice_str("other"));
    assert_int_equal(fixture_send(fixture, 10, 1, 1, 0, slice_str("other"), &meta), TG_DIGEST);
    assert_int_equal(fixture_check(fixture, 1, 1, 1000), 0);
    rowset_meta_close(&meta);
}

static void test_a_seal_whose_blocks_do_not_fill_it_is_invalid(void **state)
{
    struct fixture *fixture = *state;
    struct rowset_meta meta;
    struct slice bytes = slice_str("hello");
    fixture_meta(&meta, 10, 1, 1, bytes);
    meta.blocks[0].len = 4;
    assert_int_equal(fixture_send(fixture, 10, 1, 1, 0, bytes, &meta), TG_INVALID);
    rowset_meta_close(&meta);
}

static void test_payload_and_pieces_must_agree(void **state)
{
    struct fixture *fixture = *state;
    struct replicate_piece piece = {.tablet = 1, .len = 6};
    struct msg_replicate message = {
        .txn = 10, .rowset = 1, .table = FIXTURE_TABLE, .piece_count = 1, .pieces = &piece};
    assert_int_equal(rowset_store_replicate_wait(fixture->store, &message, slice_str("hello")),
                     TG_INVALID);
}

static void test_leftovers_of_a_crash_are_listed_and_never_continued(void **state)
{
    struct fixture *fixture = *state;
    struct buf content = BUF_INIT;
    struct rowset_meta meta;
    fixture_content(1, 600000, &content);
    struct slice all = slice_of(content.data, content.len);
    fixture_meta(&meta, 10, 1, 1, all);
    assert_int_equal(fixture_send(fixture, 10, 1, 1, 0, all, NULL), 0);
    fixture_reopen(fixture);

    txn_id txns[4];
    uint32_t count;
    assert_int_equal(rowset_drop_list(fixture->store, 0, txns, 4, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(txns[0], 10);
    assert_int_equal(fixture_send(fixture, 10, 1, 1, 0, all, NULL), TG_STALE);
    assert_int_equal(fixture_send(fixture, 10, 1, 1, 0, slice_of(NULL, 0), &meta), TG_STALE);

    assert_int_equal(rowset_drop_txn(fixture->store, 10), 0);
    assert_int_equal(rowset_drop_list(fixture->store, 0, txns, 4, &count), 0);
    assert_int_equal(count, 0);
    rowset_meta_close(&meta);
    buf_close(&content);
}

static void test_a_dead_transaction_is_refused(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(fixture_send(fixture, 10, 1, 1, 0, slice_str("hello"), NULL), 0);
    assert_int_equal(rowset_drop_txn(fixture->store, 10), 0);
    assert_int_equal(fixture_send(fixture, 10, 1, 1, 5, slice_str("hello"), NULL), TG_REFUSED);
    assert_int_equal(fixture_send(fixture, 10, 2, 1, 0, slice_str("hello"), NULL), TG_REFUSED);
    rowset_store_set_low_water(fixture->store, 20);
    assert_int_equal(fixture_send(fixture, 19, 3, 1, 0, slice_str("hello"), NULL), TG_REFUSED);
    assert_int_equal(fixture_send(fixture, 20, 3, 1, 0, slice_str("hello"), NULL), 0);
}

static void test_no_new_rowset_below_the_disk_reserve(void **state)
{
    struct fixture *fixture = *state;
    fixture_close(fixture);
    fixture->options.disk_reserve_bytes = UINT64_MAX;
    fixture_open(fixture);
    assert_int_equal(fixture_send(fixture, 10, 1, 1, 0, slice_str("hello"), NULL), TG_NOSPACE);
}

static void test_a_damaged_extent_is_noticed(void **state)
{
    struct fixture *fixture = *state;
    struct buf content = BUF_INIT;
    fixture_content(5, 300000, &content);
    assert_int_equal(fixture_put(fixture, 10, 5, 1, 300000, 300000), 0);
    fixture_close(fixture);

    size_t len;
    char *file = test_dir_read(&fixture->dir, "blocks-256k/data.mdb", &len);
    char *found = memmem(file, len, content.data + 100000, 64);
    assert_non_null(found);
    *found ^= 0x10;
    test_dir_write(&fixture->dir, "blocks-256k/data.mdb", file, len);
    free(file);

    fixture_open(fixture);
    struct rowset_reader reader;
    assert_int_equal(rowset_reader_open(fixture->store, 1, 5, &reader), 0);
    assert_int_equal(rowset_reader_verify(&reader), TG_CORRUPT);
    rowset_reader_close(&reader);
    buf_close(&content);
}

static void test_a_damaged_description_is_noticed(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(fixture_put(fixture, 0x1122334455667788, 5, 1, 30000, 30000), 0);
    fixture_close(fixture);

    size_t len;
    char *file = test_dir_read(&fixture->dir, "meta/data.mdb", &len);
    /* The transaction as msgpack: inside the description. */
    char *found = memmem(file, len, "\xcf\x11\x22\x33\x44\x55\x66\x77\x88", 9);
    assert_non_null(found);
    while (found != NULL) {
        found[8] ^= 1;
        found = memmem(file, len, "\xcf\x11\x22\x33\x44\x55\x66\x77\x88", 9);
    }
    test_dir_write(&fixture->dir, "meta/data.mdb", file, len);
    free(file);

    fixture_open(fixture);
    struct rowset_reader reader;
    assert_int_equal(rowset_reader_open(fixture->store, 1, 5, &reader), TG_CORRUPT);
}

/* Very many tablets at once: memory stays bounded, at the price of smaller extents. */
static void test_many_open_rowsets_stay_within_their_memory(void **state)
{
    struct fixture *fixture = *state;
    enum { TABLETS = 400, LEN = 200000, TAILS_MAX = 48 * 1024 * 1024 };
    struct buf content = BUF_INIT;
    uint64_t rowsets;
    uint64_t bytes;
    fixture_content(1, LEN, &content);
    struct slice all = slice_of(content.data, content.len);
    for (tablet_id tablet = 1; tablet <= TABLETS; tablet++) {
        assert_int_equal(fixture_send(fixture, 10, 1, tablet, 0, all, NULL), 0);
        rowset_store_open_count(fixture->store, &rowsets, &bytes);
        assert_int_equal(rowsets, tablet);
        assert_true(bytes <= TAILS_MAX + TABLETS * (LEN % 65520));
    }
    for (tablet_id tablet = 1; tablet <= TABLETS; tablet++) {
        struct rowset_meta meta;
        fixture_meta(&meta, 10, 1, tablet, all);
        assert_int_equal(fixture_send(fixture, 10, 1, tablet, 0, slice_of(NULL, 0), &meta), 0);
        rowset_meta_close(&meta);
        if (tablet % 50 == 0)
            assert_int_equal(fixture_check(fixture, tablet, 1, LEN), 0);
    }
    rowset_store_open_count(fixture->store, &rowsets, &bytes);
    assert_int_equal(rowsets, 0);
    assert_int_equal(bytes, 0);
    buf_close(&content);
}

static void test_all_seals_of_a_message_count_or_none(void **state)
{
    struct fixture *fixture = *state;
    struct rowset_meta metas[3];
    struct replicate_piece pieces[3];
    struct rowset_reader reader;
    struct msg_replicate message = {.txn = 10,
                                    .rowset = 1,
                                    .table = FIXTURE_TABLE,
                                    .piece_count = 3,
                                    .pieces = pieces,
                                    .seal_count = 3,
                                    .seals = metas};
    for (uint32_t i = 0; i < 3; i++) {
        pieces[i] = (struct replicate_piece){.tablet = i + 1, .len = 5};
        fixture_meta(&metas[i], 10, 1, i + 1, slice_str("hello"));
    }
    assert_int_equal(
        rowset_store_replicate_wait(fixture->store, &message, slice_str("hellohelloHELLO")),
        TG_DIGEST);
    for (tablet_id tablet = 1; tablet <= 3; tablet++)
        assert_int_equal(rowset_reader_open(fixture->store, tablet, 1, &reader), TG_NOT_FOUND);
    assert_int_equal(
        rowset_store_replicate_wait(fixture->store, &message, slice_str("hellohellohello")), 0);
    for (tablet_id tablet = 1; tablet <= 3; tablet++) {
        assert_int_equal(rowset_reader_open(fixture->store, tablet, 1, &reader), 0);
        assert_int_equal(rowset_reader_verify(&reader), 0);
        rowset_reader_close(&reader);
    }
    for (uint32_t i = 0; i < 3; i++)
        rowset_meta_close(&metas[i]);
}

/* Holds the writer of an environment of blocks. */
struct held_writer {
    struct store_job job; /* first */
    pthread_mutex_t gate;
    atomic_bool is_done;
};

static int held_apply(struct store_job *job, struct lmdb_txn *txn)
{
    struct held_writer *held = (struct held_writer *)job;
    (void)txn;
    pthread_mutex_lock(&held->gate);
    pthread_mutex_unlock(&held->gate);
    return 0;
}

static void held_done(struct store_job *job, int err)
{
    assert_int_equal(err, 0);
    atomic_store(&((struct held_writer *)job)->is_done, true);
}

static void seal_told(void *data, int err)
{
    assert_int_equal(err, 0);
    atomic_store((atomic_bool *)data, true);
}

static int do_nothing(void *data, struct lmdb_txn *txn)
{
    (void)data;
    (void)txn;
    return 0;
}

/* Told is only what is on disk: while the content waits for its writer, the seal does too. */
static void test_a_seal_is_told_after_its_content_is_durable(void **state)
{
    struct fixture *fixture = *state;
    struct held_writer held = {.job = {.apply = held_apply, .done = held_done}};
    struct buf content = BUF_INIT;
    struct rowset_meta meta;
    atomic_bool told = false;
    fixture_content(1, 60000, &content);
    fixture_meta(&meta, 10, 1, 1, slice_of(content.data, content.len));
    pthread_mutex_init(&held.gate, NULL);
    pthread_mutex_lock(&held.gate);
    assert_int_equal(store_writer_submit(fixture->store->block_writer[BLOCKS_64K], &held.job), 0);
    struct replicate_piece piece = {.tablet = 1, .len = (uint32_t)content.len};
    struct msg_replicate message = {.sender = 1,
                                    .receiver = 2,
                                    .txn = 10,
                                    .rowset = 1,
                                    .table = FIXTURE_TABLE,
                                    .piece_count = 1,
                                    .pieces = &piece,
                                    .seal_count = 1,
                                    .seals = &meta};
    rowset_store_replicate(fixture->store, &message, slice_of(content.data, content.len), seal_told,
                           &told);
    /* A seal that did not wait would be in front of this one. */
    for (int i = 0; i < 2; i++)
        assert_int_equal(store_writer_run(fixture->store->meta_writer, true, 0, do_nothing, NULL),
                         0);
    bool early = atomic_load(&told);
    pthread_mutex_unlock(&held.gate);
    while (!atomic_load(&told) || !atomic_load(&held.is_done))
        usleep(1000);
    assert_false(early);
    assert_int_equal(fixture_check(fixture, 1, 1, 60000), 0);
    pthread_mutex_destroy(&held.gate);
    rowset_meta_close(&meta);
    buf_close(&content);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_rowsets_of_all_sizes_come_back),
        TEST(test_sealed_rowsets_survive_a_restart),
        TEST(test_an_unsealed_rowset_cannot_be_read),
        TEST(test_a_piece_that_does_not_follow_is_stale),
        TEST(test_pieces_and_seals_may_be_repeated),
        TEST(test_a_wrong_digest_or_count_is_refused),
        TEST(test_a_seal_that_differs_from_what_is_sealed_is_refused),
        TEST(test_a_seal_whose_blocks_do_not_fill_it_is_invalid),
        TEST(test_payload_and_pieces_must_agree),
        TEST(test_leftovers_of_a_crash_are_listed_and_never_continued),
        TEST(test_a_dead_transaction_is_refused),
        TEST(test_no_new_rowset_below_the_disk_reserve),
        TEST(test_a_damaged_extent_is_noticed),
        TEST(test_a_damaged_description_is_noticed),
        TEST(test_many_open_rowsets_stay_within_their_memory),
        TEST(test_all_seals_of_a_message_count_or_none),
        TEST(test_a_seal_is_told_after_its_content_is_durable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
