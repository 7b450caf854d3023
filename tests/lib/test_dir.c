/* SPDX-License-Identifier: Apache-2.0 */
/* A temporary directory of a test's own. */
#include "tests/lib/test_dir.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/check.h"

enum { OPEN_DIRECTORIES_MAX = 16 }; /* that nftw keeps open at once */

void test_dir_make(struct test_dir *dir)
{
    const char *parent = getenv("TMPDIR");
    if (parent == NULL || parent[0] == '\0')
        parent = "/tmp";
    int n = snprintf(dir->path, sizeof dir->path, "%s/tidegate-test-XXXXXX", parent);
    TG_CHECK(n > 0 && (size_t)n < sizeof dir->path);
    TG_CHECK(mkdtemp(dir->path) != NULL);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)status;
    (void)kind;
    (void)where;
    return remove(path);
}

void test_dir_remove(struct test_dir *dir)
{
    if (dir->path[0] != '\0')
        (void)nftw(dir->path, remove_one, OPEN_DIRECTORIES_MAX, FTW_DEPTH | FTW_PHYS);
    dir->path[0] = '\0';
}

const char *test_dir_path(const struct test_dir *dir, const char *name, char out[TEST_PATH_SIZE])
{
    int n = snprintf(out, TEST_PATH_SIZE, "%s/%s", dir->path, name);
    TG_CHECK(n > 0 && n < TEST_PATH_SIZE);
    return out;
}

void test_dir_write(const struct test_dir *dir, const char *name, const void *bytes, size_t len)
{
    char path[TEST_PATH_SIZE];
    FILE *file = fopen(test_dir_path(dir, name, path), "wb");
    TG_CHECK(file != NULL);
    TG_CHECK(len == 0 || fwrite(bytes, 1, len, file) == len);
    TG_CHECK(fclose(file) == 0);
}

char *test_dir_read(const struct test_dir *dir, const char *name, size_t *len)
{
    char path[TEST_PATH_SIZE];
    FILE *file = fopen(test_dir_path(dir, name, path), "rb");
    TG_CHECK(file != NULL);
    TG_CHECK(fseek(file, 0, SEEK_END) == 0);
    long size = ftell(file);
    TG_CHECK(size >= 0);
    rewind(file);
    char *bytes = malloc((size_t)size + 1);
    TG_CHECK(bytes != NULL);
    TG_CHECK(fread(bytes, 1, (size_t)size, file) == (size_t)size);
    TG_CHECK(fclose(file) == 0);
    bytes[size] = '\0';
    *len = (size_t)size;
    return bytes;
}
