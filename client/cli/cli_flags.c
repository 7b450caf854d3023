/* SPDX-License-Identifier: Apache-2.0 */
/* Flags of the tool's subcommands. */
#include "client/cli/cli_flags.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cli_wrong(const struct cli_usage *usage, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fputs("tidegate: ", stderr);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\nUsage: %s   (--help says more)\n", usage->line);
    va_end(args);
    return CLI_USAGE;
}

static void print_help(const struct cli_usage *usage)
{
    printf("Usage: %s\n\n%s\n", usage->line, usage->purpose);
    if (usage->flag_count > 0)
        puts("");
    for (size_t i = 0; i < usage->flag_count; i++) {
        const struct cli_flag *flag = &usage->flags[i];
        char left[CLI_FLAG_NAME_MAX + 48];
        char letter[8] = "    ";

        if (flag->letter != '\0')
            snprintf(letter, sizeof letter, "-%c, ", flag->letter);
        snprintf(left, sizeof left, "%s--%s %s", letter, flag->name,
                 flag->value != NULL ? flag->value : "");
        printf("  %-34s %s\n", left, flag->help);
    }
}

static const struct cli_flag *find(const struct cli_usage *usage, const char *name, size_t len)
{
    for (size_t i = 0; i < usage->flag_count; i++) {
        const struct cli_flag *flag = &usage->flags[i];

        if (strlen(flag->name) == len && strncmp(flag->name, name, len) == 0)
            return flag;
    }
    return NULL;
}

static const struct cli_flag *find_letter(const struct cli_usage *usage, char letter)
{
    for (size_t i = 0; i < usage->flag_count; i++)
        if (usage->flags[i].letter == letter)
            return &usage->flags[i];
    return NULL;
}

static int set(const struct cli_usage *usage, const struct cli_flag *flag, const char *value)
{
    struct cli_list *list = flag->into;
    char *end;

    switch (flag->kind) {
    case CLI_TEXT:
        *(const char **)flag->into = value;
        return CLI_OK;
    case CLI_UINT: {
        unsigned long long number = strtoull(value, &end, 10);

        if (value[0] < '0' || value[0] > '9' || *end != '\0' || number > flag->max)
            return cli_wrong(usage, "--%s must be a number up to %" PRIu64 ", not '%s'", flag->name,
                             flag->max, value);
        *(uint64_t *)flag->into = number;
        return CLI_OK;
    }
    case CLI_LIST:
        if (list->count == CLI_LIST_MAX)
            return cli_wrong(usage, "--%s is given more than %d times", flag->name, CLI_LIST_MAX);
        list->items[list->count++] = value;
        return CLI_OK;
    case CLI_BOOL:
        *(bool *)flag->into = true;
        return CLI_OK;
    }
    return CLI_OK;
}

/* One flag at argv[*at], its value there or in the next. */
static int take(const struct cli_usage *usage, int argc, char **argv, int *at)
{
    const char *text = argv[*at];
    const char *value = NULL;
    const struct cli_flag *flag;

    if (text[1] == '-') {
        size_t len = strcspn(text + 2, "=");

        flag = find(usage, text + 2, len);
        if (text[2 + len] == '=')
            value = text + 2 + len + 1;
    } else {
        flag = find_letter(usage, text[1]);
        if (text[2] != '\0')
            value = text + 2;
    }
    if (flag == NULL)
        return cli_wrong(usage, "unknown flag %s", text);
    if (flag->kind == CLI_BOOL && value != NULL)
        return cli_wrong(usage, "--%s takes no value", flag->name);
    if (flag->kind != CLI_BOOL && value == NULL) {
        if (*at + 1 >= argc)
            return cli_wrong(usage, "--%s needs a value", flag->name);
        value = argv[++*at];
    }
    return set(usage, flag, value);
}

int cli_flags_parse(const struct cli_usage *usage, int argc, char **argv, struct cli_words *words)
{
    bool only_words = false;

    words->count = 0;
    for (int i = 0; i < argc; i++) {
        int rc = CLI_OK;

        if (!only_words && strcmp(argv[i], "--") == 0) {
            only_words = true;
        } else if (!only_words && strcmp(argv[i], "--help") == 0) {
            print_help(usage);
            return CLI_HELPED;
        } else if (!only_words && argv[i][0] == '-' && argv[i][1] != '\0') {
            rc = take(usage, argc, argv, &i);
        } else if (words->count == CLI_WORDS_MAX) {
            rc = cli_wrong(usage, "more than %d arguments", CLI_WORDS_MAX);
        } else {
            words->items[words->count++] = argv[i];
        }
        if (rc != CLI_OK)
            return rc;
    }
    return CLI_OK;
}
