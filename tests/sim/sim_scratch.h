/* SPDX-License-Identifier: Apache-2.0 */
/* A new folder for a simulated disk: in memory where there is room, else below TMPDIR. */
#ifndef TG_TESTS_SIM_SIM_SCRATCH_H
#define TG_TESTS_SIM_SIM_SCRATCH_H

#include <sys/types.h>

enum { SIM_SCRATCH_BYTES = 256 };

/* Made; removed by sim_disk_close, and at the latest by sim_scratch_clear. */
void sim_scratch_make(char path[SIM_SCRATCH_BYTES]);
/* Removes what this process has left. */
void sim_scratch_clear(void);
/* Removes what a process that is gone has left. */
void sim_scratch_clear_of(pid_t pid);

#endif
