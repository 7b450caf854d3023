/* SPDX-License-Identifier: Apache-2.0 */
/* The side that is cloned from. */
#include "participant/maintain/clone_source.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/work_queue.h"
#include "common/proto/message.h"
#include "participant/store/rowset_reader.h"

/* ---- the answers ---- */

static int fill_binds(const struct version_map *map, version_t after,
                      struct msg_clone_list_reply *reply)
{
    uint32_t first = version_map_count(map, after);
    uint32_t end = version_map_count(map, UINT64_MAX);
    uint32_t rowsets = 0;
    int err = 0;

    if (end - first > CLONE_LIST_VERSIONS_MAX)
        end = first + CLONE_LIST_VERSIONS_MAX;
    reply->binds = calloc((size_t)(end - first) + 1, sizeof *reply->binds);
    if (reply->binds == NULL)
        return TG_NOMEM;
    for (uint32_t i = first; i < end && err == 0 && rowsets < CLONE_LIST_ROWSETS_MAX; i++) {
        struct publish_bind *bind = &reply->binds[reply->count++];

        err = version_map_entry(map, i, bind);
        rowsets += bind->rowset_count;
    }
    return err;
}

int clone_source_list(struct tablet_set *tablets, const struct msg_clone_list *message,
                      struct msg_clone_list_reply *reply)
{
    struct version_map map;

    memset(reply, 0, sizeof *reply);
    tablet_set_share(tablets, message->tablet, &map);
    reply->last = version_map_last(&map);
    reply->at = message->after < reply->last ? message->after : reply->last;
    int err = version_map_chain(&map, reply->at, &reply->chain);
    if (err == 0)
        err = fill_binds(&map, message->after, reply);
    for (uint32_t i = 0; i < reply->count; i++)
        reply->binds[i].tablet = message->tablet;
    version_map_close(&map);
    if (err != 0)
        msg_clone_list_reply_close(reply);
    return err;
}

int clone_source_read(struct store *store, const struct msg_clone_read *message, struct buf *head,
                      struct buf *payload)
{
    struct rowset_reader reader;
    int err = rowset_reader_open(store, message->tablet, message->rowset, &reader);

    if (err != 0)
        return err;
    if (message->offset > reader.meta->bytes)
        err = TG_INVALID;
    if (err == 0) {
        uint64_t len = reader.meta->bytes - message->offset;

        if (len > message->len)
            len = message->len;
        msg_clone_read_reply_encode(message->offset == 0 ? reader.meta : NULL, head);
        if (len > 0)
            err = rowset_reader_bytes(&reader, message->offset, len, payload);
        if (err == 0)
            err = head->err;
    }
    rowset_reader_close(&reader);
    return err;
}

/* ---- threads ---- */

struct question {
    uint16_t type;
    struct msg_clone_list list;
    struct msg_clone_read read;
    clone_source_done *done;
    void *data;
};

struct clone_source {
    struct store *store;
    struct tablet_set *tablets;
    struct work_queue queue;
    atomic_bool closing;
    unsigned thread_count;
    pthread_t threads[CLONE_SOURCE_THREADS];
};

static int answer_list(struct clone_source *source, const struct question *question,
                       struct buf *head)
{
    struct msg_clone_list_reply reply;
    int err = clone_source_list(source->tablets, &question->list, &reply);

    if (err != 0)
        return err;
    msg_clone_list_reply_encode(&reply, head);
    msg_clone_list_reply_close(&reply);
    return head->err;
}

static void answer(struct clone_source *source, struct question *question)
{
    struct buf head = BUF_INIT;
    struct buf payload = BUF_INIT;
    int err = TG_CLOSED;

    if (!atomic_load(&source->closing))
        err = question->type == MSG_CLONE_LIST
                  ? answer_list(source, question, &head)
                  : clone_source_read(source->store, &question->read, &head, &payload);
    if (err == TG_CORRUPT)
        tablet_set_suspect(source->tablets, question->read.tablet);
    if (err != 0) {
        buf_close(&head);
        buf_close(&payload);
    }
    question->done(question->data, err, &head, &payload);
    buf_close(&head);
    buf_close(&payload);
    free(question);
}

static void *run(void *data)
{
    struct clone_source *source = data;
    void *question;

    while (work_queue_pop(&source->queue, WORK_QUEUE_FOREVER, &question) == 0)
        answer(source, question);
    return NULL;
}

int clone_source_open(struct store *store, struct tablet_set *tablets, struct clone_source **source)
{
    struct clone_source *s = calloc(1, sizeof *s);

    if (s == NULL)
        return TG_NOMEM;
    s->store = store;
    s->tablets = tablets;
    if (work_queue_init(&s->queue, CLONE_SOURCE_QUEUE_MAX) != 0) {
        free(s);
        return TG_NOMEM;
    }
    while (s->thread_count < CLONE_SOURCE_THREADS &&
           pthread_create(&s->threads[s->thread_count], NULL, run, s) == 0)
        s->thread_count++;
    if (s->thread_count == 0) {
        clone_source_close(s);
        return TG_NOMEM;
    }
    *source = s;
    return 0;
}

void clone_source_close(struct clone_source *source)
{
    if (source == NULL)
        return;
    atomic_store(&source->closing, true);
    work_queue_close(&source->queue);
    for (unsigned i = 0; i < source->thread_count; i++)
        pthread_join(source->threads[i], NULL);
    work_queue_free(&source->queue);
    free(source);
}

void clone_source_serve(struct clone_source *source, node_id node, uint16_t type, struct slice head,
                        clone_source_done *done, void *data)
{
    struct question *question = calloc(1, sizeof *question);
    struct buf none = BUF_INIT;
    int err = TG_NOMEM;

    if (question != NULL) {
        question->type = type;
        question->done = done;
        question->data = data;
        err = type == MSG_CLONE_LIST ? msg_clone_list_decode(head, &question->list)
                                     : msg_clone_read_decode(head, &question->read);
        if (err == 0 &&
            (type == MSG_CLONE_LIST ? question->list.source : question->read.source) != node)
            err = TG_FENCED;
        if (err == 0)
            err = work_queue_try_push(&source->queue, question);
        if (err == 0)
            return;
    }
    free(question);
    done(data, err, &none, &none);
}
