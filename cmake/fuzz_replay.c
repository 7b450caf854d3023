/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds every file of the folders named on the command line to a fuzz target, once. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    REPLAY_FILE_MAX = 1 << 20, /* bytes; corpus files are small */
    REPLAY_PATH_MAX = 4096
};

/* Returns 0, or -1 where the file cannot be read. */
static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return -1;
    uint8_t *whole = malloc(REPLAY_FILE_MAX);
    size_t size = whole == NULL ? 0 : fread(whole, 1, REPLAY_FILE_MAX, file);
    fclose(file);
    /* A copy of the exact size, so that reading one byte past the end is noticed. */
    uint8_t *data = malloc(size > 0 ? size : 1);
    if (whole == NULL || data == NULL) {
        free(whole);
        free(data);
        return -1;
    }
    for (size_t i = 0; i < size; i++)
        data[i] = whole[i];
    free(whole);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 0;
}

int main(int argc, char **argv)
{
    unsigned passed = 0;
    unsigned failed = 0;
    char path[REPLAY_PATH_MAX];

    LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++) {
        DIR *dir = opendir(argv[i]);
        if (dir == NULL)
            continue;
        for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
            if (entry->d_name[0] == '.')
                continue;
            int written = snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name);
            if (written < 0 || (size_t)written >= sizeof path || replay_file(path) != 0)
                failed++;
            else
                passed++;
        }
        closedir(dir);
    }
    printf("%u passed, %u failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
