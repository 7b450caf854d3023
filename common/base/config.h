/* SPDX-License-Identifier: Apache-2.0 */
/* Option tables: one line an option (name, kind, bounds, default, help), read from a `key = value`
 * file (libinih) and from `--key value` flags; the same table prints --help. */
#ifndef TG_COMMON_BASE_CONFIG_H
#define TG_COMMON_BASE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"

enum config_kind {
    CONFIG_STRING, /* char[size] at offset */
    CONFIG_UINT,   /* uint64_t at offset, min..max */
    CONFIG_BYTES,  /* uint64_t at offset; accepts k, m, g suffixes (1024s) */
    CONFIG_BOOL    /* bool at offset; true/false/1/0 */
};

struct config_option {
    const char *name; /* "http_port": also the flag --http-port (either spelling) */
    enum config_kind kind;
    size_t offset;       /* in the options struct */
    size_t size;         /* CONFIG_STRING: bytes with the zero */
    uint64_t min, max;   /* CONFIG_UINT, CONFIG_BYTES */
    const char *initial; /* default, as text */
    const char *help;    /* one sentence, with the unit */
    const char *section; /* heading in --help and in the example files; NULL = as before */
};

/* A file is refused beyond these. */
enum {
    CONFIG_LINE_MAX = 4096,        /* bytes of a line, without its end */
    CONFIG_FILE_MAX = 1024 * 1024, /* bytes of a file */
    CONFIG_OPTIONS_MAX = 256       /* options of a table */
};

/* Sets every option to its default. */
int config_defaults(const struct config_option *options, size_t count, void *into,
                    struct tg_errmsg *msg);
/* Reads a file: unknown keys, bad values and repeated keys are errors that name file, line and key,
 * and for an unknown key the nearest known one. Comments stand on lines of their
 * own, behind # or ';'. TG_NOT_FOUND, TG_IO, TG_INVALID. */
int config_read_file(const struct config_option *options, size_t count, const char *path,
                     void *into, struct tg_errmsg *msg);
/* Reads flags: --name value, --name=value, --flag for booleans. `--config FILE` is read first,
 * wherever it stands. `--help` and `--version` set *help / *version. Anything else is an error. */
int config_read_flags(const struct config_option *options, size_t count, int argc, char **argv,
                      void *into, bool *help, bool *version, struct tg_errmsg *msg);
void config_print_help(const struct config_option *options, size_t count, const char *program,
                       const char *purpose, struct buf *out);
/* An annotated configuration file with every option at its default (commented out). */
void config_print_example(const struct config_option *options, size_t count, struct buf *out);

#endif
