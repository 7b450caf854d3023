/* SPDX-License-Identifier: Apache-2.0 */
/* LMDB reads its files through memory: where the disk has an error, a file was cut, or a page points
 * to nowhere, the process gets a signal. This says which file it is and what to do, and ends the
 * process. Faults anywhere else take their usual way. */
#ifndef TG_PARTICIPANT_STORE_LMDB_GUARD_H
#define TG_PARTICIPANT_STORE_LMDB_GUARD_H

#include <stddef.h>

enum { LMDB_GUARD_MAPS_MAX = 64, LMDB_GUARD_EXIT_CODE = 70 /* EX_SOFTWARE, as store_fatal */ };

/* Faults in [base, base + len) are about the environment at path, which must live until it is
 * removed. Beyond LMDB_GUARD_MAPS_MAX nothing is guarded. Any thread. */
void lmdb_guard_add(const char *path, void *base, size_t len);
void lmdb_guard_remove(const char *path);

/* What to do with a store that cannot be opened or read, as a sentence. */
extern const char lmdb_guard_advice[];

#endif
