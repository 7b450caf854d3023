/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_READ_TABLET on the node that holds the replica: one block of rows at a time, from where the
 * last one ended. */
#ifndef TG_PARTICIPANT_READ_TABLET_READER_H
#define TG_PARTICIPANT_READ_TABLET_READER_H

#include "common/proto/msg_read.h"
#include "participant/store/store.h"
#include "participant/tablet/tablet_set.h"

/* Threads that read for peers: bounded in number and queue. A cursor whose read goes on is kept for
 * a while, so that the next answer need not open everything again. */
struct tablet_reader_pool;
enum {
    TABLET_READER_THREADS = 4,
    TABLET_READER_QUEUE_MAX = 1024,
    TABLET_READER_IDLE_MAX = 16, /* cursors kept */
    TABLET_READER_IDLE_MS = 5000 /* and how long */
};

/* Starts the threads. store and tablets must outlive them. TG_NOMEM. */
int tablet_reader_pool_open(struct store *store, struct tablet_set *tablets,
                            struct tablet_reader_pool **pool);
/* What is queued is answered with TG_CLOSED. Waits for the threads. */
void tablet_reader_pool_close(struct tablet_reader_pool *pool);

/* err 0: reply and payload are the callee's to take from or leave; valid during the call, closed
 * afterwards. Else NULL, and a sentence. On a pool thread, or on the caller's with TG_BUSY. */
typedef void tablet_reader_done(void *data, int err, const char *sentence,
                                struct msg_read_tablet_reply *reply, struct buf *payload);
/* Takes the message over. Any thread; never waits. */
void tablet_reader_serve(struct tablet_reader_pool *pool, struct msg_read_tablet *message,
                         tablet_reader_done *done, void *data);

struct merge_cursor;
/* The cursor behind a message, for tablets read at home without encoding. The message must live as
 * long. The verdicts of msg_read.h. */
int tablet_reader_open(struct store *store, struct tablet_set *tablets,
                       const struct msg_read_tablet *message, struct merge_cursor **cursor,
                       struct tg_errmsg *msg);

#endif
