/* SPDX-License-Identifier: Apache-2.0 */
/* A program that links this has libc's calls on files replaced by those of sim_disk.h, for files of
 * simulated disks; all others stay what they are. */
#ifndef TG_TESTS_SIM_SIM_DISK_CALLS_H
#define TG_TESTS_SIM_SIM_DISK_CALLS_H

/* Draws the replacements into the program; does nothing. */
void sim_disk_calls_use(void);

#endif
