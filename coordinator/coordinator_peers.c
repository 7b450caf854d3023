/* SPDX-License-Identifier: Apache-2.0 */
/* Who the other coordinators are: at first as the options say, then as the replicated list says,
 * where the options may still say otherwise where one of them is reached. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "coordinator/coordinator_parts.h"

int coordinator_peers_init(struct coordinator *c, struct tg_errmsg *msg)
{
    struct dispatch *dispatch = &c->dispatch;
    int err = coordinator_options_addresses(c->options, c->addresses, &c->address_count, msg);

    if (err != 0)
        return err;
    dispatch->self = c->options->coordinator_id;
    dispatch->peer_count = c->address_count;
    for (uint32_t i = 0; i < c->address_count; i++) {
        const struct coordinator_address *address = &c->addresses[i];
        struct dispatch_peer *peer = &dispatch->peers[i];

        peer->id = address->id;
        memcpy(peer->rpc, address->rpc, sizeof peer->rpc);
        memcpy(peer->http, address->http, sizeof peer->http);
        if (address->id == dispatch->self)
            c->own = address;
    }
    return 0;
}

static const struct coordinator_address *find_address(const struct coordinator *c, uint64_t id)
{
    for (uint32_t i = 0; i < c->address_count; i++)
        if (c->addresses[i].id == id)
            return &c->addresses[i];
    return NULL;
}

static void info_of_address(const struct coordinator_address *address,
                            struct coordinator_info *info)
{
    info->id = address->id;
    memcpy(info->raft, address->raft, sizeof info->raft);
    memcpy(info->rpc, address->rpc, sizeof info->rpc);
    memcpy(info->http, address->http, sizeof info->http);
}

static bool has(const struct coordinator_infos *infos, uint64_t id)
{
    for (uint32_t i = 0; i < infos->count; i++)
        if (infos->list[i].id == id)
            return true;
    return false;
}

/* The list, or as long as there is none, or it does not reach so far, the options. */
static void gather(const struct coordinator *c, struct coordinator_infos *infos)
{
    const struct coordinators *coordinators = &consensus_state(c->dispatch.consensus)->coordinators;

    members_infos(coordinators, infos);
    if (infos->count == 0)
        *infos = c->known;
    for (uint32_t i = 0; i < infos->count; i++) {
        const struct coordinator_address *address = find_address(c, infos->list[i].id);
        if (address != NULL)
            info_of_address(address, &infos->list[i]);
    }
    for (uint32_t i = 0; i < c->address_count && infos->count < COORDINATORS_MAX; i++)
        if (c->addresses[i].id >= infos->next_id && !has(infos, c->addresses[i].id))
            info_of_address(&c->addresses[i], &infos->list[infos->count++]);
}

static void set_peers(struct coordinator *c)
{
    struct raft_node_server servers[COORDINATORS_MAX];
    struct dispatch *dispatch = &c->dispatch;
    struct coordinator_infos infos;

    gather(c, &infos);
    dispatch->peer_count = infos.count;
    for (uint32_t i = 0; i < infos.count; i++) {
        dispatch->peers[i].id = infos.list[i].id;
        memcpy(dispatch->peers[i].rpc, infos.list[i].rpc, sizeof dispatch->peers[i].rpc);
        memcpy(dispatch->peers[i].http, infos.list[i].http, sizeof dispatch->peers[i].http);
        servers[i].id = infos.list[i].id;
        memcpy(servers[i].address, infos.list[i].raft, sizeof servers[i].address);
    }
    raft_node_set_servers(c->raft, servers, infos.count, infos.next_id);
    peer_watch_set(c->peer_watch, &infos);
}

/* This coordinator was taken out of the cluster: nobody sends it anything any more. */
static void leave(struct coordinator *c)
{
    if (c->stopping)
        return;
    log_warn("coordinator", "removed id=%" PRIu64 " why=%s", c->dispatch.self,
             log_quote("it is no member of the cluster any more, and ends"));
    coordinator_stop(c, 0);
}

/* Others may know what the log did not reach here any more: ids are given once, so one below the
 * next that is not in the list is gone for good. */
static void heard(void *data, const struct msg_status_reply *status)
{
    struct coordinator *c = data;

    if (c->dispatch.self < status->coordinators.next_id &&
        !has(&status->coordinators, c->dispatch.self))
        leave(c);
}

void coordinator_peers_refresh(struct coordinator *c)
{
    const struct coordinators *coordinators = &consensus_state(c->dispatch.consensus)->coordinators;

    if (coordinators->changes == c->peers_seen)
        return;
    c->peers_seen = coordinators->changes;
    log_info("coordinator", "coordinators count=%u next_id=%" PRIu64, coordinators->count,
             coordinators->next_id);
    if (coordinators_is_gone(coordinators, c->dispatch.self))
        leave(c);
    else
        set_peers(c);
}

int coordinator_peers_open(struct coordinator *c, struct tg_errmsg *msg)
{
    struct clock *clock = clock_system();
    struct consensus *consensus = raft_node_consensus(c->raft);
    struct coordinator_infos founders = {0};

    for (uint32_t i = 0; i < c->address_count; i++)
        info_of_address(&c->addresses[i], &founders.list[founders.count++]);
    int err = peer_watch_open(c->loop, c->options->cluster_secret, clock, c->dispatch.self, heard,
                              c, &c->peer_watch, msg);
    if (err == 0)
        err = members_daemon_open(consensus, clock, c->dispatch.self, &founders, &c->members);
    if (err == 0)
        err = members_calls_open(c->loop, consensus, clock, c->options->cluster_secret,
                                 c->dispatch.self, peer_watch_words(c->peer_watch),
                                 &c->dispatch.members, msg);
    c->dispatch.consensus = consensus;
    c->dispatch.clock = clock;
    if (err == 0)
        set_peers(c);
    return err;
}

/* ---- what raft asks ---- */

static bool votes(const struct coordinator *c, uint64_t id)
{
    const struct coordinator_record *record =
        coordinators_find(&consensus_state(c->dispatch.consensus)->coordinators, id);

    return record == NULL || record->standing == COORDINATOR_VOTES;
}

static enum consensus_clock clock_state(void *data, uint64_t wall_us, uint64_t monotonic_us)
{
    const struct coordinator *c = data;

    if (c->peer_watch == NULL)
        return CONSENSUS_CLOCK_UNKNOWN;
    switch (peer_words_clock(peer_watch_words(c->peer_watch), wall_us, monotonic_us)) {
    case PEER_CLOCK_AHEAD:
        return CONSENSUS_CLOCK_AHEAD;
    case PEER_CLOCK_UNKNOWN:
        return CONSENSUS_CLOCK_UNKNOWN;
    case PEER_CLOCK_GOOD:
        break;
    }
    return CONSENSUS_CLOCK_GOOD;
}

static bool fit(void *data, uint64_t id)
{
    const struct coordinator *c = data;
    struct clock *clock = clock_system();

    return c->peer_watch == NULL ||
           peer_words_is_fit(peer_watch_words(c->peer_watch), id, clock_wall_us(clock),
                             clock_monotonic_us(clock));
}

static bool others_have_room(void *data)
{
    const struct coordinator *c = data;

    return c->peer_watch == NULL ||
           peer_words_short_of_room(peer_watch_words(c->peer_watch),
                                    clock_monotonic_us(clock_system())) == NULL;
}

static bool someone_has_room(void *data)
{
    const struct coordinator *c = data;

    for (uint32_t i = 0; i < c->dispatch.peer_count; i++)
        if (c->dispatch.peers[i].id != c->dispatch.self && votes(c, c->dispatch.peers[i].id) &&
            c->peer_watch != NULL && fit(data, c->dispatch.peers[i].id))
            return true;
    return false;
}

void coordinator_peers_tell(struct coordinator *c, struct raft_node_options *options)
{
    options->clock_state = clock_state;
    options->fit = fit;
    options->others_have_room = others_have_room;
    options->someone_has_room = someone_has_room;
    options->peers_data = c;
}
