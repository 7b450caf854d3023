/* SPDX-License-Identifier: Apache-2.0 */
/* Statements and questions, answered as JSON. */
#include "coordinator/query/query.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/coordinator_scene.h"

struct fixture {
    struct coordinator_scene scene;
    struct health health;
    struct query_waits waits;
};

struct answer {
    unsigned count;
    int err;
    char sentence[600];
    char *data;
};

static void on_done(void *data, int err, const char *sentence, struct slice head)
{
    struct answer *answer = data;
    struct msg_query_reply reply = {0};

    answer->count++;
    answer->err = err;
    snprintf(answer->sentence, sizeof answer->sentence, "%s", sentence);
    free(answer->data);
    answer->data = NULL;
    if (err == 0) {
        assert_int_equal(msg_query_reply_decode(head, &reply), 0);
        answer->data = strdup(buf_cstr(&reply.data));
        msg_query_reply_close(&reply);
    }
}

static void on_applied(void *data)
{
    struct fixture *f = data;

    query_waits_run(&f->waits, coordinator_scene_state(&f->scene),
                    clock_monotonic_ms(&f->scene.clock.clock));
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    coordinator_scene_open(&f->scene);
    health_init(&f->health, 5000, clock_monotonic_ms(&f->scene.clock.clock));
    fake_consensus_set_observer(f->scene.fake,
                                &(struct consensus_observer){.applied = on_applied, .data = f});
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    query_waits_end(&f->waits);
    health_close(&f->health);
    coordinator_scene_close(&f->scene);
    free(f);
    return 0;
}

static void start(struct fixture *f, enum query_kind kind, const char *table, const char *label,
                  const char *text, struct answer *answer)
{
    struct query_context context = {.consensus = f->scene.consensus,
                                    .health = &f->health,
                                    .clock = &f->scene.clock.clock,
                                    .waits = &f->waits,
                                    .self = FAKE_CONSENSUS_ID};
    struct msg_query message = {.kind = kind, .db = "d"};

    strcpy(message.table, table);
    strcpy(message.label, label);
    buf_append_str(&message.text, text);
    memset(answer, 0, sizeof *answer);
    query_run(&context, &message, on_done, answer);
    msg_query_close(&message);
    fake_consensus_run(f->scene.fake);
}

/* The answer's text; the caller frees it. */
static char *ask(struct fixture *f, enum query_kind kind, const char *table, const char *label,
                 const char *text)
{
    struct answer answer;

    start(f, kind, table, label, text, &answer);
    assert_int_equal(answer.count, 1);
    if (answer.err != 0)
        fail_msg("%s", answer.sentence);
    return answer.data;
}

static void expect(struct fixture *f, enum query_kind kind, const char *table, const char *label,
                   const char *text, const char *json)
{
    char *data = ask(f, kind, table, label, text);

    assert_string_equal(data, json);
    free(data);
}

static void expect_part(struct fixture *f, enum query_kind kind, const char *table,
                        const char *text, const char *part)
{
    char *data = ask(f, kind, table, "", text);

    if (strstr(data, part) == NULL)
        fail_msg("%s\nis not in\n%s", part, data);
    free(data);
}

static void expect_error(struct fixture *f, enum query_kind kind, const char *table,
                         const char *label, const char *text, int err, const char *sentence)
{
    struct answer answer;

    start(f, kind, table, label, text, &answer);
    assert_int_equal(answer.count, 1);
    assert_int_equal(answer.err, err);
    assert_string_equal(answer.sentence, sentence);
}

static void statement(struct fixture *f, const char *text)
{
    expect_part(f, QUERY_STATEMENT, "", text, "\"exec_status\"");
}

static void make_visible(struct fixture *f, txn_id txn)
{
    struct command command = {.type = COMMAND_TXN_VISIBLE};
    uint8_t confirmed[] = {7, 7};
    struct visible_txn visible = {.txn = txn, .tablet_count = 2, .confirmed = confirmed};

    command.visible.count = 1;
    command.visible.txns = &visible;
    assert_int_equal(fake_consensus_do(f->scene.fake, &command).err, 0);
}

/* ---- statements ---- */

static void test_databases_and_tables_come_and_go(void **state)
{
    struct fixture *f = *state;

    statement(f, "CREATE DATABASE a");
    statement(f, "CREATE DATABASE IF NOT EXISTS a");
    expect_error(f, QUERY_STATEMENT, "", "", "CREATE DATABASE a", TG_EXISTS,
                 "Can't create database 'a'; database exists");
    expect_part(f, QUERY_STATEMENT, "", "SHOW DATABASES", "\"data\":[[\"a\"],[\"d\"]]");
    expect_part(f, QUERY_STATEMENT, "", "SHOW DATABASES LIKE 'd%'", "\"data\":[[\"d\"]]");
    statement(f, "CREATE TABLE a.x (k INT, v STRING) DISTRIBUTED BY HASH(k) BUCKETS 2");
    expect_part(f, QUERY_STATEMENT, "", "SHOW TABLES FROM a",
                "\"name\":\"Tables_in_a\",\"type\":\"CHAR\"}],\"data\":[[\"x\"]]");
    expect_error(f, QUERY_STATEMENT, "", "", "DROP TABLE y", TG_NOT_FOUND, "Unknown table 'y'");
    statement(f, "DROP DATABASE a FORCE");
    expect_error(f, QUERY_STATEMENT, "", "", "SHOW TABLES FROM a", TG_NOT_FOUND,
                 "Unknown database 'a'");
}

static void test_a_mistake_is_told_with_its_place(void **state)
{
    expect_error(*state, QUERY_STATEMENT, "", "", "CREATE TABEL x", TG_SYNTAX,
                 "line 1, column 8: expected DATABASE or TABLE, found 'TABEL'");
}

static void test_replication_follows_the_members(void **state)
{
    struct fixture *f = *state;

    statement(f, "CREATE TABLE x (k INT) DISTRIBUTED BY HASH(k) BUCKETS 1");
    assert_int_equal(coordinator_scene_table(&f->scene, "x")->replication, 3);
    fake_clock_advance_ms(&f->scene.clock, 6000); /* all are silent: nobody to put it on */
    expect_error(f, QUERY_STATEMENT, "", "",
                 "CREATE TABLE y (k INT) DISTRIBUTED BY HASH(k) BUCKETS 1", TG_REFUSED,
                 "Failed to find enough backend, please check the replication num, replication "
                 "num: 3, available backends: 0");
}

static void test_replicas_go_to_the_living(void **state)
{
    struct fixture *f = *state;
    struct msg_heartbeat message = {.node = 2};

    fake_clock_advance_ms(&f->scene.clock, 6000);
    health_heard(&f->health, &message, clock_monotonic_ms(&f->scene.clock.clock));
    statement(f, "CREATE TABLE x (k INT) DISTRIBUTED BY HASH(k) BUCKETS 4 "
                 "PROPERTIES(\"replication_num\" = \"1\")");
    const struct table *table = coordinator_scene_table(&f->scene, "x");
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(table->tablets[i]->replicas[0].node, 2);
}

static void test_show_create_table_can_be_run_again(void **state)
{
    struct fixture *f = *state;
    const char *sql =
        "CREATE TABLE `x` (\\n  `k` INT NOT NULL COMMENT \\\"the \\\\\\\"key\\\\\\\"\\\""
        ",\\n  `v` VARCHAR(20) NULL DEFAULT \\\"a\\\",\\n  `at` DATETIME NULL DEFAULT "
        "CURRENT_TIMESTAMP\\n) ENGINE=OLAP\\nUNIQUE KEY(`k`)\\nCOMMENT \\\"t\\\"\\n"
        "DISTRIBUTED BY HASH(`k`) BUCKETS 3\\nPROPERTIES (\\n"
        "\\\"replication_num\\\" = \\\"2\\\",\\n\\\"write_quorum\\\" = \\\"all\\\",\\n"
        "\\\"concurrency\\\" = \\\"occ\\\"\\n);";
    char plain[2048];
    size_t n = 0;

    for (const char *c = sql; *c != '\0'; c++) { /* undo JSON's escapes */
        if (*c == '\\')
            c++;
        plain[n++] = *c == 'n' && c[-1] == '\\' ? '\n' : *c;
    }
    plain[n] = '\0';
    statement(f, plain);
    expect_part(f, QUERY_STATEMENT, "", "SHOW CREATE TABLE x", sql);
    statement(f, "DROP TABLE x");
    statement(f, plain);
    expect_part(f, QUERY_STATEMENT, "", "SHOW CREATE TABLE x", sql);
}

static void test_describe_lists_columns(void **state)
{
    expect_part(*state, QUERY_STATEMENT, "", "DESC t",
                "\"data\":[[\"k\",\"INT\",\"Yes\",\"true\",null,\"\"],[\"v\",\"VARCHAR(20)\","
                "\"Yes\",\"false\",null,\"NONE\"]]");
}

static void test_truncate_waits_until_it_is_visible(void **state)
{
    struct fixture *f = *state;
    struct answer answer;

    start(f, QUERY_STATEMENT, "", "", "TRUNCATE TABLE t", &answer);
    assert_int_equal(answer.count, 0);
    const struct table *table = coordinator_scene_table(&f->scene, "t");
    make_visible(f, table->versions[0].txn);
    assert_int_equal(answer.count, 1);
    assert_int_equal(answer.err, 0);
    free(answer.data);

    start(f, QUERY_STATEMENT, "", "", "TRUNCATE TABLE t", &answer);
    fake_clock_advance_ms(&f->scene.clock, QUERY_VISIBLE_WAIT_MS);
    on_applied(f);
    assert_int_equal(answer.count, 1); /* decided: it will become visible */
    free(answer.data);

    start(f, QUERY_STATEMENT, "", "", "TRUNCATE TABLE t", &answer);
    query_waits_end(&f->waits);
    assert_int_equal(answer.count, 1);
    free(answer.data);
}

static void test_an_unknown_outcome_stays_unknown(void **state)
{
    struct fixture *f = *state;
    struct query_context context = {
        .consensus = f->scene.consensus, .health = &f->health, .clock = &f->scene.clock.clock};
    struct msg_query message = {.kind = QUERY_STATEMENT, .db = "d"};
    struct answer answer = {0};

    buf_append_str(&message.text, "DROP TABLE t");
    query_run(&context, &message, on_done, &answer);
    msg_query_close(&message);
    fake_consensus_lose(f->scene.fake, true);
    assert_int_equal(answer.err, TG_UNKNOWN_OUTCOME);
}

/* ---- transactions ---- */

static void test_show_transaction_has_doris_columns(void **state)
{
    struct fixture *f = *state;
    txn_id txn = coordinator_scene_load(&f->scene, 1, "l_1", LOAD_FINISH_COMMIT);

    coordinator_scene_load(&f->scene, 2, "m_1", LOAD_FINISH_PRECOMMIT);
    make_visible(f, txn);
    expect_part(f, QUERY_STATEMENT, "", "SHOW TRANSACTION WHERE label = 'l_1'",
                "\"data\":[[1,\"l_1\",\"BE: 127.0.0.1\",\"VISIBLE\",\"BACKEND_STREAMING\","
                "\"2026-01-31 12:00:00\",null,\"2026-01-31 12:00:00\",\"2026-01-31 12:00:00\","
                "\"2026-01-31 12:00:00\",\"\",0,-1,600000,\"\"]]");
    expect_part(f, QUERY_STATEMENT, "", "SHOW TRANSACTION WHERE label LIKE 'm%'",
                "\"data\":[[2,\"m_1\",\"BE: 127.0.0.1\",\"PRECOMMITTED\"");
    expect_part(f, QUERY_STATEMENT, "", "SHOW TRANSACTION WHERE status = 'precommitted'",
                "\"data\":[[2,");
    expect_part(f, QUERY_STATEMENT, "", "SHOW TRANSACTION WHERE id = 1", "\"data\":[[1,");
    expect_error(f, QUERY_STATEMENT, "", "", "SHOW TRANSACTION WHERE id = 77", TG_TXN_NOT_FOUND,
                 "transaction with id 77 does not exist");
}

static void test_a_label_has_a_state(void **state)
{
    struct fixture *f = *state;

    expect(f, QUERY_LOAD_STATE, "", "l", "", "\"UNKNOWN\"");
    coordinator_scene_load(&f->scene, 1, "l", LOAD_FINISH_PRECOMMIT);
    expect(f, QUERY_LOAD_STATE, "", "l", "", "\"PRECOMMITTED\"");
}

static void test_cancel_takes_prepare_only(void **state)
{
    struct fixture *f = *state;
    struct command command = {.type = COMMAND_TXN_BEGIN};

    expect_error(f, QUERY_CANCEL, "", "l", "", TG_TXN_NOT_FOUND, "transaction not found, label=l");
    command.begin.key = (struct request_key){0, 1, 1};
    strcpy(command.begin.db, "d");
    strcpy(command.begin.label, "l");
    command.begin.timeout_ms = 1000;
    txn_id txn = fake_consensus_do(f->scene.fake, &command).txn;
    expect(f, QUERY_CANCEL, "", "l", "", "null");
    assert_int_equal(coordinator_scene_txn(&f->scene, txn)->state, TXN_ABORTED);
    assert_string_equal(coordinator_scene_txn(&f->scene, txn)->reason, "user cancel");
    expect_error(f, QUERY_CANCEL, "", "l", "", TG_TXN_NOT_FOUND,
                 "running transaction not found, label=l");
}

/* ---- small questions ---- */

static void test_schema_and_count_as_connectors_read_them(void **state)
{
    struct fixture *f = *state;

    statement(f, "CREATE TABLE u (k INT, p DECIMAL(9,3)) UNIQUE KEY(k) DISTRIBUTED BY HASH(k)");
    expect(f, QUERY_SCHEMA, "u", "", "",
           "{\"status\":200,\"keysType\":\"UNIQUE_KEYS\",\"properties\":[{\"name\":\"k\",\"type\":"
           "\"INT\",\"comment\":\"\",\"aggregation_type\":\"\"},{\"name\":\"p\",\"type\":"
           "\"DECIMAL32\",\"comment\":\"\",\"aggregation_type\":\"REPLACE\",\"precision\":\"9\","
           "\"scale\":\"3\"}]}");
    expect(f, QUERY_COUNT, "t", "", "", "{\"status\":200,\"size\":0}");
    make_visible(f, coordinator_scene_load(&f->scene, 1, "l", LOAD_FINISH_COMMIT));
    expect(f, QUERY_COUNT, "t", "", "", "{\"status\":200,\"size\":20}");
    expect_error(f, QUERY_SCHEMA, "no", "", "", TG_NOT_FOUND, "Unknown table 'no'");
}

static void test_backends_tell_who_is_alive(void **state)
{
    struct fixture *f = *state;
    struct msg_heartbeat message = {.node = 3};

    fake_clock_advance_ms(&f->scene.clock, 5001);
    health_heard(&f->health, &message, clock_monotonic_ms(&f->scene.clock.clock));
    expect(f, QUERY_BACKENDS, "", "", "",
           "{\"backends\":[{\"ip\":\"127.0.0.1\",\"http_port\":8040,\"is_alive\":false},{\"ip\":"
           "\"127.0.0.1\",\"http_port\":8041,\"is_alive\":false},{\"ip\":\"127.0.0.1\","
           "\"http_port\":8042,\"is_alive\":true}]}");
    expect(f, QUERY_BACKENDS, "", "", "alive",
           "{\"backends\":[{\"ip\":\"127.0.0.1\",\"http_port\":8042,\"is_alive\":true}]}");
    expect(f, QUERY_HEALTH, "", "", "", "{\"online_backend_num\":1,\"total_backend_num\":3}");
    expect_part(f, QUERY_CLUSTER, "", "", "\"db\":\"d\",\"table\":\"t\"");
    expect_part(f, QUERY_CLUSTER, "", "", "\"leader\":1");
}

/* ---- timeline ---- */

static void test_the_timeline_is_newest_first(void **state)
{
    struct fixture *f = *state;
    struct answer answer;

    make_visible(f, coordinator_scene_load(&f->scene, 1, "first", LOAD_FINISH_COMMIT));
    fake_clock_advance_ms(&f->scene.clock, 1000);
    make_visible(f, coordinator_scene_load(&f->scene, 2, "second", LOAD_FINISH_COMMIT));
    coordinator_scene_load(&f->scene, 3, "open", LOAD_FINISH_PRECOMMIT);
    start(f, QUERY_STATEMENT, "", "", "TRUNCATE TABLE t", &answer);
    char *data = ask(f, QUERY_TIMELINE, "t", "", "");
    char *open = strstr(data, "\"label\":\"open\"");
    char *second = strstr(data, "\"label\":\"second\"");
    char *first = strstr(data, "\"label\":\"first\"");
    assert_true(open != NULL && second > open && first > second);
    assert_non_null(strstr(data, "{\"txn\":4,\"action\":\"replacecommit\",\"state\":\"INFLIGHT\""));
    assert_non_null(strstr(data, "{\"txn\":2,\"action\":\"deltacommit\",\"state\":\"COMPLETED\""));
    assert_non_null(strstr(data, "\"version\":2,\"rows\":20,\"label\":\"second\""));
    assert_non_null(strstr(data, "\"left_off\":false"));
    free(data);
    query_waits_end(&f->waits);
    free(answer.data);
}

static void test_the_timeline_is_filtered(void **state)
{
    struct fixture *f = *state;

    make_visible(f, coordinator_scene_load(&f->scene, 1, "first", LOAD_FINISH_COMMIT));
    uint64_t middle = fake_consensus_state(f->scene.fake)->stamp_us;
    fake_clock_advance_ms(&f->scene.clock, 1000);
    make_visible(f, coordinator_scene_load(&f->scene, 2, "second", LOAD_FINISH_COMMIT));
    char text[128];
    snprintf(text, sizeof text, "to=%lu", (unsigned long)middle);
    char *data = ask(f, QUERY_TIMELINE, "t", "", text);
    assert_non_null(strstr(data, "\"first\""));
    assert_null(strstr(data, "\"second\""));
    free(data);
    expect_part(f, QUERY_TIMELINE, "t", "from=2026-01-31T14:00:00.5+02:00&label=sec%25",
                "\"label\":\"second\"");
    expect_part(f, QUERY_TIMELINE, "t", "state=inflight", "\"instants\":[]");
    expect_part(f, QUERY_TIMELINE, "t", "limit=1", "\"left_off\":true");
    expect_part(f, QUERY_TIMELINE, "", "action=deltacommit&label=first",
                "\"tables\":[{\"table\":\"t\",\"version\":1,\"rows\":20}]");
    expect_error(f, QUERY_TIMELINE, "t", "", "limit=0", TG_INVALID, "limit must be in 1..10000");
    expect_error(f, QUERY_TIMELINE, "t", "", "limt=1", TG_INVALID,
                 "unknown parameter 'limt'; known are from, to, action, state, label, limit");
    expect_error(f, QUERY_TIMELINE, "t", "", "state=done", TG_INVALID,
                 "state=done is none of REQUESTED, INFLIGHT, COMPLETED");
    expect_error(
        f, QUERY_TIMELINE, "", "", "action=delta", TG_INVALID,
        "action=delta is none of commit, deltacommit, rollback, clean, savepoint, restore, "
        "compaction, logcompaction, clustering, replacecommit, indexing");
    expect_error(f, QUERY_TIMELINE, "t", "", "from=yesterday", TG_INVALID,
                 "from=yesterday is neither microseconds since the epoch nor a time like "
                 "2026-01-31T12:00:00.123456Z");
}

/* A node that was the leader a moment ago must not answer from what it still remembers. */
static void test_a_label_s_state_is_asked_behind_a_barrier(void **state)
{
    struct fixture *f = *state;
    struct answer answer;

    coordinator_scene_load(&f->scene, 1, "l", LOAD_FINISH_PRECOMMIT);
    fake_consensus_set_leader(f->scene.fake, false);
    start(f, QUERY_LOAD_STATE, "", "l", "", &answer);
    assert_int_equal(answer.count, 1);
    assert_int_equal(answer.err, TG_NOT_LEADER);
    assert_null(answer.data);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_databases_and_tables_come_and_go),
        TEST(test_a_mistake_is_told_with_its_place),
        TEST(test_replication_follows_the_members),
        TEST(test_replicas_go_to_the_living),
        TEST(test_show_create_table_can_be_run_again),
        TEST(test_describe_lists_columns),
        TEST(test_truncate_waits_until_it_is_visible),
        TEST(test_an_unknown_outcome_stays_unknown),
        TEST(test_show_transaction_has_doris_columns),
        TEST(test_a_label_has_a_state),
        TEST(test_cancel_takes_prepare_only),
        TEST(test_schema_and_count_as_connectors_read_them),
        TEST(test_backends_tell_who_is_alive),
        TEST(test_the_timeline_is_newest_first),
        TEST(test_the_timeline_is_filtered),
        TEST(test_a_label_s_state_is_asked_behind_a_barrier),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
