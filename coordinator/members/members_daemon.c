/* SPDX-License-Identifier: Apache-2.0 */
/* Makes raft's configuration follow the replicated list. */
#include "coordinator/members/members_daemon.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "coordinator/members/members_plan.h"

struct members_daemon {
    struct consensus *consensus;
    struct clock *clock;
    uint64_t self;
    struct coordinator_infos founders;
    struct consensus_request request;
    bool proposing;
    bool closed;
    uint64_t not_before_ms;
};

int members_daemon_open(struct consensus *consensus, struct clock *clock, uint64_t self,
                        const struct coordinator_infos *founders, struct members_daemon **daemon)
{
    struct members_daemon *d = calloc(1, sizeof *d);

    if (d == NULL)
        return TG_NOMEM;
    d->consensus = consensus;
    d->clock = clock;
    d->self = self;
    d->founders = *founders;
    *daemon = d;
    return 0;
}

void members_daemon_close(struct members_daemon *daemon)
{
    if (daemon == NULL)
        return;
    daemon->closed = true;
    if (!daemon->proposing)
        free(daemon);
}

static void rest_a_while(struct members_daemon *daemon)
{
    daemon->not_before_ms = clock_monotonic_ms(daemon->clock) + MEMBERS_RETRY_MS;
}

static void proposed(struct consensus_request *request, int err, const struct apply_result *result)
{
    struct members_daemon *daemon = request->data;

    daemon->proposing = false;
    if (daemon->closed) {
        free(daemon);
        return;
    }
    if (err == 0)
        err = result->err;
    if (err != 0) {
        log_warn("members", "not_written err=%s why=%s", tg_err_name(err),
                 log_quote(result != NULL ? result->msg.text : ""));
        rest_a_while(daemon);
    }
}

/* Where the options do not say it, the founder is reached by raft alone. */
static void take_founder(const struct members_daemon *daemon, struct command_coordinator *command)
{
    for (uint32_t i = 0; i < daemon->founders.count; i++) {
        const struct coordinator_info *info = &daemon->founders.list[i];

        if (info->id != command->id)
            continue;
        memcpy(command->raft, info->raft, sizeof command->raft);
        memcpy(command->rpc, info->rpc, sizeof command->rpc);
        memcpy(command->http, info->http, sizeof command->http);
    }
}

static void propose(struct members_daemon *daemon, const struct members_plan *plan)
{
    struct command command = {.type = plan->command};

    command.coordinator.id = plan->id;
    if (plan->command == COMMAND_COORDINATOR_FOUND)
        take_founder(daemon, &command.coordinator);
    log_info("members", "%s id=%lu",
             plan->command == COMMAND_COORDINATOR_FOUND     ? "found"
             : plan->command == COMMAND_COORDINATOR_PROMOTE ? "caught_up"
                                                            : "gone",
             (unsigned long)plan->id);
    daemon->proposing = true;
    daemon->request.done = proposed;
    daemon->request.data = daemon;
    consensus_propose(daemon->consensus, &command, &daemon->request);
}

void members_daemon_run(struct members_daemon *daemon)
{
    struct consensus *consensus = daemon->consensus;
    const struct coordinators *coordinators = &consensus_state(consensus)->coordinators;
    struct consensus_servers servers;
    const struct coordinator_record *record;
    int err = 0;

    if (!consensus_is_leader(consensus) || daemon->proposing || consensus->ops->servers == NULL ||
        clock_monotonic_ms(daemon->clock) < daemon->not_before_ms)
        return;
    consensus->ops->servers(consensus, &servers);
    struct members_plan plan = members_plan(coordinators, &servers, daemon->self);
    switch (plan.act) {
    case MEMBERS_REST:
        return;
    case MEMBERS_PROPOSE:
        propose(daemon, &plan);
        return;
    case MEMBERS_STEP:
        record = coordinators_find(coordinators, plan.id);
        err =
            consensus->ops->step(consensus, plan.step, plan.id, record != NULL ? record->raft : "");
        break;
    case MEMBERS_TRANSFER:
        err = consensus->ops->transfer(consensus, 0);
        break;
    }
    if (err != 0)
        log_warn("members", "step_refused id=%lu err=%s", (unsigned long)plan.id, tg_err_name(err));
    rest_a_while(daemon);
}
