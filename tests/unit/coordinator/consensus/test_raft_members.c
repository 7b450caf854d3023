/* SPDX-License-Identifier: Apache-2.0 */
/* Three real servers in one loop: a leader whose clock runs ahead gives way, one leaves, and one with
 * nothing joins. */
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
    enum consensus_clock clock; /* what the others say of it */
    uint64_t unfit;             /* a server that it would not let lead */
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

static enum consensus_clock clock_state(void *data, uint64_t wall_us, uint64_t monotonic_us)
{
    (void)wall_us;
    (void)monotonic_us;
    return ((struct node *)data)->clock;
}

static bool is_fit(void *data, uint64_t id)
{
    return ((struct node *)data)->unfit != id;
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
    options.clock_state = clock_state;
    options.fit = is_fit;
    options.peers_data = node;
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

/* ---- tests ---- */

static bool another_leads(struct cluster *cluster, unsigned i)
{
    struct node *leader = leader_of(cluster);
    return leader != NULL && leader != &cluster->nodes[i];
}

/* ---- clocks ---- */

static bool leads_no_more(struct cluster *cluster, unsigned i)
{
    return !cluster->nodes[i].leads && leader_of(cluster) != NULL;
}

static void test_a_leader_whose_clock_runs_ahead_lets_a_fit_one_lead(void **state)
{
    (void)state;
    struct cluster cluster;
    cluster_open(&cluster, 1 << 20);
    assert_true(cluster_wait(&cluster, has_leader, 0));
    propose_many(&cluster, 0, 5);
    for (int round = 0; round < 3; round++) {
        struct node *old = leader_of(&cluster);
        unsigned at = (unsigned)(old - cluster.nodes);
        unsigned unfit = (at + 1) % NODES;
        old->unfit = unfit + 1;
        old->clock = CONSENSUS_CLOCK_AHEAD;
        assert_true(cluster_wait(&cluster, leads_no_more, at));
        assert_ptr_equal(leader_of(&cluster), &cluster.nodes[(at + 2) % NODES]);
        old->clock = CONSENSUS_CLOCK_GOOD;
        old->unfit = 0;
    }
    propose_many(&cluster, 5, 5);
    assert_int_equal(cluster.succeeded, 10);
    cluster_close(&cluster);
}

static void test_a_leader_that_hears_nothing_of_clocks_waits_a_second_only(void **state)
{
    (void)state;
    struct cluster cluster;
    cluster_open(&cluster, 1 << 20);
    for (unsigned i = 0; i < NODES; i++)
        cluster.nodes[i].clock = CONSENSUS_CLOCK_UNKNOWN;
    uint64_t begun = uv_hrtime();
    assert_true(cluster_wait(&cluster, has_leader, 0));
    assert_true(uv_hrtime() - begun >= UINT64_C(900) * 1000000);
    propose_many(&cluster, 0, 5);
    cluster_close(&cluster);
}

/* ---- members ---- */

static struct consensus *consensus_of_leader(struct cluster *cluster)
{
    return raft_node_consensus(leader_of(cluster)->raft);
}

static bool has_come_about(struct cluster *cluster, unsigned unused)
{
    struct consensus_servers servers;
    (void)unused;
    if (leader_of(cluster) == NULL)
        return false;
    struct consensus *consensus = consensus_of_leader(cluster);
    consensus->ops->servers(consensus, &servers);
    return !servers.changing;
}

static enum consensus_role role_of(struct cluster *cluster, uint64_t id)
{
    struct consensus_servers servers;
    struct consensus *consensus = consensus_of_leader(cluster);
    consensus->ops->servers(consensus, &servers);
    for (uint32_t i = 0; i < servers.count; i++)
        if (servers.list[i].id == id)
            return servers.list[i].role;
    return 0;
}

static void step(struct cluster *cluster, enum consensus_step what, uint64_t id)
{
    struct consensus *consensus = consensus_of_leader(cluster);
    assert_int_equal(
        consensus->ops->step(consensus, what, id, cluster->options.servers[id - 1].address), 0);
    /* A second change while the first is under way is refused. */
    assert_int_equal(consensus->ops->step(consensus, CONSENSUS_STEP_REMOVE, 99, NULL), TG_BUSY);
    assert_true(cluster_wait(cluster, has_come_about, 0));
}

static void test_a_server_leaves_and_one_with_nothing_joins(void **state)
{
    (void)state;
    struct cluster cluster;
    struct tg_errmsg msg = {""};
    cluster_open(&cluster, 4096);
    assert_true(cluster_wait(&cluster, has_leader, 0));
    unsigned gone = ((unsigned)(leader_of(&cluster) - cluster.nodes) + 1) % NODES;
    uint64_t id = gone + 1;
    propose_many(&cluster, 0, 300);
    step(&cluster, CONSENSUS_STEP_REMOVE, id);
    assert_int_equal(role_of(&cluster, id), 0);
    node_close(&cluster, gone);
    node_wipe(&cluster.nodes[gone]);
    propose_many(&cluster, 300, 300);

    cluster.options.bootstrap = false;
    cluster.options.join = true;
    assert_int_equal(node_open(&cluster, gone, &msg), 0);
    step(&cluster, CONSENSUS_STEP_ADD, id);
    assert_int_equal(role_of(&cluster, id), CONSENSUS_SPARE);
    step(&cluster, CONSENSUS_STEP_STANDBY, id);
    step(&cluster, CONSENSUS_STEP_VOTER, id); /* raft lets it catch up first */
    assert_int_equal(role_of(&cluster, id), CONSENSUS_VOTER);
    struct consensus *consensus = consensus_of_leader(&cluster);
    assert_int_equal(consensus->ops->step(consensus, CONSENSUS_STEP_VOTER, id, NULL), TG_INVALID);
    assert_int_equal(consensus->ops->step(consensus, CONSENSUS_STEP_REMOVE, 77, NULL), TG_INVALID);
    assert_int_equal(consensus->ops->transfer(consensus, 77), TG_NOT_FOUND);
    assert_int_equal(consensus->ops->transfer(consensus, id), 0);
    assert_true(cluster_wait(&cluster, another_leads,
                             (unsigned)((struct node *)leader_of(&cluster) - cluster.nodes)));
    assert_ptr_equal(leader_of(&cluster), &cluster.nodes[gone]);
    propose_many(&cluster, 600, 5);
    assert_int_equal(cluster.succeeded, 605);
    cluster_close(&cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_leader_whose_clock_runs_ahead_lets_a_fit_one_lead),
        cmocka_unit_test(test_a_leader_that_hears_nothing_of_clocks_waits_a_second_only),
        cmocka_unit_test(test_a_server_leaves_and_one_with_nothing_joins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
