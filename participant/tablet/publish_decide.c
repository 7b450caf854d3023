/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a bind may be done: a pure function of what is here. */
#include "participant/tablet/publish.h"

enum publish_status publish_decide(const struct publish_bind *bind, const struct bind_facts *facts)
{
    /* Bound already, by this very publish repeated, or by another one: then this replica holds
     * something else than the log says, and only a repair can tell. */
    if (facts->bound)
        return facts->bound_same ? PUBLISH_BOUND : PUBLISH_BEHIND;
    if (bind->prev != facts->last || bind->version <= bind->prev)
        return PUBLISH_BEHIND;
    for (uint32_t i = 0; i < bind->rowset_count; i++) {
        if (!facts->staged[i].sealed)
            return PUBLISH_MISSING;
        if (!digest_equal(&facts->staged[i].digest, &bind->rowsets[i].digest))
            return PUBLISH_DIGEST;
    }
    return PUBLISH_BOUND;
}
