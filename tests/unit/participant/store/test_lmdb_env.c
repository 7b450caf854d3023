/* SPDX-License-Identifier: Apache-2.0 */
/* What can be used again of an environment, readers that are gone, and failures after which a
 * process must not go on. */
#include "participant/store/lmdb_env.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "participant/store/disk_reserve.h"
#include "participant/store/lmdb_txn.h"
#include "tests/lib/test_dir.h"

enum { MAP_BYTES = 16 * 1024 * 1024, VALUES = 40, VALUE_BYTES = 60000, FATAL = 70 };

static struct test_dir dir;
static struct lmdb_env env;
static MDB_dbi db;

static int setup(void **state)
{
    (void)state;
    test_dir_make(&dir);
    assert_int_equal(lmdb_env_open(&env, dir.path, "env", MAP_BYTES, NULL), 0);
    assert_int_equal(lmdb_env_database(&env, "db", &db), 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    lmdb_env_close(&env);
    test_dir_remove(&dir);
    return 0;
}

static void put_all(void)
{
    static uint8_t value[VALUE_BYTES];
    struct lmdb_txn txn;
    assert_int_equal(lmdb_txn_write(&env, &txn), 0);
    for (uint8_t i = 0; i < VALUES; i++)
        lmdb_txn_put(&txn, db, slice_of(&i, 1), slice_of(value, sizeof value));
    assert_int_equal(lmdb_txn_commit(&txn), 0);
}

static void delete_all(void)
{
    struct lmdb_txn txn;
    assert_int_equal(lmdb_txn_write(&env, &txn), 0);
    for (uint8_t i = 0; i < VALUES; i++)
        lmdb_txn_delete(&txn, db, slice_of(&i, 1));
    assert_int_equal(lmdb_txn_commit(&txn), 0);
}

static struct lmdb_pages pages_now(void)
{
    struct lmdb_pages pages;
    assert_int_equal(lmdb_env_pages(&env, true, &pages), 0);
    return pages;
}

static void test_what_was_freed_last_is_usable_after_one_more_transaction(void **state)
{
    (void)state;
    put_all();
    delete_all();
    struct lmdb_pages pages = pages_now();
    assert_true(pages.fresh >= VALUES * VALUE_BYTES / 4096);
    assert_true(pages.usable < 16);
    assert_int_equal(lmdb_env_advance(&env), 0);
    pages = pages_now();
    assert_true(pages.usable >= VALUES * VALUE_BYTES / 4096);
    assert_true(pages.fresh < 16);
    /* And LMDB sees it so: the file does not grow. */
    uint64_t last = pages.last;
    put_all();
    assert_true(pages_now().last <= last + 8);
}

static void test_what_a_reader_looks_at_is_not_usable(void **state)
{
    struct lmdb_txn reader;
    (void)state;
    put_all();
    assert_int_equal(lmdb_txn_read(&env, &reader), 0);
    delete_all();
    assert_int_equal(lmdb_env_advance(&env), 0);
    assert_int_equal(lmdb_env_advance(&env), 0);
    struct lmdb_pages pages = pages_now();
    assert_true(pages.pinned >= VALUES * VALUE_BYTES / 4096);
    assert_true(pages.usable < 16);
    lmdb_txn_abort(&reader);
    assert_true(pages_now().usable >= VALUES * VALUE_BYTES / 4096);
}

/* A tool that looked into the environment and was killed. */
static void test_a_reader_whose_process_is_gone_is_forgotten(void **state)
{
    int ends[2];
    char word;
    (void)state;
    put_all();
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        MDB_env *other;
        MDB_txn *txn;
        bool good = mdb_env_create(&other) == 0 && mdb_env_set_mapsize(other, MAP_BYTES) == 0 &&
                    mdb_env_open(other, env.path, MDB_RDONLY, 0644) == 0 &&
                    mdb_txn_begin(other, NULL, MDB_RDONLY, &txn) == 0;
        (void)!write(ends[1], good ? "g" : "b", 1);
        pause();
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(read(ends[0], &word, 1), 1);
    assert_int_equal(word, 'g');
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(ends[0]);
    close(ends[1]);
    delete_all();
    assert_int_equal(lmdb_env_advance(&env), 0);
    assert_int_equal(lmdb_env_advance(&env), 0);
    assert_true(pages_now().pinned >= VALUES * VALUE_BYTES / 4096);
    lmdb_env_check_readers(&env);
    struct lmdb_pages pages = pages_now();
    assert_int_equal(pages.pinned, 0);
    assert_true(pages.usable >= VALUES * VALUE_BYTES / 4096);
}

/* The exit status of a process whose commit ended with this code; -1: it goes on. */
static int status_after_commit(int code)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        (void)lmdb_env_commit_err(&env, code);
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status) == 0 ? -1 : WEXITSTATUS(status);
}

static void test_after_a_failed_write_or_sync_the_process_ends(void **state)
{
    (void)state;
    assert_int_equal(disk_reserve_open(dir.path, 4096, &env.disk, NULL), 0);
    assert_int_equal(status_after_commit(EIO), FATAL);
    assert_int_equal(status_after_commit(EROFS), FATAL);
    assert_int_equal(status_after_commit(MDB_PANIC), FATAL);
    assert_int_equal(status_after_commit(MDB_CORRUPTED), FATAL);
    assert_int_equal(status_after_commit(ENOSPC), -1);
    assert_int_equal(status_after_commit(MDB_MAP_FULL), -1);
    assert_int_equal(status_after_commit(ENOMEM), -1);
    assert_int_equal(lmdb_env_commit_err(&env, ENOSPC), TG_NOSPACE);
    assert_int_equal(lmdb_env_commit_err(&env, MDB_MAP_FULL), TG_NOSPACE);
    assert_int_equal(lmdb_env_commit_err(&env, 0), 0);
    disk_reserve_close(env.disk);
    env.disk = NULL;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_what_was_freed_last_is_usable_after_one_more_transaction),
        TEST(test_what_a_reader_looks_at_is_not_usable),
        TEST(test_a_reader_whose_process_is_gone_is_forgotten),
        TEST(test_after_a_failed_write_or_sync_the_process_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
