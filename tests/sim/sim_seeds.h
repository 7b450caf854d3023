/* SPDX-License-Identifier: Apache-2.0 */
/* Which seeds a simulation test runs: SEEDS=first-last or SEEDS=one in the environment, else the
 * default. */
#ifndef TG_TESTS_SIM_SIM_SEEDS_H
#define TG_TESTS_SIM_SIM_SEEDS_H

#include <stdint.h>
#include <stdlib.h>

#include "common/base/log.h"

struct sim_seeds {
    uint64_t first, last;
};

/* SEEDS=20 means 1-20; SEEDS=7-7 only the seventh. */
static inline struct sim_seeds sim_seeds_of(uint64_t count)
{
    const char *text = getenv("SEEDS");
    char *end = NULL;
    struct sim_seeds seeds = {1, count};
    if (text == NULL || text[0] == '\0')
        return seeds;
    uint64_t number = strtoull(text, &end, 10);
    if (*end == '-') {
        seeds.first = number;
        seeds.last = strtoull(end + 1, NULL, 10);
    } else {
        seeds.last = number;
    }
    return seeds;
}

/* A simulated process that dies, or thousands of elections, are no news; SIM_LOG=1 shows them. */
static inline void sim_drop_line(void *data, enum log_level level, const char *line)
{
    (void)data;
    (void)level;
    (void)line;
}

static inline void sim_log_init(void)
{
    if (getenv("SIM_LOG") != NULL)
        return;
    log_set_level(LOG_ERROR);
    log_set_sink(sim_drop_line, NULL);
}

#endif
