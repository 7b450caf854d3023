/* SPDX-License-Identifier: Apache-2.0 */
/* Neighbours are compared by their first key column; where those are equal, by the next. ties[i]
 * says whether rows i - 1 and i are equal so far. */
#include "participant/rowset/key_order.h"

#include <string.h>

/* True if a neighbour that was a tie so far goes down in this column. */
#define LOOK(name, c_type)                                                     \
    static bool name(const void *fixed, uint32_t rows, uint8_t *restrict ties) \
    {                                                                          \
        const c_type *values = fixed;                                          \
        uint8_t down = 0;                                                      \
        for (uint32_t i = 1; i < rows; i++) {                                  \
            down |= (uint8_t)(ties[i] & (values[i - 1] > values[i]));          \
            ties[i] &= values[i - 1] == values[i];                             \
        }                                                                      \
        return down != 0;                                                      \
    }

LOOK(look_1, int8_t)
LOOK(look_2, int16_t)
LOOK(look_4, int32_t)
LOOK(look_8, int64_t)
LOOK(look_16, __int128)

static bool look_at_all(const struct vector *column, uint32_t rows, uint8_t *ties)
{
    for (uint32_t i = 1; i < rows; i++) {
        if (ties[i] == 0)
            continue;
        int order = vector_compare(column, i - 1, column, i);
        if (order > 0)
            return true;
        ties[i] = order == 0;
    }
    return false;
}

/* Dates, numbers and decimals order as the integers that they are kept as. */
static bool is_like_integer(const struct vector *column)
{
    return column->width > 0 && !column->has_nulls && column->type.kind != TYPE_FLOAT &&
           column->type.kind != TYPE_DOUBLE;
}

static bool goes_down(const struct vector *column, uint32_t rows, uint8_t *ties)
{
    if (!is_like_integer(column))
        return look_at_all(column, rows, ties);
    switch (column->width) {
    case 1:
        return look_1(column->fixed, rows, ties);
    case 2:
        return look_2(column->fixed, rows, ties);
    case 4:
        return look_4(column->fixed, rows, ties);
    case 8:
        return look_8(column->fixed, rows, ties);
    default:
        return look_16(column->fixed, rows, ties);
    }
}

struct key_order key_order_look(const struct vector *const *keys, uint32_t key_count, uint32_t rows,
                                uint8_t *ties)
{
    struct key_order order = {.sorted = true};

    memset(ties, 1, rows);
    for (uint32_t i = 0; i < key_count && order.sorted; i++)
        order.sorted = !goes_down(keys[i], rows, ties);
    for (uint32_t i = 1; i < rows && order.sorted && !order.duplicates; i++)
        order.duplicates = ties[i] != 0;
    return order;
}
