/* SPDX-License-Identifier: Apache-2.0 */
/* An event loop on a thread of its own, ways for a test to do things there, and a place where an
 * RPC answer arrives. */
#ifndef TG_TESTS_LIB_LOOP_THREAD_H
#define TG_TESTS_LIB_LOOP_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/net/loop.h"
#include "common/net/rpc.h"

struct loop_thread {
    struct loop *loop;
    pthread_t thread;
    bool runs;
};

/* All end the test program on an error. */
void loop_thread_open(struct loop_thread *thread);
/* Runs it on the loop and waits for its return. */
void loop_thread_do(struct loop_thread *thread, void (*run)(void *data), void *data);
/* The loop's run ends; what still belongs to it may be closed from the calling thread. */
void loop_thread_end(struct loop_thread *thread);
/* The end, and loop_close. */
void loop_thread_close(struct loop_thread *thread);

/* What became of a call. */
struct rpc_answer {
    pthread_mutex_t lock;
    pthread_cond_t came;
    unsigned times;
    int err;
    char message[TG_ERRMSG_MAX];
    struct buf head;
};
void rpc_answer_init(struct rpc_answer *answer);
void rpc_answer_close(struct rpc_answer *answer);
/* An rpc_done; data is the rpc_answer. */
void rpc_answer_done(void *data, const struct rpc_reply *reply);
/* Waits up to 20 s for the answer, checks that it came once, returns its err. */
int rpc_answer_wait(struct rpc_answer *answer);
bool rpc_answer_is_there(struct rpc_answer *answer);

#endif
