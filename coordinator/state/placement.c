/* SPDX-License-Identifier: Apache-2.0 */
/* Which participants hold the replicas of a new table's tablets. */
#include "coordinator/state/apply.h"

static uint32_t common_divisor(uint32_t a, uint32_t b)
{
    return b == 0 ? a : common_divisor(b, a % b);
}

/* The replicas of bucket after bucket are dealt out like cards: each candidate gets the same
 * number, give or take one, and the next table goes on where this one ended. The same sets of nodes
 * come back after some buckets; each time their order is turned by one, so that every node is as
 * often the first replica (which reading asks first) as any other. */
void placement_spread(uint64_t *turn, const node_id *candidates, uint32_t count,
                      struct table *table)
{
    uint32_t copies = table->replication;
    TG_CHECK(copies > 0 && copies <= count);
    uint32_t round = count / common_divisor(count, copies); /* buckets until the sets come back */
    for (uint32_t bucket = 0; bucket < table->bucket_count; bucket++) {
        struct tablet *tablet = table->tablets[bucket];
        tablet->replica_count = table->replication;
        uint64_t turned = *turn / copies / round;
        for (uint32_t i = 0; i < copies; i++) {
            uint64_t slot = (i + turned) % copies;
            tablet->replicas[slot] = (struct replica){.node = candidates[(*turn + i) % count]};
        }
        *turn += copies;
    }
}
