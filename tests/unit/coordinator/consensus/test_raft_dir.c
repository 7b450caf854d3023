/* SPDX-License-Identifier: Apache-2.0 */
/* Which directories raft may start from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/endian.h"
#include "coordinator/consensus/raft_dir.h"
#include "tests/lib/test_dir.h"

static void write_metadata(const struct test_dir *dir, const char *name, uint64_t version,
                           uint64_t term, uint64_t vote)
{
    uint8_t bytes[32];
    store_u64le(bytes, 1);
    store_u64le(bytes + 8, version);
    store_u64le(bytes + 16, term);
    store_u64le(bytes + 24, vote);
    test_dir_write(dir, name, bytes, sizeof bytes);
}

static enum raft_dir_kind kind_of(const struct test_dir *dir)
{
    struct raft_dir found;
    assert_int_equal(raft_dir_look(dir->path, &found, NULL), 0);
    return found.kind;
}

static void test_an_empty_directory_needs_bootstrap(void **state)
{
    (void)state;
    struct test_dir dir;
    struct tg_errmsg msg;
    bool bootstrap = true;
    test_dir_make(&dir);
    assert_int_equal(kind_of(&dir), RAFT_DIR_EMPTY);
    assert_int_equal(raft_dir_admit(dir.path, false, &bootstrap, &msg), TG_REFUSED);
    assert_false(bootstrap);
    assert_int_equal(raft_dir_admit(dir.path, true, &bootstrap, &msg), 0);
    assert_true(bootstrap);
    test_dir_remove(&dir);
}

static void test_a_log_or_a_snapshot_starts_without_bootstrap(void **state)
{
    (void)state;
    static const char *const names[] = {"0000000000000001-0000000000000001",
                                        "snapshot-2-41-1234.meta"};
    for (int i = 0; i < 2; i++) {
        struct test_dir dir;
        bool bootstrap = true;
        test_dir_make(&dir);
        write_metadata(&dir, "metadata1", 1, 5, 2);
        test_dir_write(&dir, names[i], "x", 1);
        assert_int_equal(kind_of(&dir), RAFT_DIR_COMPLETE);
        assert_int_equal(raft_dir_admit(dir.path, true, &bootstrap, NULL), 0);
        assert_false(bootstrap);
        test_dir_remove(&dir);
    }
}

/* One that joined has its whole log in an open segment, and must come back with it after a kill. */
static void test_a_log_in_an_open_segment_counts(void **state)
{
    (void)state;
    uint8_t segment[64] = {0};
    struct test_dir dir;
    bool bootstrap = true;

    test_dir_make(&dir);
    write_metadata(&dir, "metadata1", 1, 5, 0);
    test_dir_write(&dir, "open-1", segment, sizeof segment);
    assert_int_equal(kind_of(&dir), RAFT_DIR_LOST); /* made ahead, nothing in it */
    store_u64le(segment, 1);
    test_dir_write(&dir, "open-1", segment, sizeof segment);
    assert_int_equal(kind_of(&dir), RAFT_DIR_LOST);
    store_u64le(segment + 8, 0x1234567800000000); /* checksums of a first batch */
    store_u64le(segment + 16, 1);
    test_dir_write(&dir, "open-1", segment, 16);
    assert_int_equal(kind_of(&dir), RAFT_DIR_LOST); /* cut off before anything was promised */
    test_dir_write(&dir, "open-1", segment, sizeof segment);
    assert_int_equal(kind_of(&dir), RAFT_DIR_COMPLETE);
    assert_int_equal(raft_dir_admit(dir.path, false, &bootstrap, NULL), 0);
    assert_false(bootstrap);
    test_dir_remove(&dir);
}

static void test_a_bootstrap_that_was_cut_off_starts_over(void **state)
{
    (void)state;
    struct test_dir dir;
    bool bootstrap = false;
    test_dir_make(&dir);
    write_metadata(&dir, "metadata1", 1, 1, 0);
    assert_int_equal(kind_of(&dir), RAFT_DIR_HALF);
    assert_int_equal(raft_dir_admit(dir.path, false, &bootstrap, NULL), TG_REFUSED);
    assert_int_equal(raft_dir_admit(dir.path, true, &bootstrap, NULL), 0);
    assert_true(bootstrap);
    assert_int_equal(kind_of(&dir), RAFT_DIR_EMPTY);
    test_dir_remove(&dir);
}

static void test_a_vote_without_a_log_is_refused_even_with_bootstrap(void **state)
{
    (void)state;
    struct test_dir dir;
    struct tg_errmsg msg;
    bool bootstrap = true;
    test_dir_make(&dir);
    /* The newer of the two files counts; spare segments are no log. */
    write_metadata(&dir, "metadata1", 1, 1, 0);
    write_metadata(&dir, "metadata2", 2, 9, 3);
    test_dir_write(&dir, "open-1", "x", 1);
    assert_int_equal(kind_of(&dir), RAFT_DIR_LOST);
    assert_int_equal(raft_dir_admit(dir.path, true, &bootstrap, &msg), TG_REFUSED);
    assert_false(bootstrap);
    assert_non_null(strstr(msg.text, "term (9)"));
    test_dir_remove(&dir);
}

static void test_free_space_is_known(void **state)
{
    (void)state;
    struct test_dir dir;
    test_dir_make(&dir);
    assert_true(raft_dir_free_bytes(dir.path) > 0);
    assert_true(raft_dir_free_bytes("/nowhere/at/all") == UINT64_MAX);
    test_dir_remove(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_empty_directory_needs_bootstrap),
        cmocka_unit_test(test_a_log_or_a_snapshot_starts_without_bootstrap),
        cmocka_unit_test(test_a_log_in_an_open_segment_counts),
        cmocka_unit_test(test_a_bootstrap_that_was_cut_off_starts_over),
        cmocka_unit_test(test_a_vote_without_a_log_is_refused_even_with_bootstrap),
        cmocka_unit_test(test_free_space_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
