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
    join_close(c->join);
    members_calls_close(c->dispatch.members);
    peer_watch_close(c->peer_watch);
    c->peer_watch = NULL;
    health_close(&c->health);
    if (c->rpc != NULL)
        rpc_server_close(c->rpc, rpc_closed, c);
    else
        rpc_closed(c);
}

static void close_raft(struct coordinator *c)
{
    c->handlers.phase = STATUS_LOOKS; /* calls that still come are sent elsewhere … */
    c->handlers.silent = true;        /* … and nothing is told of the cluster */
    if (c->tick != NULL)
        loop_timer_close(c->tick);
    if (c->sweep != NULL)
        loop_timer_close(c->sweep);
    if (c->hand_over != NULL)
        loop_timer_close(c->hand_over);
    query_waits_end(&c->waits);
    sweep_daemon_close(c->sweeper);
    publish_daemon_close(c->publisher);
    repair_daemon_close(c->repairer);
    members_daemon_close(c->members);
    move_daemon_close(c->mover);
    txn_manager_close(c->txns);
    c->publisher = NULL;
    c->repairer = NULL;
    c->mover = NULL;
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

/* Comes once for the process: by the end of the hand-over or by the timer, whichever is first. When
 * others stop at the same time nobody may be left to take over. */
static void end_hand_over(struct coordinator *c)
{
    if (!c->handing_over)
        return;
    c->handing_over = false;
    loop_timer_stop(c->hand_over);
    one_ended(c);
}

static void handed_over(void *data, int err)
{
    if (err == 0)
        log_info("coordinator", "leadership_handed_over");
    end_hand_over(data);
}

static void hand_over_took_too_long(void *data)
{
    log_warn("coordinator", "leadership_not_taken_over");
    end_hand_over(data);
}

static void hand_over(struct coordinator *c)
{
    c->hand_over = loop_timer_open(c->loop, hand_over_took_too_long, c);
    if (c->hand_over == NULL)
        return;
    c->handing_over = true;
    c->stop_waits++;
    loop_timer_start(c->hand_over, COORDINATOR_HAND_OVER_MS, 0);
    raft_node_transfer(c->raft, handed_over, c);
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
    if (c->http != NULL && c->dispatch.peer_count > 1)
        hand_over(c);
    one_ended(c);
}

void coordinator_stop_on_signal(void *data)
{
    log_info("coordinator", "stopping");
    coordinator_stop(data, 0);
}
