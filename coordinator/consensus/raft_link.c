/* SPDX-License-Identifier: Apache-2.0 */
/* A connection that has to prove itself before raft sees it. */
#include "coordinator/consensus/raft_link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/endian.h"
#include "common/base/err.h"
#include "common/net/auth.h"
#include "common/net/tcp.h"

enum {
    RAFT_LINK_IDENTITY_MAGIC = 0x49524754, /* "TGRI" */
    RAFT_LINK_VERDICT_MAGIC = 0x56524754,  /* "TGRV" */
    RAFT_LINK_VERSION = 2,
    RAFT_LINK_PROVED_BYTES = 2 * AUTH_NONCE_BYTES + 16 + ADDRESS_BYTES,
    RAFT_LINK_ADDRESS_AT = 24,
    RAFT_LINK_PROOF_AT = RAFT_LINK_ADDRESS_AT + ADDRESS_BYTES
};

/* ---- life ---- */

static void raft_link_free(uv_handle_t *handle)
{
    free(handle->data);
}

/* Tells the owner, then lets the timer go and the memory with it. */
static void raft_link_end(struct raft_link *link, struct uv_stream_s *stream)
{
    link->on_end(link, stream);
    uv_close((uv_handle_t *)&link->timer, raft_link_free);
}

static void raft_link_maybe_end(struct raft_link *link)
{
    if (link->ending && link->tcp == NULL && !link->resolving)
        raft_link_end(link, NULL);
}

static void raft_link_on_tcp_closed(uv_handle_t *handle)
{
    struct raft_link *link = handle->data;
    raft_free(link->tcp);
    link->tcp = NULL;
    raft_link_maybe_end(link);
}

struct raft_link *raft_link_open(struct loop *loop, const char *secret, bool accepting)
{
    struct raft_link *link = calloc(1, sizeof *link);
    uv_tcp_t *tcp = raft_malloc(sizeof *tcp);
    if (link == NULL || tcp == NULL || uv_tcp_init(loop_uv(loop), tcp) != 0) {
        raft_free(tcp);
        free(link);
        return NULL;
    }
    link->loop = loop;
    link->secret = secret;
    link->accepting = accepting;
    link->tcp = tcp;
    tcp->data = link;
    uv_timer_init(loop_uv(loop), &link->timer);
    link->timer.data = link;
    return link;
}

uv_stream_t *raft_link_stream(struct raft_link *link)
{
    return (uv_stream_t *)link->tcp;
}

void raft_link_abort(struct raft_link *link, int err, const char *why)
{
    if (link->ending)
        return;
    link->ending = true;
    link->err = err;
    snprintf(link->why, sizeof link->why, "%s", why);
    uv_timer_stop(&link->timer);
    if (link->resolving)
        uv_cancel((uv_req_t *)&link->resolve);
    uv_close((uv_handle_t *)link->tcp, raft_link_on_tcp_closed);
}

static void raft_link_hand_over(struct raft_link *link)
{
    uv_stream_t *stream = (uv_stream_t *)link->tcp;
    link->ending = true;
    uv_timer_stop(&link->timer);
    uv_read_stop(stream);
    stream->data = NULL;
    link->tcp = NULL;
    raft_link_end(link, stream);
}

static void raft_link_on_late(uv_timer_t *timer)
{
    struct raft_link *link = timer->data;
    raft_link_abort(link, TG_TIMEOUT, "the peer did not prove itself in time");
}

/* ---- bytes ---- */

/* These few bytes always fit into the buffer of a connection that has just been made. */
static void raft_link_send(struct raft_link *link, struct buf *out)
{
    if (out->len == 0 || link->ending)
        return;
    uv_buf_t bytes = uv_buf_init((char *)out->data, (unsigned)out->len);
    int rc = uv_try_write((uv_stream_t *)link->tcp, &bytes, 1);
    if (rc < 0)
        raft_link_abort(link, TG_CLOSED, uv_strerror(rc));
    else if ((size_t)rc != out->len)
        raft_link_abort(link, TG_CLOSED, "the peer takes no bytes");
}

static void raft_link_prove(const struct raft_link *link, uint64_t from, uint64_t to,
                            const void *address, unsigned char proof[AUTH_PROOF_BYTES])
{
    uint8_t proved[RAFT_LINK_PROVED_BYTES];
    memcpy(proved, link->hello.nonces, 2 * AUTH_NONCE_BYTES);
    store_u64le(proved + 2 * AUTH_NONCE_BYTES, from);
    store_u64le(proved + 2 * AUTH_NONCE_BYTES + 8, to);
    memcpy(proved + 2 * AUTH_NONCE_BYTES + 16, address, ADDRESS_BYTES);
    auth_prove(link->secret, "raft identity", proved, sizeof proved, proof);
}

static void raft_link_send_identity(struct raft_link *link)
{
    struct buf out = BUF_INIT;
    unsigned char proof[AUTH_PROOF_BYTES];
    raft_link_prove(link, link->from, link->to, link->address, proof);
    buf_append_u32le(&out, RAFT_LINK_IDENTITY_MAGIC);
    buf_append_u32le(&out, RAFT_LINK_VERSION);
    buf_append_u64le(&out, link->from);
    buf_append_u64le(&out, link->to);
    buf_append(&out, link->address, sizeof link->address);
    buf_append(&out, proof, sizeof proof);
    raft_link_send(link, &out);
    buf_close(&out);
}

static int raft_link_judge(struct raft_link *link, const char **why)
{
    const uint8_t *m = link->message;
    uint64_t from = load_u64le(m + 8);
    uint64_t to = load_u64le(m + 16);
    unsigned char proof[AUTH_PROOF_BYTES];
    *why = "this is no identity of a raft server";
    if (load_u32le(m) != RAFT_LINK_IDENTITY_MAGIC)
        return TG_CORRUPT;
    if (load_u32le(m + 4) != RAFT_LINK_VERSION)
        return TG_UNSUPPORTED;
    raft_link_prove(link, from, to, m + RAFT_LINK_ADDRESS_AT, proof);
    *why = "the identity's proof is wrong";
    if (!auth_equal(proof, sizeof proof, m + RAFT_LINK_PROOF_AT, AUTH_PROOF_BYTES))
        return TG_DENIED;
    *why = "the identity's address is too long";
    if (m[RAFT_LINK_ADDRESS_AT + ADDRESS_BYTES - 1] != 0)
        return TG_CORRUPT;
    link->from = from;
    link->to = to;
    memcpy(link->address, m + RAFT_LINK_ADDRESS_AT, ADDRESS_BYTES);
    *why = "this server is not expected here";
    return link->check_identity(link, from, to);
}

static void raft_link_answer_identity(struct raft_link *link)
{
    const char *why;
    int err = raft_link_judge(link, &why);
    struct buf out = BUF_INIT;
    buf_append_u32le(&out, RAFT_LINK_VERDICT_MAGIC);
    buf_append_u32le(&out, (uint32_t)err);
    raft_link_send(link, &out);
    buf_close(&out);
    if (err != 0)
        raft_link_abort(link, err, why);
    else if (!link->ending)
        raft_link_hand_over(link);
}

static void raft_link_take_verdict(struct raft_link *link)
{
    int err = (int)load_u32le(link->message + 4);
    if (load_u32le(link->message) != RAFT_LINK_VERDICT_MAGIC)
        raft_link_abort(link, TG_CORRUPT, "this is no verdict of a raft server");
    else if (err != 0)
        raft_link_abort(link, TG_REFUSED, tg_err_sentence(err));
    else
        raft_link_hand_over(link);
}

/* Identity or verdict, after the hello. The peer has nothing more to say until it is answered. */
static void raft_link_take_message(struct raft_link *link, const uint8_t *bytes, size_t len)
{
    size_t want = link->accepting ? RAFT_LINK_IDENTITY_BYTES : RAFT_LINK_VERDICT_BYTES;
    if (len > want - link->message_len) {
        raft_link_abort(link, TG_CORRUPT, "the peer said more than it should");
        return;
    }
    if (len > 0)
        memcpy(link->message + link->message_len, bytes, len);
    link->message_len += len;
    if (link->message_len < want)
        return;
    if (link->accepting)
        raft_link_answer_identity(link);
    else
        raft_link_take_verdict(link);
}

static void raft_link_take(struct raft_link *link, const uint8_t *bytes, size_t len)
{
    size_t used = 0;
    if (!link->hello.done) {
        struct buf out = BUF_INIT;
        int err = rpc_hello_feed(&link->hello, bytes, len, &used, &out);
        if (err == 0 || err == TG_INCOMPLETE)
            raft_link_send(link, &out);
        buf_close(&out);
        if (err != 0 && err != TG_INCOMPLETE)
            raft_link_abort(link, err, link->hello.why);
        if (err != 0 || link->ending)
            return;
        if (!link->accepting)
            raft_link_send_identity(link);
    }
    if (!link->ending)
        raft_link_take_message(link, bytes + used, len - used);
}

static void raft_link_on_space(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct raft_link *link = handle->data;
    (void)suggested;
    *buf = uv_buf_init((char *)link->in, sizeof link->in);
}

static void raft_link_on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct raft_link *link = stream->data;
    if (n > 0)
        raft_link_take(link, (const uint8_t *)buf->base, (size_t)n);
    else if (n < 0)
        raft_link_abort(link, TG_CLOSED, n == UV_EOF ? "the peer closed" : uv_strerror((int)n));
}

/* ---- beginning ---- */

static void raft_link_begin(struct raft_link *link)
{
    unsigned char nonce[AUTH_NONCE_BYTES];
    tcp_prepare_peer(link->tcp);
    if (rpc_hello_nonce(nonce) != 0) {
        raft_link_abort(link, TG_IO, "no random bytes");
        return;
    }
    struct buf out = BUF_INIT;
    rpc_hello_init(&link->hello, "raft", link->secret, link->accepting, nonce, &out);
    raft_link_send(link, &out);
    buf_close(&out);
    if (link->ending)
        return;
    int rc = uv_read_start((uv_stream_t *)link->tcp, raft_link_on_space, raft_link_on_read);
    if (rc != 0)
        raft_link_abort(link, TG_IO, uv_strerror(rc));
}

void raft_link_accepted(struct raft_link *link, uint64_t limit_ms)
{
    tcp_peer(link->tcp, link->peer, sizeof link->peer);
    uv_timer_start(&link->timer, raft_link_on_late, limit_ms, 0);
    raft_link_begin(link);
}

static void raft_link_on_connected(uv_connect_t *request, int status)
{
    struct raft_link *link = request->data;
    if (link->ending)
        return;
    if (status != 0)
        raft_link_abort(link, TG_UNREACHABLE, uv_strerror(status));
    else
        raft_link_begin(link);
}

static void raft_link_connect_to(struct raft_link *link, const struct sockaddr *address)
{
    link->connecting.data = link;
    int rc = uv_tcp_connect(&link->connecting, link->tcp, address, raft_link_on_connected);
    if (rc != 0)
        raft_link_abort(link, TG_UNREACHABLE, uv_strerror(rc));
}

static void raft_link_on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
    struct raft_link *link = request->data;
    link->resolving = false;
    if (link->ending) {
        uv_freeaddrinfo(found);
        raft_link_maybe_end(link);
        return;
    }
    if (status != 0)
        raft_link_abort(link, TG_UNREACHABLE, uv_strerror(status));
    else
        raft_link_connect_to(link, found->ai_addr);
    uv_freeaddrinfo(found);
}

/* Names are asked for in the pool: a slow resolver must not stop the loop. */
static void raft_link_resolve(struct raft_link *link, const char *host, uint16_t port)
{
    struct sockaddr_storage address;
    if (uv_ip4_addr(host, port, (struct sockaddr_in *)&address) == 0 ||
        uv_ip6_addr(host, port, (struct sockaddr_in6 *)&address) == 0) {
        raft_link_connect_to(link, (struct sockaddr *)&address);
        return;
    }
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    char service[8];
    snprintf(service, sizeof service, "%u", (unsigned)port);
    link->resolve.data = link;
    int rc = uv_getaddrinfo(loop_uv(link->loop), &link->resolve, raft_link_on_resolved, host,
                            service, &hints);
    if (rc != 0)
        raft_link_abort(link, TG_UNREACHABLE, uv_strerror(rc));
    else
        link->resolving = true;
}

void raft_link_connect(struct raft_link *link, const char *address, uint64_t limit_ms)
{
    char host[TCP_HOST_BYTES];
    uint16_t port;
    snprintf(link->peer, sizeof link->peer, "%s", address);
    uv_timer_start(&link->timer, raft_link_on_late, limit_ms, 0);
    if (tcp_split_address(address, host, &port, NULL) != 0)
        raft_link_abort(link, TG_INVALID, "the address is not host:port");
    else
        raft_link_resolve(link, host, port);
}
