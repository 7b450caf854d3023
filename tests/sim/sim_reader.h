/* SPDX-License-Identifier: Apache-2.0 */
/* Those who read: the newest version, one of the past by number or by time, and followers that ask
 * again and again for what has changed. A read asks the leader which version it sees, then a replica
 * of each tablet for it, the next one where one refuses. Also whoever alters tables. */
#ifndef TG_TESTS_SIM_SIM_READER_H
#define TG_TESTS_SIM_SIM_READER_H

#include "tests/sim/sim_check.h"
#include "tests/sim/sim_coordinator.h"
#include "tests/sim/sim_net.h"
#include "tests/sim/sim_participant.h"

struct sim_readers;

struct sim_readers *sim_readers_open(struct sim_net *net, struct sim_coordinator **coordinators,
                                     struct sim_participant *participants, struct sim_check *check);
void sim_readers_close(struct sim_readers *readers);
/* One more read, of any kind. */
void sim_readers_read(struct sim_readers *readers);
/* A statement: TRUNCATE of any table, or DROP and CREATE of the last one. */
void sim_readers_statement(struct sim_readers *readers);
/* Every replica of every tablet is read. strict: each must show all, and followers are brought to the
 * end; else that is how damage is noticed. */
void sim_readers_finish(struct sim_readers *readers, bool strict);
uint32_t sim_readers_under_way(const struct sim_readers *readers);

#endif
