/* SPDX-License-Identifier: Apache-2.0 */
/* A program that links this has libc's threads, locks, conditions, clocks and sleeps replaced by
 * those of fiber.h. Nothing of it is a real thread any more. */
#ifndef TG_TESTS_SIM_FIBER_PTHREAD_H
#define TG_TESTS_SIM_FIBER_PTHREAD_H

/* Draws the replacements into the program; does nothing. */
void fiber_pthread_use(void);

#endif
