/* SPDX-License-Identifier: Apache-2.0 */
/* The loads that run here, by request id. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/proto/msg_member.h"
#include "participant/link/live_requests.h"

static int setup(void **state)
{
    *state = live_requests_open();
    return *state == NULL;
}

static int teardown(void **state)
{
    live_requests_close(*state);
    return 0;
}

static uint32_t list(struct live_requests *requests, uint64_t *high, uint64_t ids[8])
{
    uint64_t *all;
    uint32_t count;

    assert_int_equal(live_requests_list(requests, high, &all, &count), 0);
    assert_true(count <= 8);
    for (uint32_t i = 0; i < count; i++)
        ids[i] = all[i];
    free(all);
    return count;
}

static void test_ids_grow_and_only_live_ones_are_listed(void **state)
{
    struct live_request a = {0}, b = {0}, c = {0};
    uint64_t ids[8];
    uint64_t high;

    assert_int_equal(list(*state, &high, ids), 0);
    assert_int_equal(high, 0);
    assert_int_equal(live_requests_begin(*state, &a), 0);
    assert_int_equal(live_requests_begin(*state, &b), 0);
    assert_int_equal(live_requests_begin(*state, &c), 0);
    assert_true(a.id < b.id && b.id < c.id);
    live_requests_end(*state, &b);
    assert_int_equal(list(*state, &high, ids), 2);
    assert_int_equal(high, c.id);
    assert_int_equal(ids[0] + ids[1], a.id + c.id);
    live_requests_end(*state, &c);
    live_requests_end(*state, &a);
    assert_int_equal(list(*state, &high, ids), 0);
    assert_int_equal(high, c.id);
}

static void count_stop(struct live_request *request)
{
    ++*(unsigned *)request->data;
}

static void test_a_stop_reaches_its_request_once(void **state)
{
    unsigned stops[2] = {0, 0};
    struct live_request a = {.on_stop = count_stop, .data = &stops[0]};
    struct live_request b = {.on_stop = count_stop, .data = &stops[1]};
    struct live_request silent = {0};

    live_requests_begin(*state, &a);
    live_requests_begin(*state, &b);
    live_requests_begin(*state, &silent);
    live_requests_stop(*state, b.id + 100);
    live_requests_stop(*state, b.id);
    live_requests_stop(*state, b.id);
    assert_false(atomic_load(&a.stopped));
    assert_true(atomic_load(&b.stopped));
    assert_int_equal(stops[0], 0);
    assert_int_equal(stops[1], 1);
    live_requests_stop_all(*state);
    assert_true(atomic_load(&a.stopped));
    assert_true(atomic_load(&silent.stopped));
    assert_int_equal(stops[0], 1);
    assert_int_equal(stops[1], 1);
    live_requests_end(*state, &silent);
    live_requests_end(*state, &a);
    live_requests_end(*state, &b);
}

static void test_nothing_begins_once_all_were_stopped(void **state)
{
    struct live_request late = {0};
    uint64_t ids[8];
    uint64_t high;

    live_requests_stop_all(*state);
    assert_int_equal(live_requests_begin(*state, &late), TG_CLOSED);
    assert_int_equal(list(*state, &high, ids), 0);
}

static void test_there_is_a_limit_of_what_a_heartbeat_can_carry(void **state)
{
    struct live_request *all = calloc(HEARTBEAT_LIVE_MAX + 1, sizeof *all);

    for (uint32_t i = 0; i < HEARTBEAT_LIVE_MAX; i++)
        assert_int_equal(live_requests_begin(*state, &all[i]), 0);
    assert_int_equal(live_requests_begin(*state, &all[HEARTBEAT_LIVE_MAX]), TG_LIMIT);
    live_requests_end(*state, &all[17]);
    assert_int_equal(live_requests_begin(*state, &all[HEARTBEAT_LIVE_MAX]), 0);
    free(all);
}

struct worker {
    struct live_requests *requests;
    pthread_t thread;
};

static void *work(void *data)
{
    struct worker *worker = data;

    for (unsigned i = 0; i < 500; i++) {
        struct live_request request = {0};
        uint64_t high;
        uint64_t *ids;
        uint32_t count;
        bool listed = false;

        if (live_requests_begin(worker->requests, &request) != 0 ||
            live_requests_list(worker->requests, &high, &ids, &count) != 0)
            abort();
        for (uint32_t n = 0; n < count; n++)
            listed = listed || ids[n] == request.id;
        if (!listed || high < request.id)
            abort();
        free(ids);
        live_requests_stop(worker->requests, request.id);
        live_requests_end(worker->requests, &request);
    }
    return NULL;
}

static void test_threads_may_begin_list_stop_and_end_at_once(void **state)
{
    struct worker workers[4];
    uint64_t ids[8];
    uint64_t high;

    for (unsigned i = 0; i < 4; i++) {
        workers[i].requests = *state;
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    for (unsigned i = 0; i < 4; i++)
        pthread_join(workers[i].thread, NULL);
    assert_int_equal(list(*state, &high, ids), 0);
    assert_int_equal(high, 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ids_grow_and_only_live_ones_are_listed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_stop_reaches_its_request_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_begins_once_all_were_stopped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_there_is_a_limit_of_what_a_heartbeat_can_carry, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_threads_may_begin_list_stop_and_end_at_once, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
