/* SPDX-License-Identifier: Apache-2.0 */
/* One that is left of three goes on alone: its configuration is rewritten, its log stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <uv.h>

#include "coordinator/consensus/raft_node.h"
#include "coordinator/consensus/raft_recover.h"
#include "tests/lib/test_dir.h"

enum { WAIT_MS_MAX = 30000 };

static struct test_dir root;
static char dir[TEST_PATH_SIZE];
static struct loop *loop;
static struct raft_node *node;

static int begin(void **state)
{
    (void)state;
    test_dir_make(&root);
    test_dir_path(&root, "raft", dir);
    assert_int_equal(loop_open(&loop, NULL), 0);
    return 0;
}

static int end(void **state)
{
    (void)state;
    loop_close(loop);
    test_dir_remove(&root);
    return 0;
}

static void open_node(bool bootstrap)
{
    struct raft_node_options options;
    struct tg_errmsg msg = {""};

    raft_node_options_init(&options);
    options.id = 2;
    options.dir = dir;
    options.listen_address = "127.0.0.1:0";
    options.server_count = 3;
    for (unsigned i = 0; i < 3; i++) {
        options.servers[i].id = i + 1;
        snprintf(options.servers[i].address, ADDRESS_BYTES, "127.0.0.1:%u", i + 1);
    }
    options.bootstrap = bootstrap;
    options.cluster_secret = "secret";
    options.election_timeout_ms = 200;
    options.heartbeat_ms = 30;
    options.disk_reserve_bytes = 1024;
    if (raft_node_open(loop, &options, clock_system(), NULL, &node, &msg) != 0)
        fail_msg("%s", msg.text);
    if (raft_node_start(node, &msg) != 0)
        fail_msg("%s", msg.text);
}

static void on_closed(void *data)
{
    *(bool *)data = true;
}

static void close_node(void)
{
    bool closed = false;

    raft_node_close(node, on_closed, &closed);
    while (!closed)
        uv_run(loop_uv(loop), UV_RUN_ONCE);
}

static bool leads_within(uint64_t ms)
{
    uint64_t until = uv_hrtime() / 1000000 + ms;

    while (!consensus_is_leader(raft_node_consensus(node)) && uv_hrtime() / 1000000 < until)
        uv_run(loop_uv(loop), UV_RUN_ONCE);
    return consensus_is_leader(raft_node_consensus(node));
}

static struct consensus_servers servers_now(void)
{
    struct consensus_servers servers;
    struct consensus *consensus = raft_node_consensus(node);

    consensus->ops->servers(consensus, &servers);
    return servers;
}

static void test_one_of_three_becomes_all(void **state)
{
    struct raft_recover recover = {.id = 2, .address = "127.0.0.1:2", .dir = dir};
    struct tg_errmsg msg = {""};

    (void)state;
    open_node(true);
    assert_false(leads_within(1500)); /* the others are lost */
    assert_int_equal(servers_now().count, 3);
    close_node();

    assert_int_equal(raft_recover_alone(&recover, &msg), 0);
    assert_int_equal(recover.last_index, 1);
    assert_int_equal(recover.last_term, 1);
    open_node(false);
    assert_false(leads_within(1000)); /* looking has changed nothing */
    close_node();

    recover.write = true;
    assert_int_equal(raft_recover_alone(&recover, &msg), 0);
    open_node(false);
    assert_true(leads_within(WAIT_MS_MAX));
    struct consensus_servers servers = servers_now();
    assert_int_equal(servers.count, 1);
    assert_int_equal(servers.list[0].id, 2);
    assert_int_equal(servers.list[0].role, CONSENSUS_VOTER);
    close_node();
    recover.write = false;
    assert_int_equal(raft_recover_alone(&recover, &msg), 0);
    assert_true(recover.last_index >= 2);
}

static void test_without_a_log_there_is_nothing_to_go_on_from(void **state)
{
    struct raft_recover recover = {.id = 2, .address = "127.0.0.1:2", .dir = dir, .write = true};
    struct tg_errmsg msg = {""};

    (void)state;
    assert_int_equal(raft_recover_alone(&recover, &msg), TG_IO); /* no directory */
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_int_equal(raft_recover_alone(&recover, &msg), TG_REFUSED);
    assert_non_null(strstr(msg.text, "no log"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_of_three_becomes_all, begin, end),
        cmocka_unit_test_setup_teardown(test_without_a_log_there_is_nothing_to_go_on_from, begin,
                                        end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
