/* SPDX-License-Identifier: Apache-2.0 */
/* tidegate-coordinator --recover-alone. */
#include "coordinator/recover.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "coordinator/consensus/raft_recover.h"
#include "coordinator/data_dir.h"

static const struct coordinator_address *own_address(const struct coordinator_options *options,
                                                     const struct coordinator_address *list,
                                                     uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (list[i].id == options->coordinator_id)
            return &list[i];
    return NULL;
}

static void explain(const struct raft_recover *recover)
{
    printf("coordinator %" PRIu64 ": term %" PRIu64 ", the log ends at index %" PRIu64
           " of term %" PRIu64 "\n",
           recover->id, recover->term, recover->last_index, recover->last_term);
    if (recover->write) {
        printf("coordinator %" PRIu64
               " is the only member now. Start it; never start another one of the old cluster\n"
               "again; then add new ones, with empty directories and fresh ids.\n",
               recover->id);
        return;
    }
    puts(
        "Nothing was changed. With " RECOVER_ACCEPT
        " this coordinator becomes the only member of its\n"
        "cluster. Do that only if a majority of the coordinators is lost for good, and on the one\n"
        "of those left whose log ends last: at the greatest term, and there at the greatest "
        "index.\n"
        "What only the lost ones knew, answered or not, is lost. None of the others, lost or "
        "left,\n"
        "may ever be started again on its old directory: two clusters would go on under one name.");
}

int recover_run(const struct coordinator_options *options, bool accepted)
{
    struct coordinator_address list[COORDINATORS_MAX];
    char raft_dir[DATA_DIR_RAFT_BYTES];
    struct tg_errmsg msg = {{0}};
    uint32_t count;
    int lock = -1;
    int err = coordinator_options_addresses(options, list, &count, &msg);
    struct raft_recover recover = {
        .id = options->coordinator_id, .dir = raft_dir, .write = accepted};

    if (err == 0)
        err = data_dir_open(options->data_dir, &lock, raft_dir, &msg);
    if (err == 0) {
        recover.address = own_address(options, list, count)->raft;
        err = raft_recover_alone(&recover, &msg);
    }
    if (lock >= 0)
        close(lock);
    if (err != 0) {
        fprintf(stderr, "tidegate-coordinator: %s\n",
                msg.text[0] != '\0' ? msg.text : tg_err_sentence(err));
        return 1;
    }
    explain(&recover);
    return accepted ? 0 : 1;
}
