/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be done next for replicas that are behind. */
#include "coordinator/txn/repair_plan.h"

#include <string.h>

/* Clones under way, by the places of nodes among the members. */
struct load {
    uint32_t all;
    uint32_t into[NODES_MAX];
    uint32_t out_of[NODES_MAX];
};

struct repair *repair_find(struct repair *repairs, tablet_id tablet, node_id node)
{
    struct repair_key key = {.tablet = tablet, .node = node};
    struct repair *repair;

    HASH_FIND(hh, repairs, &key, sizeof key, repair);
    return repair;
}

static int place_of(const struct state *state, node_id node)
{
    const struct member *member = members_find(&state->members, node);

    return member != NULL ? (int)(member - state->members.list) : -1;
}

static void add_load(const struct state *state, struct load *load, node_id node, node_id source)
{
    int into = place_of(state, node);
    int out_of = place_of(state, source);

    load->all++;
    if (into >= 0)
        load->into[into]++;
    if (out_of >= 0)
        load->out_of[out_of]++;
}

/* The replica that is alive, fit, and has least to do; of equals another one after each failure.
 * good: only good ones; else any other one. */
static node_id choose_source(const struct state *state, const struct health *health,
                             const struct load *load, const struct tablet *tablet, node_id node,
                             unsigned failures, bool good, uint64_t now_ms)
{
    uint32_t least = REPAIR_CLONES_PER_SOURCE;
    node_id best = 0;

    for (unsigned i = 0; i < tablet->replica_count; i++) {
        const struct replica *replica = &tablet->replicas[(i + failures) % tablet->replica_count];
        int place = place_of(state, replica->node);

        if (replica->node == 0 || replica->node == node || (good && replica->behind) || place < 0 ||
            !health_is_alive(health, replica->node, now_ms))
            continue;
        if (load->out_of[place] < least) {
            least = load->out_of[place];
            best = replica->node;
        }
        if (failures > 0 && best != 0)
            break;
    }
    return best;
}

/* A replica that was only asked for its own is close if it lacks nothing. */
static bool is_close(const struct tablet *tablet, const struct repair *repair)
{
    if (repair->source == (node_id)repair->key.node)
        return repair->bound >= tablet_need(tablet, UINT64_MAX);
    return repair->round_took_ms <= REPAIR_CLOSE_MS || repair->rounds >= REPAIR_ROUNDS_MAX;
}

void repair_to_prove(const struct tablet *tablet, const struct replica *replica,
                     struct msg_clone *message)
{
    version_t upto = tablet->table->committed;

    for (uint32_t i = tablet->touched_count;
         replica->catching && i > 0 && tablet->touched[i - 1] > replica->missed_version; i--)
        upto = tablet->touched[i - 1] - 1;
    message->prove = upto;
    message->last = tablet_need(tablet, UINT64_MAX);
    message->catching = replica->catching;
    message->missed = replica->missed_version;
    message->chain_known = replica->missed_known;
    message->chain = replica->missed_chain;
}

/* What a round has proven is still what is asked for. */
static bool is_proven(const struct tablet *tablet, const struct replica *replica,
                      const struct repair *repair)
{
    return replica->catching && repair->bound >= replica->missed_version && repair->proven != 0 &&
           tablet_need(tablet, repair->proven) == replica->missed_version;
}

/* It had nobody to be cloned from and could not help itself; now somebody is there. */
static bool is_found(const struct replica *replica, const struct repair *repair, node_id source)
{
    return !repair->active && repair->failures > 0 && repair->source == replica->node &&
           source != 0;
}

/* False: nothing now. */
static bool next_step(const struct state *state, const struct health *health, struct load *load,
                      const struct tablet *tablet, const struct replica *replica,
                      const struct repair *repair, uint64_t now_ms, struct repair_step *step)
{
    bool trusted = tablet_good(tablet) != 0;
    node_id source = choose_source(state, health, load, tablet, replica->node,
                                   repair != NULL ? repair->failures : 0, trusted, now_ms);
    *step = (struct repair_step){
        .tablet = tablet, .node = replica->node, .trusted = trusted, .source = source};
    if (repair != NULL &&
        (repair->in_air || (now_ms < repair->not_before_ms && !is_found(replica, repair, source))))
        return false;
    if (repair != NULL && repair->active) {
        step->act = REPAIR_ASK;
        return true;
    }
    if (repair != NULL && repair->done && is_proven(tablet, replica, repair)) {
        step->act = REPAIR_HEAL;
        return true;
    }
    if (repair != NULL && repair->done && !replica->catching && is_close(tablet, repair)) {
        step->act = REPAIR_CATCH;
        return true;
    }
    int into = place_of(state, replica->node);
    if (into < 0 || load->all >= REPAIR_CLONES_MAX || load->into[into] >= REPAIR_CLONES_PER_NODE)
        return false;
    step->act = REPAIR_ORDER;
    /* Nobody else is there: it may have all that the log knows of. */
    if (step->source == 0 && (!step->trusted || tablet->chain_known))
        step->source = replica->node;
    if (step->source == 0)
        return false;
    add_load(state, load, replica->node, step->source);
    return true;
}

uint32_t repair_plan(const struct state *state, const struct health *health, struct repair *repairs,
                     uint64_t now_ms, struct repair_step *steps)
{
    struct load load = {0};
    uint32_t count = 0;

    for (const struct repair *r = repairs; r != NULL; r = r->hh.next)
        if (r->active)
            add_load(state, &load, (node_id)r->key.node, r->source);
    for (const struct tablet *tablet = state->catalog.behind;
         tablet != NULL && count < REPAIR_STEPS_MAX; tablet = tablet->behind_next) {
        if (tablet->table->dropped)
            continue;
        for (unsigned i = 0; i < tablet->replica_count && count < REPAIR_STEPS_MAX; i++) {
            const struct replica *replica = &tablet->replicas[i];

            if (replica->behind && health_is_alive(health, replica->node, now_ms) &&
                next_step(state, health, &load, tablet, replica,
                          repair_find(repairs, tablet->id, replica->node), now_ms, &steps[count]))
                count++;
        }
    }
    return count;
}
