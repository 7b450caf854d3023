/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of repairs do. */
#include "tests/lib/test_replicas.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    ROW_BYTES = 40,
    PAGE_BYTES = 4096,
    OVERFLOW_FLAG = 4,
    PATH_BYTES = 1024,
    COMMAND_BYTES = 4096,
    WIPE_FILES = 16
};

void test_replicas_table(const struct test_cluster *cluster, const char *table, const char *key,
                         unsigned buckets, unsigned replicas)
{
    char statement[320];
    char properties[64] = "";

    if (replicas != 0)
        snprintf(properties, sizeof properties, " PROPERTIES (\"replication_num\" = \"%u\")",
                 replicas);
    snprintf(statement, sizeof statement,
             "CREATE TABLE %s (k INT, v VARCHAR(64)) %s KEY(k) DISTRIBUTED BY HASH(k) BUCKETS %u%s",
             table, key, buckets, properties);
    test_sql(test_cluster_coordinator(cluster), "d", statement);
}

static void must_be_good(const char *table, const struct test_load *result)
{
    if (strcmp(result->status, "Success") != 0)
        fail_msg("load of %s: %s %s", table, result->status, result->message);
}

void test_replicas_load(const struct test_cluster *cluster, const char *table, const char *headers,
                        const char *body, struct test_load *result)
{
    char lines[256];

    snprintf(lines, sizeof lines, "column_separator: ,\r\n%s", headers);
    test_load_text(test_cluster_participant(cluster), "d", table, lines, body, result);
    must_be_good(table, result);
}

void test_replicas_row(const struct test_cluster *cluster, const char *table, int k)
{
    struct test_load result;
    char body[64];

    snprintf(body, sizeof body, "%d,value-%d\n", k, k);
    test_replicas_load(cluster, table, "", body, &result);
}

void test_replicas_load_big(const struct test_cluster *cluster, const char *table, unsigned rows)
{
    struct test_load result;
    char *body = malloc((size_t)rows * (ROW_BYTES + 16));
    uint64_t random = 88172645463325252u;
    size_t at = 0;

    assert_non_null(body);
    for (unsigned i = 0; i < rows; i++) {
        at += (size_t)sprintf(body + at, "%u,", i);
        for (int j = 0; j < ROW_BYTES; j++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            body[at++] = (char)('A' + random % 26);
        }
        body[at++] = '\n';
    }
    test_load(test_cluster_participant(cluster), "d", table, "column_separator: ,\r\n", body, at,
              &result);
    free(body);
    must_be_good(table, &result);
}

long test_replicas_behind(const struct test_cluster *cluster)
{
    struct test_call call = {.port = test_cluster_coordinator(cluster), .target = "/api/cluster"};
    struct test_answer answer;
    long count = -1;

    if (test_http_try(&call, &answer) == TEST_HTTP_ANSWERED && answer.status == 200) {
        const char *at = strstr(answer.body, "\"replicas_behind\":");

        count = at != NULL ? strtol(at + strlen("\"replicas_behind\":"), NULL, 10) : -1;
    }
    test_answer_close(&answer);
    return count;
}

void test_replicas_wait(const struct test_cluster *cluster, bool behind)
{
    uint64_t until = test_now_ms() + TEST_HEAL_MS;

    for (;;) {
        long count = test_replicas_behind(cluster);

        if (count >= 0 && (count > 0) == behind)
            return;
        if (test_now_ms() > until)
            fail_msg("%ld replicas are behind after %d s", count, TEST_HEAL_MS / 1000);
        test_sleep_ms(20);
    }
}

static char *tablets_of(const struct test_cluster *cluster, unsigned participant)
{
    struct test_call call = {.port = cluster->participants[participant].http,
                             .target = "/api/_tablets"};
    struct test_answer answer;

    test_http(&call, &answer);
    assert_int_equal(answer.status, 200);
    char *text = strdup(answer.body);
    test_answer_close(&answer);
    return text;
}

/* Binding of a straggler may still be on its way. */
void test_replicas_agree(const struct test_cluster *cluster)
{
    uint64_t until = test_now_ms() + TEST_HEAL_MS;

    for (;;) {
        char *texts[3];
        for (unsigned i = 0; i < 3; i++)
            texts[i] = tablets_of(cluster, i);
        bool same = strcmp(texts[0], texts[1]) == 0 && strcmp(texts[0], texts[2]) == 0;
        if (!same && test_now_ms() > until)
            fail_msg("participants differ:\n%s%s%s", texts[0], texts[1], texts[2]);
        for (unsigned i = 0; i < 3; i++)
            free(texts[i]);
        if (same)
            return;
        test_sleep_ms(50);
    }
}

void test_replicas_heal(const struct test_cluster *cluster)
{
    test_replicas_wait(cluster, false);
    test_replicas_agree(cluster);
}

static bool is_clean(const char *body)
{
    return strstr(body, "\"sealed\":0,\"open\":0,\"dropping\":0,\"missing\":0,\"leaked\":0,") !=
           NULL;
}

void test_replicas_clean(const struct test_cluster *cluster)
{
    uint64_t until = test_now_ms() + TEST_HEAL_MS;

    for (unsigned i = 0; i < cluster->participant_count; i++) {
        struct test_call call = {.port = cluster->participants[i].http, .target = "/api/_rowsets"};
        struct test_answer answer;
        bool clean = false;

        while (!clean) {
            test_http(&call, &answer);
            assert_int_equal(answer.status, 200);
            clean = is_clean(answer.body);
            if (!clean && test_now_ms() > until)
                fail_msg("participant %u has more than it should: %.2000s", i + 1, answer.body);
            test_answer_close(&answer);
            if (!clean)
                test_sleep_ms(50);
        }
    }
}

void test_replicas_logged(const struct test_cluster *cluster, const char *node, const char *text)
{
    uint64_t until = test_now_ms() + TEST_HEAL_MS;

    while (!test_cluster_logged(cluster, node, text)) {
        if (test_now_ms() > until)
            fail_msg("the log of %s does not say: %s", node, text);
        test_sleep_ms(50);
    }
}

/* ---- harm ---- */

void test_replicas_path(const struct test_cluster *cluster, const char *node, const char *name,
                        char *out, size_t cap)
{
    assert_true(snprintf(out, cap, "%s/c/%s/data%s%s", cluster->dir.path, node,
                         name[0] != '\0' ? "/" : "", name) < (int)cap);
}

void test_replicas_shell(const struct test_cluster *cluster, const char *node, const char *command)
{
    char line[COMMAND_BYTES];
    int n = snprintf(line, sizeof line, "cd '%s/c/%s' && %s", cluster->dir.path, node, command);

    assert_true(n > 0 && n < (int)sizeof line);
    if (system(line) != 0)
        fail_msg("failed: %s", line);
}

int test_replicas_start_fails(const struct test_cluster *cluster, const char *node,
                              const char *text)
{
    char line[COMMAND_BYTES];
    char path[PATH_BYTES];
    const char *bin = getenv("TIDEGATE_BIN");
    size_t len;
    int n =
        snprintf(line, sizeof line,
                 "timeout 60 '%s/tidegate-participant' --config '%s/c/%s/participant.conf' "
                 ">'%s/c/%s/said' 2>&1",
                 bin != NULL ? bin : "build/bin", cluster->dir.path, node, cluster->dir.path, node);

    assert_true(n > 0 && n < (int)sizeof line);
    int status = system(line);
    snprintf(path, sizeof path, "c/%s/said", node);
    char *said = test_dir_read(&cluster->dir, path, &len);
    if (!WIFEXITED(status) || strstr(said, text) == NULL)
        fail_msg("%s ended with %d and did not say: %s\n%s", node, status, text, said);
    free(said);
    return WEXITSTATUS(status);
}

static int remove_below(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    return at->level == 0 ? 0 : remove(path);
}

void test_replicas_wipe(const struct test_cluster *cluster, const char *node)
{
    char path[PATH_BYTES];

    test_replicas_path(cluster, node, "", path, sizeof path);
    assert_int_equal(nftw(path, remove_below, WIPE_FILES, FTW_DEPTH | FTW_PHYS), 0);
}

static unsigned spoil_file(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    struct stat info;
    unsigned spoilt = 0;
    uint8_t page[32];

    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &info), 0);
    for (off_t at = 2 * PAGE_BYTES; at + PAGE_BYTES <= info.st_size; at += PAGE_BYTES) {
        uint64_t number;
        uint16_t flags;

        assert_int_equal(pread(fd, page, sizeof page, at), sizeof page);
        memcpy(&number, page, sizeof number);
        memcpy(&flags, page + 10, sizeof flags);
        if (number != (uint64_t)at / PAGE_BYTES || flags != OVERFLOW_FLAG)
            continue;
        uint8_t byte = (uint8_t)(page[20] ^ 0x55);
        assert_int_equal(pwrite(fd, &byte, 1, at + 20), 1);
        spoilt++;
    }
    close(fd);
    return spoilt;
}

unsigned test_replicas_spoil(const struct test_cluster *cluster, const char *node)
{
    char path[PATH_BYTES];
    unsigned spoilt;

    test_replicas_path(cluster, node, "blocks-64k/data.mdb", path, sizeof path);
    spoilt = spoil_file(path);
    test_replicas_path(cluster, node, "blocks-256k/data.mdb", path, sizeof path);
    return spoilt + spoil_file(path);
}
