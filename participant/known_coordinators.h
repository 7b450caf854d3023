/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinators that this node was told of, remembered in DIR/coordinators: when all that its
 * options name were replaced while it was down, it still finds the cluster. */
#ifndef TG_PARTICIPANT_KNOWN_COORDINATORS_H
#define TG_PARTICIPANT_KNOWN_COORDINATORS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/model/ids.h"

struct known_coordinators {
    uint32_t count;
    char list[COORDINATORS_MAX][ADDRESS_BYTES];
    bool changed; /* since the last save */
};

/* A file that is missing or damaged says nothing: the options name some. */
void known_coordinators_load(struct known_coordinators *known, const char *data_dir);
void known_coordinators_set(struct known_coordinators *known,
                            const char (*addresses)[ADDRESS_BYTES], uint32_t count);
/* Writes them if they changed. May block. TG_IO, TG_NOSPACE: tried again with the next call. */
int known_coordinators_save(struct known_coordinators *known, const char *data_dir);

#endif
