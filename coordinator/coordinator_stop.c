/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a coordinator, in order: requests under way finish while the leadership is handed
 * over; then raft closes, which ends whatever still waits for the log; then the rest. */
#include "common/base/log.h"
#include "coordinator/coordinator_parts.h"

static void rpc_closed(void *data)
{
    struct coordinator *c = data;

    log_info("coordinator", "stopped status=%d", c->status);
    loop_stop(c->loop);
}

/* Consensus is closed: nobody calls back any more. */
static void close_rest(void *data)
{
    struct coordinator *c = data;

    leader_link_close(&c->link);
    rpc_participants_close(c->participants);
    api_close(c->api);
    preflight_close(c->preflight);
    health_close(&c->health);
    if (c->rpc != NULL)
        rpc_server_close(c->rpc, rpc_closed, c);
    else
        rpc_closed(c);
}

static void close_raft(struct coordinator *c)
{
    c->handlers.phase = STATUS_LOOKS;    /* calls that still come are sent elsewhere … */
    c->handlers.knows_uuid_later = true; /* … and nothing is told of the cluster */
    if (c->tick != NULL)
        loop_timer_close(c->tick);
    if (c->sweep != NULL)
        loop_timer_close(c->sweep);
    query_waits_end(&c->waits);
    sweep_daemon_close(c->sweeper);
    publish_daemon_close(c->publisher);
    txn_manager_close(c->txns);
    c->publisher = NULL;
    c->txns = NULL;
    if (c->raft != NULL)
        raft_node_close(c->raft, close_rest, c);
    else
        close_rest(c);
}

static void one_ended(struct coordinator *c)
{
    if (--c->stop_waits == 0)
        close_raft(c);
}

static void http_closed(void *data)
{
    one_ended(data);
}

static void handed_over(void *data, int err)
{
    if (err == 0)
        log_info("coordinator", "leadership_handed_over");
    one_ended(data);
}

void coordinator_stop(struct coordinator *c, int status)
{
    if (c->stopping)
        return;
    c->stopping = true;
    c->status = status;
    c->stop_waits = 1;
    if (c->http != NULL) {
        c->stop_waits++;
        http_server_close(c->http, COORDINATOR_HTTP_GRACE_MS, http_closed, c);
    }
    if (c->http != NULL && c->dispatch.peer_count > 1) {
        c->stop_waits++;
        raft_node_transfer(c->raft, handed_over, c);
    }
    one_ended(c);
}

void coordinator_stop_on_signal(void *data)
{
    log_info("coordinator", "stopping");
    coordinator_stop(data, 0);
}
