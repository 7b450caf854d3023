/* SPDX-License-Identifier: Apache-2.0 */
/* tidegate-participant: options, one participant, its exit status. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "participant/participant.h"

#define PURPOSE                                                                                  \
    "Keeps the rows of a Tidegate cluster: takes loads over HTTP, stores them invisibly, binds " \
    "them to versions when the coordinators say so, and answers reads as of any version."

static int print(struct buf *text)
{
    fwrite(text->data, 1, text->len, stdout);
    buf_close(text);
    return fflush(stdout) == 0 ? 0 : 1;
}

static bool wants_example(int argc, char **argv)
{
    return argc == 2 && strcmp(argv[1], "--print-example-config") == 0;
}

int main(int argc, char **argv)
{
    static struct participant_options options;
    struct tg_errmsg msg = {{0}};
    struct buf text = BUF_INIT;
    enum log_level level;
    bool help = false;
    bool version = false;
    int err;

    /* The pool also reads disks for heartbeats and saves: more than libuv's four. */
    setenv("UV_THREADPOOL_SIZE", "8", 0);
    if (wants_example(argc, argv)) {
        config_print_example(participant_option_table, participant_option_count, &text);
        return print(&text);
    }
    err = config_defaults(participant_option_table, participant_option_count, &options, &msg);
    if (err == 0)
        err = config_read_flags(participant_option_table, participant_option_count, argc, argv,
                                &options, &help, &version, &msg);
    if (err == 0 && help) {
        config_print_help(participant_option_table, participant_option_count,
                          "tidegate-participant", PURPOSE, &text);
        buf_append_str(&text, "\n  --print-example-config\n        Print an annotated "
                              "configuration file and exit.\n");
        return print(&text);
    }
    if (err == 0 && version) {
        puts("tidegate-participant " TIDEGATE_VERSION);
        return 0;
    }
    if (err == 0)
        err = participant_options_check(&options, &msg);
    if (err == 0 && log_level_parse(options.log_level, &level) != 0)
        err = tg_fail(&msg, TG_INVALID, "log_level '%s' is none of debug, info, warn, error",
                      options.log_level);
    if (err != 0) {
        fprintf(stderr, "tidegate-participant: %s\n", msg.text);
        return 2;
    }
    log_set_level(level);
    return participant_run(&options);
}
