/* SPDX-License-Identifier: Apache-2.0 */
/* Authenticated TCP links for raft. */
#include "coordinator/consensus/raft_transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/endian.h"
#include "common/base/log.h"
#include "common/net/auth.h"
#include "common/net/rpc_hello.h"
#include "common/net/tcp.h"
#include "coordinator/consensus/raft_link.h"

struct raft_transport {
    struct raft_uv_transport uv; /* uv.impl is this */
    struct loop *loop;
    struct raft_transport_options options;
    char own_address[ADDRESS_BYTES];
    struct raft_transport_server servers[RAFT_TRANSPORT_SERVERS_MAX];
    uint32_t server_count;
    uint64_t next_id;
    uint64_t id;
    uv_tcp_t listener;
    uint16_t port;
    bool listening; /* the listener is open */
    bool closing;
    bool freeing;
    raft_uv_accept_cb accepted;
    raft_uv_transport_close_cb closed;
    struct raft_link *links; /* that are not raft's yet */
    uint32_t pending;        /* of those, the ones that came in */
    struct raft_transport_stats stats;
};

/* The end of closing: raft is told once, and the memory goes when both it and the owner are done.
 */
static void raft_transport_maybe_end(struct raft_transport *transport)
{
    if (!transport->closing || transport->listening || transport->links != NULL)
        return;
    raft_uv_transport_close_cb closed = transport->closed;
    transport->closed = NULL;
    bool freeing = transport->freeing;
    if (closed != NULL)
        closed(&transport->uv);
    if (freeing)
        free(transport);
}

static void raft_transport_on_listener_closed(uv_handle_t *handle)
{
    struct raft_transport *transport = handle->data;
    transport->listening = false;
    raft_transport_maybe_end(transport);
}

static void raft_transport_shut(struct raft_transport *transport)
{
    if (transport->closing)
        return;
    transport->closing = true;
    if (transport->listening)
        uv_close((uv_handle_t *)&transport->listener, raft_transport_on_listener_closed);
    for (struct raft_link *link = transport->links; link != NULL; link = link->next)
        raft_link_abort(link, TG_CANCELED, "the transport closes");
}

/* ---- who may speak ---- */

static const struct raft_transport_server *
raft_transport_find(const struct raft_transport *transport, uint64_t id)
{
    for (uint32_t i = 0; i < transport->server_count; i++)
        if (transport->servers[i].id == id)
            return &transport->servers[i];
    return NULL;
}

void raft_transport_set_servers(struct raft_transport *transport,
                                const struct raft_transport_server *servers, uint32_t count,
                                uint64_t next_id)
{
    TG_CHECK(count <= RAFT_TRANSPORT_SERVERS_MAX);
    memcpy(transport->servers, servers, count * sizeof *servers);
    transport->server_count = count;
    transport->next_id = next_id;
}

static int raft_transport_check_identity(struct raft_link *link, uint64_t from, uint64_t to)
{
    const struct raft_transport *transport = link->owner;
    if (to != transport->id || from == transport->id || from == 0 ||
        (from < transport->next_id && raft_transport_find(transport, from) == NULL)) {
        log_warn("raft", "identity refused peer=%s from=%lu to=%lu here=%lu", link->peer,
                 (unsigned long)from, (unsigned long)to, (unsigned long)transport->id);
        return TG_REFUSED;
    }
    return 0;
}

static void raft_transport_count(struct raft_transport *transport, const struct raft_link *link)
{
    struct raft_transport_stats *stats = &transport->stats;
    if (!link->accepting) {
        stats->connect_failed++;
        return;
    }
    switch (link->err) {
    case TG_CANCELED:
    case TG_CLOSED:
        return;
    case TG_DENIED:
        stats->refused_proof++;
        break;
    case TG_REFUSED:
        stats->refused_identity++;
        break;
    case TG_TIMEOUT:
        stats->refused_late++;
        break;
    case TG_BUSY:
        stats->refused_crowd++;
        break;
    default:
        stats->refused_garbage++;
        break;
    }
    log_warn("raft", "link refused peer=%s why=%s", link->peer, log_quote(link->why));
}

/* ---- ends of links ---- */

static void raft_transport_unlink(struct raft_transport *transport, struct raft_link *link)
{
    struct raft_link **at = &transport->links;
    while (*at != link)
        at = &(*at)->next;
    *at = link->next;
    if (link->accepting)
        transport->pending--;
}

/* A link is ready (then stream is raft's) or has failed (then its socket is closed); it is freed
 * after this. */
static void raft_transport_on_link(struct raft_link *link, struct uv_stream_s *stream)
{
    struct raft_transport *transport = link->owner;
    raft_transport_unlink(transport, link);
    if (link->accepting) {
        if (stream != NULL) {
            const struct raft_transport_server *server = raft_transport_find(transport, link->from);
            transport->stats.accepted++;
            transport->accepted(&transport->uv, link->from,
                                server != NULL ? server->address : link->address, stream);
        } else {
            raft_transport_count(transport, link);
        }
    } else {
        int status = 0;
        if (stream == NULL) {
            status = link->err == TG_CANCELED ? RAFT_CANCELED : RAFT_NOCONNECTION;
            raft_transport_count(transport, link);
            log_debug("raft", "no link to=%lu address=%s why=%s", (unsigned long)link->to,
                      link->peer, log_quote(link->why));
        } else {
            transport->stats.connected++;
        }
        link->request->cb(link->request, stream, status);
    }
    raft_transport_maybe_end(transport);
}

static struct raft_link *raft_transport_new_link(struct raft_transport *transport, bool accepting)
{
    struct raft_link *link = raft_link_open(transport->loop, transport->options.secret, accepting);
    if (link == NULL)
        return NULL;
    link->owner = transport;
    if (!accepting)
        memcpy(link->address, transport->own_address, sizeof link->address);
    link->on_end = raft_transport_on_link;
    link->check_identity = raft_transport_check_identity;
    link->next = transport->links;
    transport->links = link;
    if (accepting)
        transport->pending++;
    return link;
}

static void raft_transport_on_connection(uv_stream_t *listener, int status)
{
    struct raft_transport *transport = listener->data;
    if (status != 0 || transport->closing) {
        log_warn("raft", "accept failed error=%s", uv_strerror(status));
        return;
    }
    struct raft_link *link = raft_transport_new_link(transport, true);
    if (link == NULL) {
        log_error("raft", "no memory for a connection");
        return;
    }
    int rc = uv_accept(listener, raft_link_stream(link));
    if (rc != 0)
        raft_link_abort(link, TG_CLOSED, uv_strerror(rc));
    else if (transport->accepted == NULL)
        raft_link_abort(link, TG_CLOSED, "raft has not started");
    else if (transport->pending > RAFT_TRANSPORT_PENDING_MAX)
        raft_link_abort(link, TG_BUSY, "too many connections have not proven themselves");
    else
        raft_link_accepted(link, RAFT_TRANSPORT_ACCEPT_MS_MAX);
}

/* ---- what raft calls ---- */

static int raft_transport_init(struct raft_uv_transport *uv, raft_id id, const char *address)
{
    struct raft_transport *transport = uv->impl;
    (void)address;
    transport->id = id;
    return 0;
}

static int raft_transport_listen(struct raft_uv_transport *uv, raft_uv_accept_cb cb)
{
    struct raft_transport *transport = uv->impl;
    transport->accepted = cb;
    return 0;
}

static int raft_transport_connect(struct raft_uv_transport *uv, struct raft_uv_connect *request,
                                  raft_id id, const char *address, raft_uv_connect_cb cb)
{
    struct raft_transport *transport = uv->impl;
    /* Where a server lives is configuration; the log's address only names it. */
    const struct raft_transport_server *server = raft_transport_find(transport, id);
    struct raft_link *link = raft_transport_new_link(transport, false);
    if (link == NULL)
        return RAFT_NOMEM;
    request->cb = cb;
    link->request = request;
    link->from = transport->id;
    link->to = id;
    raft_link_connect(link, server != NULL ? server->address : address,
                      RAFT_TRANSPORT_CONNECT_MS_MAX);
    return 0;
}

static void raft_transport_on_close(struct raft_uv_transport *uv, raft_uv_transport_close_cb cb)
{
    struct raft_transport *transport = uv->impl;
    transport->closed = cb;
    raft_transport_shut(transport);
    raft_transport_maybe_end(transport);
}

/* ---- life ---- */

static int raft_transport_split(const char *address, char host[TCP_HOST_BYTES], uint16_t *port,
                                struct tg_errmsg *msg)
{
    size_t len = strlen(address);
    if (len > 2 && len < TCP_HOST_BYTES && strcmp(address + len - 2, ":0") == 0) {
        memcpy(host, address, len - 2);
        host[len - 2] = '\0';
        *port = 0;
        return 0;
    }
    return tcp_split_address(address, host, port, msg);
}

int raft_transport_open(struct loop *loop, const struct raft_transport_options *options,
                        struct raft_transport **out, struct tg_errmsg *msg)
{
    char host[TCP_HOST_BYTES];
    uint16_t port;
    int err = raft_transport_split(options->listen_address, host, &port, msg);
    if (err != 0)
        return err;
    struct raft_transport *transport = calloc(1, sizeof *transport);
    if (transport == NULL)
        return tg_fail(msg, TG_NOMEM, "no memory for raft's transport");
    transport->loop = loop;
    transport->options = *options;
    snprintf(transport->own_address, sizeof transport->own_address, "%s", options->own_address);
    transport->uv.version = 1;
    transport->uv.impl = transport;
    transport->uv.init = raft_transport_init;
    transport->uv.listen = raft_transport_listen;
    transport->uv.connect = raft_transport_connect;
    transport->uv.close = raft_transport_on_close;
    transport->listener.data = transport;
    transport->listening = true;
    err = tcp_listen(loop, &transport->listener, host, port, raft_transport_on_connection,
                     raft_transport_on_listener_closed, &transport->port, msg);
    if (err != 0) {
        transport->closing = true;
        transport->freeing = true;
        return err;
    }
    *out = transport;
    return 0;
}

uint16_t raft_transport_port(const struct raft_transport *transport)
{
    return transport->port;
}

struct raft_uv_transport *raft_transport_uv(struct raft_transport *transport)
{
    return &transport->uv;
}

const struct raft_transport_stats *raft_transport_stats(const struct raft_transport *transport)
{
    return &transport->stats;
}

void raft_transport_close(struct raft_transport *transport)
{
    if (transport == NULL)
        return;
    transport->freeing = true;
    raft_transport_shut(transport);
    raft_transport_maybe_end(transport);
}
