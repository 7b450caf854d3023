/* SPDX-License-Identifier: Apache-2.0 */
/* Planted faults: a build with -DMUTANT=n has exactly the n-th of tests/mutants/table.txt, and the
 * test that is named there must fail in it. In every other build MUTANT(n) is the constant 0. */
#ifndef TG_COMMON_BASE_MUTANT_H
#define TG_COMMON_BASE_MUTANT_H

#ifdef TG_MUTANT
#define MUTANT(n) (TG_MUTANT == (n))
/* So that nobody ships one by accident: tests/release.py looks for it in the programs. */
static const char tg_mutant_mark[] __attribute__((used)) = "TIDEGATE PLANTED FAULT";
#else
#define MUTANT(n) 0
#endif

#endif
