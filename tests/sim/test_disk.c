/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated disk below the real store: what the store says is durable survives every crash, and
 * a disk that lies is found out. The store's own threads run, on fibers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/check.h"
#include "participant/store/rowset_store.h"
#include "tests/sim/fiber.h"
#include "tests/sim/fiber_pthread.h"
#include "tests/sim/sim_disk.h"
#include "tests/sim/sim_disk_calls.h"
#include "tests/sim/sim_scratch.h"
#include "tests/sim/sim_seeds.h"

enum { LIVES = 24, LIFE_US = 60 * 1000, TABLETS = 3, ROWSETS_MAX = 4096, MAP_BYTES = 64 << 20 };

struct rig {
    struct sim_world world;
    struct fiber_process process;
    struct sim_disk *disk;
    struct store *store;
    uint64_t next; /* rowset */
    bool acknowledged[ROWSETS_MAX];
    uint64_t acknowledged_count, lost, exits, opened;
    bool may_not_open;
    bool found;
};

static uint32_t content_bytes(uint64_t rowset)
{
    return rowset % 5 == 0 ? 70 * 1000 : 100 + (uint32_t)(rowset % 50);
}

static void make_content(uint64_t rowset, struct buf *content)
{
    uint32_t bytes = content_bytes(rowset);
    while (content->len < bytes)
        buf_append(content, &rowset, sizeof rowset);
    content->len = bytes;
}

static int put_rowset(struct rig *rig, uint64_t rowset)
{
    struct buf content = BUF_INIT;
    make_content(rowset, &content);
    struct rowset_meta meta;
    rowset_meta_init(&meta);
    meta.tablet = 1 + rowset % TABLETS;
    meta.rowset = rowset;
    meta.table = 1;
    meta.txn = rowset;
    meta.rows = 1;
    meta.bytes = content.len;
    meta.digest = digest_of(content.data, content.len);
    TG_CHECK(rowset_meta_add_block(&meta, 0, (uint32_t)content.len, 1, 0, slice_str("k"),
                                   slice_str("k")) == 0);
    meta.bytes = content.len;
    struct replicate_piece piece = {.tablet = meta.tablet, .len = (uint32_t)content.len};
    struct msg_replicate message = {.txn = meta.txn,
                                    .rowset = rowset,
                                    .table = 1,
                                    .piece_count = 1,
                                    .pieces = &piece,
                                    .seal_count = 1,
                                    .seals = &meta};
    int err =
        rowset_store_replicate_wait(rig->store, &message, slice_of(content.data, content.len));
    rowset_meta_close(&meta);
    buf_close(&content);
    return err;
}

static void check_rowsets(struct rig *rig)
{
    for (uint64_t rowset = 1; rowset < rig->next; rowset++) {
        enum rowset_here here;
        struct digest digest;
        TG_CHECK(rowset_store_find(rig->store, rowset, 1 + rowset % TABLETS, rowset, &here,
                                   &digest) == 0);
        if (rig->acknowledged[rowset] && here != ROWSET_SEALED)
            rig->lost++;
        /* From now on it would be said to be here: no further write is needed for that. */
        rig->acknowledged[rowset] = here == ROWSET_SEALED;
    }
}

static void *put_rowsets(void *data)
{
    struct rig *rig = data;
    for (;;) {
        uint64_t rowset = rig->next++;
        TG_CHECK(rowset < ROWSETS_MAX);
        if (put_rowset(rig, rowset) == 0) {
            rig->acknowledged[rowset] = true;
            rig->acknowledged_count++;
        }
    }
}

static void *live(void *data)
{
    struct rig *rig = data;
    struct store_options options;
    struct tg_errmsg msg;
    store_options_init(&options);
    options.meta_map_bytes = MAP_BYTES;
    options.blocks_map_bytes = MAP_BYTES;
    int err = store_open(sim_disk_root(rig->disk), &options, &rig->store, &msg);
    if (err != 0) {
        if (!rig->may_not_open)
            fail_msg("the store does not open again: %s", msg.text);
        rig->lost++;
        return NULL;
    }
    rig->opened++;
    check_rowsets(rig);
    for (int i = 0; i < 4; i++)
        fiber_spawn(&rig->process, true, put_rowsets, rig);
    return NULL;
}

static void on_exit_(void *data, int code)
{
    struct rig *rig = data;
    (void)code;
    rig->exits++;
    sim_disk_crash(rig->disk, SIM_LOSS_PAGES);
}

static uint64_t run_lives(uint64_t seed, bool lying, bool faults, struct rig *rig)
{
    char root[SIM_SCRATCH_BYTES];
    memset(rig, 0, sizeof *rig);
    rig->next = 1;
    rig->may_not_open = lying;
    sim_world_init(&rig->world, seed);
    sim_scratch_make(root);
    rig->disk = sim_disk_open(&rig->world, 0, root);
    sim_disk_set_speed(rig->disk, 50, 2000);
    sim_disk_set_lying(rig->disk, lying);
    fiber_process_init(&rig->process, &rig->world, 0);
    rig->process.on_exit = on_exit_;
    rig->process.data = rig;
    for (int i = 0; i < LIVES && rig->lost == 0; i++) {
        fiber_process_start(&rig->process);
        fiber_spawn(&rig->process, true, live, rig);
        sim_world_run(&rig->world, 20 * 1000);
        if (faults)
            sim_disk_set_fault(
                rig->disk, (enum sim_disk_fault)sim_world_between(&rig->world, 1, SIM_FAULTS - 1),
                (unsigned)sim_world_below(&rig->world, 40));
        sim_world_run(&rig->world, sim_world_between(&rig->world, 1, LIFE_US));
        if (!rig->process.alive)
            continue;
        fiber_process_kill(&rig->process);
        sim_disk_crash(rig->disk,
                       lying ? SIM_LOSS_ALL
                             : (enum sim_disk_loss)sim_world_below(&rig->world, SIM_LOSSES));
    }
    sim_world_trace(&rig->world, "end rowsets=%lu acknowledged=%lu", rig->next,
                    rig->acknowledged_count);
    uint64_t trace = rig->world.trace;
    fiber_forget_all();
    sim_world_close(&rig->world);
    sim_disk_close(rig->disk);
    return trace;
}

static void test_what_the_store_acknowledged_survives_crashes(void **state)
{
    (void)state;
    struct rig rig;
    uint64_t acknowledged = 0;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        run_lives(seed, false, false, &rig);
        if (rig.lost > 0)
            fail_msg("seed %lu: %lu acknowledged rowsets are lost", seed, rig.lost);
        assert_int_equal(rig.exits, 0);
        assert_int_equal(rig.opened, LIVES);
        acknowledged += rig.acknowledged_count;
    }
    assert_true(acknowledged > 100);
}

static void test_an_io_error_ends_the_process_and_loses_nothing(void **state)
{
    (void)state;
    struct rig rig;
    uint64_t exits = 0;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        run_lives(seed, false, true, &rig);
        if (rig.lost > 0)
            fail_msg("seed %lu: %lu acknowledged rowsets are lost", seed, rig.lost);
        exits += rig.exits;
    }
    assert_true(exits > 5);
}

static void *look_once(void *data)
{
    struct rig *rig = data;
    struct store_options options;
    struct tg_errmsg msg;
    enum rowset_here here;
    struct digest digest;
    store_options_init(&options);
    options.meta_map_bytes = MAP_BYTES;
    options.blocks_map_bytes = MAP_BYTES;
    TG_CHECK(store_open(sim_disk_root(rig->disk), &options, &rig->store, &msg) == 0);
    TG_CHECK(rowset_store_find(rig->store, 1, 1 + 1 % TABLETS, 1, &here, &digest) == 0);
    rig->found = here == ROWSET_SEALED;
    rig->opened++;
    if (rig->next == 1) {
        rig->next++;
        put_rowset(rig, 1);
        rig->acknowledged_count++;
    }
    return NULL;
}

static void look_after(struct rig *rig, uint64_t us, enum sim_disk_loss loss)
{
    fiber_process_start(&rig->process);
    fiber_spawn(&rig->process, true, look_once, rig);
    uint64_t opened = rig->opened;
    while (rig->opened == opened)
        sim_world_run(&rig->world, 10);
    sim_world_run(&rig->world, us);
    fiber_process_kill(&rig->process);
    sim_disk_crash(rig->disk, loss);
}

/* A process that is killed between a write and its sync leaves the write with the system. The next
 * one finds it, and says so to others: then it must be on the disk. */
static void test_what_a_restart_finds_survives_a_power_cut(void **state)
{
    (void)state;
    struct rig *rig = calloc(1, sizeof *rig);
    unsigned found = 0;
    unsigned early = 0;
    assert_non_null(rig);
    for (uint64_t us = 20; us < 3000; us += 20) {
        char root[SIM_SCRATCH_BYTES];
        memset(rig, 0, sizeof *rig);
        rig->next = 1;
        sim_world_init(&rig->world, us);
        sim_scratch_make(root);
        rig->disk = sim_disk_open(&rig->world, 0, root);
        sim_disk_set_speed(rig->disk, 500, 1000);
        fiber_process_init(&rig->process, &rig->world, 0);
        look_after(rig, us, SIM_LOSS_NONE);
        bool acknowledged = rig->acknowledged_count > 0;
        look_after(rig, 0, SIM_LOSS_ALL);
        bool before = rig->found;
        look_after(rig, 0, SIM_LOSS_NONE);
        if (before && !rig->found)
            fail_msg("killed %lu us after the open, a rowset was found and is lost", us);
        assert_true(!acknowledged || rig->found);
        found += before;
        early += before && !acknowledged;
        fiber_forget_all();
        sim_world_close(&rig->world);
        sim_disk_close(rig->disk);
    }
    free(rig);
    assert_true(found > 10 && early > 0);
}

static void test_a_disk_that_lies_is_found_out(void **state)
{
    (void)state;
    struct rig rig;
    run_lives(1, true, false, &rig);
    assert_true(rig.lost > 0);
}

static void test_the_same_seed_gives_the_same_lives(void **state)
{
    (void)state;
    struct rig rig;
    uint64_t first = run_lives(3, false, true, &rig);
    assert_true(run_lives(3, false, true, &rig) == first);
    assert_true(run_lives(4, false, true, &rig) != first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_the_store_acknowledged_survives_crashes),
        cmocka_unit_test(test_an_io_error_ends_the_process_and_loses_nothing),
        cmocka_unit_test(test_what_a_restart_finds_survives_a_power_cut),
        cmocka_unit_test(test_a_disk_that_lies_is_found_out),
        cmocka_unit_test(test_the_same_seed_gives_the_same_lives),
    };
    fiber_pthread_use();
    sim_disk_calls_use();
    sim_log_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
