/* SPDX-License-Identifier: Apache-2.0 */
/* MSG_READ_TABLET on the node that holds the replica: one block of rows at a time, from where the
 * last one ended. */
#ifndef TG_PARTICIPANT_READ_TABLET_READER_H
#define TG_PARTICIPANT_READ_TABLET_READER_H

#include "common/proto/msg_read.h"
#include "participant/store/store.h"
#include "participant/tablet/tablet_set.h"

/* Threads that read for peers: bounded in number and queue. */
struct tablet_reader_pool;
enum { TABLET_READER_THREADS = 4, TABLET_READER_QUEUE_MAX = 1024 };

int tablet_reader_pool_open(struct store *store, struct tablet_set *tablets,
                            struct tablet_reader_pool **pool);
void tablet_reader_pool_close(struct tablet_reader_pool *pool);

/* reply and payload are the callee's to take from or leave; valid during the call, closed
 * afterwards. On a pool thread, or on the caller's with TG_BUSY. */
typedef void tablet_reader_done(void *data, int err, struct msg_read_tablet_reply *reply,
                                struct buf *payload);
/* Takes the message over. Any thread; never waits. */
void tablet_reader_serve(struct tablet_reader_pool *pool, struct msg_read_tablet *message,
                         tablet_reader_done *done, void *data);

struct merge_cursor;
/* The cursor behind a message, for tablets read at home without encoding. The message must live as
 * long. The verdicts of msg_read.h. */
int tablet_reader_open(struct store *store, struct tablet_set *tablets,
                       const struct msg_read_tablet *message, struct merge_cursor **cursor,
                       struct tg_errmsg *msg);

/* One block on the caller's thread. 0 and reply, payload filled (the
 * caller closes them), or the verdicts of msg_read.h. */
int tablet_reader_read(struct store *store, struct tablet_set *tablets,
                       const struct msg_read_tablet *message, struct msg_read_tablet_reply *reply,
                       struct buf *payload, struct tg_errmsg *msg);

#endif
