/* SPDX-License-Identifier: Apache-2.0 */
/* Flags of the tool's subcommands: one table parses them and prints --help. */
#ifndef TG_CLIENT_CLI_CLI_FLAGS_H
#define TG_CLIENT_CLI_CLI_FLAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cli_flag_kind {
    CLI_TEXT, /* const char ** */
    CLI_UINT, /* uint64_t *, up to max */
    CLI_BOOL, /* bool *, takes no value */
    CLI_LIST  /* struct cli_list *, may be repeated */
};

enum { CLI_LIST_MAX = 64, CLI_WORDS_MAX = 64, CLI_FLAG_NAME_MAX = 64 };

struct cli_list {
    const char *items[CLI_LIST_MAX];
    size_t count;
};

struct cli_flag {
    const char *name; /* without dashes */
    char letter;      /* short form, 0 = none */
    enum cli_flag_kind kind;
    void *into;
    uint64_t max;      /* CLI_UINT */
    const char *value; /* what the help calls the value, NULL for CLI_BOOL */
    const char *help;
};

struct cli_usage {
    const char *line;    /* "tidegate load [FLAGS] FILE" */
    const char *purpose; /* sentences, with line breaks */
    const struct cli_flag *flags;
    size_t flag_count;
};

/* What is no flag. "-" counts as a word; all after "--" are words. */
struct cli_words {
    const char *items[CLI_WORDS_MAX];
    size_t count;
};

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_HELPED = 3 };

/* argv[0] is the first argument. CLI_OK; CLI_HELPED after printing the help to stdout; CLI_USAGE
 * after a sentence on stderr. */
int cli_flags_parse(const struct cli_usage *usage, int argc, char **argv, struct cli_words *words);

/* Says a sentence and points at --help; returns CLI_USAGE. */
int cli_wrong(const struct cli_usage *usage, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
