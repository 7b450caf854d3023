/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of a cluster at rest: declared in sim_check.h, in a file of their own. */
#ifndef TG_TESTS_SIM_SIM_CHECK_END_H
#define TG_TESTS_SIM_SIM_CHECK_END_H

#include "tests/sim/sim_check.h"

#endif
