/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a value of any type: none, or a value whose own text is read as the same value, and
 * the fast path for whole columns says what the careful one says. Then as a point in time. */
#include <stdint.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/time_text.h"
#include "common/model/type_convert.h"
#include "common/model/types.h"
#include "coordinator/query/query_time.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD_BYTES = 4, TEXT_MAX = 2000 };

/* The text of a value is read as that value again. */
static void check_print(struct column_type type, const union type_value *value)
{
    char text[TYPE_TEXT_MAX];
    union type_value again;
    size_t len = type_print(type, value, text);
    TG_CHECK(len < sizeof text);
    memset(&again, 0, sizeof again);
    TG_CHECK(type_parse(type, text, len, 0, &again) == TYPE_PARSED);
    TG_CHECK(type_compare(type, value, &again) == 0);
}

/* One row through the way that loads take. */
static void check_column(struct column_type type, const char *text, size_t len, int64_t offset,
                         enum type_parse_result result, const union type_value *value)
{
    struct vector column;
    uint32_t begin = 0;
    uint32_t end = (uint32_t)len;
    uint8_t bad = 0;
    vector_init(&column, type);
    uint64_t flags = type_convert_column(type, text, &begin, &end, 1, 1, offset, &column, &bad);
    TG_CHECK((flags & (CONVERT_NOMEM | CONVERT_LIMIT)) == 0);
    bool is_null_mark = len == 2 && text[0] == '\\' && text[1] == 'N';
    if (!is_null_mark && !type_is_bytes(type) && len > 0) {
        TG_CHECK((bad == CONVERT_BAD_VALUE) == (result == TYPE_BAD));
        if (result == TYPE_PARSED)
            TG_CHECK(type_compare(type, vector_fixed(&column, 0), value) == 0);
    }
    vector_close(&column);
}

static void check_times(const char *text)
{
    struct tg_errmsg msg;
    uint64_t us;
    char again[QUERY_TIME_BYTES];
    if (query_time_parse(text, &us) == 0 && us < UINT64_C(253402300800000000))
        query_time_plain(us, again);
    (void)time_text_parse(text, &us, &msg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < HEAD_BYTES || size > TEXT_MAX)
        return 0;
    struct column_type type = {.kind = (uint8_t)(1 + data[0] % TYPE_JSON)};
    if (type.kind == TYPE_DECIMAL) {
        type.precision = (uint8_t)(1 + data[1] % DECIMAL_PRECISION_MAX);
        type.scale = (uint8_t)(data[2] % (type.precision + 1));
    } else if (type.kind == TYPE_DATETIME) {
        type.scale = (uint8_t)(data[2] % (DATETIME_SCALE_MAX + 1));
    } else if (type.kind == TYPE_CHAR || type.kind == TYPE_VARCHAR) {
        type.length = 1u + data[1] % CHAR_LENGTH_MAX;
    }
    int64_t offset = ((int64_t)data[3] - 128) * 15 * 60 * 1000000 / 4;
    char text[TEXT_MAX + 1];
    size_t len = size - HEAD_BYTES;
    memcpy(text, data + HEAD_BYTES, len);
    text[len] = '\0';
    union type_value value;
    enum type_parse_result result = TYPE_BAD;
    memset(&value, 0, sizeof value);
    if (type_is_bytes(type)) {
        result = type_check_bytes(type, text, len);
        TG_CHECK(type_cut_bytes(type, text, len) <= len);
    } else {
        result = type_parse(type, text, len, offset, &value);
        if (result == TYPE_PARSED)
            check_print(type, &value);
    }
    check_column(type, text, len, offset, result, &value);
    check_times(text);
    return 0;
}
