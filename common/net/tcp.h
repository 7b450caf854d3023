/* SPDX-License-Identifier: Apache-2.0 */
/* What every TCP socket of ours gets: no delay, an address from text, a listener on a port. */
#ifndef TG_COMMON_NET_TCP_H
#define TG_COMMON_NET_TCP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <uv.h>

#include "common/base/err.h"
#include "common/net/loop.h"

enum {
    TCP_BACKLOG = 1024,   /* connections the kernel holds until they are accepted */
    TCP_HOST_BYTES = 256, /* a host name with its zero */
    TCP_KEEPALIVE_S = 15, /* silence before a peer is probed */
    /* Bytes unacknowledged for so long end a connection between nodes. */
    TCP_UNACKNOWLEDGED_MS = 30 * 1000
};

/* "host:port" into its parts. TG_INVALID if there is no port in 1..65535 or the host does not fit.
 */
int tcp_split_address(const char *address, char host[TCP_HOST_BYTES], uint16_t *port,
                      struct tg_errmsg *msg);
/* A numeric address or a name (which asks the resolver, blocking) as a socket address. TG_INVALID.
 */
int tcp_resolve(const char *host, uint16_t port, struct sockaddr_storage *address,
                struct tg_errmsg *msg);
/* Inits and binds handle and listens; *bound is the port it got. handle->data is kept. On failure
 * handle is closed with `on_close` (its memory must live until then). TG_INVALID or TG_IO. */
int tcp_listen(struct loop *loop, uv_tcp_t *handle, const char *host, uint16_t port,
               uv_connection_cb on_connection, uv_close_cb on_close, uint16_t *bound,
               struct tg_errmsg *msg);
/* Right after accept or connect: TCP_NODELAY. */
void tcp_prepare(uv_tcp_t *handle);
/* And for links between nodes: keep-alive, and an end to bytes that nobody acknowledges. */
void tcp_prepare_peer(uv_tcp_t *handle);
/* The other side's address as text, "" if it has gone. */
void tcp_peer(const uv_tcp_t *handle, char *out, size_t cap);

#endif
