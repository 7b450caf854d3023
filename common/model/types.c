/* SPDX-License-Identifier: Apache-2.0 */
/* Column types: one row of a table each; names, bounds and order. Reading text is in type_parse*.c,
 * printing in type_print.c. */
#include "common/model/types.h"

#include <math.h>
#include <string.h>

#include "common/base/check.h"

struct type_row {
    const char *name;        /* in SQL */
    const char *schema_name; /* in _schema answers; NULL: depends on the parameters */
    uint8_t width;           /* 255: depends on the precision */
    bool bare;               /* JSON output without quotes */
};

enum { WIDTH_BY_PRECISION = 255, DECIMAL_PRECISION_32_MAX = 9 };

static const struct type_row ROWS[] = {
    [TYPE_BOOLEAN] = {"BOOLEAN", "BOOLEAN", 1, true},
    [TYPE_TINYINT] = {"TINYINT", "TINYINT", 1, true},
    [TYPE_SMALLINT] = {"SMALLINT", "SMALLINT", 2, true},
    [TYPE_INT] = {"INT", "INT", 4, true},
    [TYPE_BIGINT] = {"BIGINT", "BIGINT", 8, true},
    [TYPE_LARGEINT] = {"LARGEINT", "LARGEINT", 16, true},
    [TYPE_FLOAT] = {"FLOAT", "FLOAT", 4, true},
    [TYPE_DOUBLE] = {"DOUBLE", "DOUBLE", 8, true},
    [TYPE_DECIMAL] = {"DECIMAL", NULL, WIDTH_BY_PRECISION, true},
    [TYPE_DATE] = {"DATE", "DATEV2", 4, false},
    [TYPE_DATETIME] = {"DATETIME", "DATETIMEV2", 8, false},
    [TYPE_CHAR] = {"CHAR", "CHAR", 0, false},
    [TYPE_VARCHAR] = {"VARCHAR", "VARCHAR", 0, false},
    [TYPE_STRING] = {"STRING", "STRING", 0, false},
    [TYPE_JSON] = {"JSON", "JSONB", 0, false},
};

static bool is_known(struct column_type type)
{
    return type.kind >= TYPE_BOOLEAN && type.kind <= TYPE_JSON;
}

unsigned type_width(struct column_type type)
{
    TG_CHECK(is_known(type));
    unsigned width = ROWS[type.kind].width;
    if (width == WIDTH_BY_PRECISION)
        return type.precision <= DECIMAL_PRECISION_64_MAX ? 8 : 16;
    return width;
}

bool type_is_bytes(struct column_type type)
{
    return type_width(type) == 0;
}

bool type_json_is_bare(struct column_type type)
{
    TG_CHECK(is_known(type));
    return ROWS[type.kind].bare;
}

void type_print_name(struct column_type type, struct buf *out)
{
    TG_CHECK(is_known(type));
    buf_append_str(out, ROWS[type.kind].name);
    if (type.kind == TYPE_DECIMAL)
        buf_printf(out, "(%u,%u)", (unsigned)type.precision, (unsigned)type.scale);
    else if (type.kind == TYPE_DATETIME && type.scale > 0)
        buf_printf(out, "(%u)", (unsigned)type.scale);
    else if (type.kind == TYPE_CHAR || type.kind == TYPE_VARCHAR)
        buf_printf(out, "(%u)", type.length);
}

const char *type_schema_name(struct column_type type)
{
    TG_CHECK(is_known(type));
    if (type.kind != TYPE_DECIMAL)
        return ROWS[type.kind].schema_name;
    if (type.precision <= DECIMAL_PRECISION_32_MAX)
        return "DECIMAL32";
    return type.precision <= DECIMAL_PRECISION_64_MAX ? "DECIMAL64" : "DECIMAL128I";
}

static int validate_decimal(struct column_type type, struct tg_errmsg *msg)
{
    if (type.precision < 1 || type.precision > DECIMAL_PRECISION_MAX)
        return tg_fail(msg, TG_INVALID, "DECIMAL: precision %u is not in 1..%d",
                       (unsigned)type.precision, DECIMAL_PRECISION_MAX);
    if (type.scale > type.precision)
        return tg_fail(msg, TG_INVALID, "DECIMAL(%u,%u): scale is larger than precision",
                       (unsigned)type.precision, (unsigned)type.scale);
    return 0;
}

static int validate_length(struct column_type type, uint32_t max, struct tg_errmsg *msg)
{
    if (type.length < 1 || type.length > max)
        return tg_fail(msg, TG_INVALID, "%s: length %u is not in 1..%u bytes", ROWS[type.kind].name,
                       type.length, max);
    return 0;
}

int type_validate(struct column_type type, struct tg_errmsg *msg)
{
    if (!is_known(type))
        return tg_fail(msg, TG_INVALID, "unknown column type number %u", (unsigned)type.kind);
    switch (type.kind) {
    case TYPE_DECIMAL:
        return validate_decimal(type, msg);
    case TYPE_DATETIME:
        if (type.scale > DATETIME_SCALE_MAX)
            return tg_fail(msg, TG_INVALID, "DATETIME: %u digits of fraction are not in 0..%d",
                           (unsigned)type.scale, DATETIME_SCALE_MAX);
        return 0;
    case TYPE_CHAR:
        return validate_length(type, CHAR_LENGTH_MAX, msg);
    case TYPE_VARCHAR:
        return validate_length(type, VARCHAR_LENGTH_MAX, msg);
    default:
        return 0;
    }
}

#define COMPARE_AS(c_type)        \
    do {                          \
        c_type x, y;              \
        memcpy(&x, a, sizeof x);  \
        memcpy(&y, b, sizeof y);  \
        return (x > y) - (x < y); \
    } while (0)

static int compare_double(double x, double y)
{
    if (isnan(x) || isnan(y))
        return (isnan(x) != 0) - (isnan(y) != 0);
    return (x > y) - (x < y);
}

int type_compare(struct column_type type, const void *a, const void *b)
{
    if (type.kind == TYPE_FLOAT) {
        float x, y;
        memcpy(&x, a, sizeof x);
        memcpy(&y, b, sizeof y);
        return compare_double((double)x, (double)y);
    }
    if (type.kind == TYPE_DOUBLE) {
        double x, y;
        memcpy(&x, a, sizeof x);
        memcpy(&y, b, sizeof y);
        return compare_double(x, y);
    }
    switch (type_width(type)) {
    case 1:
        COMPARE_AS(int8_t);
    case 2:
        COMPARE_AS(int16_t);
    case 4:
        COMPARE_AS(int32_t);
    case 8:
        COMPARE_AS(int64_t);
    case 16:
        COMPARE_AS(__int128);
    default:
        TG_UNREACHABLE();
    }
}
