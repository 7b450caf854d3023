/* SPDX-License-Identifier: Apache-2.0 */
/* The option table as people read it: --help and the annotated example file. */
#include <inttypes.h>
#include <string.h>

#include "common/base/config.h"

static const char *kind_word(enum config_kind kind)
{
    switch (kind) {
    case CONFIG_STRING:
        return " TEXT";
    case CONFIG_UINT:
        return " NUMBER";
    case CONFIG_BYTES:
        return " BYTES";
    case CONFIG_BOOL:
        return "";
    }
    return "";
}

/* A bound as a person would write it: 64m, not 67108864. */
static void append_amount(struct buf *out, enum config_kind kind, uint64_t value)
{
    static const char letters[] = "gmk";
    for (int i = 0; kind == CONFIG_BYTES && value != 0 && i < 3; i++) {
        int shift = 30 - 10 * i;
        if ((value & ((UINT64_C(1) << shift) - 1)) == 0) {
            buf_printf(out, "%" PRIu64 "%c", value >> shift, letters[i]);
            return;
        }
    }
    buf_printf(out, "%" PRIu64, value);
}

/* "1..65535, " where there are bounds to tell. */
static void append_bounds(struct buf *out, const struct config_option *option)
{
    if (option->kind != CONFIG_UINT && option->kind != CONFIG_BYTES)
        return;
    append_amount(out, option->kind, option->min);
    if (option->max == UINT64_MAX) {
        buf_append_str(out, " or more, ");
        return;
    }
    buf_append_str(out, "..");
    append_amount(out, option->kind, option->max);
    buf_append_str(out, ", ");
}

static const char *initial_text(const struct config_option *option)
{
    return option->initial == NULL || option->initial[0] == '\0' ? "empty" : option->initial;
}

void config_print_help(const struct config_option *options, size_t count, const char *program,
                       const char *purpose, struct buf *out)
{
    buf_printf(out, "Usage: %s [--config FILE] [--OPTION VALUE]...\n%s\n\n", program, purpose);
    buf_append_str(out,
                   "  --config FILE\n        Read options from FILE first; flags win over it.\n"
                   "  --help\n        Print this and exit.\n"
                   "  --version\n        Print the version and exit.\n");
    for (size_t i = 0; i < count; i++) {
        const struct config_option *option = &options[i];
        if (option->section != NULL)
            buf_printf(out, "\n%s:\n", option->section);
        buf_append_str(out, "  --");
        for (const char *c = option->name; *c != '\0'; c++)
            buf_append_u8(out, (uint8_t)(*c == '_' ? '-' : *c));
        buf_printf(out, "%s\n        %s (", kind_word(option->kind), option->help);
        append_bounds(out, option);
        buf_printf(out, "default %s)\n", initial_text(option));
    }
}

void config_print_example(const struct config_option *options, size_t count, struct buf *out)
{
    buf_append_str(out, "# Every option with its default. Take the # away to change one.\n");
    for (size_t i = 0; i < count; i++) {
        const struct config_option *option = &options[i];
        if (option->section != NULL)
            buf_printf(out, "\n# ---- %s ----\n", option->section);
        buf_printf(out, "\n# %s", option->help);
        if (option->kind == CONFIG_UINT || option->kind == CONFIG_BYTES) {
            struct buf bounds = BUF_INIT;
            append_bounds(&bounds, option);
            if (bounds.len > 2)
                buf_printf(out, " (%.*s)", (int)bounds.len - 2, (const char *)bounds.data);
            buf_close(&bounds);
        }
        buf_printf(out, "\n#%s = %s\n", option->name,
                   option->initial == NULL ? "" : option->initial);
    }
}
