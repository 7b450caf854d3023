/* SPDX-License-Identifier: Apache-2.0 */
/* Column types: one row of a table each. How a value is laid out in memory, read from text, printed
 * and compared (text forms as Doris 4.x loads them; half rounds away from zero). */
#ifndef TG_COMMON_MODEL_TYPES_H
#define TG_COMMON_MODEL_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"

/* The numbers are part of every format: append only. */
enum type_kind {
    TYPE_BOOLEAN = 1,
    TYPE_TINYINT = 2,
    TYPE_SMALLINT = 3,
    TYPE_INT = 4,
    TYPE_BIGINT = 5,
    TYPE_LARGEINT = 6,
    TYPE_FLOAT = 7,
    TYPE_DOUBLE = 8,
    TYPE_DECIMAL = 9,
    TYPE_DATE = 10,
    TYPE_DATETIME = 11,
    TYPE_CHAR = 12,
    TYPE_VARCHAR = 13,
    TYPE_STRING = 14,
    TYPE_JSON = 15
};

enum {
    DECIMAL_PRECISION_MAX = 38,
    DECIMAL_PRECISION_64_MAX = 18, /* up to here a decimal is 8 bytes, above 16 */
    DATETIME_SCALE_MAX = 6,
    CHAR_LENGTH_MAX = 255,
    VARCHAR_LENGTH_MAX = 65533,
    STRING_BYTES_MAX = 1048576, /* STRING, JSON: longer values are refused as too long */
    TYPE_TEXT_MAX = 64          /* the longest text of a fixed-width value, with its zero */
};

struct column_type {
    uint8_t kind;      /* enum type_kind */
    uint8_t precision; /* DECIMAL */
    uint8_t scale;     /* DECIMAL; DATETIME: digits of the fraction */
    uint32_t length;   /* CHAR, VARCHAR: bytes */
};

/* In memory and in blocks (little-endian):
 *   BOOLEAN, TINYINT 1 byte · SMALLINT 2 · INT 4 · BIGINT 8 · LARGEINT 16, two's complement
 *   FLOAT 4, DOUBLE 8, IEEE 754
 *   DECIMAL(p,s) the unscaled integer: 8 bytes for p ≤ 18, else 16
 *   DATE 4: year << 9 | month << 5 | day, as an unsigned number that sorts as the date does
 *   DATETIME 8: that packed date << 37 | microseconds of the day
 *   CHAR, VARCHAR, STRING, JSON: bytes (width 0) */
unsigned type_width(struct column_type type);
bool type_is_bytes(struct column_type type);

/* "VARCHAR(20)", "DECIMAL(15,2)", "DATETIME(3)". */
void type_print_name(struct column_type type, struct buf *out);
/* Doris's name in _schema answers: "VARCHAR", "DECIMAL64", "DATETIMEV2". */
const char *type_schema_name(struct column_type type);
/* Checks bounds of precision, scale, length. TG_INVALID with a reason. */
int type_validate(struct column_type type, struct tg_errmsg *msg);

/* A fixed-width value: the low type_width bytes count. */
union type_value {
    int8_t i8;
    int16_t i16;
    int32_t i32;
    int64_t i64;
    __int128 i128;
    float f32;
    double f64;
    uint8_t bytes[16];
};

/* The packed forms of DATE and DATETIME and back. The parts are not checked. */
#define DATETIME_DAY_BITS 37
static inline uint32_t type_pack_date(uint32_t year, uint32_t month, uint32_t day)
{
    return year << 9 | month << 5 | day;
}
static inline int64_t type_pack_datetime(uint32_t date, uint64_t us_of_day)
{
    return (int64_t)((uint64_t)date << DATETIME_DAY_BITS | us_of_day);
}
static inline uint32_t type_datetime_date(int64_t datetime)
{
    return (uint32_t)((uint64_t)datetime >> DATETIME_DAY_BITS);
}
static inline uint64_t type_datetime_us(int64_t datetime)
{
    return (uint64_t)datetime & ((UINT64_C(1) << DATETIME_DAY_BITS) - 1);
}

/* Why a text did not become a value. */
enum type_parse_result {
    TYPE_PARSED = 0,
    /* Not a value of the type, or beyond its range: NULL, in strict mode a filtered row. */
    TYPE_BAD,
    /* Bytes longer than the column allows: non-strict cuts (at a UTF-8 border), strict filters. */
    TYPE_TOO_LONG
};

/* Text to a fixed-width value (surrounding blanks allowed as Doris does). tz_offset_us:
 * the load's time zone offset east of UTC in microseconds: a DATETIME or DATE text with an offset
 * of its own is converted into that zone. */
enum type_parse_result type_parse(struct column_type type, const char *text, size_t len,
                                  int64_t tz_offset_us, union type_value *value);
/* Checks bytes for CHAR/VARCHAR (length), STRING (limit), JSON (well formed). */
enum type_parse_result type_check_bytes(struct column_type type, const char *text, size_t len);
/* How many of the bytes fit the column: len itself, or where to cut (at a UTF-8 border). */
size_t type_cut_bytes(struct column_type type, const char *text, size_t len);

/* Value to text: the form that reads print and that type_parse reads back. Returns the length. */
size_t type_print(struct column_type type, const void *value, char out[TYPE_TEXT_MAX]);
/* The same for many values of one type: writes without a NUL, returns the end. May write up to
 * TYPE_TEXT_MAX bytes from `to` on, whatever the text's length. scale: the type's. */
typedef char *type_printer(const void *value, unsigned scale, char *to);
/* For fixed-width types; never NULL. */
type_printer *type_printer_of(struct column_type type);
/* True where JSON output prints the text bare (numbers, booleans as 1/0); others are quoted.
 * LARGEINT and DECIMAL print bare too: their digits are exact in the text. inf and nan are quoted.
 * JSON columns print as they are. */
bool type_json_is_bare(struct column_type type);

/* <0, 0, >0; FLOAT and DOUBLE order NaN last. For bytes use slice_compare. */
int type_compare(struct column_type type, const void *a, const void *b);

#endif
