/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of repairs do: tables, rows, waiting until all replicas are good and equal, and the
 * harm that is to be repaired. In database d of a cluster of three participants. Each ends the test
 * if it fails. */
#ifndef TG_TESTS_LIB_TEST_REPLICAS_H
#define TG_TESTS_LIB_TEST_REPLICAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/lib/test_cluster.h"
#include "tests/lib/test_load.h"

enum { TEST_HEAL_MS = 60000 };

/* (k INT, v VARCHAR(64)), key: "DUPLICATE" or "UNIQUE"; replicas 0: as many as by default. */
void test_replicas_table(const struct test_cluster *cluster, const char *table, const char *key,
                         unsigned buckets, unsigned replicas);
/* One row (k, value-k), through a participant that runs; it must be a Success. */
void test_replicas_row(const struct test_cluster *cluster, const char *table, int k);
/* CSV rows with these headers. */
void test_replicas_load(const struct test_cluster *cluster, const char *table, const char *headers,
                        const char *body, struct test_load *result);
/* Rows of (k, 40 letters by chance), which do not compress well. */
void test_replicas_load_big(const struct test_cluster *cluster, const char *table, unsigned rows);

/* Replicas that are behind, as the coordinators say; -1: nobody could say. */
long test_replicas_behind(const struct test_cluster *cluster);
/* Until some are, or none is. */
void test_replicas_wait(const struct test_cluster *cluster, bool behind);
/* Until all participants hold the same versions with the same rowsets, tablet for tablet. */
void test_replicas_agree(const struct test_cluster *cluster);
/* None is behind, and all agree. */
void test_replicas_heal(const struct test_cluster *cluster);
/* Until on every participant each rowset is bound by a version and all else is collected. */
void test_replicas_clean(const struct test_cluster *cluster);
/* Until the node's log holds a text. */
void test_replicas_logged(const struct test_cluster *cluster, const char *node, const char *text);

/* A shell command below the node's directory (its data is in ./data); it must succeed. */
void test_replicas_shell(const struct test_cluster *cluster, const char *node, const char *command);
/* Runs a participant that does not run until it ends by itself, within a minute: its exit status.
 * What it said must hold the text. */
int test_replicas_start_fails(const struct test_cluster *cluster, const char *node,
                              const char *text);
/* Removes what is in the data directory of a node that does not run. */
void test_replicas_wipe(const struct test_cluster *cluster, const char *node);
/* DIR/NODE/data/NAME. */
void test_replicas_path(const struct test_cluster *cluster, const char *node, const char *name,
                        char *out, size_t cap);
/* Changes a byte in every run of overflow pages of both block files: contents, not the tree. How
 * many. */
unsigned test_replicas_spoil(const struct test_cluster *cluster, const char *node);

#endif
