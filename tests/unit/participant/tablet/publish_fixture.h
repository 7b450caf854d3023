/* SPDX-License-Identifier: Apache-2.0 */
/* Publishing in tests: a message made of binds, applied, and waited for. */
#ifndef TG_TESTS_UNIT_PARTICIPANT_TABLET_PUBLISH_FIXTURE_H
#define TG_TESTS_UNIT_PARTICIPANT_TABLET_PUBLISH_FIXTURE_H

#include <pthread.h>

#include "participant/tablet/publish.h"
#include "tests/unit/participant/store/store_fixture.h"

enum { PUBLISH_TEST_BINDS = 8 };

struct publish_wait {
    pthread_mutex_t lock;
    pthread_cond_t finished;
    bool is_done;
    int err;
    uint32_t count;
    uint8_t status[PUBLISH_TEST_BINDS];
};

static inline void publish_wait_done(void *data, int err, struct msg_publish_reply *reply)
{
    struct publish_wait *wait = data;
    pthread_mutex_lock(&wait->lock);
    wait->err = err;
    wait->count = reply->count;
    assert_true(reply->count <= PUBLISH_TEST_BINDS);
    if (reply->count > 0)
        memcpy(wait->status, reply->status, reply->count);
    wait->is_done = true;
    pthread_cond_signal(&wait->finished);
    pthread_mutex_unlock(&wait->lock);
    msg_publish_reply_close(reply);
}

/* Copies binds (with their rowsets) into a message, applies it, waits. */
static inline void publish_and_wait(struct fixture *fixture, struct tablet_set *set,
                                    const struct publish_bind *binds, uint32_t count,
                                    struct publish_wait *wait)
{
    struct msg_publish message = {.bind_count = count, .binds = calloc(count + 1, sizeof *binds)};
    assert_non_null(message.binds);
    for (uint32_t i = 0; i < count; i++) {
        message.binds[i] = binds[i];
        size_t bytes = binds[i].rowset_count * sizeof *binds[i].rowsets;
        message.binds[i].rowsets = bytes > 0 ? malloc(bytes) : NULL;
        if (bytes > 0)
            memcpy(message.binds[i].rowsets, binds[i].rowsets, bytes);
    }
    memset(wait, 0, sizeof *wait);
    pthread_mutex_init(&wait->lock, NULL);
    pthread_cond_init(&wait->finished, NULL);
    publish_apply(fixture->store, set, clock_system(), &message, publish_wait_done, wait);
    assert_null(message.binds);
    pthread_mutex_lock(&wait->lock);
    while (!wait->is_done)
        pthread_cond_wait(&wait->finished, &wait->lock);
    pthread_mutex_unlock(&wait->lock);
    pthread_cond_destroy(&wait->finished);
    pthread_mutex_destroy(&wait->lock);
}

static inline struct publish_bind publish_bind_of(tablet_id tablet, version_t version,
                                                  version_t prev, txn_id txn,
                                                  struct publish_rowset *rowset)
{
    return (struct publish_bind){.tablet = tablet,
                                 .table = FIXTURE_TABLE,
                                 .version = version,
                                 .prev = prev,
                                 .txn = txn,
                                 .rowset_count = rowset != NULL ? 1 : 0,
                                 .rowsets = rowset};
}

#endif
