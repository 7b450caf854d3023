/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of a coordinator over real connections, on a fake consensus. */
#include "coordinator/api/api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>

#include "common/base/base64.h"
#include "common/net/http_client.h"
#include "tests/lib/coordinator_scene.h"

#define PASSWORD "p@s:s/w%rd#1"

struct fixture {
    struct coordinator_scene scene;
    struct loop *loop;
    pthread_t thread;
    struct loop_timer *step;
    struct loop_call stop;
    struct health health;
    struct txn_manager *txns;
    struct query_waits waits;
    struct dispatch dispatch;
    struct leader_link link;
    struct api_options options;
    struct api *api;
    struct http_server *http;
    struct http_client *client;
    char auth[256];
    struct http_reply reply;
};

static void step(void *data)
{
    struct fixture *f = data;

    fake_consensus_run(f->scene.fake);
}

static void *run_loop(void *data)
{
    loop_run(((struct fixture *)data)->loop);
    return NULL;
}

static void applied(void *data)
{
    txn_manager_run(((struct fixture *)data)->txns);
}

static void make_auth(struct fixture *f, const char *credentials)
{
    struct buf text = BUF_INIT;

    base64_encode(slice_str(credentials), &text);
    snprintf(f->auth, sizeof f->auth, "Authorization: Basic %s\r\n", buf_cstr(&text));
    buf_close(&text);
}

static int open_fixture(void **state, bool strict)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct http_server_options options = {.host = "127.0.0.1",
                                          .connections_max = 16,
                                          .head_timeout_ms = 5000,
                                          .idle_timeout_ms = 5000,
                                          .drain_timeout_ms = 1000};
    struct tg_errmsg msg;
    char address[64];

    coordinator_scene_open(&f->scene);
    health_init(&f->health, 5000, clock_monotonic_ms(&f->scene.clock.clock));
    assert_int_equal(loop_open(&f->loop, &msg), 0);
    assert_int_equal(txn_manager_open(f->scene.consensus, &f->scene.clock.clock, &f->txns), 0);
    fake_consensus_set_observer(f->scene.fake,
                                &(struct consensus_observer){.applied = applied, .data = f});
    f->dispatch = (struct dispatch){.consensus = f->scene.consensus,
                                    .txns = f->txns,
                                    .health = &f->health,
                                    .clock = &f->scene.clock.clock,
                                    .waits = &f->waits,
                                    .self = FAKE_CONSENSUS_ID,
                                    .peer_count = 1};
    f->dispatch.peers[0].id = FAKE_CONSENSUS_ID;
    assert_int_equal(leader_link_open(&f->link, f->loop, &f->dispatch, "s", &msg), 0);
    f->options = (struct api_options){.root_password = PASSWORD,
                                      .strict_expect = strict,
                                      .call_timeout_ms = 300,
                                      .txn_timeout_ms = 300};
    assert_int_equal(api_open(&f->link, &f->options, random_system(), &f->api), 0);
    assert_int_equal(
        http_server_open(f->loop, &options,
                         &(struct http_server_handlers){.on_request = api_handle, .ctx = f->api},
                         &f->http, &msg),
        0);
    f->step = loop_timer_open(f->loop, step, f);
    loop_timer_start(f->step, 1, 1);
    snprintf(address, sizeof address, "127.0.0.1:%u", http_server_port(f->http));
    assert_int_equal(http_client_open(address, 5000, &f->client, &msg), 0);
    make_auth(f, "root:" PASSWORD);
    assert_int_equal(pthread_create(&f->thread, NULL, run_loop, f), 0);
    *state = f;
    return 0;
}

static int setup(void **state)
{
    return open_fixture(state, false);
}

static int setup_strict(void **state)
{
    return open_fixture(state, true);
}

static void http_closed(void *data)
{
    struct fixture *f = data;

    loop_timer_close(f->step);
    txn_manager_close(f->txns);
    fake_consensus_set_observer(f->scene.fake, &(struct consensus_observer){0});
    coordinator_scene_close(&f->scene);
    leader_link_close(&f->link);
    api_close(f->api);
    loop_stop(f->loop);
}

static void stop(struct loop_call *call)
{
    struct fixture *f = call->data;

    http_server_close(f->http, 100, http_closed, f);
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    http_client_close(f->client);
    http_reply_close(&f->reply);
    f->stop = (struct loop_call){.run = stop, .data = f};
    loop_post(f->loop, &f->stop);
    pthread_join(f->thread, NULL);
    loop_close(f->loop);
    health_close(&f->health);
    free(f);
    return 0;
}

static const char *ask(struct fixture *f, const char *method, const char *target,
                       const char *headers, const char *body)
{
    char all[1024];
    struct tg_errmsg msg = {{0}};

    http_reply_close(&f->reply);
    memset(&f->reply, 0, sizeof f->reply);
    snprintf(all, sizeof all, "%s%s", f->auth, headers);
    if (http_client_request(f->client, method, target, all, body, body != NULL ? strlen(body) : 0,
                            &f->reply, &msg) != 0)
        return NULL;
    return buf_cstr(&f->reply.body);
}

static void expect(struct fixture *f, const char *method, const char *target, const char *body,
                   const char *answer)
{
    assert_string_equal(ask(f, method, target, "", body), answer);
    assert_int_equal(f->reply.status, 200);
}

#define ENVELOPE(data) "{\"msg\":\"success\",\"code\":0,\"data\":" data ",\"count\":0}"

static void test_questions_come_in_the_envelope(void **state)
{
    struct fixture *f = *state;

    expect(f, "GET", "/api/d/t/_count", NULL, ENVELOPE("{\"status\":200,\"size\":0}"));
    expect(f, "GET", "/api/d/get_load_state?label=x", NULL, ENVELOPE("\"UNKNOWN\""));
    expect(f, "GET", "/api/d/get_load_state", NULL,
           "{\"msg\":\"Bad Request\",\"code\":403,\"data\":\"No label selected\",\"count\":0}");
    expect(f, "POST", "/api/d/_cancel?label=x", NULL,
           "{\"msg\":\"Error\",\"code\":1,\"data\":\"errCode = 2, detailMessage = transaction not "
           "found, label=x\",\"count\":0}");
    expect(f, "GET", "/api/d/no/_schema", NULL,
           "{\"msg\":\"Error\",\"code\":1,\"data\":\"errCode = 2, detailMessage = Unknown table "
           "'no'\",\"count\":0}");
    assert_non_null(strstr(ask(f, "GET", "/api/internal/d/t/_schema", "", NULL), "DUP_KEYS"));
    assert_non_null(strstr(ask(f, "GET", "/api/backends?is_alive=true", "", NULL),
                           "{\"ip\":\"127.0.0.1\",\"http_port\":8040,\"is_alive\":true}"));
    assert_non_null(strstr(ask(f, "GET", "/api/d/t/_timeline", "", NULL), "\"instants\":[]"));
    assert_non_null(strstr(ask(f, "GET", "/api/cluster", "", NULL), "\"answered_by\":1"));
}

static void test_statements_are_json_bodies(void **state)
{
    struct fixture *f = *state;

    assert_non_null(strstr(ask(f, "POST", "/api/query/default_cluster/information_schema", "",
                               "{\"stmt\":\"SHOW DATABASES\"}"),
                           "\"data\":[[\"d\"]]"));
    assert_non_null(strstr(
        ask(f, "POST", "/api/query/default_cluster/d", "", "{\"stmt\": \"DESC t\"}"), "\"k\""));
    assert_non_null(
        strstr(ask(f, "POST", "/api/query/default_cluster/d", "", "{}"), "\"code\":403"));
    assert_non_null(
        strstr(ask(f, "POST", "/api/query/default_cluster/d", "", "no"), "\"code\":403"));
}

static void test_who_is_not_root_is_denied(void **state)
{
    struct fixture *f = *state;

    make_auth(f, "root:wrong");
    expect(f, "GET", "/api/d/t/_count", NULL,
           "{\"msg\":\"Unauthorized\",\"code\":401,\"data\":\"Access denied for user "
           "'root@127.0.0.1' (using password: YES)\",\"count\":0}");
    expect(f, "PUT", "/api/d/t/_stream_load", NULL,
           "{\"status\":\"FAILED\",\"msg\":\"Access denied for user 'root@127.0.0.1' (using "
           "password: YES)\"}");
    ask(f, "GET", "/api/d/t/_scan", "", NULL); /* who asks for rows must not take this for one */
    assert_int_equal(f->reply.status, 401);
    f->auth[0] = '\0';
    expect(
        f, "GET", "/api/d/t/_count", NULL,
        "{\"msg\":\"Unauthorized\",\"code\":401,\"data\":\"Need auth information.\",\"count\":0}");
    assert_non_null(strstr(ask(f, "GET", "/api/bootstrap", "", NULL), "\"msg\":\"success\""));
    expect(f, "GET", "/api/health", NULL,
           ENVELOPE("{\"online_backend_num\":3,\"total_backend_num\":3}"));
    assert_non_null(strstr(ask(f, "GET", "/", "", NULL), "coordinator"));
    assert_int_equal(f->reply.status, 200);
}

static void test_a_load_is_sent_to_a_participant_with_its_credentials(void **state)
{
    struct fixture *f = *state;
    char location[512];

    ask(f, "PUT", "/api/d/t%C3%A4/_stream_load", "Expect: 100-continue\r\n", NULL);
    assert_int_equal(f->reply.status, 307);
    assert_int_equal(http_reply_header(&f->reply, "Location", location, sizeof location), 0);
    assert_string_equal(location, "http://root:p%40s%3As%2Fw%25rd%231@127.0.0.1:8040"
                                  "/api/d/t%C3%A4/_stream_load?");
    assert_int_equal(f->reply.body.len, 0);
    ask(f, "PUT", "/api/d/t/_stream_load?x=1", "", "1\n2\n"); /* sends its body at once */
    assert_int_equal(f->reply.status, 307);
    assert_int_equal(http_reply_header(&f->reply, "Location", location, sizeof location), 0);
    assert_non_null(strstr(location, "@127.0.0.1:8041/api/d/t/_stream_load?x=1")); /* in turn */
    ask(f, "GET", "/api/d/t/_scan?limit=3", "", NULL);
    assert_int_equal(f->reply.status, 307);
}

static void test_strict_wants_an_expect_header(void **state)
{
    struct fixture *f = *state;

    expect(f, "PUT", "/api/d/t/_stream_load", NULL,
           "{\"status\":\"FAILED\",\"msg\":\"There is no 100-continue header\"}");
    ask(f, "PUT", "/api/d/t/_stream_load", "Expect: anything\r\n", NULL);
    assert_int_equal(f->reply.status, 307);
}

static void test_the_dead_are_not_chosen(void **state)
{
    struct fixture *f = *state;
    char location[512];

    struct msg_heartbeat message = {.node = 3};
    fake_clock_advance_ms(&f->scene.clock, 5001);
    health_heard(&f->health, &message, clock_monotonic_ms(&f->scene.clock.clock));
    for (int i = 0; i < 4; i++) {
        ask(f, "PUT", "/api/d/t/_stream_load", "", NULL);
        assert_int_equal(http_reply_header(&f->reply, "Location", location, sizeof location), 0);
        assert_non_null(strstr(location, ":8042/"));
    }
    fake_clock_advance_ms(&f->scene.clock, 5001);
    assert_non_null(strstr(ask(f, "PUT", "/api/d/t/_stream_load", "", NULL),
                           "No backend load available., policy:"));
    assert_non_null(strstr(ask(f, "GET", "/api/d/t/_scan", "", NULL), "no participant is alive"));
    assert_int_equal(f->reply.status, 503);
}

static void test_two_phase_is_executed_here(void **state)
{
    struct fixture *f = *state;
    const char *text =
        ask(f, "PUT", "/api/d/_stream_load_2pc", "txn_operation: begin\r\nlabel: l\r\n", NULL);

    assert_string_equal(text, "{\n    \"status\": \"Success\",\n    \"msg\": \"transaction [1] "
                              "begin successfully.\",\n    \"txn_id\": \"1\",\n    \"label\": "
                              "\"l\"\n}\n");
    text = ask(f, "PUT", "/api/d/t/_stream_load_2pc",
               "txn_operation: abort\r\ntxn_id: 1\r\nExpect: 100-continue\r\n", NULL);
    assert_non_null(strstr(text, "transaction [1] abort successfully."));
    text = ask(f, "PUT", "/api/d/_stream_load_2pc", "txn_operation: commit\r\ntxn_id: 1\r\n", NULL);
    assert_non_null(strstr(text, "transaction [1] is already aborted. abort reason: User Abort"));
    make_auth(f, "root:wrong");
    text = ask(f, "PUT", "/api/d/_stream_load_2pc", "txn_operation: commit\r\ntxn_id: 1\r\n", NULL);
    assert_non_null(strstr(text, "\"FAILED\""));
}

static void lose(struct loop_call *call)
{
    struct fixture *f = call->data;

    fake_consensus_set_leader(f->scene.fake, false);
}

static void test_without_a_leader_it_is_503(void **state)
{
    struct fixture *f = *state;
    struct loop_call call = {.run = lose, .data = f};

    loop_post(f->loop, &call);
    assert_non_null(strstr(ask(f, "GET", "/api/d/t/_count", "", NULL), "\"code\":500"));
    assert_int_equal(f->reply.status, 503);
    assert_non_null(strstr(
        ask(f, "PUT", "/api/d/_stream_load_2pc", "txn_operation: commit\r\ntxn_id: 1\r\n", NULL),
        "no leading coordinator"));
    assert_int_equal(f->reply.status, 503);
    assert_non_null(strstr(ask(f, "GET", "/api/bootstrap", "", NULL), "not ready"));
    assert_non_null(strstr(ask(f, "GET", "/api/cluster", "", NULL), "\"cluster\":null"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_questions_come_in_the_envelope),
        TEST(test_statements_are_json_bodies),
        TEST(test_who_is_not_root_is_denied),
        TEST(test_a_load_is_sent_to_a_participant_with_its_credentials),
        cmocka_unit_test_setup_teardown(test_strict_wants_an_expect_header, setup_strict, teardown),
        TEST(test_the_dead_are_not_chosen),
        TEST(test_two_phase_is_executed_here),
        TEST(test_without_a_leader_it_is_503),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
