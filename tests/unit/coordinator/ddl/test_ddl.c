/* SPDX-License-Identifier: Apache-2.0 */
/* Statements: what is understood, and how mistakes are pointed at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/ddl/ddl.h"

static int parse(const char *text, struct ddl *ddl, struct tg_errmsg *msg)
{
    memset(msg, 0, sizeof *msg);
    return ddl_parse(text, strlen(text), ddl, msg);
}

static void test_create_table_is_understood_in_doris_syntax(void **state)
{
    struct ddl ddl;
    struct tg_errmsg msg;

    (void)state;
    assert_int_equal(
        parse("CREATE TABLE IF NOT EXISTS `shop`.orders (\n"
              "  id BIGINT NOT NULL COMMENT 'the key',\n"
              "  day DATE NULL DEFAULT '2020-01-01', -- a comment\n"
              "  name VARCHAR(20) DEFAULT NULL,\n"
              "  price DECIMAL(15, 2) NOT NULL DEFAULT -1.5,\n"
              "  at DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3),\n"
              "  seen DATETIME DEFAULT CURRENT_TIMESTAMP\n"
              ") ENGINE=OLAP UNIQUE KEY(id, day) COMMENT \"it's\"\n"
              "DISTRIBUTED BY HASH(id) BUCKETS 4\n"
              "PROPERTIES (\"replication_num\" = \"3\", 'write_quorum'='all', "
              "\"storage_medium\"=\"SSD\", 'time_series_compaction_level_threshold'='1');",
              &ddl, &msg),
        0);
    assert_int_equal(ddl.kind, DDL_CREATE_TABLE);
    assert_true(ddl.if_exists);
    assert_string_equal(ddl.db, "shop");
    assert_string_equal(ddl.table, "orders");
    assert_int_equal(ddl.schema.column_count, 6);
    assert_int_equal(ddl.schema.key_model, KEY_UNIQUE);
    assert_int_equal(ddl.schema.key_count, 2);
    assert_true(ddl.schema.columns[1].is_key);
    assert_false(ddl.schema.columns[2].is_key);
    assert_false(ddl.schema.columns[0].nullable);
    assert_true(ddl.schema.columns[1].nullable);
    assert_string_equal(ddl.schema.columns[1].default_text, "2020-01-01");
    assert_string_equal(ddl.schema.columns[3].default_text, "-1.5");
    assert_int_equal(ddl.schema.columns[2].default_kind, DEFAULT_NULL);
    assert_int_equal(ddl.schema.columns[4].default_kind, DEFAULT_NOW);
    assert_int_equal(ddl.schema.columns[5].default_kind, DEFAULT_NOW);
    assert_int_equal(ddl.schema.columns[4].type.scale, 3);
    assert_int_equal(ddl.schema.columns[3].type.precision, 15);
    assert_string_equal(ddl.schema.columns[0].comment, "the key");
    assert_string_equal(ddl.comment, "it's");
    assert_int_equal(ddl.bucket_count, 4);
    assert_int_equal(ddl.distribution_count, 1);
    assert_int_equal(ddl.replication, 3);
    assert_true(ddl.write_all);
    ddl_close(&ddl);
}

static void test_keys_by_default_are_the_leading_columns(void **state)
{
    struct ddl ddl;
    struct tg_errmsg msg;

    (void)state;
    assert_int_equal(
        parse("create table t (a int, b double, c int) distributed by hash(c)", &ddl, &msg), 0);
    assert_int_equal(ddl.schema.key_model, KEY_DUPLICATE);
    assert_int_equal(ddl.schema.key_count, 1);
    assert_int_equal(ddl.bucket_count, DDL_BUCKETS_DEFAULT);
    assert_int_equal(ddl.replication, 0);
    ddl_close(&ddl);
}

static void test_other_statements_are_understood(void **state)
{
    struct ddl ddl;
    struct tg_errmsg msg;

    (void)state;
    assert_int_equal(parse("create database if not exists d", &ddl, &msg), 0);
    assert_int_equal(ddl.kind, DDL_CREATE_DATABASE);
    assert_int_equal(parse("DROP DATABASE IF EXISTS d FORCE;", &ddl, &msg), 0);
    assert_true(ddl.force && ddl.if_exists && ddl.kind == DDL_DROP_DATABASE);
    assert_int_equal(parse("drop table d.t", &ddl, &msg), 0);
    assert_string_equal(ddl.db, "d");
    assert_int_equal(parse("truncate table t", &ddl, &msg), 0);
    assert_int_equal(ddl.kind, DDL_TRUNCATE_TABLE);
    assert_int_equal(parse("show databases like 'a%'", &ddl, &msg), 0);
    assert_int_equal(ddl.filter, DDL_FILTER_LIKE);
    assert_int_equal(parse("SHOW FULL TABLES FROM d", &ddl, &msg), 0);
    assert_string_equal(ddl.db, "d");
    assert_int_equal(parse("SHOW CREATE TABLE d.t", &ddl, &msg), 0);
    assert_int_equal(parse("SHOW TRANSACTION FROM d WHERE label LIKE 'x%'", &ddl, &msg), 0);
    assert_int_equal(ddl.filter, DDL_FILTER_LIKE);
    assert_string_equal(ddl.pattern, "x%");
    assert_int_equal(parse("SHOW TRANSACTION WHERE id = 12", &ddl, &msg), 0);
    assert_int_equal(ddl.filter_id, 12);
    assert_int_equal(parse("SHOW TRANSACTION WHERE status='visible'", &ddl, &msg), 0);
    assert_int_equal(ddl.filter, DDL_FILTER_STATUS);
    assert_int_equal(parse("DESC t", &ddl, &msg), 0);
    assert_int_equal(ddl.kind, DDL_DESCRIBE);
}

static void test_a_mistake_is_pointed_at(void **state)
{
    static const struct {
        const char *text;
        int err;
        const char *message;
    } cases[] = {
        {"", TG_SYNTAX,
         "line 1, column 1: expected CREATE, DROP, TRUNCATE, SHOW or DESCRIBE, "
         "found the end of the statement"},
        {"SELECT 1", TG_SYNTAX,
         "line 1, column 1: expected CREATE, DROP, TRUNCATE, SHOW or DESCRIBE, found 'SELECT'"},
        {"CREATE TABLE t (a INT,\n b WRONG) DISTRIBUTED BY HASH(a)", TG_SYNTAX,
         "line 2, column 4: expected a column type, found 'WRONG'"},
        {"CREATE TABLE t (a INT,\n b ARRAY<INT>) DISTRIBUTED BY HASH(a)", TG_UNSUPPORTED,
         "line 2, column 4: the type ARRAY is not supported"},
        {"CREATE TABLE t (a INT) DISTRIBUTED BY HASH(b)", TG_INVALID,
         "line 1, column 44: there is no column 'b'"},
        {"CREATE TABLE t (a INT)", TG_SYNTAX,
         "line 1, column 23: expected DISTRIBUTED BY HASH (columns) BUCKETS number, found the end "
         "of the statement"},
        {"CREATE TABLE t (a INT) DISTRIBUTED BY HASH(a) BUCKETS 0", TG_INVALID,
         "line 1, column 56: a table needs at least one bucket"},
        {"CREATE TABLE t (a INT) DISTRIBUTED BY HASH(a) BUCKETS 99999999999999999999999",
         TG_INVALID, "line 1, column 55: the number of buckets is larger than 1024"},
        {"CREATE TABLE t (a INT) DISTRIBUTED BY HASH(a) PROPERTIES ('in_memory'='false',\n"
         "'replication_nun'='1')",
         TG_INVALID, "line 2, column 1: unknown property 'replication_nun'"},
        {"CREATE TABLE t (a INT) DISTRIBUTED BY HASH(a) PROPERTIES ('replication_num'='4')",
         TG_INVALID, "line 1, column 59: replication_num must be 1 to 3"},
        {"CREATE TABLE t (a INT) DISTRIBUTED BY HASH(a) PROPERTIES "
         "('dynamic_partition.enable'='true')",
         TG_UNSUPPORTED, "line 1, column 59: partitions are not supported"},
        {"SHOW TRANSACTION WHERE status = 'visble'", TG_INVALID,
         "line 1, column 33: status must be prepare, precommitted, committed, visible or aborted"},
        {"DROP TABLE 'x'", TG_SYNTAX, "line 1, column 12: expected a table name, found ''x''"},
        {"DROP TABLE `x", TG_SYNTAX, "line 1, column 12: a quote is opened here and never closed"},
        {"DROP TABLE a b", TG_SYNTAX,
         "line 1, column 14: expected the end of the statement, found 'b'"},
        {"CREATE DATABASE aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggggg",
         TG_INVALID,
         "line 1, column 17: the name 'aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd…' is longer than "
         "64 "
         "bytes"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ddl ddl;
        struct tg_errmsg msg;

        assert_int_equal(parse(cases[i].text, &ddl, &msg), cases[i].err);
        assert_string_equal(msg.text, cases[i].message);
    }
}

static void test_every_cut_statement_fails_cleanly(void **state)
{
    static const char text[] =
        "CREATE TABLE IF NOT EXISTS `d`.t (a INT NOT NULL DEFAULT '7' COMMENT 'x', b "
        "DECIMAL(9,2)) UNIQUE KEY(a) DISTRIBUTED BY HASH(a) BUCKETS 3";

    (void)state;
    for (size_t len = 0; len < sizeof text - 1; len++) {
        struct ddl ddl;
        struct tg_errmsg msg;

        if (ddl_parse(text, len, &ddl, &msg) == 0)
            ddl_close(&ddl); /* "… HASH(a)" is whole without BUCKETS */
    }
}

static void test_like_matches_as_sql_does(void **state)
{
    (void)state;
    assert_true(ddl_like("%", ""));
    assert_true(ddl_like("a%c", "abbc"));
    assert_true(ddl_like("a%c", "acbc"));
    assert_false(ddl_like("a%c", "abb"));
    assert_true(ddl_like("_b_", "abc"));
    assert_false(ddl_like("_b_", "ab"));
    assert_true(ddl_like("a\\_c", "a_c"));
    assert_false(ddl_like("a\\_c", "abc"));
    assert_true(ddl_like("%x%y%", "1x2y3"));
    assert_false(ddl_like("", "a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create_table_is_understood_in_doris_syntax),
        cmocka_unit_test(test_keys_by_default_are_the_leading_columns),
        cmocka_unit_test(test_other_statements_are_understood),
        cmocka_unit_test(test_a_mistake_is_pointed_at),
        cmocka_unit_test(test_every_cut_statement_fails_cleanly),
        cmocka_unit_test(test_like_matches_as_sql_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
