/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinators that this node was told of, one address a line. */
#include "participant/known_coordinators.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { KNOWN_PATH_BYTES = 1200 };

void known_coordinators_load(struct known_coordinators *known, const char *data_dir)
{
    char path[KNOWN_PATH_BYTES];
    char line[ADDRESS_BYTES + 2];

    memset(known, 0, sizeof *known);
    snprintf(path, sizeof path, "%s/coordinators", data_dir);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return;
    while (known->count < COORDINATORS_MAX && fgets(line, sizeof line, file) != NULL) {
        size_t len = strcspn(line, "\n");

        if (line[len] != '\n' || len == 0 || len >= ADDRESS_BYTES)
            break;
        memcpy(known->list[known->count], line, len);
        known->list[known->count++][len] = '\0';
    }
    fclose(file);
}

void known_coordinators_set(struct known_coordinators *known,
                            const char (*addresses)[ADDRESS_BYTES], uint32_t count)
{
    bool same = known->count == count;

    for (uint32_t i = 0; i < count && same; i++)
        same = strcmp(known->list[i], addresses[i]) == 0;
    if (same || count > COORDINATORS_MAX)
        return;
    memcpy(known->list, addresses, count * sizeof *addresses);
    known->count = count;
    known->changed = true;
}

int known_coordinators_save(struct known_coordinators *known, const char *data_dir)
{
    char path[KNOWN_PATH_BYTES];
    char fresh[KNOWN_PATH_BYTES + 8];

    if (!known->changed)
        return 0;
    snprintf(path, sizeof path, "%s/coordinators", data_dir);
    snprintf(fresh, sizeof fresh, "%s.new", path);
    FILE *file = fopen(fresh, "we");
    bool good = file != NULL;
    for (uint32_t i = 0; i < known->count && good; i++)
        good = fprintf(file, "%s\n", known->list[i]) > 0;
    good = good && fflush(file) == 0 && fsync(fileno(file)) == 0;
    int why = errno;
    if (file != NULL && fclose(file) != 0)
        good = false;
    if (good && rename(fresh, path) != 0) {
        good = false;
        why = errno;
    }
    if (good)
        known->changed = false;
    return good ? 0 : why == ENOSPC ? TG_NOSPACE : TG_IO;
}
