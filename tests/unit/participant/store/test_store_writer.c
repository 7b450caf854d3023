/* SPDX-License-Identifier: Apache-2.0 */
/* The write thread groups what waits, isolates what fails, and bounds its queue. */
#include "participant/store/store_writer.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/endian.h"
#include "tests/lib/test_dir.h"

enum { JOBS = 64, MAP_BYTES = 4 * 1024 * 1024, QUEUE_BYTES = 1024, PAGE = 4096 };

struct fixture {
    struct test_dir dir;
    struct lmdb_env env;
    MDB_dbi db;
    struct store_writer *writer;
};

/* LMDB's calls come here, too. */
static atomic_uint syncs;

int fdatasync(int fd)
{
    atomic_fetch_add(&syncs, 1);
    return (int)syscall(SYS_fdatasync, fd);
}

/* Lets the test hold the writer inside an apply until it has queued what it wants. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool entered;
    bool open;
    uint32_t done;
};

struct put_job {
    struct store_job job; /* first */
    struct fixture *fixture;
    struct gate *gate;
    bool holds;
    uint32_t number;
    size_t value_bytes;
    int refusal;
    int result;
    uint32_t order;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    test_dir_make(&fixture->dir);
    assert_int_equal(lmdb_env_open(&fixture->env, fixture->dir.path, "env", MAP_BYTES, NULL), 0);
    assert_int_equal(lmdb_env_database(&fixture->env, "db", &fixture->db), 0);
    assert_int_equal(store_writer_start(&fixture->env, QUEUE_BYTES, &fixture->writer), 0);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    store_writer_stop(fixture->writer);
    lmdb_env_close(&fixture->env);
    test_dir_remove(&fixture->dir);
    free(fixture);
    return 0;
}

static void gate_init(struct gate *gate)
{
    memset(gate, 0, sizeof *gate);
    pthread_mutex_init(&gate->lock, NULL);
    pthread_cond_init(&gate->changed, NULL);
}

static void gate_pass(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->entered = true;
    pthread_cond_broadcast(&gate->changed);
    while (!gate->open)
        pthread_cond_wait(&gate->changed, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

static void gate_wait_entered(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    while (!gate->entered)
        pthread_cond_wait(&gate->changed, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

static void gate_open_and_wait(struct gate *gate, uint32_t done)
{
    pthread_mutex_lock(&gate->lock);
    gate->open = true;
    pthread_cond_broadcast(&gate->changed);
    while (gate->done < done)
        pthread_cond_wait(&gate->changed, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
    pthread_cond_destroy(&gate->changed);
    pthread_mutex_destroy(&gate->lock);
}

static int put_apply(struct store_job *job, struct lmdb_txn *txn)
{
    struct put_job *self = (struct put_job *)job;
    if (self->holds)
        gate_pass(self->gate);
    if (self->refusal != 0)
        return self->refusal;
    uint8_t key[4];
    uint8_t *value = calloc(1, self->value_bytes);
    assert_non_null(value);
    store_u32be(key, self->number);
    lmdb_txn_put(txn, self->fixture->db, slice_of(key, sizeof key),
                 slice_of(value, self->value_bytes));
    free(value);
    return 0;
}

static void put_done(struct store_job *job, int err)
{
    struct put_job *self = (struct put_job *)job;
    pthread_mutex_lock(&self->gate->lock);
    self->result = err;
    self->order = ++self->gate->done;
    pthread_cond_broadcast(&self->gate->changed);
    pthread_mutex_unlock(&self->gate->lock);
}

static void init_job(struct put_job *job, struct fixture *fixture, struct gate *gate,
                     uint32_t number)
{
    *job = (struct put_job){.job = {.bytes = 10, .apply = put_apply, .done = put_done},
                            .fixture = fixture,
                            .gate = gate,
                            .number = number,
                            .value_bytes = 8};
}

static bool is_there(struct fixture *fixture, uint32_t number)
{
    struct lmdb_txn txn;
    struct slice value;
    uint8_t key[4];
    store_u32be(key, number);
    assert_int_equal(lmdb_txn_read(&fixture->env, &txn), 0);
    bool found = lmdb_txn_get(&txn, fixture->db, slice_of(key, sizeof key), &value);
    lmdb_txn_abort(&txn);
    return found;
}

static size_t last_txn(struct fixture *fixture)
{
    MDB_envinfo info;
    assert_int_equal(mdb_env_info(fixture->env.env, &info), 0);
    return info.me_last_txnid;
}

/* Queues jobs behind a first one that holds the writer, then lets go. */
static void run_held(struct fixture *fixture, struct gate *gate, struct put_job *jobs,
                     uint32_t count)
{
    struct put_job first;
    init_job(&first, fixture, gate, 1000000);
    first.holds = true;
    assert_int_equal(store_writer_submit(fixture->writer, &first.job), 0);
    gate_wait_entered(gate);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(store_writer_submit(fixture->writer, &jobs[i].job), 0);
    gate_open_and_wait(gate, count + 1);
    assert_int_equal(first.result, 0);
}

static void test_all_that_waits_is_one_transaction(void **state)
{
    struct fixture *fixture = *state;
    struct gate gate;
    struct put_job jobs[JOBS];
    gate_init(&gate);
    for (uint32_t i = 0; i < JOBS; i++)
        init_job(&jobs[i], fixture, &gate, i);
    size_t before = last_txn(fixture);
    run_held(fixture, &gate, jobs, JOBS);
    assert_int_equal(last_txn(fixture), before + 2);
    for (uint32_t i = 0; i < JOBS; i++) {
        assert_int_equal(jobs[i].result, 0);
        assert_int_equal(jobs[i].order, i + 2);
        assert_true(is_there(fixture, i));
    }
}

static void test_a_job_that_refuses_leaves_the_others_alone(void **state)
{
    struct fixture *fixture = *state;
    struct gate gate;
    struct put_job jobs[3];
    gate_init(&gate);
    for (uint32_t i = 0; i < 3; i++)
        init_job(&jobs[i], fixture, &gate, i);
    jobs[1].refusal = TG_DIGEST;
    run_held(fixture, &gate, jobs, 3);
    assert_int_equal(jobs[0].result, 0);
    assert_int_equal(jobs[1].result, TG_DIGEST);
    assert_int_equal(jobs[2].result, 0);
    assert_true(is_there(fixture, 0) && !is_there(fixture, 1) && is_there(fixture, 2));
}

static void test_a_job_that_fills_the_map_fails_alone(void **state)
{
    struct fixture *fixture = *state;
    struct gate gate;
    struct put_job jobs[3];
    gate_init(&gate);
    for (uint32_t i = 0; i < 3; i++)
        init_job(&jobs[i], fixture, &gate, i);
    jobs[1].value_bytes = MAP_BYTES; /* it says ten bytes and writes the whole map */
    run_held(fixture, &gate, jobs, 3);
    assert_int_equal(jobs[0].result, 0);
    assert_int_equal(jobs[1].result, TG_NOSPACE);
    assert_int_equal(jobs[2].result, 0);
    assert_true(is_there(fixture, 0) && !is_there(fixture, 1) && is_there(fixture, 2));
}

static int put_value(void *data, struct lmdb_txn *txn)
{
    struct put_job *self = data;
    return put_apply(&self->job, txn);
}

static int delete_all(void *data, struct lmdb_txn *txn)
{
    struct fixture *fixture = data;
    struct lmdb_cursor cursor;
    if (!lmdb_cursor_open(&cursor, txn, fixture->db))
        return txn->err;
    while (lmdb_cursor_next(&cursor))
        lmdb_cursor_delete(&cursor);
    lmdb_cursor_close(&cursor);
    return txn->err;
}

static void test_a_full_map_can_be_emptied_and_used_again(void **state)
{
    struct fixture *fixture = *state;
    struct gate gate;
    struct put_job job;
    gate_init(&gate);
    for (int round = 0; round < 3; round++) {
        int err = 0;
        uint32_t puts = 0;
        while (err == 0 && puts < MAP_BYTES / PAGE) {
            init_job(&job, fixture, &gate, puts++);
            job.value_bytes = 16 * PAGE - 16;
            err = store_writer_run(fixture->writer, false, job.value_bytes, put_value, &job);
        }
        assert_int_equal(err, TG_NOSPACE);
        assert_true(puts > MAP_BYTES / (16 * PAGE) / 2);
        assert_int_equal(store_writer_run(fixture->writer, true, 0, delete_all, fixture), 0);
        /* LMDB re-uses pages only after one more transaction. */
        init_job(&job, fixture, &gate, 1);
        assert_int_equal(store_writer_run(fixture->writer, true, 10, put_value, &job), 0);
    }
    gate_open_and_wait(&gate, 0);
}

struct room {
    struct store_waiter waiter; /* first */
    struct gate *gate;
};

static void room_ready(struct store_waiter *waiter)
{
    struct room *room = (struct room *)waiter;
    pthread_mutex_lock(&room->gate->lock);
    room->gate->done++;
    pthread_cond_broadcast(&room->gate->changed);
    pthread_mutex_unlock(&room->gate->lock);
}

static void test_producers_wait_for_room_and_are_refused_beyond_the_hard_limit(void **state)
{
    struct fixture *fixture = *state;
    struct gate gate;
    struct put_job first;
    struct put_job jobs[3];
    struct room room = {.waiter = {.ready = room_ready}, .gate = &gate};
    gate_init(&gate);
    assert_false(store_writer_wait_room(fixture->writer, &room.waiter));
    init_job(&first, fixture, &gate, 0);
    first.holds = true;
    assert_int_equal(store_writer_submit(fixture->writer, &first.job), 0);
    gate_wait_entered(&gate);
    for (uint32_t i = 0; i < 3; i++)
        init_job(&jobs[i], fixture, &gate, i + 1);
    jobs[0].job.bytes = QUEUE_BYTES * STORE_WRITER_HARD_FACTOR;
    assert_int_equal(store_writer_submit(fixture->writer, &jobs[0].job), 0);
    assert_int_equal(store_writer_submit(fixture->writer, &jobs[1].job), TG_BUSY);
    jobs[2].job.shrinks = true;
    assert_int_equal(store_writer_submit(fixture->writer, &jobs[2].job), 0);
    assert_true(store_writer_wait_room(fixture->writer, &room.waiter));
    gate_open_and_wait(&gate, 4);
    assert_int_equal(jobs[0].result, 0);
    assert_int_equal(jobs[2].result, 0);
}

/* Each time a job is told, the disk was asked to make it last. */
static void test_a_job_is_told_after_the_disk_has_it(void **state)
{
    struct fixture *fixture = *state;
    for (uint32_t i = 0; i < 4; i++) {
        struct gate gate;
        struct put_job job;
        gate_init(&gate);
        init_job(&job, fixture, &gate, i);
        atomic_store(&syncs, 0);
        assert_int_equal(store_writer_submit(fixture->writer, &job.job), 0);
        gate_open_and_wait(&gate, 1);
        assert_int_equal(job.result, 0);
        assert_true(atomic_load(&syncs) > 0);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_all_that_waits_is_one_transaction),
        TEST(test_a_job_that_refuses_leaves_the_others_alone),
        TEST(test_a_job_that_fills_the_map_fails_alone),
        TEST(test_a_full_map_can_be_emptied_and_used_again),
        TEST(test_producers_wait_for_room_and_are_refused_beyond_the_hard_limit),
        TEST(test_a_job_is_told_after_the_disk_has_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
