/* SPDX-License-Identifier: Apache-2.0 */
/* One RPC connection, either end of it: hello, frames in, frames out. All frames of a loop turn
 * leave in one write. On the loop only. */
#ifndef TG_COMMON_NET_RPC_LINK_H
#define TG_COMMON_NET_RPC_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "common/base/buf.h"
#include "common/net/loop.h"
#include "common/net/rpc_frame.h"
#include "common/net/rpc_hello.h"

enum {
    RPC_LINK_COPY_MAX = 16 * 1024, /* larger parts of a frame are queued without a copy */
    /* Small frames are gathered into pieces of about this size. */
    RPC_LINK_SEGMENT_BYTES = 64 * 1024,
    RPC_LINK_SEGMENTS_MAX = 512 /* pieces in one write */
};

struct rpc_link_handlers {
    void (*on_up)(void *data); /* the hello is done */
    /* As rpc_reader_frame; the result is ignored once the link is closing. */
    void (*on_frame)(void *data, const struct rpc_frame *frame, uint8_t *body);
    void (*on_written)(void *data); /* fewer bytes are queued than before */
    /* Once, if the link ends by itself; it is closing already. */
    void (*on_lost)(void *data, int err, const char *why);
    void (*on_closed)(void *data); /* last of all: the link's memory may go */
};

struct rpc_segment;

struct rpc_link {
    struct loop *loop;
    uv_tcp_t tcp;
    uv_connect_t connect;
    uv_write_t write;
    struct loop_timer *limit; /* for connect and hello */
    struct loop_turn_hook hook;
    struct rpc_hello hello;
    struct rpc_reader reader;
    const struct rpc_link_handlers *handlers;
    void *data;
    struct rpc_segment *queue, **queue_end;
    struct rpc_segment *writing;
    size_t writing_bytes;
    size_t queued_bytes; /* not yet with the kernel */
    bool started;
    bool up;
    bool reading;
    bool write_busy;
    bool closing;
    char peer[64];
};

/* service and secret as in rpc_hello_init. 0, TG_NOMEM or TG_IO; then there is nothing to close. */
int rpc_link_init(struct rpc_link *link, struct loop *loop, const char *service, const char *secret,
                  bool accepting, const struct rpc_link_handlers *handlers, void *data);
/* Accepting side: link->tcp was accepted. Begins the hello. */
void rpc_link_start(struct rpc_link *link);
/* Connecting side. */
void rpc_link_connect(struct rpc_link *link, const struct sockaddr *address);
/* Queues a frame (parts within their caps). head and payload may be NULL; their memory may be
 * taken, and they are empty afterwards. frame's head and payload are set from them. Nothing happens
 * on a closing link. */
void rpc_link_send(struct rpc_link *link, struct rpc_frame *frame, struct buf *head,
                   struct buf *payload);
void rpc_link_pause(struct rpc_link *link);
void rpc_link_resume(struct rpc_link *link);
void rpc_link_close(struct rpc_link *link);

#endif
