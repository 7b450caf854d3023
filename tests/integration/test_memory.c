/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: of idle nodes, of a participant during a big load into one bucket, of a coordinator with
 * many labels. TIDEGATE_TEST_LOAD_MB sets the load's size (300; 2000 for the whole promise). Under
 * sanitizers memory says nothing: only that the loads work is tested then. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/net/http_client.h"
#include "tests/lib/test_cluster.h"
#include "tests/lib/test_load.h"

enum {
    LOAD_MB = 300,
    LOAD_MB_SHORT = 30,
    LOAD_KIB_MAX = 512 * 1024,
    IDLE_COORDINATOR_KIB_MAX = 20 * 1024,
    IDLE_PARTICIPANT_KIB_MAX = 30 * 1024,
    LABELS = 1000,
    LABEL_THREADS = 4,
    SAMPLE_MS = 20
};

static struct test_cluster cluster;
static uint16_t port;

static int start(void **state)
{
    (void)state;
    test_cluster_start(&cluster, 1, 1, NULL);
    port = cluster.coordinators[0].http;
    test_sql(port, "", "CREATE DATABASE d");
    return 0;
}

static int end(void **state)
{
    (void)state;
    test_cluster_end(&cluster);
    return 0;
}

static uint64_t memory_kib(const struct test_node *node)
{
    return test_process_kib(node->pid, "RssAnon") + test_process_kib(node->pid, "RssShmem");
}

static void is_below(const char *what, uint64_t kib, uint64_t max)
{
    printf("             %s: %lu KiB (at most %lu)\n", what, (unsigned long)kib,
           (unsigned long)max);
    if (!test_is_short() && kib > max)
        fail_msg("%s: %lu KiB, more than %lu", what, (unsigned long)kib, (unsigned long)max);
}

static void idle_nodes_are_small(void **state)
{
    (void)state;
    is_below("an idle coordinator", memory_kib(&cluster.coordinators[0]), IDLE_COORDINATOR_KIB_MAX);
    is_below("an idle participant", memory_kib(&cluster.participants[0]), IDLE_PARTICIPANT_KIB_MAX);
}

/* ---- a coordinator with a thousand labels ---- */

struct labeller {
    pthread_t thread;
    int number;
    int failed;
};

static void *use_labels(void *data)
{
    struct labeller *labeller = data;

    for (int i = 0; i < LABELS / LABEL_THREADS; i++) {
        char headers[128];
        struct test_answer answer;
        struct test_load result = {0};
        struct test_call call = {.port = cluster.participants[0].http,
                                 .method = "PUT",
                                 .target = "/api/d/labels/_stream_load",
                                 .headers = headers,
                                 .body = "1\n",
                                 .len = 2};

        snprintf(headers, sizeof headers,
                 "label: a-label-as-long-as-connectors-make-them-%d-%d\r\n", labeller->number, i);
        if (test_http_try(&call, &answer) != TEST_HTTP_ANSWERED ||
            !test_load_parse(&answer, &result) || strcmp(result.status, "Success") != 0)
            labeller->failed++;
        test_answer_close(&answer);
    }
    return NULL;
}

static void a_coordinator_with_a_thousand_labels_is_small(void **state)
{
    struct labeller labellers[LABEL_THREADS];

    (void)state;
    test_sql(port, "d",
             "CREATE TABLE labels (k INT) DUPLICATE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1");
    for (int i = 0; i < LABEL_THREADS; i++) {
        labellers[i] = (struct labeller){.number = i};
        assert_int_equal(pthread_create(&labellers[i].thread, NULL, use_labels, &labellers[i]), 0);
    }
    for (int i = 0; i < LABEL_THREADS; i++) {
        pthread_join(labellers[i].thread, NULL);
        assert_int_equal(labellers[i].failed, 0);
    }
    assert_int_equal(test_row_count(port, "d", "labels", "_scan"), LABELS);
    is_below("a coordinator with 1,000 labels", memory_kib(&cluster.coordinators[0]),
             IDLE_COORDINATOR_KIB_MAX);
}

/* ---- a big load ---- */

struct sampler {
    pthread_t thread;
    bool stop;
    uint64_t kib_max;
};

static void *sample(void *data)
{
    struct sampler *sampler = data;

    while (!__atomic_load_n(&sampler->stop, __ATOMIC_SEQ_CST)) {
        uint64_t kib = memory_kib(&cluster.participants[0]);

        if (kib > sampler->kib_max)
            sampler->kib_max = kib;
        test_sleep_ms(SAMPLE_MS);
    }
    return NULL;
}

struct source {
    uint64_t rows;
    uint64_t bytes;
    uint64_t bytes_max;
    uint64_t seed;
};

/* Rows in no order, with texts that do not compress away. */
static long produce(void *data, void *bytes, size_t cap)
{
    struct source *source = data;
    size_t len = 0;

    while (len + 128 < cap && source->bytes < source->bytes_max) {
        uint64_t x = source->seed = source->seed * 6364136223846793005u + 1442695040888963407u;
        int n = snprintf((char *)bytes + len, cap - len,
                         "%lu,%lu,%016lx%016lx,%lu.%02lu,some words that repeat\n",
                         (unsigned long)(x >> 20), (unsigned long)source->rows, (unsigned long)x,
                         (unsigned long)(x * 31), (unsigned long)(x >> 50),
                         (unsigned long)(x >> 30) % 100);

        len += (size_t)n;
        source->bytes += (uint64_t)n;
        source->rows++;
    }
    return (long)len;
}

static uint64_t load_megabytes(void)
{
    const char *text = getenv("TIDEGATE_TEST_LOAD_MB");

    if (text != NULL)
        return strtoull(text, NULL, 10);
    return test_is_short() ? LOAD_MB_SHORT : LOAD_MB;
}

static void a_big_load_into_one_bucket_stays_bounded(void **state)
{
    struct source source = {.bytes_max = load_megabytes() * 1000000, .seed = 7};
    struct sampler sampler = {.stop = false};
    struct http_client *client;
    struct http_reply reply;
    struct tg_errmsg msg = {{0}};
    char address[64];
    char expected[64];
    uint64_t begun = test_now_ms();

    (void)state;
    test_sql(port, "d",
             "CREATE TABLE big (k BIGINT, n BIGINT, h VARCHAR(40), m DECIMAL(9,2), w STRING) "
             "UNIQUE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1");
    snprintf(address, sizeof address, "127.0.0.1:%u", cluster.participants[0].http);
    assert_int_equal(http_client_open(address, 600000, &client, &msg), 0);
    assert_int_equal(pthread_create(&sampler.thread, NULL, sample, &sampler), 0);
    int err = http_client_request_chunked(client, "PUT", "/api/d/big/_stream_load",
                                          "Authorization: Basic cm9vdDo=\r\nlabel: big\r\n"
                                          "Expect: 100-continue\r\ncolumn_separator: ,\r\n",
                                          produce, &source, &reply, &msg);
    __atomic_store_n(&sampler.stop, true, __ATOMIC_SEQ_CST);
    pthread_join(sampler.thread, NULL);
    if (err != 0)
        fail_msg("the load broke off: %s", msg.text);
    buf_append_u8(&reply.body, 0);
    snprintf(expected, sizeof expected, "\"NumberLoadedRows\": %lu,", (unsigned long)source.rows);
    if (strstr((char *)reply.body.data, expected) == NULL)
        fail_msg("%s", (char *)reply.body.data);
    printf("             %lu MB in %.1f s\n", (unsigned long)(source.bytes / 1000000),
           (double)(test_now_ms() - begun) / 1000);
    http_reply_close(&reply);
    http_client_close(client);
    is_below("a participant during the load", sampler.kib_max, LOAD_KIB_MAX);
    test_rows_are(port, "d", "big", "_scan?limit=1&columns=w", "some words that repeat\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_nodes_are_small),
        cmocka_unit_test(a_coordinator_with_a_thousand_labels_is_small),
        cmocka_unit_test(a_big_load_into_one_bucket_stays_bounded),
    };

    return cmocka_run_group_tests(tests, start, end);
}
