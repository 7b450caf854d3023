/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the sweeper. */
#include "coordinator/txn/sweep_daemon.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/base/check.h"
#include "common/base/log.h"

/* One sweep on its way; outlives the daemon if that is closed meanwhile. */
struct round {
    struct sweep_daemon *daemon; /* NULL once nobody waits */
    uint32_t under_way;
    struct consensus_request *requests;
};

struct sweep_daemon {
    struct consensus *consensus;
    const struct health *health;
    struct clock *clock;
    struct txn_sweeper_options options;
    struct round *round;
};

int sweep_daemon_open(struct consensus *consensus, const struct health *health, struct clock *clock,
                      const struct txn_sweeper_options *options, struct sweep_daemon **daemon)
{
    struct sweep_daemon *d = calloc(1, sizeof *d);

    if (d == NULL)
        return TG_NOMEM;
    d->consensus = consensus;
    d->health = health;
    d->clock = clock;
    d->options = *options;
    *daemon = d;
    return 0;
}

void sweep_daemon_close(struct sweep_daemon *daemon)
{
    if (daemon == NULL)
        return;
    if (daemon->round != NULL)
        daemon->round->daemon = NULL;
    free(daemon);
}

static void swept(struct consensus_request *request, int err, const struct apply_result *result)
{
    struct round *round = request->data;

    if (err == 0 && result->err == 0 && result->txn != 0)
        log_info("sweeper", "aborted txn=%" PRIu64, result->txn);
    if (--round->under_way > 0)
        return;
    if (round->daemon != NULL)
        round->daemon->round = NULL;
    free(round->requests);
    free(round);
}

static void propose(struct sweep_daemon *d, const struct command *command)
{
    struct consensus_request *request = &d->round->requests[d->round->under_way++];

    request->done = swept;
    request->data = d->round;
    consensus_propose(d->consensus, command, request);
}

static void begin_round(struct sweep_daemon *d, const struct txn_sweep *sweep)
{
    struct command command;

    d->round = calloc(1, sizeof *d->round);
    TG_CHECK_MEMORY(d->round != NULL);
    d->round->daemon = d;
    d->round->requests = calloc(sweep->abort_count + 1, sizeof *d->round->requests);
    TG_CHECK_MEMORY(d->round->requests != NULL);
    for (uint32_t i = 0; i < sweep->abort_count; i++) {
        command = (struct command){.type = COMMAND_TXN_ABORT};
        command.finish = sweep->aborts[i];
        log_info("sweeper", "abort txn=%" PRIu64 " reason=%s", sweep->aborts[i].txn,
                 log_quote(sweep->aborts[i].reason));
        propose(d, &command);
    }
    if (sweep->forget.count > 0) {
        command = (struct command){.type = COMMAND_FORGET};
        command.forget = sweep->forget; /* borrowed: propose encodes at once */
        propose(d, &command);
    }
}

void sweep_daemon_run(struct sweep_daemon *d)
{
    struct txn_sweep sweep;

    if (d->round != NULL || !consensus_is_leader(d->consensus))
        return;
    if (txn_sweeper_plan(consensus_state(d->consensus), d->health, &d->options,
                         d->consensus->ops->elapsed_ms(d->consensus), clock_monotonic_ms(d->clock),
                         &sweep) != 0)
        return;
    if (sweep.abort_count > 0 || sweep.forget.count > 0)
        begin_round(d, &sweep);
    txn_sweep_close(&sweep);
}
