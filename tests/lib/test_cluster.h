/* SPDX-License-Identifier: Apache-2.0 */
/* A real cluster of processes in a directory of its own, on free ports, through `tidegate cluster`.
 * A guard process stops it and removes the directory if the test program dies. */
#ifndef TG_TESTS_LIB_TEST_CLUSTER_H
#define TG_TESTS_LIB_TEST_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/lib/test_dir.h"

enum { TEST_NODES_MAX = 5 };

struct test_node {
    long pid;
    uint16_t http;
    uint16_t rpc;
    uint16_t raft; /* 0 for participants */
};

struct test_cluster {
    struct test_dir dir;
    unsigned coordinator_count;
    unsigned participant_count;
    struct test_node coordinators[TEST_NODES_MAX]; /* [0] is coordinator-1 */
    struct test_node participants[TEST_NODES_MAX];
    pid_t guard;
    int guard_pipe;
};

/* Starts and waits until it serves. options: further flags of `tidegate cluster start`, or NULL
 * ("--coordinator-option precommit_timeout_s=2 …", split at blanks). Ends the test if it fails. */
void test_cluster_start(struct test_cluster *cluster, unsigned coordinators, unsigned participants,
                        const char *options);
/* Stops everything and removes the directory (not with TIDEGATE_KEEP=1 in the environment). Also
 * for a cluster that did not start. Fails the test if a node's log tells of a broken invariant or a
 * sanitizer's finding. */
void test_cluster_end(struct test_cluster *cluster);

/* Orders of the tool; node is "coordinator-2", "participant-1" or "leader". End the test if they
 * fail, and know the new process ids afterwards. */
void test_cluster_kill(struct test_cluster *cluster, const char *node);
void test_cluster_stop(struct test_cluster *cluster, const char *node);
void test_cluster_restart(struct test_cluster *cluster, const char *node);
void test_cluster_restart_all(struct test_cluster *cluster);
/* Starts what does not run, with its data. */
void test_cluster_start_again(struct test_cluster *cluster);
/* Lets a node's process stand still (SIGSTOP), and go on. */
void test_cluster_pause(const struct test_cluster *cluster, const char *node);
void test_cluster_resume(const struct test_cluster *cluster, const char *node);

/* The place of the leader among the coordinators; waits up to 10 s for one. */
unsigned test_cluster_leader(const struct test_cluster *cluster);
/* HTTP port of a coordinator that runs (any), of a participant that runs. */
uint16_t test_cluster_coordinator(const struct test_cluster *cluster);
uint16_t test_cluster_participant(const struct test_cluster *cluster);
/* A value out of /proc/PID/status in KiB, e.g. "RssAnon"; 0 if the process is gone. */
uint64_t test_process_kib(long pid, const char *field);
/* Whether the node's log holds a text. */
bool test_cluster_logged(const struct test_cluster *cluster, const char *node, const char *text);

uint64_t test_now_ms(void);
void test_sleep_ms(unsigned ms);
/* TIDEGATE_TEST_SHORT is set: under sanitizers and where time is short. */
bool test_is_short(void);
/* How often: where time is short, usually, and for the whole promise (TIDEGATE_TEST_FULL is set). */
int test_count(int short_of_time, int usual, int full);

#endif
