/* SPDX-License-Identifier: Apache-2.0 */
/* A leading coordinator for unit tests: a fake consensus on a fake clock, begun with a prepared
 * state, and the messages that participants would send. */
#ifndef TG_TESTS_LIB_COORDINATOR_SCENE_H
#define TG_TESTS_LIB_COORDINATOR_SCENE_H

#include "common/proto/msg_txn.h"
#include "coordinator/consensus/consensus.h"
#include "tests/lib/fake_clock.h"
#include "tests/lib/fake_consensus.h"
#include "tests/lib/state_builder.h"

struct coordinator_scene {
    struct fake_clock clock;
    struct fake_consensus *fake;
    struct consensus *consensus;
};

/* Three participants, database "d", table "d.t" of two buckets on all three. */
void coordinator_scene_open(struct coordinator_scene *scene);
/* The same with the builder's state, which is taken over: the builder is closed. */
void coordinator_scene_open_with(struct coordinator_scene *scene, struct state_builder *builder);
void coordinator_scene_close(struct coordinator_scene *scene);
const struct state *coordinator_scene_state(const struct coordinator_scene *scene);
const struct txn *coordinator_scene_txn(const struct coordinator_scene *scene, txn_id txn);
/* Table of database "d". */
const struct table *coordinator_scene_table(const struct coordinator_scene *scene,
                                            const char *name);

/* MSG_TXN_BEGIN of a load of d.t. */
void coordinator_scene_begin(const struct coordinator_scene *scene, node_id node, uint64_t request,
                             const char *label, bool two_phase, struct msg_txn_begin *message);
/* MSG_LOAD_DONE of that load: ten rows in each bucket, sealed by those replica slots. The caller
 * closes it. */
void coordinator_scene_done(const struct coordinator_scene *scene, node_id node, uint64_t request,
                            txn_id txn, rowset_id rowset, enum load_finish finish, uint8_t sealed,
                            struct msg_load_done *message);
/* Begins and commits (or precommits) such a load straight through the log; returns its id. */
txn_id coordinator_scene_load(struct coordinator_scene *scene, uint64_t request, const char *label,
                              enum load_finish finish);

#endif
