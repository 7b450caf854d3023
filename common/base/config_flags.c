/* SPDX-License-Identifier: Apache-2.0 */
/* Options from the command line. */
#include <string.h>

#include "common/base/config.h"
#include "common/base/config_table.h"

/* The walk over the arguments. */
struct flag_reader {
    const struct config_option *options;
    size_t count;
    int argc;
    char **argv;
    int at; /* the argument in hand */
    void *into;
    struct tg_errmsg *msg;
    const char *file; /* --config's, NULL if it was not met */
    bool help;
    bool version;
};

/* A flag taken apart: --name or --name=value. */
struct flag {
    struct slice name;
    const char *value; /* NULL: there is no = */
};

static struct flag flag_of(const char *arg)
{
    const char *name = arg + 2;
    const char *equals = strchr(name, '=');
    size_t len = equals == NULL ? strlen(name) : (size_t)(equals - name);
    return (struct flag){slice_of(name, len), equals == NULL ? NULL : equals + 1};
}

/* The flag's value, perhaps the next argument: then that one is stepped over. */
static int flag_value(struct flag_reader *reader, const struct flag *flag, const char **value)
{
    *value = flag->value;
    if (*value != NULL)
        return 0;
    if (reader->at + 1 >= reader->argc)
        return tg_fail(reader->msg, TG_INVALID, "%.100s needs a value", reader->argv[reader->at]);
    *value = reader->argv[++reader->at];
    return 0;
}

static int take_file(struct flag_reader *reader, const struct flag *flag)
{
    if (reader->file != NULL)
        return tg_fail(reader->msg, TG_INVALID, "--config is given twice");
    return flag_value(reader, flag, &reader->file);
}

/* One option's flag: a boolean takes the next argument only if that is a truth value. */
static int take_option(struct flag_reader *reader, const struct flag *flag)
{
    size_t index = 0;
    int err = config_find(reader->options, reader->count, flag->name, &index, reader->msg);
    if (err != 0)
        return err;
    const struct config_option *option = &reader->options[index];
    bool truth;
    bool last = reader->at + 1 >= reader->argc;
    bool alone = option->kind == CONFIG_BOOL && flag->value == NULL &&
                 (last || !config_parse_bool(reader->argv[reader->at + 1], &truth));
    const char *value = "true";
    if (!alone)
        err = flag_value(reader, flag, &value);
    return err != 0 ? err : config_set(option, value, reader->into, reader->msg);
}

/* Sets every option that has a flag, up to --help or --version. */
static int walk_flags(struct flag_reader *reader)
{
    int err = 0;
    reader->file = NULL;
    for (reader->at = 1; err == 0 && reader->at < reader->argc; reader->at++) {
        const char *arg = reader->argv[reader->at];
        if (strncmp(arg, "--", 2) != 0 || arg[2] == '\0')
            return tg_fail(reader->msg, TG_INVALID, "unexpected argument '%.100s'", arg);
        reader->help = strcmp(arg, "--help") == 0;
        reader->version = strcmp(arg, "--version") == 0;
        if (reader->help || reader->version)
            return 0;
        struct flag flag = flag_of(arg);
        if (slice_equal_str(flag.name, "config"))
            err = take_file(reader, &flag);
        else
            err = take_option(reader, &flag);
    }
    return err;
}

int config_read_flags(const struct config_option *options, size_t count, int argc, char **argv,
                      void *into, bool *help, bool *version, struct tg_errmsg *msg)
{
    struct flag_reader reader = {
        .options = options, .count = count, .argc = argc, .argv = argv, .into = into, .msg = msg};
    int err = walk_flags(&reader);
    *help = reader.help;
    *version = reader.version;
    if (err != 0 || *help || *version || reader.file == NULL)
        return err;
    err = config_read_file(options, count, reader.file, into, msg);
    /* Once more, on top of the file. */
    return err != 0 ? err : walk_flags(&reader);
}
