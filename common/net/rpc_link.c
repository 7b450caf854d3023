/* SPDX-License-Identifier: Apache-2.0 */
/* An RPC connection on libuv. */
#include "common/net/rpc_link.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/net/tcp.h"

struct rpc_segment {
    struct rpc_segment *next;
    struct buf bytes;
    bool open; /* more may be appended */
};

static void rpc_link_free_segments(struct rpc_segment *segment)
{
    while (segment != NULL) {
        struct rpc_segment *next = segment->next;
        buf_close(&segment->bytes);
        free(segment);
        segment = next;
    }
}

static void rpc_link_maybe_closed(struct rpc_link *link)
{
    rpc_reader_close(&link->reader);
    link->handlers->on_closed(link->data);
}

static void rpc_link_on_close(uv_handle_t *handle)
{
    rpc_link_maybe_closed(handle->data);
}

void rpc_link_close(struct rpc_link *link)
{
    if (link->closing)
        return;
    link->closing = true;
    link->up = false;
    link->reading = false;
    loop_turn_hook_remove(link->loop, &link->hook);
    loop_timer_close(link->limit);
    link->limit = NULL;
    rpc_link_free_segments(link->queue);
    link->queue = NULL;
    link->queue_end = &link->queue;
    link->queued_bytes = 0;
    uv_close((uv_handle_t *)&link->tcp, rpc_link_on_close);
}

static void rpc_link_lost(struct rpc_link *link, int err, const char *why)
{
    if (link->closing)
        return;
    rpc_link_close(link);
    link->handlers->on_lost(link->data, err, why);
}

static void rpc_link_too_slow(void *data)
{
    rpc_link_lost(data, TG_TIMEOUT, "connecting took too long");
}

/* ---- out ---- */

static struct rpc_segment *rpc_link_new_segment(struct rpc_link *link, bool open)
{
    struct rpc_segment *segment = calloc(1, sizeof *segment);
    TG_CHECK_MEMORY(segment != NULL);
    segment->open = open;
    *link->queue_end = segment;
    link->queue_end = &segment->next;
    return segment;
}

static void rpc_link_append(struct rpc_link *link, const void *bytes, size_t len)
{
    struct rpc_segment *last = NULL;
    if (link->queue != NULL)
        last = (struct rpc_segment *)((char *)link->queue_end - offsetof(struct rpc_segment, next));
    if (last == NULL || !last->open || last->bytes.len >= RPC_LINK_SEGMENT_BYTES)
        last = rpc_link_new_segment(link, true);
    buf_append(&last->bytes, bytes, len);
    TG_CHECK_MEMORY(last->bytes.err == 0);
    link->queued_bytes += len;
}

static void rpc_link_append_buf(struct rpc_link *link, struct buf *part)
{
    if (part == NULL || part->len == 0)
        return;
    if (part->len <= RPC_LINK_COPY_MAX) {
        rpc_link_append(link, part->data, part->len);
        buf_clear(part);
        return;
    }
    struct rpc_segment *segment = rpc_link_new_segment(link, false);
    link->queued_bytes += part->len;
    segment->bytes = *part;
    buf_init(part);
}

void rpc_link_send(struct rpc_link *link, struct rpc_frame *frame, struct buf *head,
                   struct buf *payload)
{
    if (link->closing)
        return;
    frame->head = head == NULL ? slice_of(NULL, 0) : slice_of(head->data, head->len);
    frame->payload = payload == NULL ? slice_of(NULL, 0) : slice_of(payload->data, payload->len);
    uint8_t header[RPC_FRAME_HEADER_BYTES];
    rpc_frame_encode(frame, header);
    rpc_link_append(link, header, sizeof header);
    if (frame->text.len > 0)
        rpc_link_append(link, frame->text.data, frame->text.len);
    rpc_link_append_buf(link, head);
    rpc_link_append_buf(link, payload);
    loop_turn_hook_arm(link->loop, &link->hook);
}

static void rpc_link_send_raw(struct rpc_link *link, struct buf *bytes)
{
    rpc_link_append(link, bytes->data, bytes->len);
    buf_close(bytes);
    loop_turn_hook_arm(link->loop, &link->hook);
}

static void rpc_link_written(struct rpc_link *link)
{
    rpc_link_free_segments(link->writing);
    link->writing = NULL;
    link->queued_bytes -= link->writing_bytes;
    link->writing_bytes = 0;
}

static void rpc_link_on_write(uv_write_t *write, int status)
{
    struct rpc_link *link = write->data;
    link->write_busy = false;
    if (link->closing) {
        rpc_link_free_segments(link->writing);
        link->writing = NULL;
        return;
    }
    rpc_link_written(link);
    if (status != 0) {
        rpc_link_lost(link, TG_CLOSED, uv_strerror(status));
        return;
    }
    if (link->queue != NULL)
        loop_turn_hook_arm(link->loop, &link->hook);
    link->handlers->on_written(link->data);
}

/* Takes up to RPC_LINK_SEGMENTS_MAX pieces from the queue into `writing`. */
static unsigned rpc_link_gather(struct rpc_link *link, uv_buf_t bufs[RPC_LINK_SEGMENTS_MAX])
{
    unsigned count = 0;
    struct rpc_segment **at = &link->queue;
    link->writing = link->queue;
    link->writing_bytes = 0;
    for (; *at != NULL && count < RPC_LINK_SEGMENTS_MAX; at = &(*at)->next) {
        bufs[count++] = uv_buf_init((char *)(*at)->bytes.data, (unsigned)(*at)->bytes.len);
        link->writing_bytes += (*at)->bytes.len;
    }
    struct rpc_segment *rest = *at;
    *at = NULL;
    link->queue = rest;
    if (rest == NULL)
        link->queue_end = &link->queue;
    return count;
}

/* First an attempt to write at once: if the socket takes everything, the turn is over without a
 * callback. */
static void rpc_link_flush(struct loop_turn_hook *hook)
{
    struct rpc_link *link = hook->data;
    uv_buf_t bufs[RPC_LINK_SEGMENTS_MAX];
    bool any = false;
    while (!link->closing && !link->write_busy && link->queue != NULL) {
        unsigned count = rpc_link_gather(link, bufs);
        int rc = uv_try_write((uv_stream_t *)&link->tcp, bufs, count);
        size_t done = rc > 0 ? (size_t)rc : 0;
        if (rc < 0 && rc != UV_EAGAIN) {
            rpc_link_written(link);
            rpc_link_lost(link, TG_CLOSED, uv_strerror(rc));
            return;
        }
        any = true;
        if (done == link->writing_bytes) {
            rpc_link_written(link);
            continue;
        }
        unsigned first = 0;
        while (done >= bufs[first].len)
            done -= bufs[first++].len;
        bufs[first].base += done;
        bufs[first].len -= done;
        link->write.data = link;
        rc = uv_write(&link->write, (uv_stream_t *)&link->tcp, bufs + first, count - first,
                      rpc_link_on_write);
        if (rc != 0) {
            rpc_link_written(link);
            rpc_link_lost(link, TG_CLOSED, uv_strerror(rc));
            return;
        }
        link->write_busy = true;
    }
    if (any && !link->closing && !link->write_busy)
        link->handlers->on_written(link->data);
}

/* ---- in ---- */

static void rpc_link_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)suggested;
    struct rpc_link *link = handle->data;
    size_t len = 0;
    uint8_t *space = link->up ? rpc_reader_space(&link->reader, &len) : NULL;
    if (space == NULL) {
        space = loop_scratch(link->loop);
        len = LOOP_SCRATCH_BYTES;
    }
    *buf = uv_buf_init((char *)space, (unsigned)len);
}

static bool rpc_link_frame(void *data, const struct rpc_frame *frame, uint8_t *body)
{
    struct rpc_link *link = data;
    link->handlers->on_frame(link->data, frame, body);
    return !link->closing;
}

static void rpc_link_on_bytes(struct rpc_link *link, const uint8_t *bytes, size_t len)
{
    if (!link->up) {
        struct buf out = BUF_INIT;
        size_t used;
        int err = rpc_hello_feed(&link->hello, bytes, len, &used, &out);
        if (out.len > 0)
            rpc_link_send_raw(link, &out);
        if (err == TG_INCOMPLETE)
            return;
        if (err != 0) {
            rpc_link_lost(link, err, link->hello.why);
            return;
        }
        bytes += used;
        len -= used;
        link->up = true;
        loop_timer_stop(link->limit);
        link->handlers->on_up(link->data);
        if (link->closing)
            return;
    }
    int err = rpc_reader_feed(&link->reader, bytes, len, rpc_link_frame, link);
    if (err != 0)
        rpc_link_lost(link, err, link->reader.why);
}

static void rpc_link_on_read(uv_stream_t *stream, ssize_t nread, const uv_buf_t *buf)
{
    struct rpc_link *link = stream->data;
    if (link->closing || nread == 0)
        return;
    if (nread == UV_EOF)
        rpc_link_lost(link, TG_CLOSED, "the peer closed the connection");
    else if (nread < 0)
        rpc_link_lost(link, TG_CLOSED, uv_strerror((int)nread));
    else
        rpc_link_on_bytes(link, (const uint8_t *)buf->base, (size_t)nread);
}

void rpc_link_pause(struct rpc_link *link)
{
    if (!link->reading)
        return;
    link->reading = false;
    uv_read_stop((uv_stream_t *)&link->tcp);
}

void rpc_link_resume(struct rpc_link *link)
{
    if (link->reading || link->closing || !link->started)
        return;
    link->reading = uv_read_start((uv_stream_t *)&link->tcp, rpc_link_alloc, rpc_link_on_read) == 0;
}

/* ---- life ---- */

int rpc_link_init(struct rpc_link *link, struct loop *loop, const char *service, const char *secret,
                  bool accepting, const struct rpc_link_handlers *handlers, void *data)
{
    memset(link, 0, sizeof *link);
    unsigned char nonce[AUTH_NONCE_BYTES];
    if (rpc_hello_nonce(nonce) != 0)
        return TG_IO;
    link->loop = loop;
    link->handlers = handlers;
    link->data = data;
    link->queue_end = &link->queue;
    link->limit = loop_timer_open(loop, rpc_link_too_slow, link);
    if (link->limit == NULL)
        return TG_NOMEM;
    if (uv_tcp_init(loop_uv(loop), &link->tcp) != 0) {
        loop_timer_close(link->limit);
        return TG_IO;
    }
    link->tcp.data = link;
    link->hook = (struct loop_turn_hook){.run = rpc_link_flush, .data = link};
    loop_turn_hook_add(loop, &link->hook);
    rpc_reader_init(&link->reader);
    struct buf out = BUF_INIT;
    rpc_hello_init(&link->hello, service, secret, accepting, nonce, &out);
    if (accepting)
        rpc_link_append(link, out.data, out.len);
    buf_close(&out);
    return 0;
}

void rpc_link_start(struct rpc_link *link)
{
    tcp_prepare_peer(&link->tcp);
    tcp_peer(&link->tcp, link->peer, sizeof link->peer);
    link->started = true;
    loop_timer_start(link->limit, RPC_HELLO_MS_MAX, 0);
    if (link->queue != NULL)
        loop_turn_hook_arm(link->loop, &link->hook);
    rpc_link_resume(link);
    if (!link->reading)
        rpc_link_lost(link, TG_IO, "the connection cannot be read");
}

static void rpc_link_on_connect(uv_connect_t *connect, int status)
{
    struct rpc_link *link = connect->data;
    if (link->closing)
        return;
    if (status != 0)
        rpc_link_lost(link, TG_UNREACHABLE, uv_strerror(status));
    else
        rpc_link_start(link);
}

void rpc_link_connect(struct rpc_link *link, const struct sockaddr *address)
{
    link->connect.data = link;
    loop_timer_start(link->limit, RPC_HELLO_MS_MAX, 0);
    int rc = uv_tcp_connect(&link->connect, &link->tcp, address, rpc_link_on_connect);
    if (rc != 0)
        rpc_link_lost(link, TG_UNREACHABLE, uv_strerror(rc));
}
