/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that waits for the answer to a call which the loop makes. Part of what the two share; it
 * lives until both are done with it, and neither the loop's end nor a stop leaves the thread
 * waiting.
 *
 *   thread   rpc_wait_begin ──▶ posts the call to the loop ──▶ rpc_wait_end: waits, takes the answer
 *   loop                         makes the call … rpc_wait_reply */
#ifndef TG_COMMON_NET_RPC_WAIT_H
#define TG_COMMON_NET_RPC_WAIT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "common/net/loop.h"
#include "common/net/rpc.h"

enum { RPC_WAIT_LOOK_MS = 50 }; /* how often a waiting thread looks at `stop` */

struct rpc_wait {
    struct loop *loop;
    struct loop_end_watch end;
    void (*gone)(struct rpc_wait *wait); /* neither needs it any more: frees what it is part of */
    atomic_uint references;              /* the waiting thread, and the loop */
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool over; /* this and the rest is under lock */
    int err;
    struct buf head;
    struct buf payload;
    struct tg_errmsg msg;
};

/* Any thread but the loop's. 0: the call has to be posted, and rpc_wait_reply be called once, with
 * its end. TG_CANCELED: the loop has ended, and gone was called. */
int rpc_wait_begin(struct rpc_wait *wait, struct loop *loop, void (*gone)(struct rpc_wait *wait),
                   struct tg_errmsg *msg);

/* An rpc_done; data is the struct rpc_wait. Copies the answer. */
void rpc_wait_reply(void *data, const struct rpc_reply *reply);

/* Waits for the end and lets go of the wait. head and payload (may be NULL) get the answer, in
 * place of what they held; the caller closes them. Returns its err; TG_NOMEM; TG_CANCELED when *stop
 * is set meanwhile (stop may be NULL: the answer, if it comes, is dropped) or when the loop ends.
 * msg is set on errors. */
int rpc_wait_end(struct rpc_wait *wait, const atomic_bool *stop, struct buf *head,
                 struct buf *payload, struct tg_errmsg *msg);

#endif
