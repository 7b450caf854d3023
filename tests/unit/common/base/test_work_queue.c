/* SPDX-License-Identifier: Apache-2.0 */
/* The work queue: order, bounds, waiting and closing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>

#include "common/base/err.h"
#include "common/base/work_queue.h"

enum { PRODUCERS = 3, CONSUMERS = 3, ITEMS_EACH = 2000 };

static int numbers[PRODUCERS * ITEMS_EACH];

static void items_come_out_in_the_order_they_went_in(void **state)
{
    (void)state;
    struct work_queue queue;
    assert_int_equal(work_queue_init(&queue, 3), 0);
    void *item;
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 3; i++)
            assert_int_equal(work_queue_push(&queue, &numbers[i]), 0);
        assert_int_equal(work_queue_try_push(&queue, &numbers[3]), TG_BUSY);
        assert_int_equal(work_queue_count(&queue), 3);
        assert_int_equal(work_queue_pop(&queue, 0, &item), 0);
        assert_ptr_equal(item, &numbers[0]);
        assert_int_equal(work_queue_try_push(&queue, &numbers[3]), 0);
        for (int i = 1; i <= 3; i++) {
            assert_int_equal(work_queue_pop(&queue, WORK_QUEUE_FOREVER, &item), 0);
            assert_ptr_equal(item, &numbers[i]);
        }
    }
    work_queue_free(&queue);
}

static void bad_capacities_are_refused(void **state)
{
    (void)state;
    struct work_queue queue;
    assert_int_equal(work_queue_init(&queue, 0), TG_INVALID);
    assert_int_equal(work_queue_init(&queue, WORK_QUEUE_CAPACITY_MAX + 1), TG_INVALID);
}

static void an_empty_queue_times_out(void **state)
{
    (void)state;
    struct work_queue queue;
    void *item;
    assert_int_equal(work_queue_init(&queue, 1), 0);
    assert_int_equal(work_queue_pop(&queue, 0, &item), TG_TIMEOUT);
    assert_int_equal(work_queue_pop(&queue, 5, &item), TG_TIMEOUT);
    work_queue_free(&queue);
}

static void a_closed_queue_gives_what_it_holds_and_takes_nothing(void **state)
{
    (void)state;
    struct work_queue queue;
    void *item;
    assert_int_equal(work_queue_init(&queue, 2), 0);
    work_queue_push(&queue, &numbers[5]);
    work_queue_close(&queue);
    assert_int_equal(work_queue_push(&queue, &numbers[6]), TG_CLOSED);
    assert_int_equal(work_queue_try_push(&queue, &numbers[6]), TG_CLOSED);
    assert_int_equal(work_queue_pop(&queue, WORK_QUEUE_FOREVER, &item), 0);
    assert_ptr_equal(item, &numbers[5]);
    assert_int_equal(work_queue_pop(&queue, WORK_QUEUE_FOREVER, &item), TG_CLOSED);
    work_queue_free(&queue);
}

static void *push_one(void *data)
{
    return (void *)(intptr_t)work_queue_push(data, &numbers[1]);
}

static void *pop_one(void *data)
{
    void *item;
    return (void *)(intptr_t)work_queue_pop(data, WORK_QUEUE_FOREVER, &item);
}

static void closing_wakes_those_who_wait(void **state)
{
    (void)state;
    struct work_queue full;
    struct work_queue empty;
    assert_int_equal(work_queue_init(&full, 1), 0);
    assert_int_equal(work_queue_init(&empty, 1), 0);
    work_queue_push(&full, &numbers[0]);
    pthread_t pusher;
    pthread_t popper;
    void *outcome;
    /* Whether they wait already or come later, the outcome is the same. */
    assert_int_equal(pthread_create(&pusher, NULL, push_one, &full), 0);
    assert_int_equal(pthread_create(&popper, NULL, pop_one, &empty), 0);
    work_queue_close(&full);
    work_queue_close(&empty);
    pthread_join(pusher, &outcome);
    assert_int_equal((intptr_t)outcome, TG_CLOSED);
    pthread_join(popper, &outcome);
    assert_int_equal((intptr_t)outcome, TG_CLOSED);
    work_queue_free(&full);
    work_queue_free(&empty);
}

static struct work_queue shared;
static atomic_int taken[PRODUCERS * ITEMS_EACH];

static void *produce(void *data)
{
    int *first = data;
    for (int i = 0; i < ITEMS_EACH; i++)
        work_queue_push(&shared, first + i);
    return NULL;
}

static void *consume(void *data)
{
    (void)data;
    void *item;
    while (work_queue_pop(&shared, WORK_QUEUE_FOREVER, &item) == 0)
        atomic_fetch_add(&taken[(int *)item - numbers], 1);
    return NULL;
}

static void every_item_is_taken_exactly_once(void **state)
{
    (void)state;
    assert_int_equal(work_queue_init(&shared, 8), 0);
    pthread_t producers[PRODUCERS];
    pthread_t consumers[CONSUMERS];
    for (int i = 0; i < PRODUCERS; i++)
        assert_int_equal(pthread_create(&producers[i], NULL, produce, &numbers[i * ITEMS_EACH]), 0);
    for (int i = 0; i < CONSUMERS; i++)
        assert_int_equal(pthread_create(&consumers[i], NULL, consume, NULL), 0);
    for (int i = 0; i < PRODUCERS; i++)
        pthread_join(producers[i], NULL);
    work_queue_close(&shared);
    for (int i = 0; i < CONSUMERS; i++)
        pthread_join(consumers[i], NULL);
    for (int i = 0; i < PRODUCERS * ITEMS_EACH; i++)
        assert_int_equal(atomic_load(&taken[i]), 1);
    work_queue_free(&shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_come_out_in_the_order_they_went_in),
        cmocka_unit_test(bad_capacities_are_refused),
        cmocka_unit_test(an_empty_queue_times_out),
        cmocka_unit_test(a_closed_queue_gives_what_it_holds_and_takes_nothing),
        cmocka_unit_test(closing_wakes_those_who_wait),
        cmocka_unit_test(every_item_is_taken_exactly_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
