/* SPDX-License-Identifier: Apache-2.0 */
/* From headers and schema to the mapping of fields to columns. */
#include "participant/ingest/row_mapping.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define ANALYSIS "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = "

enum { NOW_TEXT = 40 };

void row_mapping_close(struct row_mapping *mapping)
{
    for (uint32_t i = 0; mapping->targets != NULL && i < mapping->target_count; i++)
        free(mapping->targets[i].absent);
    free(mapping->targets);
    free(mapping->fields);
    *mapping = (struct row_mapping){.sign_field = -1};
}

/* The moment as a clock in the load's time zone shows it. */
static void print_now(uint64_t now_us, int64_t tz_offset_us, char out[NOW_TEXT])
{
    int64_t local = (int64_t)now_us + tz_offset_us;
    int64_t days = local / INT64_C(86400000000);
    int64_t us = local % INT64_C(86400000000);
    /* Days since 0000-03-01, in eras of 400 years: months then count from March, leap days last. */
    int64_t z = days + 719468;
    int64_t era = z / 146097;
    int64_t of_era = z % 146097;
    int64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t shifted = (5 * of_year + 2) / 153;
    int64_t day = of_year - (153 * shifted + 2) / 5 + 1;
    int64_t month = shifted < 10 ? shifted + 3 : shifted - 9;
    int64_t year = year_of_era + era * 400 + (month <= 2);
    int64_t seconds = us / 1000000;

    snprintf(out, NOW_TEXT, "%04d-%02d-%02d %02d:%02d:%02d.%06d", (int)(year % 10000), (int)month,
             (int)day, (int)(seconds / 3600), (int)(seconds / 60 % 60), (int)(seconds % 60),
             (int)(us % 1000000));
}

static int fill_targets(const struct schema *schema, const struct load_options *options,
                        uint64_t now_us, struct row_mapping *mapping)
{
    char now[NOW_TEXT];

    print_now(now_us, options->tz_offset_us, now);
    for (uint32_t i = 0; i < mapping->target_count; i++) {
        struct row_target *target = &mapping->targets[i];
        const char *absent;
        target->type = schema_stored_type(schema, i);
        target->column_id = schema_stored_id(schema, i);
        target->field = -1;
        if (i < schema->column_count) {
            const struct schema_column *column = &schema->columns[i];
            target->name = column->name;
            target->nullable = column->nullable;
            absent = column->nullable ? "\\N" : NULL;
            if (column->default_kind == DEFAULT_TEXT)
                absent = column->default_text;
            else if (column->default_kind == DEFAULT_NOW)
                absent = now;
        } else {
            target->name = COLUMN_NAME_DELETE_SIGN;
            target->is_sign = true;
            absent = options->delete_rows ? "1" : "0";
        }
        if (absent != NULL && (target->absent = strdup(absent)) == NULL)
            return TG_NOMEM;
    }
    return 0;
}

static bool is_sign_name(const char *name)
{
    return strcasecmp(name, COLUMN_NAME_DELETE_SIGN) == 0;
}

/* Gives the next field its name and, if the table has such a column, its target. */
static int add_field(const struct schema *schema, struct row_mapping *mapping, const char *name,
                     struct tg_errmsg *msg)
{
    struct row_field *field = &mapping->fields[mapping->field_count];
    bool has_sign = mapping->target_count > schema->column_count;

    snprintf(field->name, sizeof field->name, "%s", name);
    if (is_sign_name(name)) {
        field->target = has_sign ? (int)schema->column_count : -1;
        if (!has_sign)
            mapping->sign_field = (int)mapping->field_count;
    } else {
        field->target = schema_find(schema, name, strlen(name));
    }
    if (field->target >= 0) {
        struct row_target *target = &mapping->targets[field->target];
        if (target->field >= 0)
            return tg_fail(msg, TG_INVALID, ANALYSIS "Duplicate column: %s", name);
        target->field = (int)mapping->field_count;
    }
    mapping->field_count++;
    return 0;
}

static int fill_fields(const struct schema *schema, const struct load_options *options,
                       struct row_mapping *mapping, struct tg_errmsg *msg)
{
    int err = 0;

    if (options->columns.count > 0) {
        for (uint32_t i = 0; i < options->columns.count && err == 0; i++)
            err = add_field(schema, mapping, options->columns.names[i], msg);
        return err;
    }
    for (uint32_t i = 0; i < schema->column_count && err == 0; i++)
        err = add_field(schema, mapping, schema->columns[i].name, msg);
    if (err == 0 && options->hidden_delete_sign)
        err = add_field(schema, mapping, COLUMN_NAME_DELETE_SIGN, msg);
    return err;
}

int row_mapping_build(const struct schema *schema, const struct load_options *options,
                      uint64_t now_us, struct row_mapping *mapping, struct tg_errmsg *msg)
{
    *mapping = (struct row_mapping){.sign_field = -1};
    if (options->delete_rows && schema->key_model != KEY_UNIQUE)
        return tg_fail(msg, TG_INVALID,
                       ANALYSIS "load by MERGE or DELETE is only supported in unique tables.");
    uint32_t most = options->columns.count > 0 ? options->columns.count : schema->column_count + 1;
    mapping->target_count = schema_stored_count(schema);
    mapping->targets = calloc(mapping->target_count, sizeof *mapping->targets);
    mapping->fields = calloc(most, sizeof *mapping->fields);
    if (mapping->targets == NULL || mapping->fields == NULL ||
        fill_targets(schema, options, now_us, mapping) != 0)
        return tg_fail(msg, TG_NOMEM, "[INTERNAL_ERROR]out of memory");
    int err = fill_fields(schema, options, mapping, msg);
    for (uint32_t i = 0; i < mapping->target_count && err == 0; i++) {
        const struct row_target *target = &mapping->targets[i];
        if (target->field < 0 && target->absent == NULL)
            err = tg_fail(msg, TG_INVALID, ANALYSIS "Column has no default value. column: %s",
                          target->name);
    }
    return err;
}
