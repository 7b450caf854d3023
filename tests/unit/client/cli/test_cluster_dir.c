/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of a local cluster's directory: its files, ports, and what is not ours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "client/cli/cluster_dir.h"
#include "client/cli/cluster_json.h"
#include "client/cli/cluster_node.h"
#include "tests/lib/test_dir.h"

static struct test_dir dir;

static int setup(void **state)
{
    (void)state;
    test_dir_make(&dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    test_dir_remove(&dir);
    return 0;
}

static void make(const char *name, struct cluster *cluster)
{
    static const struct cli_list more = {{"precommit_timeout_s=2"}, 1};
    const struct cluster_plan plan = {
        .coordinators = 3, .participants = 2, .port_offset = 200, .coordinator_options = &more};
    char path[TEST_PATH_SIZE];
    struct tg_errmsg msg;

    assert_int_equal(cluster_dir_open(test_dir_path(&dir, name, path), true, cluster, &msg), 0);
    assert_int_equal(cluster_dir_make(cluster, &plan, &msg), 0);
}

static void a_cluster_reads_back_as_it_was_written(void **state)
{
    struct cluster cluster;
    struct cluster again;
    struct tg_errmsg msg;

    (void)state;
    make("c", &cluster);
    assert_true(cluster_dir_is_new(&cluster));
    assert_true(cluster_dir_is_forming(&cluster));
    cluster.nodes[1].pid = 4711;
    assert_int_equal(cluster_dir_write(&cluster, &msg), 0);
    cluster_dir_close(&cluster);
    char path[TEST_PATH_SIZE];
    assert_int_equal(cluster_dir_open(test_dir_path(&dir, "c", path), false, &again, &msg), 0);
    assert_int_equal(cluster_dir_read(&again, &msg), 0);
    assert_int_equal(again.count, 5);
    assert_memory_equal(again.nodes, cluster.nodes, 5 * sizeof again.nodes[0]);
    assert_string_equal(again.nodes[4].name, "participant-2");
    assert_int_equal(again.nodes[1].http_port, 8231);
    assert_int_equal(again.nodes[2].raft_port, 9212);
    assert_int_equal(again.nodes[3].http_port, 8240);
    assert_int_equal(again.nodes[4].rpc_port, 8261);
    assert_ptr_equal(cluster_dir_find(&again, "coordinator-3"), &again.nodes[2]);
    assert_null(cluster_dir_find(&again, "coordinator-4"));
    cluster_dir_formed(&again);
    assert_false(cluster_dir_is_forming(&again));
    cluster_dir_close(&again);
}

static void configuration_files_name_all_nodes_and_share_a_secret(void **state)
{
    struct cluster cluster;
    char value[CLUSTER_OPTION_BYTES];
    char secret[CLUSTER_OPTION_BYTES];

    (void)state;
    make("c", &cluster);
    cluster_dir_option(&cluster, &cluster.nodes[0], "coordinators", value);
    assert_string_equal(value, "1=127.0.0.1:9210:9220:8230,2=127.0.0.1:9211:9221:8231,"
                               "3=127.0.0.1:9212:9222:8232");
    cluster_dir_option(&cluster, &cluster.nodes[3], "coordinators", value);
    assert_string_equal(value, "127.0.0.1:9220,127.0.0.1:9221,127.0.0.1:9222");
    cluster_dir_option(&cluster, &cluster.nodes[0], "precommit_timeout_s", value);
    assert_string_equal(value, "2");
    cluster_dir_option(&cluster, &cluster.nodes[3], "precommit_timeout_s", value);
    assert_string_equal(value, "");
    cluster_dir_option(&cluster, &cluster.nodes[0], "cluster_secret", secret);
    cluster_dir_option(&cluster, &cluster.nodes[4], "cluster_secret", value);
    assert_int_equal(strlen(secret), 48);
    assert_string_equal(value, secret);
    cluster_dir_close(&cluster);
}

static void what_is_not_ours_is_left_alone(void **state)
{
    struct cluster cluster;
    struct tg_errmsg msg;
    char path[TEST_PATH_SIZE];

    (void)state;
    test_dir_write(&dir, "precious", "x", 1);
    assert_int_equal(cluster_dir_open(dir.path, true, &cluster, &msg), TG_INVALID);
    cluster_dir_close(&cluster);
    assert_int_equal(cluster_dir_open(dir.path, false, &cluster, &msg), TG_NOT_FOUND);
    cluster_dir_close(&cluster);
    assert_int_not_equal(access(test_dir_path(&dir, "lock", path), F_OK), 0);
    assert_int_equal(cluster_dir_open(test_dir_path(&dir, "nowhere", path), false, &cluster, &msg),
                     TG_NOT_FOUND);
    cluster_dir_close(&cluster);
}

static void damaged_descriptions_are_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "{",
        "[]",
        "{\"coordinators\":[]}",
        "{\"coordinators\":[{\"id\":0,\"pid\":1,\"http\":\"a:1\",\"raft\":\"a:1\",\"rpc\":\"a:1\"}]"
        "}",
        "{\"coordinators\":[{\"id\":1,\"pid\":1,\"http\":\"a:1\",\"raft\":\"a:99999\",\"rpc\":\"a:"
        "1\"}]}",
        "{\"participants\":[{\"id\":1,\"pid\":1,\"http\":\"a\",\"rpc\":\"a:1\"}]}"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct cluster cluster = {.lock_fd = -1};
        struct tg_errmsg msg;

        snprintf(cluster.dir, sizeof cluster.dir, "%s", dir.path);
        test_dir_write(&dir, "cluster.json", texts[i], strlen(texts[i]));
        assert_int_equal(cluster_dir_read(&cluster, &msg), TG_CORRUPT);
    }
}

static void a_port_in_use_is_named(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct cluster_node node = {.name = "participant-1", .rpc_port = 1};
    struct tg_errmsg msg = {{0}};
    char port[16];

    (void)state;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    node.http_port = ntohs(address.sin_port);
    assert_int_equal(cluster_dir_check_ports(&node, &msg), TG_EXISTS);
    snprintf(port, sizeof port, "port %u,", node.http_port);
    assert_non_null(strstr(msg.text, port));
    assert_non_null(strstr(msg.text, "HTTP of participant-1"));
    close(fd);
    assert_int_equal(cluster_dir_check_ports(&node, &msg), 0);
}

/* A recorded process id that belongs to somebody else by now is no node of ours. */
static void a_stranger_s_process_is_never_touched(void **state)
{
    struct cluster cluster;
    struct tg_errmsg msg;
    bool killed;

    (void)state;
    make("c", &cluster);
    cluster.nodes[0].pid = getpid();
    assert_false(cluster_node_runs(&cluster, &cluster.nodes[0]));
    assert_int_equal(cluster_node_kill(&cluster, &cluster.nodes[0], &msg), TG_NOT_FOUND);
    assert_int_equal(cluster_node_stop(&cluster, &cluster.nodes[0], &killed, &msg), 0);
    assert_false(killed);
    assert_int_equal(cluster.nodes[0].pid, 0);
    cluster_dir_close(&cluster);
}

#define DIR_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DIR_TEST(a_cluster_reads_back_as_it_was_written),
        DIR_TEST(configuration_files_name_all_nodes_and_share_a_secret),
        DIR_TEST(what_is_not_ours_is_left_alone),
        DIR_TEST(damaged_descriptions_are_refused),
        DIR_TEST(a_port_in_use_is_named),
        DIR_TEST(a_stranger_s_process_is_never_touched),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
