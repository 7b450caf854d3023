/* SPDX-License-Identifier: Apache-2.0 */
/* The reserve's file is there, is given up once, comes back, and survives a restart. */
#include "participant/store/disk_reserve.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/lib/test_dir.h"

#define MIB (1024ull * 1024)

static struct test_dir dir;
static char file[TEST_PATH_SIZE];

static int setup(void **state)
{
    (void)state;
    test_dir_make(&dir);
    test_dir_path(&dir, "reserve", file);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    test_dir_remove(&dir);
    return 0;
}

static uint64_t file_bytes(void)
{
    struct stat st;
    return stat(file, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

static struct disk_reserve *opened(uint64_t bytes)
{
    struct disk_reserve *reserve;
    assert_int_equal(disk_reserve_open(dir.path, bytes, &reserve, NULL), 0);
    return reserve;
}

static void test_it_takes_a_quarter_of_the_reserve_in_real_blocks(void **state)
{
    (void)state;
    struct disk_reserve *reserve = opened(4 * MIB);
    assert_true(file_bytes() >= MIB);
    assert_true(file_bytes() < 2 * MIB);
    disk_reserve_close(reserve);
}

static void test_it_is_given_up_once_and_made_again(void **state)
{
    (void)state;
    struct disk_reserve *reserve = opened(4 * MIB);
    assert_true(disk_reserve_give_up(reserve));
    assert_int_equal(file_bytes(), 0);
    assert_false(disk_reserve_give_up(reserve));
    /* At once there is no other try: what it was given up for shall have it. */
    assert_true(disk_reserve_growth(reserve) > 0);
    assert_int_equal(file_bytes(), 0);
    for (int i = 0; i < 600 && file_bytes() == 0; i++) {
        usleep(50000);
        (void)disk_reserve_growth(reserve);
    }
    assert_true(file_bytes() >= MIB);
    assert_true(disk_reserve_give_up(reserve));
    disk_reserve_close(reserve);
}

static void test_it_is_found_again_after_a_restart(void **state)
{
    (void)state;
    disk_reserve_close(opened(4 * MIB));
    struct stat before;
    struct stat after;
    assert_int_equal(stat(file, &before), 0);
    struct disk_reserve *reserve = opened(4 * MIB);
    assert_int_equal(stat(file, &after), 0);
    assert_true(before.st_ino == after.st_ino);
    assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
    assert_true(disk_reserve_give_up(reserve));
    disk_reserve_close(reserve);
}

static void test_a_reserve_that_the_disk_cannot_have_leaves_no_room(void **state)
{
    (void)state;
    struct disk_reserve *reserve = opened(1ull << 60);
    assert_int_equal(file_bytes(), 0);
    assert_int_equal(disk_reserve_growth(reserve), 0);
    assert_false(disk_reserve_give_up(reserve));
    disk_reserve_close(reserve);
}

static void test_no_reserve_is_no_file_and_all_the_disk(void **state)
{
    (void)state;
    struct disk_reserve *reserve = opened(0);
    assert_int_equal(file_bytes(), 0);
    assert_true(disk_reserve_growth(reserve) > 0);
    assert_false(disk_reserve_is_full(reserve));
    disk_reserve_close(reserve);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_it_takes_a_quarter_of_the_reserve_in_real_blocks),
        TEST(test_it_is_given_up_once_and_made_again),
        TEST(test_it_is_found_again_after_a_restart),
        TEST(test_a_reserve_that_the_disk_cannot_have_leaves_no_room),
        TEST(test_no_reserve_is_no_file_and_all_the_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
