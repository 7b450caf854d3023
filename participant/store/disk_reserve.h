/* SPDX-License-Identifier: Apache-2.0 */
/* Space that is kept for what has to go on when the disk is full: binding what was committed,
 * dropping what is dead, a restart. Two kinds of it:
 *
 *   the floor  what only adds data stops when less than half of `disk_reserve_bytes` is free
 *   the file   DATA/reserve holds some mebibytes that nobody else can take; it is given up when even
 *              what frees space finds none, and made again when there is room
 *
 * Safe on any thread. */
#ifndef TG_PARTICIPANT_STORE_DISK_RESERVE_H
#define TG_PARTICIPANT_STORE_DISK_RESERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

enum {
    DISK_RESERVE_FILE_BYTES_MAX = 8 * 1024 * 1024, /* of the file; less with a small reserve */
    DISK_RESERVE_TRY_MS = 1000                     /* between two attempts to make the file again */
};

struct disk_reserve;

/* dir: the store's directory. reserve_bytes: 0 for no reserve at all. Without room for the file it
 * begins without one. TG_NOMEM. */
int disk_reserve_open(const char *dir, uint64_t reserve_bytes, struct disk_reserve **reserve,
                      struct tg_errmsg *msg);
/* The file stays for the next start. NULL is allowed. */
void disk_reserve_close(struct disk_reserve *reserve);

/* Free bytes on the disk, for us. UINT64_MAX if it cannot be asked. */
uint64_t disk_reserve_free(const struct disk_reserve *reserve);
/* Bytes by which files may still grow for new data. Makes the file again if there is room. */
uint64_t disk_reserve_growth(struct disk_reserve *reserve);
/* Gives the file's space back to the disk; false if there was none. */
bool disk_reserve_give_up(struct disk_reserve *reserve);
/* Whether a write that was cut short can be explained by a full disk, even if the file was given up
 * since. */
bool disk_reserve_is_full(const struct disk_reserve *reserve);

#endif
