/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of a text to a column of values, in tiles of some hundred rows.
 *
 *   tile loop    numbers as programs write them, without a branch: all of the tile, or it gives up
 *   field loop   around a fast parser (type_fast.h), field by field: signs, long numbers
 *   careful_field  whatever that one does not know: \N, blanks, rounding, errors
 */
#include "common/model/type_convert.h"

#include <string.h>

#include "common/base/check.h"
#include "common/base/json.h"
#include "common/model/type_fast.h"
#include "common/model/type_parse.h"

enum {
    COPY_SHORT = 16, /* strings up to here are copied with one move */
    TILE_ROWS = 256,
    TILES_PASSED = 15 /* after one that gave up so many are not tried: their like may follow */
};

struct convert {
    struct column_type type;
    const char *text;
    const uint32_t *begins;
    const uint32_t *ends;
    size_t stride;
    uint32_t count;
    int64_t tz_offset_us;
    struct vector *out;
    uint8_t *bad;
    uint64_t flags;
};

/* Loops read their fields from a copy of the job: a store of a value could, for all the compiler
 * knows, change the original. */
static inline const char *field(const struct convert *c, uint32_t i, uint32_t *len)
{
    uint32_t begin = c->begins[i * c->stride];
    *len = c->ends[i * c->stride] - begin;
    return c->text + begin;
}

static inline bool is_null_field(const char *p, uint32_t len)
{
    return len == 2 && p[0] == '\\' && p[1] == 'N';
}

/* Null bytes of the rows to come, zeroed; they are switched on by the first null only. */
static void prepare_nulls(struct convert *c)
{
    if (c->out->has_nulls)
        memset(c->out->nulls + c->out->rows, 0, c->count);
}

static void set_null(struct convert *c, uint32_t i)
{
    struct vector *out = c->out;
    if (!out->has_nulls) {
        if (vector_use_nulls(out) != 0) {
            c->flags |= CONVERT_NOMEM;
            return;
        }
        prepare_nulls(c);
    }
    out->nulls[out->rows + i] = 1;
    if (out->width > 0)
        memset(out->fixed + (size_t)(out->rows + i) * out->width, 0, out->width);
    c->flags |= CONVERT_NULL;
}

static void set_bad(struct convert *c, uint32_t i, enum type_convert_bad why)
{
    c->flags |= CONVERT_BAD;
    if (c->bad != NULL)
        c->bad[i] = (uint8_t)why;
}

static __attribute__((noinline)) void careful_field(struct convert *c, uint32_t i, const char *p,
                                                    uint32_t len)
{
    union type_value value;
    if (is_null_field(p, len)) {
        set_null(c, i);
    } else if (type_parse(c->type, p, len, c->tz_offset_us, &value) == TYPE_PARSED) {
        memcpy(c->out->fixed + (size_t)(c->out->rows + i) * c->out->width, &value, c->out->width);
    } else {
        set_bad(c, i, CONVERT_BAD_VALUE);
        set_null(c, i);
    }
}

/* One loop a type: `parsed` is an expression over p and len that stores to[i] and says whether it
 * could. */
#define CONVERT_LOOP(name, c_type, parsed)                         \
    static void name(struct convert *c, uint32_t at, uint32_t end) \
    {                                                              \
        const struct convert job = *c;                             \
        c_type *to = (c_type *)c->out->fixed + c->out->rows;       \
        for (uint32_t i = at; i < end; i++) {                      \
            uint32_t len;                                          \
            const char *p = field(&job, i, &len);                  \
            if (__builtin_expect(!(parsed), 0))                    \
                careful_field(c, i, p, len);                       \
        }                                                          \
    }

static inline bool boolean_field(const char *p, uint32_t len, int8_t *value)
{
    uint32_t digit = (uint32_t)(unsigned char)*p - '0';
    *value = (int8_t)digit;
    return len == 1 && digit <= 1;
}

/* False too where the number does not fit: the careful parser then says so. */
#define INTEGER_FIELD(name, c_type)                                     \
    static inline bool name(const char *p, uint32_t len, c_type *value) \
    {                                                                   \
        int64_t integer = 0;                                            \
        bool parsed = fast_integer(p, len, &integer);                   \
        *value = (c_type)integer;                                       \
        return parsed && *value == integer;                             \
    }

INTEGER_FIELD(tinyint_field, int8_t)
INTEGER_FIELD(smallint_field, int16_t)
INTEGER_FIELD(int_field, int32_t)
INTEGER_FIELD(largeint_field, __int128)

CONVERT_LOOP(convert_boolean, int8_t, boolean_field(p, len, &to[i]))
CONVERT_LOOP(convert_tinyint, int8_t, tinyint_field(p, len, &to[i]))
CONVERT_LOOP(convert_smallint, int16_t, smallint_field(p, len, &to[i]))
CONVERT_LOOP(convert_int, int32_t, int_field(p, len, &to[i]))
CONVERT_LOOP(convert_bigint, int64_t, fast_integer(p, len, &to[i]))
CONVERT_LOOP(convert_largeint, __int128, largeint_field(p, len, &to[i]))
CONVERT_LOOP(convert_float, float, type_parse_float(p, len, &to[i]))
CONVERT_LOOP(convert_double, double, type_parse_double(p, len, &to[i]))
CONVERT_LOOP(convert_date, uint32_t, fast_date(p, len, &to[i]))

static void convert_decimal64(struct convert *c, uint32_t at, uint32_t end)
{
    const struct convert job = *c;
    int64_t *to = (int64_t *)c->out->fixed + c->out->rows;
    const uint32_t scale = c->type.scale;
    const uint64_t limit = TYPE_POW10[c->type.precision];
    for (uint32_t i = at; i < end; i++) {
        uint32_t len;
        const char *p = field(&job, i, &len);
        if (__builtin_expect(!fast_decimal(p, len, scale, limit, &to[i]), 0))
            careful_field(c, i, p, len);
    }
}

static void convert_decimal128(struct convert *c, uint32_t at, uint32_t end)
{
    const struct convert job = *c;
    __int128 *to = (__int128 *)c->out->fixed + c->out->rows;
    const uint32_t scale = c->type.scale;
    /* The fast parser is for what fits 64 bits, which most values of wide types do. */
    const bool fast = scale <= DECIMAL_PRECISION_64_MAX;
    const uint64_t limit = TYPE_POW10[DECIMAL_PRECISION_64_MAX];
    for (uint32_t i = at; i < end; i++) {
        uint32_t len;
        int64_t value;
        const char *p = field(&job, i, &len);
        if (fast && fast_decimal(p, len, scale, limit, &value))
            to[i] = value;
        else
            careful_field(c, i, p, len);
    }
}

static void convert_datetime(struct convert *c, uint32_t at, uint32_t end)
{
    const struct convert job = *c;
    int64_t *to = (int64_t *)c->out->fixed + c->out->rows;
    const uint32_t scale = c->type.scale;
    for (uint32_t i = at; i < end; i++) {
        uint32_t len;
        const char *p = field(&job, i, &len);
        if (__builtin_expect(!fast_datetime(p, len, scale, &to[i]), 0))
            careful_field(c, i, p, len);
    }
}

/* ---- tiles ---- */

/* A field's first eight bytes as digits at the top of a word, and what is wrong with it: 0 if it is
 * one to eight digits and nothing else. */
static inline uint64_t short_digits(const char *text, uint32_t begin, uint32_t end, uint64_t *bad)
{
    uint32_t len = end - begin;
    uint64_t w = (load_u64le(text + begin) ^ FAST_ZEROS) << ((64 - 8 * len) & 63);
    *bad |= fast_not_digits(w) | (len - 1) >> 3;
    return w;
}

#define INTEGER_TILE(name, c_type, value_bits)                                     \
    static bool name(const struct convert *c, uint32_t at, uint32_t end)           \
    {                                                                              \
        const char *text = c->text;                                                \
        const size_t stride = c->stride;                                           \
        const uint32_t *begins = c->begins + at * stride;                          \
        const uint32_t *ends = c->ends + at * stride;                              \
        c_type *restrict to = (c_type *)c->out->fixed + c->out->rows;              \
        uint64_t bad = 0;                                                          \
        for (uint32_t i = at; i < end; i++, begins += stride, ends += stride) {    \
            uint64_t value = fast_eight(short_digits(text, *begins, *ends, &bad)); \
            bad |= value >> (value_bits);                                          \
            to[i] = (c_type)value;                                                 \
        }                                                                          \
        return bad == 0;                                                           \
    }

INTEGER_TILE(tinyint_tile, int8_t, 7)
INTEGER_TILE(smallint_tile, int16_t, 15)
INTEGER_TILE(int_tile, int32_t, 31)
INTEGER_TILE(bigint_tile, int64_t, 63)
INTEGER_TILE(largeint_tile, __int128, 63)

/* Digits, the dot, exactly `scale` (1..7) digits, at most eight in all: as one number. */
#define DECIMAL_TILE(name, c_type)                                                              \
    static bool name(const struct convert *c, uint32_t at, uint32_t end)                        \
    {                                                                                           \
        const char *text = c->text;                                                             \
        const size_t stride = c->stride;                                                        \
        const uint32_t scale = c->type.scale;                                                   \
        const uint64_t largest =                                                                \
            c->type.precision < 8 ? TYPE_POW10[c->type.precision] - 1 : UINT64_MAX >> 1;        \
        const uint32_t *begins = c->begins + at * stride;                                       \
        const uint32_t *ends = c->ends + at * stride;                                           \
        c_type *restrict to = (c_type *)c->out->fixed + c->out->rows;                           \
        uint64_t bad = 0;                                                                       \
        for (uint32_t i = at; i < end; i++, begins += stride, ends += stride) {                 \
            const char *p = text + *begins;                                                     \
            uint32_t whole = *ends - *begins - 1 - scale;                                       \
            uint64_t high = (load_u64le(p) ^ FAST_ZEROS) << ((64 - 8 * whole) & 63);            \
            /* A field that is too short or too long is bad; what is looked at is then still in \
             * the text or close behind it. */                                                  \
            const char *dot = p + (whole & 7);                                                  \
            uint64_t low = (load_u64le(dot + 1) ^ FAST_ZEROS) << (64 - 8 * scale);              \
            uint64_t w = high >> (8 * scale) | low;                                             \
            uint64_t value = fast_eight(w);                                                     \
            bad |= fast_not_digits(w) | (uint64_t)(*dot ^ '.') |                                \
                   (uint64_t)(whole - 1 >= 8 - scale) | (largest - value) >> 63;                \
            to[i] = (c_type)value;                                                              \
        }                                                                                       \
        return bad == 0;                                                                        \
    }

DECIMAL_TILE(decimal64_tile, int64_t)
DECIMAL_TILE(decimal128_tile, __int128)

typedef bool convert_tile(const struct convert *c, uint32_t at, uint32_t end);
typedef void convert_fields(struct convert *c, uint32_t at, uint32_t end);

static void convert_fixed(struct convert *c, convert_tile *tile, convert_fields *fields)
{
    uint32_t passed = tile == NULL ? UINT32_MAX : 0; /* tiles that are not tried */

    for (uint32_t at = 0; at < c->count; at += TILE_ROWS) {
        uint32_t end = c->count - at < TILE_ROWS ? c->count : at + TILE_ROWS;

        if (passed > 0)
            passed--;
        else if (tile(c, at, end))
            continue;
        else
            passed = TILES_PASSED;
        fields(c, at, end);
    }
}

static void convert_decimal(struct convert *c)
{
    bool tiles = c->type.scale >= 1 && c->type.scale <= 7;

    if (c->out->width == 8)
        convert_fixed(c, tiles ? decimal64_tile : NULL, convert_decimal64);
    else
        convert_fixed(c, tiles ? decimal128_tile : NULL, convert_decimal128);
}

/* ---- bytes ---- */

/* Bytes and ends of the rows lie behind those of the vector until commit. */
static void convert_bytes(struct convert *c)
{
    const struct convert job = *c;
    struct vector *out = c->out;
    uint32_t *row_ends = out->ends + out->rows;
    uint8_t *to = out->bytes + out->bytes_len;
    const uint32_t limit = c->type.kind == TYPE_STRING ? STRING_BYTES_MAX : c->type.length;
    for (uint32_t i = 0; i < job.count; i++) {
        uint32_t len;
        const char *p = field(&job, i, &len);
        if (is_null_field(p, len)) {
            set_null(c, i);
            len = 0;
        } else if (__builtin_expect(len > limit, 0)) {
            set_bad(c, i, CONVERT_BAD_TOO_LONG);
            len = (uint32_t)type_cut_bytes(c->type, p, len);
        }
        if (len <= COPY_SHORT)
            memcpy(to, p, COPY_SHORT);
        else
            memcpy(to, p, len);
        to += len;
        row_ends[i] = (uint32_t)(to - out->bytes);
    }
    if ((c->flags & CONVERT_NOMEM) == 0)
        out->bytes_len = (size_t)(to - out->bytes);
}

static enum type_parse_result check_json(struct convert *c, struct json_pool *pool, const char *p,
                                         uint32_t len)
{
    struct json_doc *doc;
    if (len > STRING_BYTES_MAX)
        return TYPE_TOO_LONG;
    int err = pool == NULL ? TG_NOMEM : json_doc_parse(p, len, pool, &doc, NULL);
    if (err == TG_NOMEM)
        c->flags |= CONVERT_NOMEM; /* which says nothing about the value */
    if (err != 0)
        return TYPE_BAD;
    json_doc_close(doc);
    return TYPE_PARSED;
}

static void convert_json(struct convert *c)
{
    const struct convert job = *c;
    struct vector *out = c->out;
    uint32_t *row_ends = out->ends + out->rows;
    uint8_t *to = out->bytes + out->bytes_len;
    struct json_pool *pool = json_pool_open();
    for (uint32_t i = 0; i < job.count; i++) {
        uint32_t len;
        const char *p = field(&job, i, &len);
        enum type_parse_result result = TYPE_PARSED;
        bool null = is_null_field(p, len);
        if (!null)
            result = check_json(c, pool, p, len);
        if (result != TYPE_PARSED)
            set_bad(c, i, result == TYPE_BAD ? CONVERT_BAD_VALUE : CONVERT_BAD_TOO_LONG);
        if (null || result != TYPE_PARSED) {
            set_null(c, i);
            len = 0;
        }
        memcpy(to, p, len);
        to += len;
        row_ends[i] = (uint32_t)(to - out->bytes);
    }
    if (pool != NULL)
        json_pool_close(pool);
    if ((c->flags & CONVERT_NOMEM) == 0)
        out->bytes_len = (size_t)(to - out->bytes);
}

static void convert_all(struct convert *c)
{
    switch (c->type.kind) {
    case TYPE_BOOLEAN:
        convert_fixed(c, NULL, convert_boolean);
        break;
    case TYPE_TINYINT:
        convert_fixed(c, tinyint_tile, convert_tinyint);
        break;
    case TYPE_SMALLINT:
        convert_fixed(c, smallint_tile, convert_smallint);
        break;
    case TYPE_INT:
        convert_fixed(c, int_tile, convert_int);
        break;
    case TYPE_BIGINT:
        convert_fixed(c, bigint_tile, convert_bigint);
        break;
    case TYPE_LARGEINT:
        convert_fixed(c, largeint_tile, convert_largeint);
        break;
    case TYPE_FLOAT:
        convert_fixed(c, NULL, convert_float);
        break;
    case TYPE_DOUBLE:
        convert_fixed(c, NULL, convert_double);
        break;
    case TYPE_DECIMAL:
        convert_decimal(c);
        break;
    case TYPE_DATE:
        convert_fixed(c, NULL, convert_date);
        break;
    case TYPE_DATETIME:
        convert_fixed(c, NULL, convert_datetime);
        break;
    case TYPE_JSON:
        convert_json(c);
        break;
    case TYPE_CHAR:
    case TYPE_VARCHAR:
    case TYPE_STRING:
        convert_bytes(c);
        break;
    default:
        TG_UNREACHABLE();
    }
}

uint64_t type_convert_column(struct column_type type, const char *text, const uint32_t *begins,
                             const uint32_t *ends, size_t stride, uint32_t count,
                             int64_t tz_offset_us, struct vector *out, uint8_t *bad)
{
    size_t bytes = 0;
    if (count == 0)
        return 0;
    if (out->width == 0) {
        for (uint32_t i = 0; i < count; i++)
            bytes += ends[i * stride] - begins[i * stride];
    }
    int err = vector_reserve(out, count, bytes);
    if (err != 0)
        return err == TG_LIMIT ? CONVERT_LIMIT : CONVERT_NOMEM;
    struct convert c = {type, text, begins, ends, stride, count, tz_offset_us, out, bad, 0};
    prepare_nulls(&c);
    convert_all(&c);
    if ((c.flags & CONVERT_NOMEM) == 0)
        out->rows += count;
    return c.flags;
}
