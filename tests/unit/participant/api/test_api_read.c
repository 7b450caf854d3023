/* SPDX-License-Identifier: Apache-2.0 */
/* Reads over HTTP: answers, errors before and in the middle, clients that leave or dawdle, changes
 * piece by piece, and the end of the node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/lib/read_api.h"
#include "tests/lib/test_http.h"

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct read_api));
    read_api_open(*state, true, 3, 2);
    return 0;
}

static int setup_duplicate(void **state)
{
    *state = calloc(1, sizeof(struct read_api));
    read_api_open(*state, false, 2, 2);
    return 0;
}

static int teardown(void **state)
{
    read_api_close(*state);
    free(*state);
    return 0;
}

static void ask(struct read_api *f, const char *target, struct test_answer *answer)
{
    struct test_call call = {.port = f->port, .target = target};

    test_http(&call, answer);
}

static void expect(struct read_api *f, const char *target, int status, const char *body)
{
    struct test_answer answer;

    ask(f, target, &answer);
    if (answer.status != status || strcmp(answer.body, body) != 0)
        fail_msg("%s: %d '%s'", target, answer.status, answer.body);
    test_answer_close(&answer);
}

static void expect_header(const struct test_answer *answer, const char *name, const char *expected)
{
    char value[128];

    assert_string_equal(test_answer_header(answer, name, value, sizeof value), expected);
}

static void load_three(struct read_api *f)
{
    static const struct made_row one[] = {{1, "a", 0}, {2, "b", 0}, {3, NULL, 0}};
    static const struct made_row two[] = {{2, "B", 0}, {4, "x,\"y\"", 0}};
    static const struct made_row three[] = {{1, "", 1}};

    read_api_load(f, one, 3, 2);
    read_api_load(f, two, 2, 2);
    read_api_load(f, three, 1, 2);
}

/* Rows enough that an answer is streamed: about 2 MB of text, of which damage can hit the last. */
static void load_large(struct read_api *f, int32_t rows)
{
    struct made_row *made = calloc((size_t)rows, sizeof *made);

    for (int32_t i = 0; i < rows; i++)
        made[i] = (struct made_row){i, i == rows - 1 ? "needle-at-end" : "0123456789", false};
    read_api_load(f, made, (uint32_t)rows, 8192);
    free(made);
}

/* ---- answers ---- */

static void test_a_small_answer_is_whole_and_says_which_version_it_shows(void **state)
{
    struct read_api *f = *state;
    struct test_answer answer;

    load_three(f);
    ask(f, "/api/db/t/_scan?order=key", &answer);
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer.body, "{\"k\":2,\"v\":\"B\"}\n{\"k\":3,\"v\":null}\n"
                                     "{\"k\":4,\"v\":\"x,\\\"y\\\"\"}\n");
    expect_header(&answer, "X-Tidegate-Version", "3");
    expect_header(&answer, "X-Tidegate-As-Of", "3000");
    expect_header(&answer, "Content-Type", "application/x-ndjson");
    expect_header(&answer, "Transfer-Encoding", "");
    expect_header(&answer, "X-Tidegate-Token", "");
    test_answer_close(&answer);
    ask(f, "/api/db/t/_scan?order=key&format=csv&version=2", &answer);
    assert_string_equal(answer.body, "1,a\n2,B\n3,\\N\n4,\"x,\"\"y\"\"\"\n");
    expect_header(&answer, "X-Tidegate-Version", "2");
    expect_header(&answer, "Content-Type", "text/csv; charset=utf-8");
    test_answer_close(&answer);
}

static void test_versions_and_times_choose_what_is_seen(void **state)
{
    struct read_api *f = *state;

    load_three(f);
    expect(f, "/api/db/t/_scan?version=0", 200, "");
    expect(f, "/api/db/t/_scan?as_of=999", 200, "");
    expect(f, "/api/db/t/_scan?as_of=1000&order=key&columns=k", 200,
           "{\"k\":1}\n{\"k\":2}\n{\"k\":3}\n");
    expect(f, "/api/db/t/_scan?as_of=1999&order=key&columns=k", 200,
           "{\"k\":1}\n{\"k\":2}\n{\"k\":3}\n");
    expect(f, "/api/db/t/_get?key=2&as_of=2000", 200, "{\"k\":2,\"v\":\"B\"}\n");
    expect(f, "/api/db/t/_get?key=2&version=1", 200, "{\"k\":2,\"v\":\"b\"}\n");
    expect(f, "/api/db/t/_get?key=1", 200, "");
    expect(f, "/api/db/t/_get?key=1&include_deleted=true", 200,
           "{\"_deleted\":true,\"k\":1,\"v\":\"\"}\n");
    expect(f, "/api/db/t/_range?from=2&to=4&columns=v,k", 200,
           "{\"v\":\"B\",\"k\":2}\n{\"v\":null,\"k\":3}\n");
    expect(f, "/api/db/t/_range?from=2&limit=1", 200, "{\"k\":2,\"v\":\"B\"}\n");
}

static void test_errors_before_the_first_row_are_answers(void **state)
{
    struct read_api *f = *state;
    struct test_answer answer;

    load_three(f);
    expect(f, "/api/db/t/_scan?limit=x", 400,
           "{\"msg\":\"Error\",\"code\":400,\"data\":\"parameter limit must be a number up to "
           "4294967295\",\"count\":0}\n");
    expect(f, "/api/db/t/_scan?columns=zz", 400,
           "{\"msg\":\"Error\",\"code\":400,\"data\":\"there is no column 'zz'\",\"count\":0}\n");
    expect(
        f, "/api/db/other/_scan", 404,
        "{\"msg\":\"Not Found\",\"code\":404,\"data\":\"so says the coordinator\",\"count\":0}\n");
    ask(f, "/api/db/t/_scan?version=4", &answer);
    assert_int_equal(answer.status, tg_err_http_status(TG_NOT_YET));
    test_answer_close(&answer);
    f->point_err = TG_EXPIRED;
    ask(f, "/api/db/t/_scan?version=1", &answer);
    assert_int_equal(answer.status, 410);
    test_answer_close(&answer);
}

static void test_a_damaged_table_is_an_error_not_a_shorter_answer(void **state)
{
    struct read_api *f = *state;
    struct test_answer answer;
    static const struct made_row rows[] = {{1, "a", 0}, {2, "needle-small", 0}};

    read_api_load(f, rows, 2, 1);
    for (unsigned i = 0; i < 2; i++)
        assert_int_not_equal(read_node_damage(&f->nodes[i], "needle-small"), 0);
    ask(f, "/api/db/t/_scan", &answer);
    assert_int_equal(answer.status, 500);
    assert_non_null(strstr(answer.body, "rowset 1, block"));
    assert_null(strstr(answer.body, "\"k\":1"));
    test_answer_close(&answer);
}

/* ---- streams ---- */

static void test_a_large_answer_is_streamed_whole(void **state)
{
    struct read_api *f = *state;
    struct test_answer answer;
    struct buf expected = BUF_INIT;

    load_large(f, 100000);
    for (int32_t i = 0; i < 100000; i++)
        buf_printf(&expected, "%d,%s\n", i, i == 99999 ? "needle-at-end" : "0123456789");
    ask(f, "/api/db/t/_scan?order=key&format=csv", &answer);
    assert_int_equal(answer.status, 200);
    expect_header(&answer, "Transfer-Encoding", "chunked");
    expect_header(&answer, "X-Tidegate-Version", "1");
    assert_int_equal(answer.body_len, expected.len);
    assert_memory_equal(answer.body, expected.data, expected.len);
    test_answer_close(&answer);
    buf_close(&expected);
}

static void test_an_error_in_the_middle_breaks_the_answer_off(void **state)
{
    struct read_api *f = *state;
    struct test_call call = {.port = f->port, .target = "/api/db/t/_scan?order=key"};
    struct test_answer answer;

    load_large(f, 200000);
    for (unsigned i = 0; i < 2; i++)
        assert_int_not_equal(read_node_damage(&f->nodes[i], "needle-at-end"), 0);
    enum test_http_end end = test_http_try(&call, &answer);
    assert_true(end == TEST_HTTP_CLOSED || end == TEST_HTTP_RESET);
    test_answer_close(&answer);
    call.target = "/api/db/t/_get?key=5"; /* the node goes on */
    test_http(&call, &answer);
    assert_int_equal(answer.status, 200);
    test_answer_close(&answer);
}

static void test_a_node_that_fails_in_the_middle_is_not_noticed(void **state)
{
    struct read_api *f = *state;
    struct test_answer answer;

    load_large(f, 200000);
    assert_int_not_equal(read_node_damage(&f->nodes[0], "needle-at-end"), 0);
    ask(f, "/api/db/t/_scan?order=key&format=csv", &answer);
    assert_int_equal(answer.status, 200);
    assert_non_null(strstr(answer.body + answer.body_len - 40, "199999,needle-at-end\n"));
    test_answer_close(&answer);
}

static void test_clients_that_leave_in_the_middle_free_their_readers(void **state)
{
    struct read_api *f = *state;
    struct test_answer answer;

    load_large(f, 300000);
    /* More than there are threads: if one were held, the last question would wait for ever. */
    for (unsigned i = 0; i < 6; i++) {
        int fd = test_socket_open(f->port, false);
        char some[1000];

        test_socket_send_text(fd, "GET /api/db/t/_scan HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_true(read(fd, some, sizeof some) > 0);
        test_socket_close(fd);
    }
    uint64_t before = clock_monotonic_ms(clock_system());
    ask(f, "/api/db/t/_get?key=7", &answer);
    assert_int_equal(answer.status, 200);
    assert_true(clock_monotonic_ms(clock_system()) - before < 5000);
    test_answer_close(&answer);
}

static void test_a_client_that_left_before_the_version_was_known_costs_nothing(void **state)
{
    struct read_api *f = *state;

    load_three(f);
    f->hold = true;
    int fd = test_socket_open(f->port, false);
    test_socket_send_text(fd, "GET /api/db/t/_scan HTTP/1.1\r\nHost: h\r\n\r\n");
    for (unsigned held = 0; held == 0; usleep(1000)) {
        pthread_mutex_lock(&f->lock);
        held = f->held_count;
        pthread_mutex_unlock(&f->lock);
    }
    test_socket_close(fd);
    /* The answer never comes; the end of the fixture ends the read. */
}

/* ---- changes ---- */

static void test_changes_tell_what_each_version_did(void **state)
{
    struct read_api *f = *state;
    struct test_answer answer;

    static const struct made_row one = {1, "a", 0};
    static const struct made_row gone = {1, "", 1};
    read_api_load(f, &one, 1, 1);
    read_api_load(f, &gone, 1, 1);
    read_api_truncate(f);
    read_api_load(f, &one, 1, 1);
    read_api_truncate(f);
    ask(f, "/api/db/t/_changes?after=0", &answer);
    assert_string_equal(
        answer.body, "{\"_version\":1,\"_time_us\":1000,\"_op\":\"upsert\",\"k\":1,\"v\":\"a\"}\n"
                     "{\"_version\":2,\"_time_us\":2000,\"_op\":\"delete\",\"k\":1,\"v\":\"\"}\n"
                     "{\"_version\":3,\"_time_us\":3000,\"_op\":\"truncate\"}\n"
                     "{\"_version\":4,\"_time_us\":4000,\"_op\":\"upsert\",\"k\":1,\"v\":\"a\"}\n"
                     "{\"_version\":5,\"_time_us\":5000,\"_op\":\"truncate\"}\n");
    expect_header(&answer, "X-Tidegate-Version", "5");
    expect_header(&answer, "X-Tidegate-Token", "1.1.5.0");
    test_answer_close(&answer);
}

static void test_bounds_of_changes_are_half_open(void **state)
{
    struct read_api *f = *state;

    load_three(f);
    expect(f, "/api/db/t/_changes?after=1&until=2&format=csv&columns=k", 200,
           "2,2000,upsert,2\n2,2000,upsert,4\n");
    expect(f, "/api/db/t/_changes?after=2&until=2", 200, "");
    expect(f, "/api/db/t/_changes?after=3&until=1", 200, "");
    expect(f, "/api/db/t/_changes?after=2&format=csv", 200, "3,3000,delete,1,\"\"\n");
}

/* Every piece but the last may be as small as one row; together they are the whole, each row once.
 */
static void check_pieces(struct read_api *f, unsigned limit)
{
    struct test_answer whole, piece;
    struct buf text = BUF_INIT;
    char token[64] = "";

    ask(f, "/api/db/t/_changes?after=0", &whole);
    for (unsigned asked = 0;; asked++) {
        char target[160];

        assert_true(asked < 200);
        if (token[0] == 0)
            snprintf(target, sizeof target, "/api/db/t/_changes?after=0&limit=%u", limit);
        else
            snprintf(target, sizeof target, "/api/db/t/_changes?token=%s&limit=%u", token, limit);
        ask(f, target, &piece);
        assert_int_equal(piece.status, 200);
        buf_append(&text, piece.body, piece.body_len);
        test_answer_header(&piece, "X-Tidegate-Token", token, sizeof token);
        bool over = piece.body_len == 0;
        test_answer_close(&piece);
        if (over)
            break;
    }
    assert_string_equal(buf_cstr(&text), whole.body);
    char expected[64];
    snprintf(expected, sizeof expected, "1.1.%lu.0", f->table.version);
    assert_string_equal(token, expected);
    test_answer_close(&whole);
    buf_close(&text);
}

static void test_limits_and_tokens_give_each_row_once(void **state)
{
    struct read_api *f = *state;

    for (unsigned n = 0; n < 8; n++) {
        struct made_row rows[9];

        for (int32_t k = 0; k < 9; k++)
            rows[k] = (struct made_row){k, "v", k % 4 == 3};
        if (n == 3 || n == 4)
            read_api_truncate(f);
        else
            read_api_load(f, rows, 1 + n, 2);
    }
    for (unsigned limit = 1; limit < 12; limit++)
        check_pieces(f, limit);
}

static void test_a_token_in_the_middle_of_a_version_survives_an_earlier_bound(void **state)
{
    struct read_api *f = *state;
    struct test_answer answer;

    load_three(f);
    ask(f, "/api/db/t/_changes?token=1.1.0.2&until=0", &answer);
    assert_string_equal(answer.body, "");
    expect_header(&answer, "X-Tidegate-Token", "1.1.0.2");
    test_answer_close(&answer);
}

static void test_a_token_of_another_table_is_refused(void **state)
{
    struct read_api *f = *state;
    struct test_answer answer;

    load_three(f);
    ask(f, "/api/db/t/_changes?token=1.2.1.0", &answer);
    assert_int_equal(answer.status, 400);
    assert_non_null(strstr(answer.body, "the token is of another table"));
    test_answer_close(&answer);
}

static void test_a_misspelt_parameter_is_refused(void **state)
{
    static const char *const targets[] = {
        "/api/db/t/_scan?versoin=1", "/api/db/t/_get?key=1&asof=5", "/api/db/t/_range?form=1",
        "/api/db/t/_changes?after=0&order=key", "/api/db/t/_scan?key=1"};
    struct read_api *f = *state;
    struct test_answer answer;

    load_three(f);
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        ask(f, targets[i], &answer);
        assert_int_equal(answer.status, 400);
        assert_non_null(strstr(answer.body, "unknown parameter '"));
        assert_non_null(strstr(answer.body, "known are version, as_of"));
        test_answer_close(&answer);
    }
}

struct late_load {
    struct read_api *api;
    pthread_t thread;
    unsigned after_ms;
};

static void *load_late(void *data)
{
    static const struct made_row row = {5, "late", 0};
    struct late_load *late = data;

    usleep(late->after_ms * 1000);
    read_api_load(late->api, &row, 1, 1);
    return NULL;
}

static void test_a_long_poll_answers_as_soon_as_there_is_something(void **state)
{
    struct read_api *f = *state;
    struct late_load late = {.api = f, .after_ms = 300};

    load_three(f);
    pthread_create(&late.thread, NULL, load_late, &late);
    uint64_t before = clock_monotonic_ms(clock_system());
    expect(f, "/api/db/t/_changes?after=3&wait_ms=20000&format=csv", 200, "4,4000,upsert,5,late\n");
    uint64_t took = clock_monotonic_ms(clock_system()) - before;
    assert_in_range(took, 200, 10000);
    pthread_join(late.thread, NULL);
}

static void test_a_long_poll_ends_empty_when_its_time_is_over(void **state)
{
    struct read_api *f = *state;
    struct test_answer answer;

    load_three(f);
    uint64_t before = clock_monotonic_ms(clock_system());
    ask(f, "/api/db/t/_changes?after=3&wait_ms=400", &answer);
    assert_in_range(clock_monotonic_ms(clock_system()) - before, 350, 5000);
    assert_string_equal(answer.body, "");
    expect_header(&answer, "X-Tidegate-Token", "1.1.3.0");
    test_answer_close(&answer);
    /* With an end that is reached there is nothing to wait for. */
    before = clock_monotonic_ms(clock_system());
    expect(f, "/api/db/t/_changes?after=3&until=3&wait_ms=20000", 200, "");
    assert_true(clock_monotonic_ms(clock_system()) - before < 5000);
}

static void test_inserts_of_a_table_that_keeps_every_row(void **state)
{
    struct read_api *f = *state;
    static const struct made_row rows[] = {{1, "a", 0}, {1, "a", 0}};

    read_api_load(f, rows, 2, 1);
    expect(f, "/api/db/t/_changes?after=0&format=csv", 200,
           "1,1000,insert,1,a\n1,1000,insert,1,a\n");
    expect(f, "/api/db/t/_scan?format=csv", 200, "1,a\n1,a\n");
    expect(f, "/api/db/t/_get?key=1&format=csv", 200, "1,a\n1,a\n");
}

/* ---- many at once, and the end ---- */

struct reader {
    struct read_api *api;
    pthread_t thread;
    unsigned bad;
};

static void *read_often(void *data)
{
    struct reader *reader = data;

    for (unsigned i = 0; i < 40; i++) {
        char target[64];
        struct test_call call = {.port = reader->api->port, .target = target};
        struct test_answer answer;

        snprintf(target, sizeof target, "/api/db/t/_get?key=%u&version=1&format=csv", i % 4);
        if (test_http_try(&call, &answer) != TEST_HTTP_ANSWERED || answer.status != 200)
            reader->bad++;
        test_answer_close(&answer);
    }
    return NULL;
}

static void test_many_clients_read_while_versions_are_made(void **state)
{
    struct read_api *f = *state;
    struct reader readers[4];
    static const struct made_row row = {2, "again", 0};

    load_three(f);
    for (unsigned i = 0; i < 4; i++) {
        readers[i] = (struct reader){.api = f};
        pthread_create(&readers[i].thread, NULL, read_often, &readers[i]);
    }
    for (unsigned i = 0; i < 30; i++)
        read_api_load(f, &row, 1, 1);
    for (unsigned i = 0; i < 4; i++) {
        pthread_join(readers[i].thread, NULL);
        assert_int_equal(readers[i].bad, 0);
    }
}

static void send_request(struct read_api *f, int *fd, const char *target)
{
    char text[200];

    *fd = test_socket_open(f->port, false);
    snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", target);
    test_socket_send_text(*fd, text);
}

static void expect_points(struct read_api *f, unsigned count)
{
    for (unsigned points = 0; points < count; usleep(1000)) {
        pthread_mutex_lock(&f->lock);
        points = f->points;
        pthread_mutex_unlock(&f->lock);
    }
}

static void test_the_node_ends_while_reads_wait_in_every_phase(void **state)
{
    struct read_api *f = *state;
    int polling, asking[3], streaming;

    load_large(f, 300000);
    send_request(f, &streaming, "/api/db/t/_scan"); /* nobody takes its rows */
    send_request(f, &polling, "/api/db/t/_changes?after=1&wait_ms=60000");
    expect_points(f, 2);
    pthread_mutex_lock(&f->lock);
    f->hold = true;
    pthread_mutex_unlock(&f->lock);
    for (unsigned i = 0; i < 3; i++)
        send_request(f, &asking[i], "/api/db/t/_scan");
    for (unsigned held = 0; held < 3; usleep(1000)) {
        pthread_mutex_lock(&f->lock);
        held = f->held_count;
        pthread_mutex_unlock(&f->lock);
    }
    uint64_t before = clock_monotonic_ms(clock_system());
    read_api_close_http(f, 100);
    read_api_close_api(f);
    read_api_close_client(f);
    assert_true(clock_monotonic_ms(clock_system()) - before < 5000);
    test_socket_close(streaming);
    test_socket_close(polling);
    for (unsigned i = 0; i < 3; i++)
        test_socket_close(asking[i]);
}

#define TEST(name)           cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_DUPLICATE(name) cmocka_unit_test_setup_teardown(name, setup_duplicate, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_small_answer_is_whole_and_says_which_version_it_shows),
        TEST(test_versions_and_times_choose_what_is_seen),
        TEST(test_errors_before_the_first_row_are_answers),
        TEST(test_a_damaged_table_is_an_error_not_a_shorter_answer),
        TEST(test_a_large_answer_is_streamed_whole),
        TEST(test_an_error_in_the_middle_breaks_the_answer_off),
        TEST(test_a_node_that_fails_in_the_middle_is_not_noticed),
        TEST(test_clients_that_leave_in_the_middle_free_their_readers),
        TEST(test_a_client_that_left_before_the_version_was_known_costs_nothing),
        TEST(test_changes_tell_what_each_version_did),
        TEST(test_bounds_of_changes_are_half_open),
        TEST(test_limits_and_tokens_give_each_row_once),
        TEST(test_a_token_in_the_middle_of_a_version_survives_an_earlier_bound),
        TEST(test_a_token_of_another_table_is_refused),
        TEST(test_a_misspelt_parameter_is_refused),
        TEST(test_a_long_poll_answers_as_soon_as_there_is_something),
        TEST(test_a_long_poll_ends_empty_when_its_time_is_over),
        TEST_DUPLICATE(test_inserts_of_a_table_that_keeps_every_row),
        TEST(test_many_clients_read_while_versions_are_made),
        TEST(test_the_node_ends_while_reads_wait_in_every_phase),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
