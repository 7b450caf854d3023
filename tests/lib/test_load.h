/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of a cluster do all the time: statements, loads, commits, reads. Each ends the test if
 * the exchange itself fails; what the server says is for the test to judge. */
#ifndef TG_TESTS_LIB_TEST_LOAD_H
#define TG_TESTS_LIB_TEST_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/lib/test_http.h"

enum { TEST_TEXT_BYTES = 1024, TEST_WORD_BYTES = 40 };

struct test_load {
    long long txn;
    char label[TEST_WORD_BYTES * 4];
    char two_phase[TEST_WORD_BYTES];
    char status[TEST_WORD_BYTES];
    char existing[TEST_WORD_BYTES];
    char message[TEST_TEXT_BYTES];
    long long total, loaded, filtered, unselected;
    long long bytes;
    char error_url[TEST_TEXT_BYTES];
};

/* A statement that must succeed; one that must not: its sentence into out. */
void test_sql(uint16_t port, const char *db, const char *statement);
void test_sql_refused(uint16_t port, const char *db, const char *statement, char *out, size_t cap);

/* A load through any node, following redirects. headers: further lines. */
void test_load(uint16_t port, const char *db, const char *table, const char *headers,
               const void *body, size_t len, struct test_load *load);
void test_load_text(uint16_t port, const char *db, const char *table, const char *headers,
                    const char *body, struct test_load *load);
/* Reads an answer of a load; false if it is none. */
bool test_load_parse(const struct test_answer *answer, struct test_load *load);
/* The load was a Success with these counts. */
void test_load_good(const struct test_load *load, long long total, long long filtered);
/* The load was a Fail whose message holds the text; nothing loaded. */
void test_load_failed(const struct test_load *load, const char *message);

struct test_2pc {
    char status[TEST_WORD_BYTES];
    char msg[TEST_TEXT_BYTES];
    long long txn; /* begin */
};
/* headers: "txn_operation: commit\r\ntxn_id: 7\r\n". False if no answer came (only if may_fail). */
bool test_2pc(uint16_t port, const char *db, const char *headers, bool may_fail,
              struct test_2pc *answer);
/* commit, abort, precommit of a transaction by its number. */
void test_2pc_txn(uint16_t port, const char *db, const char *operation, long long txn,
                  struct test_2pc *answer);
/* The same, and it must be Success. */
void test_commit(uint16_t port, const char *db, long long txn);

/* get_load_state. */
void test_state(uint16_t port, const char *db, const char *label, char out[TEST_WORD_BYTES]);
/* Waits until a label is in a state. */
void test_wait_state(uint16_t port, const char *db, const char *label, const char *state,
                     unsigned timeout_ms);

/* GET of /api/DB/TABLE/ROUTE_AND_QUERY, redirects followed. */
void test_get(uint16_t port, const char *db, const char *table, const char *route,
              struct test_answer *answer);
/* The rows of a read as CSV text; it must answer 200. Free it. */
char *test_rows(uint16_t port, const char *db, const char *table, const char *route);
/* The read gives exactly this CSV. */
void test_rows_are(uint16_t port, const char *db, const char *table, const char *route,
                   const char *expected);
size_t test_row_count(uint16_t port, const char *db, const char *table, const char *route);

/* The text of a top-level member of a JSON object; "" if there is none. */
const char *test_json(const struct test_answer *answer, const char *name, char *out, size_t cap);

#endif
