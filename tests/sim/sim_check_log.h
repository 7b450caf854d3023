/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the checks: what the log has said so far. */
#ifndef TG_TESTS_SIM_SIM_CHECK_LOG_H
#define TG_TESTS_SIM_SIM_CHECK_LOG_H

#include "tests/sim/sim_check.h"

enum { CHECK_INDEXES_MAX = 1 << 16, CHECK_VERSIONS_MAX = 1 << 12 };

struct check_version {
    uint64_t time_us;
    txn_id txn;
    rowset_id rowset; /* 0: it wrote nothing */
    bool truncate;
};

struct check_table {
    table_id id;
    version_t count; /* visible */
    struct check_version *versions;
};

struct check_as_of {
    table_id table;
    uint64_t us;
    version_t version;
};

struct sim_check {
    struct sim_net *net;
    struct sim_coordinator **coordinators;
    struct sim_participant *participants;
    uint64_t *hashes; /* by log index, 0: not seen */
    uint32_t table_count;
    struct check_table tables[CHECK_TABLES_MAX];
    struct sim_floors floors;
    uint32_t as_of_count, as_of_capacity;
    struct check_as_of *as_of;
};

struct check_table *sim_check_table(const struct sim_check *check, table_id id);

#endif
