/* SPDX-License-Identifier: Apache-2.0 */
/* A participant in memory. */
#include "tests/sim/sim_participant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "participant/tablet/publish.h"

void sim_participant_init(struct sim_participant *participant, struct sim_net *net, node_id node)
{
    memset(participant, 0, sizeof *participant);
    participant->net = net;
    participant->node = node;
    participant->staged = calloc(SIM_STAGED_MAX, sizeof *participant->staged);
    TG_CHECK(participant->staged != NULL);
}

void sim_participant_close(struct sim_participant *participant)
{
    for (unsigned i = 0; i < SIM_TABLETS; i++)
        if (participant->tablets[i].id != 0)
            version_map_close(&participant->tablets[i].map);
    free(participant->staged);
}

/* ---- life ---- */

void sim_participant_start(struct sim_participant *participant)
{
    participant->up = true;
    participant->epoch = 0;
    /* A registration whose answer was not heard is made again, not anew. */
    if (participant->new_nonce == participant->nonce)
        participant->new_nonce = sim_world_between(&participant->net->world, 1, UINT64_MAX / 2);
    participant->next_request = 1;
    participant->live_count = 0;
    sim_world_trace(&participant->net->world, "start participant=%u", participant->node);
}

void sim_participant_stop(struct sim_participant *participant)
{
    participant->up = false;
    participant->epoch = 0;
    sim_world_trace(&participant->net->world, "stop participant=%u", participant->node);
}

void sim_participant_fill_register(const struct sim_participant *participant,
                                   struct msg_register *message)
{
    memset(message, 0, sizeof *message);
    message->wanted = participant->node;
    message->previous_nonce = participant->nonce;
    message->new_nonce = participant->new_nonce;
    memcpy(message->cluster_uuid, participant->cluster_uuid, sizeof message->cluster_uuid);
    snprintf(message->node_uuid, sizeof message->node_uuid, "00000000-0000-4000-8000-%012u",
             participant->node);
    snprintf(message->http, sizeof message->http, "127.0.0.1:%u", 8039 + participant->node);
    snprintf(message->rpc, sizeof message->rpc, "127.0.0.1:%u", 8059 + participant->node);
}

void sim_participant_registered(struct sim_participant *participant,
                                const struct msg_register_reply *reply)
{
    participant->nonce = participant->new_nonce;
    participant->epoch = reply->epoch;
    memcpy(participant->cluster_uuid, reply->cluster_uuid, sizeof participant->cluster_uuid);
}

uint64_t sim_participant_begin_load(struct sim_participant *participant)
{
    if (!participant->up || participant->epoch == 0 || participant->live_count == SIM_LIVE_MAX)
        return 0;
    participant->live[participant->live_count++] = participant->next_request;
    return participant->next_request++;
}

void sim_participant_end_load(struct sim_participant *participant, uint64_t request)
{
    for (uint32_t i = 0; i < participant->live_count; i++)
        if (participant->live[i] == request) {
            participant->live[i] = participant->live[--participant->live_count];
            return;
        }
}

/* ---- rowsets ---- */

struct digest sim_participant_digest(tablet_id tablet, rowset_id rowset)
{
    uint64_t pair[2] = {tablet, rowset};
    return digest_of(pair, sizeof pair);
}

static struct sim_staged *sim_find_staged(struct sim_participant *participant, tablet_id tablet,
                                          rowset_id rowset)
{
    for (uint32_t i = participant->staged_count; i-- > 0;)
        if (participant->staged[i].tablet == tablet && participant->staged[i].rowset == rowset)
            return &participant->staged[i];
    return NULL;
}

bool sim_participant_stage(struct sim_participant *participant, tablet_id tablet, rowset_id rowset,
                           txn_id txn)
{
    if (!participant->up)
        return false;
    struct sim_staged *staged = sim_find_staged(participant, tablet, rowset);
    if (staged != NULL)
        return !staged->dropped;
    TG_CHECK(participant->staged_count < SIM_STAGED_MAX);
    participant->staged[participant->staged_count++] =
        (struct sim_staged){tablet, rowset, txn, sim_participant_digest(tablet, rowset), false};
    return true;
}

/* ---- publishing ---- */

static struct sim_tablet *sim_tablet_of(struct sim_participant *participant, tablet_id id)
{
    for (unsigned i = 0; i < SIM_TABLETS; i++) {
        struct sim_tablet *tablet = &participant->tablets[i];
        if (tablet->id == 0) {
            tablet->id = id;
            version_map_init(&tablet->map);
        }
        if (tablet->id == id)
            return tablet;
    }
    TG_UNREACHABLE();
}

const struct version_map *sim_participant_map(const struct sim_participant *participant,
                                              tablet_id tablet)
{
    for (unsigned i = 0; i < SIM_TABLETS; i++)
        if (participant->tablets[i].id == tablet)
            return &participant->tablets[i].map;
    return NULL;
}

static enum publish_status sim_bind(struct sim_participant *participant,
                                    const struct publish_bind *bind)
{
    struct sim_tablet *tablet = sim_tablet_of(participant, bind->tablet);
    struct bind_staged *staged = calloc(bind->rowset_count + 1, sizeof *staged);
    struct bind_facts facts = {.last = version_map_last(&tablet->map), .staged = staged};
    TG_CHECK(staged != NULL);
    facts.bound = version_map_has(&tablet->map, bind->version);
    if (facts.bound) {
        bool already = false;
        facts.bound_same =
            version_map_bind_check(&tablet->map, bind, &already) == PUBLISH_BOUND && already;
    }
    for (uint32_t i = 0; i < bind->rowset_count; i++) {
        const struct sim_staged *found =
            sim_find_staged(participant, bind->tablet, bind->rowsets[i].rowset);
        staged[i].sealed = found != NULL && !found->dropped;
        if (found != NULL && found->dropped)
            sim_net_fail(participant->net, "participant %u dropped rowset %lu that txn %lu binds",
                         participant->node, (unsigned long)bind->rowsets[i].rowset,
                         (unsigned long)bind->txn);
        if (found != NULL)
            staged[i].digest = found->digest;
    }
    enum publish_status status = publish_decide(bind, &facts);
    bool forgets = participant->net->options->mutant == MUTANT_FORGETS_A_TABLET &&
                   sim_world_chance(&participant->net->world, 20);
    if (status == PUBLISH_BOUND && !facts.bound && !forgets)
        TG_CHECK(version_map_append(&tablet->map, bind) == 0);
    free(staged);
    return status;
}

int sim_participant_publish(struct sim_participant *participant, const struct msg_publish *message,
                            struct msg_publish_reply *reply)
{
    if (message->node != participant->node || message->epoch != participant->epoch)
        return TG_FENCED;
    reply->count = message->bind_count;
    reply->status = calloc(message->bind_count + 1, sizeof *reply->status);
    TG_CHECK(reply->status != NULL);
    for (uint32_t i = 0; i < message->bind_count; i++) {
        enum publish_status status = sim_bind(participant, &message->binds[i]);
        reply->status[i] = (uint8_t)status;
        sim_world_trace(&participant->net->world,
                        "bind participant=%u tablet=%lu version=%lu txn=%lu status=%d",
                        participant->node, (unsigned long)message->binds[i].tablet,
                        (unsigned long)message->binds[i].version,
                        (unsigned long)message->binds[i].txn, status);
    }
    return 0;
}

/* ---- clones ---- */

/* As a clone stages it: what was dropped comes back. */
static void sim_stage_again(struct sim_participant *participant, const struct publish_bind *bind)
{
    for (uint32_t i = 0; i < bind->rowset_count; i++) {
        struct sim_staged *staged =
            sim_find_staged(participant, bind->tablet, bind->rowsets[i].rowset);
        if (staged != NULL)
            staged->dropped = false;
        else
            sim_participant_stage(participant, bind->tablet, bind->rowsets[i].rowset, bind->txn);
    }
}

static void sim_drop_tablet(struct sim_participant *participant, struct sim_tablet *tablet)
{
    version_map_close(&tablet->map);
    for (uint32_t i = 0; i < participant->staged_count; i++)
        if (participant->staged[i].tablet == tablet->id)
            participant->staged[i].dropped = true;
    sim_world_trace(&participant->net->world, "chain dropped participant=%u tablet=%lu",
                    participant->node, (unsigned long)tablet->id);
}

/* Drops what is here if it is not what the source has; false if the source may be the wrong one. */
static bool sim_compare(struct sim_participant *participant, struct sim_tablet *tablet,
                        const struct version_map *source, bool trusted)
{
    version_t here = version_map_last(&tablet->map);
    version_t there = version_map_last(source);
    version_t at = here < there ? here : there;
    struct digest ours, theirs;
    TG_CHECK(version_map_chain(&tablet->map, at, &ours) == 0);
    TG_CHECK(version_map_chain(source, at, &theirs) == 0);
    bool same = digest_equal(&ours, &theirs);
    if (!same && trusted)
        sim_drop_tablet(participant, tablet);
    return same || trusted;
}

void sim_participant_clone(struct sim_participant *participant,
                           const struct sim_participant *source, const struct msg_clone *order,
                           uint32_t most, struct msg_clone_reply *reply)
{
    tablet_id id = order->tablet;
    struct sim_tablet *tablet = sim_tablet_of(participant, id);
    const struct version_map *map = sim_participant_map(source, id);
    *reply = (struct msg_clone_reply){.state = CLONE_FAILED, .err = TG_UNREACHABLE};
    if (!source->up)
        return;
    uint32_t end = 0;
    uint32_t first = 0;
    if (map != NULL) {
        if (!sim_compare(participant, tablet, map, order->trusted))
            return;
        end = version_map_count(map, UINT64_MAX);
        first = version_map_count(map, version_map_last(&tablet->map));
    }
    for (uint32_t i = first; i < end; i++) {
        struct publish_bind bind;
        if (participant->net->options->mutant == MUTANT_CLONES_A_PART && i + 1 == end) {
            *reply = (struct msg_clone_reply){.state = CLONE_DONE, .bound = version_map_last(map)};
            return;
        }
        if (i - first >= most)
            return;
        TG_CHECK(version_map_entry(map, i, &bind) == 0);
        bind.tablet = id;
        sim_stage_again(participant, &bind);
        enum publish_status status = sim_bind(participant, &bind);
        free(bind.rowsets);
        if (status != PUBLISH_BOUND) {
            reply->err = TG_BEHIND;
            return;
        }
    }
    reply->state = CLONE_DONE;
    reply->err = 0;
    reply->bound = version_map_last(&tablet->map);
    participant->net->result->clones++;
    sim_world_trace(&participant->net->world, "cloned participant=%u tablet=%lu last=%lu",
                    participant->node, (unsigned long)id, (unsigned long)reply->bound);
}

/* ---- heartbeats ---- */

static bool sim_is_bound(const struct sim_participant *participant, const struct sim_staged *staged)
{
    const struct version_map *map = sim_participant_map(participant, staged->tablet);
    struct version_view view;
    if (map == NULL || version_map_last(map) == 0 ||
        version_map_between(map, 0, version_map_last(map), 0, &view) != 0)
        return false;
    for (uint32_t i = 0; i < view.count; i++)
        if (view.rowsets[i].rowset == staged->rowset)
            return true;
    return false;
}

void sim_participant_fill_heartbeat(const struct sim_participant *participant,
                                    struct msg_heartbeat *message)
{
    memset(message, 0, sizeof *message);
    message->node = participant->node;
    message->epoch = participant->epoch;
    message->request_high = participant->next_request - 1;
    message->live = calloc(participant->live_count + 1, sizeof *message->live);
    message->staged = calloc(HEARTBEAT_STAGED_MAX, sizeof *message->staged);
    TG_CHECK(message->live != NULL && message->staged != NULL);
    message->live_count = participant->live_count;
    memcpy(message->live, participant->live, participant->live_count * sizeof *message->live);
    for (uint32_t i = 0; i < participant->staged_count; i++) {
        const struct sim_staged *staged = &participant->staged[i];
        if (message->staged_count == HEARTBEAT_STAGED_MAX || staged->dropped ||
            sim_is_bound(participant, staged))
            continue;
        if (message->staged_count == 0 || message->staged[message->staged_count - 1] != staged->txn)
            message->staged[message->staged_count++] = staged->txn;
    }
}

void sim_participant_heartbeat_answer(struct sim_participant *participant,
                                      const struct msg_heartbeat_reply *reply)
{
    for (uint32_t k = 0; k < reply->dead_count; k++)
        for (uint32_t i = 0; i < participant->staged_count; i++) {
            struct sim_staged *staged = &participant->staged[i];
            if (staged->txn == reply->dead[k] && !sim_is_bound(participant, staged))
                staged->dropped = true;
        }
    for (uint32_t k = 0; k < reply->stopped_count; k++)
        sim_participant_end_load(participant, reply->stopped[k]);
}
