/* SPDX-License-Identifier: Apache-2.0 */
/* Three coordinators' consensus in one process: real links on loopback, real disks, and a leader
 * that goes away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <uv.h>

#include "common/net/loop.h"
#include "coordinator/consensus/raft_node.h"
#include "tests/lib/test_dir.h"

enum { NODES = 3, WAIT_MS_MAX = 20 * 1000, COMMANDS = 1000 };

struct node {
    struct raft_node *raft;
    bool closed;
    bool leads;
    unsigned gained, lost, applied;
    char dir[TEST_PATH_SIZE];
};

struct cluster {
    struct loop *loop;
    struct raft_node_options options; /* all but id and dir */
    struct node nodes[NODES];
    struct test_dir root;
    unsigned done, succeeded, unknown, refused;
    char fatal[256];
};

static uint16_t free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    close(fd);
    return ntohs(address.sin_port);
}

static void on_leadership(void *data, bool leads)
{
    struct node *node = data;
    node->leads = leads;
    if (leads)
        node->gained++;
    else
        node->lost++;
}

static void on_applied(void *data)
{
    ((struct node *)data)->applied++;
}

static void on_fatal(void *data, const char *why)
{
    struct cluster *cluster = data;
    snprintf(cluster->fatal, sizeof cluster->fatal, "%s", why);
}

static int node_open(struct cluster *cluster, unsigned i, struct tg_errmsg *msg)
{
    struct node *node = &cluster->nodes[i];
    struct raft_node_options options = cluster->options;
    struct consensus_observer observer = {on_leadership, on_applied, node};
    options.id = i + 1;
    options.dir = node->dir;
    options.fatal = on_fatal;
    options.fatal_data = cluster;
    node->closed = false;
    node->leads = false;
    int err = raft_node_open(cluster->loop, &options, clock_system(), &observer, &node->raft, msg);
    if (err != 0) {
        node->raft = NULL;
        return err;
    }
    return raft_node_start(node->raft, msg);
}

static void cluster_open(struct cluster *cluster, uint64_t snapshot_bytes)
{
    struct tg_errmsg msg = {""};
    memset(cluster, 0, sizeof *cluster);
    assert_int_equal(loop_open(&cluster->loop, NULL), 0);
    test_dir_make(&cluster->root);
    struct raft_node_options *options = &cluster->options;
    raft_node_options_init(options);
    options->server_count = NODES;
    options->bootstrap = true;
    options->cluster_secret = "secret";
    options->election_timeout_ms = 300;
    options->heartbeat_ms = 50;
    options->snapshot_bytes = snapshot_bytes;
    options->segment_bytes = 1024 * 1024;
    options->disk_reserve_bytes = 1024;
    for (unsigned i = 0; i < NODES; i++) {
        options->servers[i].id = i + 1;
        snprintf(options->servers[i].address, ADDRESS_BYTES, "127.0.0.1:%u", free_port());
        char name[8];
        snprintf(name, sizeof name, "%u", i + 1);
        test_dir_path(&cluster->root, name, cluster->nodes[i].dir);
    }
    for (unsigned i = 0; i < NODES; i++)
        assert_int_equal(node_open(cluster, i, &msg), 0);
}

static void on_closed(void *data)
{
    struct node *node = data;
    node->closed = true;
    node->raft = NULL;
}

/* Turns the loop until condition(cluster, argument) or the time is over; returns the former. */
static bool cluster_wait(struct cluster *cluster, bool (*condition)(struct cluster *, unsigned),
                         unsigned argument)
{
    uint64_t until = uv_hrtime() / 1000000 + WAIT_MS_MAX;
    while (uv_hrtime() / 1000000 < until) {
        if (condition(cluster, argument))
            return true;
        uv_run(loop_uv(cluster->loop), UV_RUN_ONCE);
        assert_string_equal(cluster->fatal, "");
    }
    return condition(cluster, argument);
}

static bool is_closed(struct cluster *cluster, unsigned i)
{
    return cluster->nodes[i].closed;
}

static void node_close(struct cluster *cluster, unsigned i)
{
    if (cluster->nodes[i].raft == NULL)
        return;
    raft_node_close(cluster->nodes[i].raft, on_closed, &cluster->nodes[i]);
    assert_true(cluster_wait(cluster, is_closed, i));
}

static void cluster_close(struct cluster *cluster)
{
    for (unsigned i = 0; i < NODES; i++)
        node_close(cluster, i);
    loop_close(cluster->loop);
    test_dir_remove(&cluster->root);
}

static void node_wipe(struct node *node)
{
    struct test_dir dir;
    snprintf(dir.path, sizeof dir.path, "%s", node->dir);
    test_dir_remove(&dir);
}

static struct node *leader_of(struct cluster *cluster)
{
    for (unsigned i = 0; i < NODES; i++)
        if (cluster->nodes[i].raft != NULL &&
            consensus_is_leader(raft_node_consensus(cluster->nodes[i].raft)))
            return &cluster->nodes[i];
    return NULL;
}

static bool has_leader(struct cluster *cluster, unsigned unused)
{
    (void)unused;
    return leader_of(cluster) != NULL;
}

/* ---- commands ---- */

struct proposal {
    struct consensus_request request;
    struct cluster *cluster;
};

static void on_done(struct consensus_request *request, int err, const struct apply_result *result)
{
    struct proposal *proposal = request->data;
    struct cluster *cluster = proposal->cluster;
    cluster->done++;
    if (err == 0) {
        assert_non_null(result);
        cluster->succeeded += result->err == 0;
    } else if (err == TG_UNKNOWN_OUTCOME) {
        cluster->unknown++;
    } else {
        cluster->refused++;
    }
    free(proposal);
}

static void propose(struct cluster *cluster, struct node *node, unsigned number)
{
    struct proposal *proposal = calloc(1, sizeof *proposal);
    struct command command = {.type = COMMAND_CREATE_DB};
    snprintf(command.name.db, sizeof command.name.db, "db_%u", number);
    proposal->request.done = on_done;
    proposal->request.data = proposal;
    proposal->cluster = cluster;
    consensus_propose(raft_node_consensus(node->raft), &command, &proposal->request);
}

static bool are_done(struct cluster *cluster, unsigned count)
{
    return cluster->done >= count;
}

/* Proposes count commands to the leader, a few at a time, and waits for all. */
static void propose_many(struct cluster *cluster, unsigned first, unsigned count)
{
    unsigned before = cluster->done;
    for (unsigned k = 0; k < count; k++) {
        assert_true(cluster_wait(cluster, has_leader, 0));
        propose(cluster, leader_of(cluster), first + k);
        if (k % 8 == 7)
            assert_true(cluster_wait(cluster, are_done, before + k - 7));
    }
    assert_true(cluster_wait(cluster, are_done, before + count));
}

static bool agree(struct cluster *cluster, unsigned unused)
{
    (void)unused;
    struct raft_node_stats first = {0}, stats;
    for (unsigned i = 0; i < NODES; i++) {
        if (cluster->nodes[i].raft == NULL)
            continue;
        raft_node_stats(cluster->nodes[i].raft, &stats);
        if (first.applied_index == 0)
            first = stats;
        if (stats.applied_index != first.applied_index || stats.last_index != stats.applied_index)
            return false;
    }
    return true;
}

static void assert_equal_states(struct cluster *cluster, unsigned databases)
{
    uint64_t hash = 0;
    assert_true(cluster_wait(cluster, agree, 0));
    for (unsigned i = 0; i < NODES; i++) {
        if (cluster->nodes[i].raft == NULL)
            continue;
        const struct state *state = consensus_state(raft_node_consensus(cluster->nodes[i].raft));
        assert_int_equal(HASH_COUNT(state->catalog.databases), databases);
        if (hash == 0)
            hash = state_hash(state);
        assert_true(state_hash(state) == hash);
    }
}

/* ---- tests ---- */

static void test_three_elect_apply_a_thousand_and_survive_their_leader(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tg_errmsg msg = {""};
    cluster_open(&cluster, 1024);
    assert_true(cluster_wait(&cluster, has_leader, 0));
    propose_many(&cluster, 0, COMMANDS);
    assert_int_equal(cluster.succeeded, COMMANDS);
    assert_equal_states(&cluster, COMMANDS);

    struct node *old = leader_of(&cluster);
    unsigned gone = (unsigned)(old - cluster.nodes);
    assert_int_equal(old->gained, old->lost + 1);
    uint64_t start = uv_hrtime();
    node_close(&cluster, gone);
    propose_many(&cluster, COMMANDS, 1);
    print_message("next commit after the leader left: %lu ms\n",
                  (unsigned long)((uv_hrtime() - start) / 1000000));
    /* Many entries, so that what it lacks is no longer in the others' logs. */
    for (unsigned k = 1; k < 300; k++)
        propose_many(&cluster, COMMANDS + k, 1);
    assert_int_equal(cluster.succeeded, COMMANDS + 300);

    /* It comes back from its disk and catches up; snapshots were taken meanwhile. */
    assert_int_equal(node_open(&cluster, gone, &msg), 0);
    propose_many(&cluster, COMMANDS + 300, 10);
    assert_equal_states(&cluster, COMMANDS + 310);
    struct raft_node_stats stats;
    raft_node_stats(leader_of(&cluster)->raft, &stats);
    assert_true(stats.snapshots_taken >= 2);
    assert_true(stats.is_leader && stats.leader != 0);
    raft_node_stats(cluster.nodes[gone].raft, &stats);
    assert_true(stats.snapshots_restored >= 2); /* its own at the start, the leader's to catch up */

    /* All stop and start again. */
    for (unsigned i = 0; i < NODES; i++)
        node_close(&cluster, i);
    for (unsigned i = 0; i < NODES; i++)
        assert_int_equal(node_open(&cluster, i, &msg), 0);
    propose_many(&cluster, COMMANDS + 310, 1);
    assert_equal_states(&cluster, COMMANDS + 311);
    cluster_close(&cluster);
}

static void on_barrier(struct consensus_request *request, int err,
                       const struct apply_result *result)
{
    struct cluster *cluster = request->data;
    assert_int_equal(err, 0);
    assert_null(result);
    cluster->done++;
}

static void test_a_barrier_closes_time_and_a_follower_refuses(void **state)
{
    (void)state;
    struct cluster cluster;
    cluster_open(&cluster, 1 << 20);
    assert_true(cluster_wait(&cluster, has_leader, 0));
    struct consensus *consensus = raft_node_consensus(leader_of(&cluster)->raft);
    uint64_t closes = consensus->ops->now_us(consensus) + 30 * 1000;
    struct consensus_request request = {.done = on_barrier, .data = &cluster};
    consensus_barrier(consensus, closes, &request);
    assert_true(cluster_wait(&cluster, are_done, 1));
    assert_true(consensus_state(consensus)->stamp_us >= closes);

    for (unsigned i = 0; i < NODES; i++)
        if (&cluster.nodes[i] != leader_of(&cluster)) {
            propose(&cluster, &cluster.nodes[i], 1);
            assert_true(cluster_wait(&cluster, are_done, 2));
            assert_int_equal(cluster.refused, 1);
            break;
        }
    cluster_close(&cluster);
}

static void on_transfer(void *data, int err)
{
    struct cluster *cluster = data;
    assert_int_equal(err, 0);
    cluster->done++;
}

static bool another_leads(struct cluster *cluster, unsigned i)
{
    struct node *leader = leader_of(cluster);
    return leader != NULL && leader != &cluster->nodes[i];
}

static void test_leadership_is_handed_over_at_a_graceful_stop(void **state)
{
    (void)state;
    struct cluster cluster;
    cluster_open(&cluster, 1 << 20);
    assert_true(cluster_wait(&cluster, has_leader, 0));
    propose_many(&cluster, 0, 5);
    struct node *old = leader_of(&cluster);
    raft_node_transfer(old->raft, on_transfer, &cluster);
    assert_true(cluster_wait(&cluster, are_done, 6));
    assert_true(cluster_wait(&cluster, another_leads, (unsigned)(old - cluster.nodes)));
    assert_false(old->leads);
    propose_many(&cluster, 5, 5);
    assert_int_equal(cluster.succeeded, 10);
    cluster_close(&cluster);
}

static void test_an_empty_directory_starts_only_to_form_a_cluster(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tg_errmsg msg = {""};
    cluster_open(&cluster, 1 << 20);
    assert_true(cluster_wait(&cluster, has_leader, 0));
    propose_many(&cluster, 0, 3);
    node_close(&cluster, 2);
    node_wipe(&cluster.nodes[2]);
    cluster.options.bootstrap = false;
    assert_int_equal(node_open(&cluster, 2, &msg), TG_REFUSED);
    assert_non_null(strstr(msg.text, "bootstrap"));
    cluster_close(&cluster);
}

static void test_half_a_bootstrap_is_finished_and_a_lost_log_is_refused(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tg_errmsg msg = {""};
    char file[600];
    uint64_t metadata[4] = {1, 1, 1, 0}; /* format, version, term, vote */
    cluster_open(&cluster, 1 << 20);
    node_close(&cluster, 0);
    node_wipe(&cluster.nodes[0]);
    assert_int_equal(mkdir(cluster.nodes[0].dir, 0700), 0);
    snprintf(file, sizeof file, "%s/metadata1", cluster.nodes[0].dir);
    FILE *out = fopen(file, "wb");
    fwrite(metadata, sizeof metadata, 1, out);
    fclose(out);
    assert_int_equal(node_open(&cluster, 0, &msg), 0);
    assert_true(cluster_wait(&cluster, has_leader, 0));
    node_close(&cluster, 0);

    node_wipe(&cluster.nodes[0]);
    assert_int_equal(mkdir(cluster.nodes[0].dir, 0700), 0);
    metadata[2] = 7;
    metadata[3] = 2;
    out = fopen(file, "wb");
    fwrite(metadata, sizeof metadata, 1, out);
    fclose(out);
    assert_int_equal(node_open(&cluster, 0, &msg), TG_REFUSED);
    assert_non_null(strstr(msg.text, "lost"));
    cluster_close(&cluster);
}

static bool leads_no_longer(struct cluster *cluster, unsigned unused)
{
    (void)unused;
    return leader_of(cluster) == NULL;
}

static void test_nothing_is_told_that_a_majority_does_not_have(void **state)
{
    (void)state;
    struct cluster cluster;
    cluster_open(&cluster, 1024 * 1024);
    assert_true(cluster_wait(&cluster, has_leader, 0));
    propose_many(&cluster, 0, 10);
    assert_int_equal(cluster.succeeded, 10);
    struct node *leader = leader_of(&cluster);
    assert_non_null(leader);
    for (unsigned i = 0; i < NODES; i++)
        if (&cluster.nodes[i] != leader)
            node_close(&cluster, i);
    propose(&cluster, leader, 10);
    assert_true(cluster_wait(&cluster, leads_no_longer, 0));
    assert_true(cluster_wait(&cluster, are_done, 11));
    assert_int_equal(cluster.succeeded, 10);
    cluster_close(&cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_three_elect_apply_a_thousand_and_survive_their_leader),
        cmocka_unit_test(test_a_barrier_closes_time_and_a_follower_refuses),
        cmocka_unit_test(test_leadership_is_handed_over_at_a_graceful_stop),
        cmocka_unit_test(test_an_empty_directory_starts_only_to_form_a_cluster),
        cmocka_unit_test(test_half_a_bootstrap_is_finished_and_a_lost_log_is_refused),
        cmocka_unit_test(test_nothing_is_told_that_a_majority_does_not_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
