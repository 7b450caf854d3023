/* SPDX-License-Identifier: Apache-2.0 */
/* Which participants hold the replicas of a new table's tablets. */
#include "coordinator/state/apply.h"

/* The replicas of bucket after bucket are dealt out like cards: each candidate gets the same
 * number, give or take one, and the next table goes on where this one ended. Inside a bucket the
 * order is turned, so that no node is the first replica (which publishing and reading ask first) of
 * all. */
void placement_spread(uint64_t *turn, const node_id *candidates, uint32_t count,
                      struct table *table)
{
    uint32_t copies = table->replication;
    TG_CHECK(copies > 0 && copies <= count);
    for (uint32_t bucket = 0; bucket < table->bucket_count; bucket++) {
        struct tablet *tablet = table->tablets[bucket];
        tablet->replica_count = table->replication;
        for (uint32_t i = 0; i < copies; i++) {
            uint32_t slot = (i + bucket) % copies;
            tablet->replicas[slot] = (struct replica){.node = candidates[(*turn + i) % count]};
        }
        *turn += copies;
    }
}
