/* SPDX-License-Identifier: Apache-2.0 */
/* A column type's name with its numbers. */
#include "coordinator/ddl/ddl_type.h"

#include <strings.h>

enum arguments { NO_ARGUMENTS, IGNORED_WIDTH, LENGTH, PRECISION_SCALE, FRACTION };

struct type_name {
    const char *name;
    enum type_kind kind;
    enum arguments arguments;
};

static const struct type_name type_names[] = {
    {"BOOLEAN", TYPE_BOOLEAN, NO_ARGUMENTS},    {"BOOL", TYPE_BOOLEAN, NO_ARGUMENTS},
    {"TINYINT", TYPE_TINYINT, IGNORED_WIDTH},   {"SMALLINT", TYPE_SMALLINT, IGNORED_WIDTH},
    {"INT", TYPE_INT, IGNORED_WIDTH},           {"INTEGER", TYPE_INT, IGNORED_WIDTH},
    {"BIGINT", TYPE_BIGINT, IGNORED_WIDTH},     {"LARGEINT", TYPE_LARGEINT, NO_ARGUMENTS},
    {"FLOAT", TYPE_FLOAT, NO_ARGUMENTS},        {"DOUBLE", TYPE_DOUBLE, NO_ARGUMENTS},
    {"DECIMAL", TYPE_DECIMAL, PRECISION_SCALE}, {"DECIMALV3", TYPE_DECIMAL, PRECISION_SCALE},
    {"NUMERIC", TYPE_DECIMAL, PRECISION_SCALE}, {"DATE", TYPE_DATE, NO_ARGUMENTS},
    {"DATEV2", TYPE_DATE, NO_ARGUMENTS},        {"DATETIME", TYPE_DATETIME, FRACTION},
    {"DATETIMEV2", TYPE_DATETIME, FRACTION},    {"CHAR", TYPE_CHAR, LENGTH},
    {"VARCHAR", TYPE_VARCHAR, LENGTH},          {"STRING", TYPE_STRING, NO_ARGUMENTS},
    {"TEXT", TYPE_STRING, NO_ARGUMENTS},        {"JSON", TYPE_JSON, NO_ARGUMENTS},
    {"JSONB", TYPE_JSON, NO_ARGUMENTS},
};

/* Doris has them; this store does not. */
static const char *const foreign_names[] = {"ARRAY", "MAP",  "STRUCT",         "BITMAP", "HLL",
                                            "IPV4",  "IPV6", "QUANTILE_STATE", "VARIANT"};

static int parse_arguments(struct ddl_lexer *lexer, enum arguments arguments,
                           struct column_type *type)
{
    uint64_t value = 0;

    if (!ddl_lexer_take(lexer, "("))
        return lexer->err;
    switch (arguments) {
    case NO_ARGUMENTS:
        return ddl_lexer_fail_at(lexer, TG_SYNTAX, "this type takes no arguments");
    case IGNORED_WIDTH: /* INT(11): a display width that Doris ignores as well */
        ddl_lexer_uint(lexer, "a width", 255, &value);
        break;
    case LENGTH:
        if (ddl_lexer_take(lexer, "*"))
            value = VARCHAR_LENGTH_MAX;
        else
            ddl_lexer_uint(lexer, "a length in bytes", UINT32_MAX, &value);
        type->length = (uint32_t)value;
        break;
    case PRECISION_SCALE:
        ddl_lexer_uint(lexer, "a precision", 255, &value);
        type->precision = (uint8_t)value;
        type->scale = 0;
        value = 0;
        if (ddl_lexer_take(lexer, ","))
            ddl_lexer_uint(lexer, "a scale", 255, &value);
        type->scale = (uint8_t)value;
        break;
    case FRACTION:
        ddl_lexer_uint(lexer, "the digits of the fraction", 255, &value);
        type->scale = (uint8_t)value;
        break;
    }
    return ddl_lexer_expect(lexer, ")");
}

int ddl_type_parse(struct ddl_lexer *lexer, struct column_type *type)
{
    struct tg_errmsg why = {{0}};
    struct ddl_token place = lexer->token;

    for (size_t i = 0; i < sizeof foreign_names / sizeof foreign_names[0]; i++)
        if (ddl_lexer_is(lexer, foreign_names[i]))
            return ddl_lexer_fail_at(lexer, TG_UNSUPPORTED, "the type %s is not supported",
                                     foreign_names[i]);
    for (size_t i = 0; i < sizeof type_names / sizeof type_names[0]; i++) {
        if (!ddl_lexer_take(lexer, type_names[i].name))
            continue;
        *type = (struct column_type){.kind = (uint8_t)type_names[i].kind};
        if (type->kind == TYPE_DECIMAL) { /* Doris's default */
            type->precision = 38;
            type->scale = 9;
        }
        if (type->kind == TYPE_CHAR)
            type->length = 1;
        if (type->kind == TYPE_VARCHAR)
            type->length = VARCHAR_LENGTH_MAX;
        if (parse_arguments(lexer, type_names[i].arguments, type) != 0)
            return lexer->err;
        if (type_validate(*type, &why) != 0) {
            lexer->token = place;
            return ddl_lexer_fail_at(lexer, TG_INVALID, "%s", why.text);
        }
        return 0;
    }
    return lexer->err != 0 ? lexer->err : ddl_lexer_fail(lexer, "a column type");
}
