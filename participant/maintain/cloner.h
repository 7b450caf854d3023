/* SPDX-License-Identifier: Apache-2.0 */
/* Clones ordered by the leader (MSG_CLONE): a bounded list of jobs, a few threads, throttled. Also
 * reads tablets whose data could not be read, to find what is damaged, when there is nothing else
 * to do. */
#ifndef TG_PARTICIPANT_MAINTAIN_CLONER_H
#define TG_PARTICIPANT_MAINTAIN_CLONER_H

#include "participant/maintain/clone_tablet.h"
#include "participant/maintain/damage_list.h"

enum {
    CLONER_THREADS = 2,
    CLONER_JOBS_MAX = 64,    /* waiting, under way, or ended and not yet forgotten */
    CLONER_RECENT_MAX = 256, /* tablets whose last order is remembered */
    CLONER_IDLE_MS = 200     /* between looks for tablets to check */
};

struct cloner_options {
    struct store *store;
    struct tablet_set *tablets;
    struct damage_list *damage;
    struct clock *clock;
    struct clone_calls calls;
    uint64_t bytes_per_s; /* fetched or checked; 0: no limit */
};

struct cloner;

int cloner_open(const struct cloner_options *options, struct cloner **cloner);
/* Stops clones under way; joins the threads. */
void cloner_close(struct cloner *cloner);

/* Any thread; never waits. An order that is new begins, else it is asked how far it is (msg_clone.h
 * says how they are told apart). 0; TG_BUSY: CLONER_JOBS_MAX are waiting or under way; TG_CLOSED.
 */
int cloner_order(struct cloner *cloner, const struct msg_clone *message,
                 struct msg_clone_reply *reply);
/* Whether an order for the tablet came at or after that time of the clock (ms). True also if so many
 * came since that it is not known. Any thread. */
bool cloner_ordered_since(struct cloner *cloner, tablet_id tablet, uint64_t since_ms);
/* Rounds that ended well so far, and bytes fetched by all. */
uint64_t cloner_rounds(const struct cloner *cloner);
uint64_t cloner_bytes(const struct cloner *cloner);

struct peer_clients;
/* Calls that go to real peers. */
void clone_calls_init(struct clone_calls *calls, struct peer_clients *peers);

#endif
