/* SPDX-License-Identifier: Apache-2.0 */
/* Whether rows stand in key order already, as most loads' rows do: looked at column by column, which
 * costs a fraction of comparing whole keys row by row. */
#ifndef TG_PARTICIPANT_ROWSET_KEY_ORDER_H
#define TG_PARTICIPANT_ROWSET_KEY_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/vector.h"

struct key_order {
    bool sorted;     /* ascending, equal keys allowed */
    bool duplicates; /* there are equal neighbours; only told if sorted */
};

/* ties: `rows` bytes of scratch. */
struct key_order key_order_look(const struct vector *const *keys, uint32_t key_count, uint32_t rows,
                                uint8_t *ties);

#endif
