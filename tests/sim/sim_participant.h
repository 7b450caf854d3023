/* SPDX-License-Identifier: Apache-2.0 */
/* A participant without sockets: the real store on a simulated disk, with its writers, the
 * collector, the cloners and the source of clones on their own threads, which are fibers. What its
 * loop would do (questions, registration, heartbeats) the simulation does. */
#ifndef TG_TESTS_SIM_SIM_PARTICIPANT_H
#define TG_TESTS_SIM_SIM_PARTICIPANT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/proto/msg_member.h"
#include "participant/maintain/clone_source.h"
#include "participant/maintain/cloner.h"
#include "participant/maintain/gc.h"
#include "participant/store/store.h"
#include "participant/tablet/tablet_set.h"
#include "tests/sim/fiber.h"
#include "tests/sim/sim_disk.h"
#include "tests/sim/sim_net.h"
#include "tests/sim/sim_rpc.h"

enum { SIM_LIVE_MAX = 256 };

struct sim_participant {
    struct sim_net *net;
    node_id node;
    struct sim_participant *all; /* of the cluster, in order */
    struct sim_disk *disk;
    struct fiber_process process;
    struct sim_clock clock;
    bool wanted; /* whenever it ended it is to start again */
    void (*joined)(void *data, unsigned i);
    void (*opened)(void *data, unsigned i);
    void *data;
    /* ---- of this life ---- */
    bool up;        /* the store is open and the threads run */
    uint64_t epoch; /* 0: not registered yet */
    struct store_identity identity;
    bool clearing; /* a pending registration of an earlier life is made first */
    struct store *store;
    struct tablet_set *tablets;
    struct damage_list damage;
    struct gc *gc;
    struct cloner *cloner;
    struct clone_source *source;
    struct clone_calls calls;
    txn_id staged_after;
    tablet_id tablets_after;
    struct sim_question *questions; /* not answered yet */
    uint64_t next_request;
    uint64_t live[SIM_LIVE_MAX]; /* requests whose load is under way */
    uint32_t live_count;
};

void sim_participant_init(struct sim_participant *participant, struct sim_net *net, node_id node,
                          struct sim_participant *all);
void sim_participant_close(struct sim_participant *participant);
/* A new life: opens the store; `opened` is called when that is done. */
void sim_participant_start(struct sim_participant *participant);
/* Ends at this moment, and what was not synced is lost as said. */
void sim_participant_crash(struct sim_participant *participant, enum sim_disk_loss loss);
/* work(participant, data) on a fiber of its own, which may wait. Not called if it dies before. */
void sim_participant_do(struct sim_participant *participant,
                        void (*work)(struct sim_participant *participant, void *data), void *data);

/* ---- registration, as participant/link/membership.c does it; on a fiber ---- */
void sim_participant_make_nonce(struct sim_participant *participant);
/* True if the node has joined; false: another registration must follow. */
bool sim_participant_accept(struct sim_participant *participant,
                            const struct msg_register_reply *reply);
void sim_participant_fill_register(const struct sim_participant *participant,
                                   struct msg_register *message);
void sim_participant_fill_heartbeat(struct sim_participant *participant,
                                    struct msg_heartbeat *message);
/* Takes the reply over. */
void sim_participant_heartbeat_answer(struct sim_participant *participant,
                                      struct msg_heartbeat_reply *reply);

/* A load begins or ends here; the request id of a new one. 0 if there is no room. */
uint64_t sim_participant_begin_load(struct sim_participant *participant);
void sim_participant_end_load(struct sim_participant *participant, uint64_t request);

#endif
