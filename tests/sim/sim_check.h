/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold at every moment of a simulated cluster's life, and at its end.
 *
 * The log's word is kept as it is applied: for each table, what each version is. Whatever anybody
 * reads must be exactly what the versions up to that one say, in every tablet; times, cursors and
 * acknowledgements are compared with them. */
#ifndef TG_TESTS_SIM_SIM_CHECK_H
#define TG_TESTS_SIM_SIM_CHECK_H

#include "common/proto/msg_read.h"
#include "participant/tablet/version_map.h"
#include "tests/sim/sim_coordinator.h"
#include "tests/sim/sim_net.h"
#include "tests/sim/sim_participant.h"

enum { CHECK_TABLES_MAX = 64 };

/* Versions that were acknowledged as visible, by table. */
struct sim_floors {
    uint32_t count;
    struct {
        table_id table;
        version_t version;
    } list[CHECK_TABLES_MAX];
};

struct sim_check;
struct sim_clients;

struct sim_check *sim_check_open(struct sim_net *net, struct sim_coordinator **coordinators,
                                 struct sim_participant *participants);
void sim_check_close(struct sim_check *check);
/* A coordinator applied: its state equals that of every other at the same index, and what became
 * visible follows what was. */
void sim_check_applied(struct sim_check *check, unsigned coordinator);

/* ---- what clients were told ---- */
/* Somebody was told that the transaction is visible. */
void sim_check_acknowledged(struct sim_check *check, txn_id txn);
void sim_check_floors(const struct sim_check *check, struct sim_floors *floors);
/* A read of the newest version that began with those floors saw that one. */
void sim_check_newest(struct sim_check *check, const struct sim_floors *begun, table_id table,
                      version_t version);
/* A read as of a time got that version; looked at in the end, when all times are known. */
void sim_check_as_of(struct sim_check *check, table_id table, uint64_t us, version_t version);
/* A tablet showed these rowsets: what is visible at a version, or with changes what (after,
 * version] wrote. */
void sim_check_rowsets(struct sim_check *check, const char *who, table_id table, tablet_id tablet,
                       bool changes, version_t after, version_t version,
                       const struct version_rowset *rowsets, uint32_t count);
/* A follower was told of these versions in (after, version]. */
void sim_check_versions(struct sim_check *check, const struct msg_read_point_reply *reply);

/* ---- the end ---- */
/* True once nothing is on its way any more: all applied the same, no open transaction, nothing to
 * publish or to repair. */
bool sim_check_is_at_rest(const struct sim_check *check);
/* After quiet: coordinators agree, nothing is unfinished, and what clients were told is true. */
void sim_check_end(struct sim_check *check, const struct sim_clients *clients);
/* What a replica shows in the end is compared by sim_read.h's last reads; nothing is left over. */
void sim_check_leaks(struct sim_check *check);
/* Newest visible version of a table; 0 if there is no such table any more. */
version_t sim_check_visible(const struct sim_check *check, table_id table);

#endif
