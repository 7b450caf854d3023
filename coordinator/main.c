/* SPDX-License-Identifier: Apache-2.0 */
/* tidegate-coordinator: arguments, one coordinator. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "coordinator/coordinator.h"
#include "coordinator/recover.h"

#define PURPOSE                                                                                    \
    "Keeps the catalog, transactions, versions and members of a Tidegate cluster in a replicated " \
    "log, and answers clients over HTTP."

static int print(struct buf *text)
{
    fwrite(text->data, 1, text->len, stdout);
    buf_close(text);
    return fflush(stdout) == 0 ? 0 : 1;
}

/* Takes a flag that is no option, so that no configuration file can have it, out of the arguments. */
static bool take_flag(int *argc, char **argv, const char *flag)
{
    for (int i = 1; i < *argc; i++)
        if (strcmp(argv[i], flag) == 0) {
            memmove(&argv[i], &argv[i + 1], (size_t)(*argc - i) * sizeof *argv);
            --*argc;
            return true;
        }
    return false;
}

static bool wants_example(int argc, char **argv)
{
    return argc == 2 && strcmp(argv[1], "--print-example-config") == 0;
}

int main(int argc, char **argv)
{
    static struct coordinator_options options;
    const struct config_option *table = coordinator_option_table;
    struct tg_errmsg msg = {{0}};
    struct buf text = BUF_INIT;
    enum log_level level;
    bool help = false;
    bool version = false;
    int err;

    /* raft's disk work runs there, several writes at once; read when the first loop is made. */
    setenv("UV_THREADPOOL_SIZE", "16", 0);
    bool recovers = take_flag(&argc, argv, RECOVER_FLAG);
    bool accepts = recovers && take_flag(&argc, argv, RECOVER_ACCEPT);
    if (wants_example(argc, argv)) {
        config_print_example(table, coordinator_option_count, &text);
        return print(&text);
    }
    err = config_defaults(table, coordinator_option_count, &options, &msg);
    if (err == 0)
        err = config_read_flags(table, coordinator_option_count, argc, argv, &options, &help,
                                &version, &msg);
    if (err == 0 && help) {
        config_print_help(table, coordinator_option_count, "tidegate-coordinator", PURPOSE, &text);
        buf_append_str(&text, "\n  --print-example-config\n        Print an annotated "
                              "configuration file and exit.\n"
                              "  " RECOVER_FLAG " [" RECOVER_ACCEPT "]\n        After the loss of "
                              "a majority: make this one the only member (docs/operations.md).\n");
        return print(&text);
    }
    if (err == 0 && version) {
        puts("tidegate-coordinator " TIDEGATE_VERSION);
        return 0;
    }
    if (err == 0)
        err = coordinator_options_check(&options, &msg);
    if (err == 0 && log_level_parse(options.log_level, &level) != 0)
        err = tg_fail(&msg, TG_INVALID, "log_level must be debug, info, warn or error");
    if (err != 0) {
        fprintf(stderr, "tidegate-coordinator: %s\n", msg.text);
        return 2;
    }
    log_set_level(level);
    return recovers ? recover_run(&options, accepts) : coordinator_run(&options);
}
