/* SPDX-License-Identifier: Apache-2.0 */
/* Options by name, the nearest name for a misspelt one, and values from text. */
#include "common/base/config_table.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/check.h"

enum { NAME_MAX_BYTES = 63 }; /* of an option's name; also what the edit distance looks at */

/* A name in a flag may use - for _. */
static char plain(char c)
{
    return c == '-' ? '_' : c;
}

static bool name_matches(const char *name, struct slice given)
{
    if (strlen(name) != given.len)
        return false;
    for (size_t i = 0; i < given.len; i++) {
        if (name[i] != plain((char)given.data[i]))
            return false;
    }
    return true;
}

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

/* Levenshtein's distance, one row of the table at a time. */
static size_t edit_distance(const char *name, struct slice given)
{
    size_t row[NAME_MAX_BYTES + 2];
    size_t len = strlen(name);
    TG_CHECK(len <= NAME_MAX_BYTES);
    for (size_t i = 0; i <= len; i++)
        row[i] = i;
    for (size_t g = 0; g < given.len; g++) {
        size_t diagonal = row[0];
        row[0] = g + 1;
        for (size_t i = 0; i < len; i++) {
            size_t swap = diagonal + (name[i] != plain((char)given.data[g]));
            diagonal = row[i + 1];
            row[i + 1] = min3(swap, row[i] + 1, row[i + 1] + 1);
        }
    }
    return row[len];
}

/* The known name that is near enough to be meant, or NULL. */
static const char *nearest_name(const struct config_option *options, size_t count,
                                struct slice given)
{
    const char *best = NULL;
    size_t best_distance = given.len / 3 + 2; /* about a third of the letters may be wrong */
    for (size_t i = 0; given.len <= NAME_MAX_BYTES && i < count; i++) {
        size_t distance = edit_distance(options[i].name, given);
        if (distance < best_distance) {
            best_distance = distance;
            best = options[i].name;
        }
    }
    return best;
}

int config_find(const struct config_option *options, size_t count, struct slice name, size_t *index,
                struct tg_errmsg *msg)
{
    for (size_t i = 0; i < count; i++) {
        if (name_matches(options[i].name, name)) {
            *index = i;
            return 0;
        }
    }
    const char *near = nearest_name(options, count, name);
    int shown = (int)(name.len < NAME_MAX_BYTES ? name.len : NAME_MAX_BYTES);
    if (near != NULL)
        return tg_fail(msg, TG_INVALID, "unknown option '%.*s'; did you mean '%s'?", shown,
                       (const char *)name.data, near);
    return tg_fail(msg, TG_INVALID, "unknown option '%.*s'", shown, (const char *)name.data);
}

/* How far a suffix shifts a number of bytes: -1 for a suffix that is none. */
static int suffix_shift(const char *suffix)
{
    static const char letters[] = "kmg";
    if (suffix[0] == '\0')
        return 0;
    const char *at = strchr(letters, suffix[0] | 0x20);
    if (at == NULL || *at == '\0' || suffix[1] != '\0')
        return -1;
    return 10 * (int)(at - letters + 1);
}

static int set_number(const struct config_option *option, const char *text, uint64_t *into,
                      struct tg_errmsg *msg)
{
    const char *what = option->kind == CONFIG_BYTES
                           ? "a number of bytes (with k, m or g for 1024, 1024², 1024³)"
                           : "a whole number";
    size_t digits = strspn(text, "0123456789");
    int shift = suffix_shift(text + digits);
    if (digits == 0 || shift < 0 || (shift > 0 && option->kind != CONFIG_BYTES))
        return tg_fail(msg, TG_INVALID, "%s: '%.100s' is not %s", option->name, text, what);
    uint64_t value = 0;
    bool fits = true;
    for (size_t i = 0; i < digits; i++) {
        fits = fits && !__builtin_mul_overflow(value, (uint64_t)10, &value);
        fits = fits && !__builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value);
    }
    fits = fits && value <= UINT64_MAX >> shift;
    if (!fits || value << shift < option->min || value << shift > option->max)
        return tg_fail(msg, TG_INVALID, "%s: %.100s is not in %" PRIu64 "..%" PRIu64, option->name,
                       text, option->min, option->max);
    *into = value << shift;
    return 0;
}

bool config_parse_bool(const char *text, bool *value)
{
    *value = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    return *value || strcmp(text, "false") == 0 || strcmp(text, "0") == 0;
}

int config_set(const struct config_option *option, const char *text, void *into,
               struct tg_errmsg *msg)
{
    char *at = (char *)into + option->offset;
    switch (option->kind) {
    case CONFIG_STRING: {
        size_t len = strlen(text);
        if (len >= option->size)
            return tg_fail(msg, TG_INVALID, "%s: longer than %zu bytes", option->name,
                           option->size - 1);
        memcpy(at, text, len + 1);
        return 0;
    }
    case CONFIG_UINT:
    case CONFIG_BYTES: {
        uint64_t value = 0;
        int err = set_number(option, text, &value, msg);
        if (err == 0)
            memcpy(at, &value, sizeof value);
        return err;
    }
    case CONFIG_BOOL: {
        bool value;
        if (!config_parse_bool(text, &value))
            return tg_fail(msg, TG_INVALID, "%s: '%.100s' is neither true nor false", option->name,
                           text);
        memcpy(at, &value, sizeof value);
        return 0;
    }
    }
    TG_UNREACHABLE();
}

int config_defaults(const struct config_option *options, size_t count, void *into,
                    struct tg_errmsg *msg)
{
    TG_CHECK(count <= CONFIG_OPTIONS_MAX);
    for (size_t i = 0; i < count; i++) {
        const char *initial = options[i].initial == NULL ? "" : options[i].initial;
        int err = config_set(&options[i], initial, into, msg);
        if (err != 0)
            return tg_wrap(msg, err, "default");
    }
    return 0;
}
