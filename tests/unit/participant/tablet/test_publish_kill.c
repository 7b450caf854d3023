/* SPDX-License-Identifier: Apache-2.0 */
/* A process that stages and publishes is killed at any moment; what it
 * acknowledged is there, the chain of versions has no hole, and publishing goes on. */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "participant/tablet/publish.h"
#include "tests/lib/test_dir.h"
#include "tests/unit/participant/store/store_fixture.h"
#include "tests/unit/participant/tablet/publish_fixture.h"

enum { KILLS = 12, LEN = 2500, LARGE = 90000, TABLETS = 2, KILL_STEP_US = 1700 };

static size_t len_of(version_t version)
{
    return version % 7 == 0 ? LARGE : LEN;
}

/* One version into both tablets: staged (again, if a kill left it so), then bound. */
static void publish_version(struct fixture *fixture, struct tablet_set *set, version_t version)
{
    struct publish_rowset rowset = {.rowset = version,
                                    .digest = fixture_digest(version, len_of(version))};
    struct publish_bind binds[TABLETS];
    struct publish_wait wait;
    for (tablet_id tablet = 1; tablet <= TABLETS; tablet++) {
        int err = fixture_put(fixture, version, version, tablet, len_of(version), LARGE);
        if (err == TG_STALE) {
            /* Extents of the killed process: the coordinators would have aborted that load. */
            assert_int_equal(rowset_drop_txn(fixture->store, version), 0);
            fixture_reopen(fixture);
            tablet = 0;
            continue;
        }
        assert_int_equal(err, 0);
        binds[tablet - 1] = publish_bind_of(tablet, version, version - 1, version, &rowset);
    }
    publish_and_wait(fixture, set, binds, TABLETS, &wait);
    assert_int_equal(wait.err, 0);
    for (uint32_t i = 0; i < TABLETS; i++)
        assert_int_equal(wait.status[i], PUBLISH_BOUND);
}

/* Publishes from the last version on, writing each acknowledged one to the pipe, until it is
 * killed. */
static void child(struct fixture *fixture, int acknowledged)
{
    struct tablet_set *set;
    fixture_open(fixture);
    assert_int_equal(tablet_set_open(fixture->store, &set), 0);
    for (version_t version = tablet_set_last(set, 1) + 1;; version++) {
        publish_version(fixture, set, version);
        if (write(acknowledged, &version, sizeof version) != (ssize_t)sizeof version)
            _exit(0);
    }
}

static version_t run_and_kill(struct fixture *fixture, uint64_t after_us, version_t last)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    (void)fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(ends[0]);
        child(fixture, ends[1]);
        _exit(1);
    }
    close(ends[1]);
    struct timespec pause = {.tv_sec = 0, .tv_nsec = (long)after_us * 1000};
    nanosleep(&pause, NULL);
    assert_int_equal(kill(pid, SIGKILL), 0);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    version_t version;
    while (read(ends[0], &version, sizeof version) == (ssize_t)sizeof version)
        last = version;
    close(ends[0]);
    return last;
}

static void test_a_killed_publisher_leaves_no_hole_and_loses_nothing(void **state)
{
    struct fixture *fixture = *state;
    version_t acknowledged = 0;
    fixture_close(fixture);
    for (uint64_t i = 0; i < KILLS; i++) {
        acknowledged = run_and_kill(fixture, 15000 + i * KILL_STEP_US, acknowledged);
        struct tablet_set *set;
        fixture_open(fixture);
        /* A chain with a hole would not load. */
        assert_int_equal(tablet_set_open(fixture->store, &set), 0);
        version_t last = tablet_set_last(set, 1);
        assert_true(last == acknowledged || last == acknowledged + 1);
        /* One message is one transaction: both tablets are at the same version. */
        assert_int_equal(tablet_set_last(set, 2), last);
        for (version_t version = 1; version <= last; version++) {
            for (tablet_id tablet = 1; tablet <= TABLETS; tablet++)
                assert_int_equal(fixture_check(fixture, tablet, version, len_of(version)), 0);
        }
        tablet_set_close(set);
        fixture_close(fixture);
        acknowledged = last;
    }
    /* On a loaded machine the short lives may all have been too short: one that has its first
     * acknowledgement before it is killed makes sure that there is something to lose. */
    for (uint64_t ms = 500; acknowledged == 0; ms *= 2) {
        acknowledged = run_and_kill(fixture, ms * 1000, acknowledged);
        assert_true(ms < 60000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_killed_publisher_leaves_no_hole_and_loses_nothing,
                                        fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
