/* SPDX-License-Identifier: Apache-2.0 */
/* Text to one value of any fixed-width type, and checks of bytes. Whole columns: type_convert.h. */
#include "common/model/type_parse.h"

#include <string.h>

#include "common/base/check.h"
#include "common/base/json.h"
#include "common/model/type_fast.h"

enum {
    FAST_TEXT_MAX = 32, /* longer texts go to the careful parsers at once */
    FAST_SLACK = 16     /* what the fast ones may read behind the text */
};

static bool try_fast(struct column_type type, const char *text, uint32_t len,
                     union type_value *value)
{
    char padded[FAST_TEXT_MAX + FAST_SLACK] = {0};
    memcpy(padded, text, len);
    int64_t integer;
    switch (type.kind) {
    case TYPE_BIGINT:
        return fast_integer(padded, len, &value->i64);
    case TYPE_INT:
        if (!fast_integer(padded, len, &integer) || integer != (int32_t)integer)
            return false;
        value->i32 = (int32_t)integer;
        return true;
    case TYPE_DECIMAL:
        return type.precision <= DECIMAL_PRECISION_64_MAX &&
               fast_decimal(padded, len, type.scale, TYPE_POW10[type.precision], &value->i64);
    case TYPE_DATE: {
        uint32_t date;
        if (!fast_date(padded, len, &date))
            return false;
        value->i32 = (int32_t)date;
        return true;
    }
    case TYPE_DATETIME:
        return fast_datetime(padded, len, type.scale, &value->i64);
    default:
        return false;
    }
}

static bool parse_integer(const char *text, size_t len, unsigned width, union type_value *value)
{
    __int128 integer;
    if (!type_parse_integer(text, len, width * 8, &integer))
        return false;
    switch (width) {
    case 1:
        value->i8 = (int8_t)integer;
        break;
    case 2:
        value->i16 = (int16_t)integer;
        break;
    case 4:
        value->i32 = (int32_t)integer;
        break;
    case 8:
        value->i64 = (int64_t)integer;
        break;
    default:
        value->i128 = integer;
        break;
    }
    return true;
}

static bool parse_carefully(struct column_type type, const char *text, size_t len,
                            int64_t tz_offset_us, union type_value *value)
{
    switch (type.kind) {
    case TYPE_BOOLEAN:
        return type_parse_boolean(text, len, &value->i8);
    case TYPE_TINYINT:
    case TYPE_SMALLINT:
    case TYPE_INT:
    case TYPE_BIGINT:
    case TYPE_LARGEINT:
        return parse_integer(text, len, type_width(type), value);
    case TYPE_FLOAT:
        return type_parse_float(text, len, &value->f32);
    case TYPE_DOUBLE:
        return type_parse_double(text, len, &value->f64);
    case TYPE_DECIMAL: {
        __int128 decimal;
        if (!type_parse_decimal(text, len, type.precision, type.scale, &decimal))
            return false;
        if (type_width(type) == 8)
            value->i64 = (int64_t)decimal;
        else
            value->i128 = decimal;
        return true;
    }
    case TYPE_DATE: {
        uint32_t date;
        if (!type_parse_date(text, len, tz_offset_us, &date))
            return false;
        value->i32 = (int32_t)date;
        return true;
    }
    case TYPE_DATETIME:
        return type_parse_datetime(text, len, type.scale, tz_offset_us, &value->i64);
    default:
        TG_UNREACHABLE();
    }
}

enum type_parse_result type_parse(struct column_type type, const char *text, size_t len,
                                  int64_t tz_offset_us, union type_value *value)
{
    if (len == 0)
        return TYPE_BAD;
    if (len <= FAST_TEXT_MAX && try_fast(type, text, (uint32_t)len, value))
        return TYPE_PARSED;
    return parse_carefully(type, text, len, tz_offset_us, value) ? TYPE_PARSED : TYPE_BAD;
}

static size_t bytes_limit(struct column_type type)
{
    return type.kind == TYPE_CHAR || type.kind == TYPE_VARCHAR ? type.length : STRING_BYTES_MAX;
}

enum type_parse_result type_check_bytes(struct column_type type, const char *text, size_t len)
{
    if (len > bytes_limit(type))
        return TYPE_TOO_LONG;
    if (type.kind != TYPE_JSON)
        return TYPE_PARSED;
    struct json_doc *doc;
    int err = json_doc_parse(text, len, NULL, &doc, NULL);
    TG_CHECK_MEMORY(err != TG_NOMEM); /* it says nothing about the value */
    if (err != 0)
        return TYPE_BAD;
    json_doc_close(doc);
    return TYPE_PARSED;
}

size_t type_cut_bytes(struct column_type type, const char *text, size_t len)
{
    size_t limit = bytes_limit(type);
    if (len <= limit)
        return len;
    /* Back over the continuation bytes (10xxxxxx) of the character that the limit cuts; at most
     * three. */
    size_t cut = limit;
    for (unsigned i = 0; i < 3 && cut > 0 && ((unsigned char)text[cut] & 0xC0) == 0x80; i++)
        cut--;
    return ((unsigned char)text[cut] & 0xC0) == 0x80 ? limit : cut;
}
