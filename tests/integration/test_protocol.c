/* SPDX-License-Identifier: Apache-2.0 */
/* The exact words on the wire: what connectors of Apache Doris match. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/test_cluster.h"
#include "tests/lib/test_load.h"

#define DETAIL "TStatus: errCode = 2, detailMessage = "

static struct test_cluster cluster;
static uint16_t coordinator;
static uint16_t participant;

static int start(void **state)
{
    (void)state;
    test_cluster_start(&cluster, 3, 3, NULL);
    /* A follower, so that everything here is forwarded. */
    coordinator = cluster.coordinators[(test_cluster_leader(&cluster) + 1) % 3].http;
    participant = cluster.participants[0].http;
    test_sql(coordinator, "", "CREATE DATABASE d");
    test_sql(coordinator, "d",
             "CREATE TABLE t (k INT, v VARCHAR(20)) DUPLICATE KEY(k) "
             "DISTRIBUTED BY HASH(k) BUCKETS 2");
    return 0;
}

static int end(void **state)
{
    (void)state;
    test_cluster_end(&cluster);
    return 0;
}

/* Replaces every number behind a colon and blank by N: times differ from run to run. */
static void mask_numbers(char *text)
{
    char *to = text;

    /* What was written so far is looked at: what was read may be overwritten already. */
    for (const char *at = text; *at != '\0';) {
        if (to > text + 1 && to[-1] == ' ' && to[-2] == ':' && isdigit((unsigned char)*at)) {
            while (isdigit((unsigned char)*at))
                at++;
            *to++ = 'N';
        } else {
            *to++ = *at++;
        }
    }
    *to = '\0';
}

static void put_load(uint16_t port, const char *headers, const char *body,
                     struct test_answer *answer)
{
    struct test_call call = {.port = port,
                             .method = "PUT",
                             .target = "/api/d/t/_stream_load",
                             .headers = headers,
                             .body = body,
                             .len = strlen(body),
                             .expect = true,
                             .follow = true};

    test_http(&call, answer);
}

/* ---- redirects ---- */

static void redirect_of(const char *head, struct test_answer *answer)
{
    int fd = test_socket_open(coordinator, false);

    assert_true(test_socket_send_text(fd, head));
    assert_int_equal(test_socket_answer(fd, 5000, answer), TEST_HTTP_ANSWERED);
    test_socket_close(fd);
    assert_int_equal(answer->status, 307);
    assert_int_equal(answer->body_len, 0);
    assert_false(answer->continued);
}

static bool names_a_participant(const char *location, const char *before, const char *behind)
{
    char expected[512];

    for (unsigned i = 0; i < cluster.participant_count; i++) {
        snprintf(expected, sizeof expected, "http://%s127.0.0.1:%u%s", before,
                 cluster.participants[i].http, behind);
        if (strcmp(location, expected) == 0)
            return true;
    }
    fprintf(stderr, "Location: %s\n", location);
    return false;
}

static void a_load_is_redirected_from_its_head_alone(void **state)
{
    struct test_answer answer;
    char text[512];

    (void)state;
    redirect_of("PUT /api/d/t/_stream_load HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
                "Authorization: Basic cm9vdDo=\r\nContent-Length: 1000\r\n\r\n",
                &answer);
    assert_non_null(strstr(answer.head, "\r\nLocation: http://root:@127.0.0.1:"));
    test_answer_header(&answer, "content-type", text, sizeof text);
    assert_string_equal(text, "text/html;charset=utf-8");
    test_answer_header(&answer, "location", text, sizeof text);
    assert_true(names_a_participant(text, "root:@", "/api/d/t/_stream_load?"));
    test_answer_close(&answer);
}

static void a_redirect_keeps_the_query_and_needs_no_framing(void **state)
{
    struct test_answer answer;
    char text[512];

    (void)state;
    redirect_of("PUT /api/d/t/_stream_load?a=b%20c&d HTTP/1.1\r\nHost: x\r\n"
                "Authorization: Basic cm9vdDo=\r\n\r\n",
                &answer);
    test_answer_header(&answer, "location", text, sizeof text);
    assert_true(names_a_participant(text, "root:@", "/api/d/t/_stream_load?a=b%20c&d"));
    test_answer_close(&answer);
}

static void redirects_go_round_the_participants(void **state)
{
    bool seen[TEST_NODES_MAX] = {false};
    struct test_answer answer;
    char text[512];

    (void)state;
    for (int i = 0; i < 9; i++) {
        redirect_of("PUT /api/d/t/_stream_load HTTP/1.1\r\nHost: x\r\n"
                    "Authorization: Basic cm9vdDo=\r\n\r\n",
                    &answer);
        test_answer_header(&answer, "location", text, sizeof text);
        for (unsigned p = 0; p < cluster.participant_count; p++) {
            char address[64];

            snprintf(address, sizeof address, ":%u/", cluster.participants[p].http);
            seen[p] = seen[p] || strstr(text, address) != NULL;
        }
        test_answer_close(&answer);
    }
    assert_true(seen[0] && seen[1] && seen[2]);
}

/* ---- answers of loads ---- */

static void the_answer_of_a_load_has_all_fields_in_order(void **state)
{
    struct test_answer answer;

    (void)state;
    put_load(coordinator, "label: shape-1\r\ncolumn_separator: ,\r\ncomment: hello\r\n",
             "1,a\n2,b\n", &answer);
    assert_int_equal(answer.status, 200);
    mask_numbers(answer.body);
    assert_string_equal(answer.body, "{\n"
                                     "    \"TxnId\": N,\n"
                                     "    \"Label\": \"shape-1\",\n"
                                     "    \"Comment\": \"hello\",\n"
                                     "    \"TwoPhaseCommit\": \"false\",\n"
                                     "    \"Status\": \"Success\",\n"
                                     "    \"Message\": \"OK\",\n"
                                     "    \"NumberTotalRows\": N,\n"
                                     "    \"NumberLoadedRows\": N,\n"
                                     "    \"NumberFilteredRows\": N,\n"
                                     "    \"NumberUnselectedRows\": N,\n"
                                     "    \"LoadBytes\": N,\n"
                                     "    \"LoadTimeMs\": N,\n"
                                     "    \"BeginTxnTimeMs\": N,\n"
                                     "    \"StreamLoadPutTimeMs\": N,\n"
                                     "    \"ReadDataTimeMs\": N,\n"
                                     "    \"WriteDataTimeMs\": N,\n"
                                     "    \"ReceiveDataTimeMs\": N,\n"
                                     "    \"CommitAndPublishTimeMs\": N\n"
                                     "}\n");
    test_answer_close(&answer);
}

static void a_used_label_is_answered_as_connectors_expect(void **state)
{
    struct test_answer answer;
    struct test_load first;
    struct test_load load;
    char message[256];

    (void)state;
    test_load_text(coordinator, "d", "t", "label: twice\r\ncolumn_separator: ,\r\n", "1,a\n",
                   &first);
    test_load_good(&first, 1, 0);
    put_load(coordinator, "label: twice\r\ncolumn_separator: ,\r\ntwo_phase_commit: true\r\n",
             "1,a\n", &answer);
    assert_true(test_load_parse(&answer, &load));
    assert_int_equal(load.txn, -1);
    assert_string_equal(load.status, "Label Already Exists");
    assert_string_equal(load.existing, "FINISHED");
    assert_string_equal(load.two_phase, "true");
    assert_string_equal(load.label, "twice");
    snprintf(message, sizeof message,
             "[LABEL_ALREADY_EXISTS]" DETAIL "Label [twice] has already been used, relate to txn "
             "[%lld], status [VISIBLE].",
             first.txn);
    assert_string_equal(load.message, message);
    assert_int_equal(load.total + load.loaded + load.filtered, 0);
    assert_non_null(strstr(answer.body, "\"Status\": \"Label Already Exists\",\n"
                                        "    \"ExistingJobStatus\": \"FINISHED\",\n"
                                        "    \"Message\""));
    test_answer_close(&answer);
}

static void failures_say_why_with_status_200(void **state)
{
    struct test_load load;
    struct test_answer answer;

    (void)state;
    test_load_text(coordinator, "d", "nowhere", NULL, "1\n", &load);
    test_load_failed(&load, "[NOT_FOUND]");
    assert_int_equal(load.txn, -1);
    test_load_text(coordinator, "nobody", "t", NULL, "1\n", &load);
    test_load_failed(&load, "unknown database, database=nobody");
    test_load_text(coordinator, "d", "t", "label: bad label\r\n", "1\n", &load);
    test_load_failed(&load, DETAIL "Label format error. regex: ");
    test_load_text(coordinator, "d", "t", "format: parrot\r\n", "1\n", &load);
    test_load_failed(&load, "unknown data format, format=parrot");
    test_load_text(coordinator, "d", "t", "timeout: soon\r\n", "1\n", &load);
    test_load_failed(&load, "[INVALID_ARGUMENT]Invalid format of 'timeout': 'soon', stoi");
    test_load_text(coordinator, "d", "t", "timeout: 0\r\n", "1\n", &load);
    test_load_failed(&load, "Invalid timeout: 0. Timeout should between 1 and 259200 seconds");
    struct test_call call = {.port = participant,
                             .method = "PUT",
                             .target = "/api/d/t/_stream_load",
                             .anonymous = true,
                             .body = "1,a\n",
                             .len = 4};
    test_http(&call, &answer);
    assert_true(test_load_parse(&answer, &load));
    test_load_failed(&load, "[NOT_AUTHORIZED]no valid Basic authorization");
    test_answer_close(&answer);
}

static void bad_rows_are_counted_and_kept_for_reading(void **state)
{
    struct test_load load;
    struct test_answer answer;
    static const char headers[] = "column_separator: ,\r\n";

    (void)state;
    test_load_text(coordinator, "d", "t", headers, "1,a\n2\n3,c\n", &load);
    test_load_failed(&load, "[DATA_QUALITY_ERROR]too many filtered rows");
    assert_int_equal(load.filtered, 1);
    assert_int_equal(load.total, 3);
    test_load_text(coordinator, "d", "t",
                   "column_separator: ,\r\nmax_filter_ratio: 0.4\r\nlabel: some-bad\r\n",
                   "31,a\n2\n33,c\n", &load);
    test_load_good(&load, 3, 1);
    const char *path = strstr(load.error_url, "/api/_load_error_log?file=");
    assert_non_null(path);
    struct test_call call = {
        .port = (uint16_t)atoi(strrchr(load.error_url, ':') + 1),
        .target = path,
        .anonymous = true,
    };
    test_http(&call, &answer);
    assert_int_equal(answer.status, 200);
    assert_non_null(strstr(answer.body, "Reason: "));
    assert_non_null(strstr(answer.body, "src line [2]; \n"));
    test_answer_close(&answer);
    call.target = "/api/_load_error_log?file=../../../etc/passwd";
    test_http(&call, &answer);
    assert_int_equal(answer.status, 404);
    test_answer_close(&answer);
}

/* ---- _stream_load_2pc ---- */

static long long precommitted(const char *label)
{
    struct test_load load;
    char headers[256];

    snprintf(headers, sizeof headers,
             "label: %s\r\ncolumn_separator: ,\r\ntwo_phase_commit: true\r\n", label);
    test_load_text(coordinator, "d", "t", headers, "9,z\n", &load);
    test_load_good(&load, 1, 0);
    assert_string_equal(load.two_phase, "true");
    return load.txn;
}

static void ask(uint16_t port, const char *headers, const char *status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void ask(uint16_t port, const char *headers, const char *status, const char *format, ...)
{
    struct test_2pc answer;
    char msg[TEST_TEXT_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(msg, sizeof msg, format, args);
    va_end(args);
    test_2pc(port, "d", headers, false, &answer);
    if (strcmp(answer.status, status) != 0 || strcmp(answer.msg, msg) != 0)
        fail_msg("%s\n%s: %s\nwhere expected is\n%s: %s", headers, answer.status, answer.msg,
                 status, msg);
}

static void of_txn(char *out, size_t cap, const char *operation, long long txn)
{
    snprintf(out, cap, "txn_operation: %s\r\ntxn_id: %lld\r\n", operation, txn);
}

static void commits_and_aborts_use_the_words_that_are_matched(void **state)
{
    char headers[256];
    long long txn = precommitted("words-1");

    (void)state;
    of_txn(headers, sizeof headers, "commit", txn);
    ask(coordinator, headers, "Success", "transaction [%lld] commit successfully.", txn);
    ask(participant, headers, "ANALYSIS_ERROR",
        DETAIL "transaction [%lld] is already visible, not pre-committed.", txn);
    of_txn(headers, sizeof headers, "abort", txn);
    ask(coordinator, headers, "ANALYSIS_ERROR",
        DETAIL "transaction [%lld] is already VISIBLE, could not abort.", txn);
    txn = precommitted("words-2");
    of_txn(headers, sizeof headers, "abort", txn);
    ask(participant, headers, "Success", "transaction [%lld] abort successfully.", txn);
    ask(coordinator, headers, "ANALYSIS_ERROR",
        DETAIL "transaction [%lld] is already aborted, abort reason: User Abort", txn);
    of_txn(headers, sizeof headers, "commit", txn);
    ask(coordinator, headers, "ANALYSIS_ERROR",
        DETAIL "transaction [%lld] is already aborted. abort reason: User Abort", txn);
}

static void labels_work_in_place_of_numbers(void **state)
{
    char headers[256];
    long long txn = precommitted("words-3");

    (void)state;
    ask(participant, "txn_operation: commit\r\nlabel: words-3\r\n", "Success",
        "label [words-3] commit successfully.");
    ask(coordinator, "txn_operation: commit\r\nlabel: words-3\r\n", "ANALYSIS_ERROR",
        DETAIL "transaction [%lld] is already visible, not pre-committed.", txn);
    ask(coordinator, "txn_operation: abort\r\nlabel: words-3\r\n", "ANALYSIS_ERROR",
        DETAIL "running transaction not found, label=words-3");
    ask(coordinator, "txn_operation: commit\r\nlabel: never\r\n", "ANALYSIS_ERROR",
        DETAIL "transaction not found, label=never");
    txn = precommitted("words-4");
    snprintf(headers, sizeof headers, "txn_operation: commit\r\nlabel: words-4\r\ntxn_id: %lld\r\n",
             txn);
    ask(coordinator, headers, "Success", "label [words-4] transaction [%lld] commit successfully.",
        txn);
}

static void nonsense_is_answered_in_doris_s_words(void **state)
{
    struct test_2pc answer;

    (void)state;
    ask(coordinator, "txn_operation: commit\r\n", "FAILED", "No transaction id or label selected.");
    ask(coordinator, "txn_id: 1\r\n", "FAILED",
        "No transaction operation('commit' or 'abort') selected.");
    ask(coordinator, "txn_operation: commit\r\ntxn_id: x1\r\n", "INTERNAL_ERROR",
        "convert txn_id [x1] failed, reason=stoull");
    ask(participant, "txn_operation: COMMIT\r\ntxn_id: 1\r\n", "INTERNAL_ERROR",
        "transaction operation should be 'commit' or 'abort'");
    ask(coordinator, "txn_operation: commit\r\ntxn_id: 999999999\r\n", "ANALYSIS_ERROR",
        DETAIL "transaction [999999999] not found");
    ask(coordinator, "txn_operation: abort\r\ntxn_id: -1\r\n", "ANALYSIS_ERROR",
        DETAIL "transaction [-1] not found");
    test_2pc(coordinator, "nobody", "txn_operation: commit\r\ntxn_id: 1\r\n", false, &answer);
    assert_string_equal(answer.msg, DETAIL "unknown database, database=nobody");
}

static void a_transaction_of_another_database_is_not_found(void **state)
{
    struct test_2pc answer;
    long long txn = precommitted("words-5");
    char headers[256];

    (void)state;
    test_sql(coordinator, "", "CREATE DATABASE other");
    of_txn(headers, sizeof headers, "commit", txn);
    test_2pc(coordinator, "other", headers, false, &answer);
    assert_string_equal(answer.status, "ANALYSIS_ERROR");
    assert_non_null(strstr(answer.msg, "not found"));
    of_txn(headers, sizeof headers, "abort", txn);
    ask(coordinator, headers, "Success", "transaction [%lld] abort successfully.", txn);
}

static void begin_answers_with_a_number_and_on_a_used_label_with_its_state(void **state)
{
    struct test_answer answer;
    struct test_2pc parsed;
    char msg[256];
    char text[TEST_WORD_BYTES];
    struct test_call call = {.port = coordinator,
                             .method = "PUT",
                             .target = "/api/d/t/_stream_load_2pc",
                             .headers = "txn_operation: begin\r\nlabel: begun-1\r\n"};

    (void)state;
    test_http(&call, &answer);
    test_json(&answer, "status", text, sizeof text);
    assert_string_equal(text, "Success");
    long long txn = atoll(test_json(&answer, "txn_id", text, sizeof text));
    assert_true(txn > 0);
    test_json(&answer, "label", text, sizeof text);
    assert_string_equal(text, "begun-1");
    snprintf(msg, sizeof msg, "\"msg\": \"transaction [%lld] begin successfully.\"", txn);
    assert_non_null(strstr(answer.body, msg));
    snprintf(msg, sizeof msg, "\"txn_id\": \"%lld\"", txn); /* a string, as all values */
    assert_non_null(strstr(answer.body, msg));
    test_answer_close(&answer);
    test_2pc(participant, "d", "txn_operation: begin\r\nlabel: begun-1\r\n", false, &parsed);
    assert_string_equal(parsed.status, "Label Already Exists");
    assert_int_equal(parsed.txn, txn);
    test_2pc_txn(coordinator, "d", "abort", txn, &parsed);
    assert_string_equal(parsed.status, "Success");
}

/* ---- small endpoints ---- */

static void envelope(const char *method, const char *target, bool anonymous, const char *expected)
{
    struct test_answer answer;
    struct test_call call = {
        .port = coordinator, .method = method, .target = target, .anonymous = anonymous};

    test_http(&call, &answer);
    assert_int_equal(answer.status, 200);
    size_t len = strlen(answer.body);
    while (len > 0 && answer.body[len - 1] == '\n')
        answer.body[--len] = '\0';
    if (strcmp(answer.body, expected) != 0)
        fail_msg("%s %s:\n%s\nwhere expected is\n%s", method, target, answer.body, expected);
    test_answer_close(&answer);
}

#define OK(data)  "{\"msg\":\"success\",\"code\":0,\"data\":" data ",\"count\":0}"
#define BAD(data) "{\"msg\":\"Error\",\"code\":1,\"data\":" data ",\"count\":0}"

static void small_questions_are_answered_in_doris_s_envelope(void **state)
{
    (void)state;
    envelope("GET", "/api/bootstrap", true,
             OK("{\"replayedJournalId\":0,\"queryPort\":0,\"rpcPort\":0,\"arrowFlightSqlPort\":0,"
                "\"version\":\"\"}"));
    envelope("GET", "/api/health", true, OK("{\"online_backend_num\":3,\"total_backend_num\":3}"));
    envelope("GET", "/api/d/get_load_state?label=never-seen", false, OK("\"UNKNOWN\""));
    envelope("GET", "/api/d/get_load_state?label=shape-1", false, OK("\"VISIBLE\""));
    envelope("POST", "/api/d/_cancel?label=never-seen", false,
             BAD("\"errCode = 2, detailMessage = transaction not found, label=never-seen\""));
    envelope("POST", "/api/d/_cancel?label=shape-1", false,
             BAD("\"errCode = 2, detailMessage = running transaction not found, label=shape-1\""));
    envelope("GET", "/api/backends", true,
             "{\"msg\":\"Unauthorized\",\"code\":401,\"data\":\"Need auth information.\","
             "\"count\":0}");
}

static void backends_and_schema_are_what_connectors_read(void **state)
{
    char expected[1024];

    (void)state;
    snprintf(expected, sizeof expected,
             OK("{\"backends\":[{\"ip\":\"127.0.0.1\",\"http_port\":%u,\"is_alive\":true},"
                "{\"ip\":\"127.0.0.1\",\"http_port\":%u,\"is_alive\":true},"
                "{\"ip\":\"127.0.0.1\",\"http_port\":%u,\"is_alive\":true}]}"),
             cluster.participants[0].http, cluster.participants[1].http,
             cluster.participants[2].http);
    envelope("GET", "/api/backends?is_alive=true", false, expected);
    struct test_answer answer;
    struct test_call call = {.port = coordinator, .target = "/api/d/t/_schema"};
    test_http(&call, &answer);
    assert_non_null(strstr(answer.body, "\"status\":200"));
    assert_non_null(strstr(answer.body, "\"keysType\":\"DUP_KEYS\""));
    assert_non_null(strstr(answer.body, "\"name\":\"v\""));
    test_answer_close(&answer);
    call.target = "/api/d/nowhere/_schema";
    test_http(&call, &answer);
    assert_non_null(strstr(answer.body, "\"code\":1"));
    test_answer_close(&answer);
    call.target = "/";
    test_http(&call, &answer);
    assert_int_equal(answer.status, 200);
    test_answer_close(&answer);
}

static void cancel_aborts_what_is_in_prepare(void **state)
{
    struct test_2pc answer;

    (void)state;
    test_2pc(coordinator, "d", "txn_operation: begin\r\nlabel: cancel-me\r\n", false, &answer);
    assert_string_equal(answer.status, "Success");
    envelope("POST", "/api/d/_cancel?label=cancel-me", false, OK("null"));
    envelope("GET", "/api/d/get_load_state?label=cancel-me", false, OK("\"ABORTED\""));
}

static void reads_name_version_and_time_and_unknown_paths_are_404(void **state)
{
    struct test_answer answer;
    char text[64];

    (void)state;
    test_get(coordinator, "d", "t", "_scan?limit=1", &answer);
    assert_int_equal(answer.status, 200);
    assert_true(atoll(test_answer_header(&answer, "x-tidegate-version", text, sizeof text)) > 0);
    assert_true(atoll(test_answer_header(&answer, "x-tidegate-as-of", text, sizeof text)) >
                1600000000000000);
    test_answer_close(&answer);
    struct test_call call = {.port = participant, .target = "/no/such/path"};
    test_http(&call, &answer);
    assert_int_equal(answer.status, 404);
    test_answer_close(&answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_load_is_redirected_from_its_head_alone),
        cmocka_unit_test(a_redirect_keeps_the_query_and_needs_no_framing),
        cmocka_unit_test(redirects_go_round_the_participants),
        cmocka_unit_test(the_answer_of_a_load_has_all_fields_in_order),
        cmocka_unit_test(a_used_label_is_answered_as_connectors_expect),
        cmocka_unit_test(failures_say_why_with_status_200),
        cmocka_unit_test(bad_rows_are_counted_and_kept_for_reading),
        cmocka_unit_test(commits_and_aborts_use_the_words_that_are_matched),
        cmocka_unit_test(labels_work_in_place_of_numbers),
        cmocka_unit_test(nonsense_is_answered_in_doris_s_words),
        cmocka_unit_test(a_transaction_of_another_database_is_not_found),
        cmocka_unit_test(begin_answers_with_a_number_and_on_a_used_label_with_its_state),
        cmocka_unit_test(small_questions_are_answered_in_doris_s_envelope),
        cmocka_unit_test(backends_and_schema_are_what_connectors_read),
        cmocka_unit_test(cancel_aborts_what_is_in_prepare),
        cmocka_unit_test(reads_name_version_and_time_and_unknown_paths_are_404),
    };

    return cmocka_run_group_tests(tests, start, end);
}
