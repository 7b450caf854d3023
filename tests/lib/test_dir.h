/* SPDX-License-Identifier: Apache-2.0 */
/* A temporary directory of a test's own. */
#ifndef TG_TESTS_LIB_TEST_DIR_H
#define TG_TESTS_LIB_TEST_DIR_H

#include <stddef.h>

enum { TEST_PATH_SIZE = 512 }; /* bytes of a path, with its zero */

struct test_dir {
    char path[TEST_PATH_SIZE];
};

/* Makes an empty directory below $TMPDIR (or /tmp); ends the test program if it cannot. */
void test_dir_make(struct test_dir *dir);
/* Removes it with all it holds. */
void test_dir_remove(struct test_dir *dir);
/* The path of a name inside, into out of TEST_PATH_SIZE bytes; returns out. */
const char *test_dir_path(const struct test_dir *dir, const char *name, char out[TEST_PATH_SIZE]);
/* Writes a file inside (made or replaced). */
void test_dir_write(const struct test_dir *dir, const char *name, const void *bytes, size_t len);
/* Reads a file inside: bytes of malloc (with a zero behind), and their number in *len. */
char *test_dir_read(const struct test_dir *dir, const char *name, size_t *len);

#endif
