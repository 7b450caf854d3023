/* SPDX-License-Identifier: Apache-2.0 */
/* The queue between loop and load: order, bounds, and its ends. */
#include "participant/ingest/body_queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/fake_clock.h"

static void count_room(void *ctx)
{
    ++*(int *)ctx;
}

static void test_bytes_come_out_as_they_went_in_and_the_writer_is_paused(void **state)
{
    struct body_queue queue;
    struct tg_errmsg msg;
    uint8_t in[64 * 1024];
    uint8_t *out = malloc(1 << 20);
    size_t n;
    int rooms = 0;
    unsigned pushed = 0;
    uint8_t next_in = 0;
    uint8_t next_out = 0;

    (void)state;
    body_queue_init(&queue, clock_system(), 0, count_room, &rooms);
    for (int round = 0; round < 5; round++) {
        bool paused = false;
        while (!paused) {
            for (size_t i = 0; i < sizeof in; i++)
                in[i] = next_in++;
            paused = body_queue_push(&queue, in, sizeof in);
            pushed++;
        }
        assert_true(pushed * sizeof in <= BODY_CHUNKS_MAX * (size_t)BODY_CHUNK_BYTES);
        while (pushed > 0) {
            assert_int_equal(body_queue_read(&queue, out, sizeof in, UINT64_MAX, &n, &msg), 0);
            assert_int_equal(n, sizeof in);
            for (size_t i = 0; i < n; i++)
                assert_int_equal(out[i], next_out++);
            pushed--;
        }
        assert_int_equal(rooms, round + 1);
    }
    body_queue_push(&queue, in, 10);
    body_queue_end(&queue);
    assert_int_equal(body_queue_read(&queue, out, 100, UINT64_MAX, &n, &msg), 0);
    assert_int_equal(n, 10);
    assert_int_equal(body_queue_read(&queue, out, 100, UINT64_MAX, &n, &msg), 0);
    assert_int_equal(n, 0);
    body_queue_free(&queue);
    free(out);
}

static void test_a_broken_body_gives_what_came_and_then_the_reason(void **state)
{
    struct body_queue queue;
    struct tg_errmsg msg;
    uint8_t out[8];
    size_t n;

    (void)state;
    body_queue_init(&queue, clock_system(), 5, NULL, NULL);
    body_queue_push(&queue, (const uint8_t *)"abc", 3);
    body_queue_break(&queue, TG_CLOSED, "sender is gone");
    assert_int_equal(body_queue_read(&queue, out, 8, UINT64_MAX, &n, &msg), 0);
    assert_int_equal(n, 3);
    assert_int_equal(body_queue_read(&queue, out, 8, UINT64_MAX, &n, &msg), TG_CLOSED);
    assert_string_equal(msg.text, "[CANCELLED]sender is gone");
    body_queue_free(&queue);
}

static void test_stop_and_deadline_end_a_reader_that_waits(void **state)
{
    struct body_queue queue;
    struct fake_clock clock;
    struct tg_errmsg msg;
    uint8_t out[8];
    size_t n;

    (void)state;
    fake_clock_init(&clock);
    body_queue_init(&queue, &clock.clock, 0, NULL, NULL);
    uint64_t now = clock_monotonic_ms(&clock.clock);
    assert_int_equal(body_queue_read(&queue, out, 8, now, &n, &msg), TG_TIMEOUT);
    body_queue_stop(&queue);
    assert_int_equal(body_queue_read(&queue, out, 8, UINT64_MAX, &n, &msg), TG_CANCELED);
    body_queue_free(&queue);
}

static void *wait_for_bytes(void *data)
{
    struct body_queue *queue = data;
    struct tg_errmsg msg;
    uint8_t out[8];
    size_t n;
    int err = body_queue_read(queue, out, 8, UINT64_MAX, &n, &msg);
    return err == 0 && n == 3 ? queue : NULL;
}

static void test_bytes_wake_a_reader(void **state)
{
    struct body_queue queue;
    pthread_t thread;
    void *result;

    (void)state;
    body_queue_init(&queue, clock_system(), 0, NULL, NULL);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_bytes, &queue), 0);
    body_queue_push(&queue, (const uint8_t *)"abc", 3);
    pthread_join(thread, &result);
    assert_ptr_equal(result, &queue);
    body_queue_free(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_come_out_as_they_went_in_and_the_writer_is_paused),
        cmocka_unit_test(test_a_broken_body_gives_what_came_and_then_the_reason),
        cmocka_unit_test(test_stop_and_deadline_end_a_reader_that_waits),
        cmocka_unit_test(test_bytes_wake_a_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
