/* SPDX-License-Identifier: Apache-2.0 */
/* The way of an answer's text from the thread that reads to the loop that writes, with
 * back-pressure. Shared by the two: each lets go of it once. */
#ifndef TG_PARTICIPANT_API_READ_STREAM_H
#define TG_PARTICIPANT_API_READ_STREAM_H

#include <stdatomic.h>
#include <stdbool.h>

#include "common/base/buf.h"
#include "common/net/http_server.h"
#include "common/net/loop.h"

enum {
    READ_STREAM_BYTES = 256 * 1024,     /* handed to the loop at a time */
    READ_AHEAD_BYTES = 2 * 1024 * 1024, /* written ahead of a slow client */
    READ_STALL_MS = 60000,  /* a client that takes nothing for so long is given up, … */
    READ_CROWDED_MS = 2000, /* … or for so long where others wait for its place */
    READ_PARK_MS = 100      /* who waits longer for its client does not count as busy */
};

struct read_stream;

/* On the loop. NULL on TG_NOMEM. on_close of the exchange is the stream's. */
struct read_stream *read_stream_open(struct loop *loop, struct http_exchange *exchange);
/* Set when the client is gone or gives up: the reader stops soon. */
const atomic_bool *read_stream_stop(const struct read_stream *stream);
void read_stream_stop_now(struct read_stream *stream); /* any thread */
/* On the loop: calls gone once, on the loop, when the client goes; NULL takes that back. */
void read_stream_on_gone(struct read_stream *stream, void (*gone)(void *data), void *data);

/* The reader's side. headers: lines for the answer's head; they count at the first piece. */
void read_stream_headers(struct read_stream *stream, const char *content_type, const char *headers);
/* parks is called on the reader's thread: with true when its client has taken nothing for
 * READ_PARK_MS and then again every READ_PARK_MS, with false when it goes on. Returns whether others
 * wait for the thread. Before the thread begins. */
void read_stream_on_park(struct read_stream *stream, bool (*parks)(void *data, bool parked),
                         void *data);
/* Hands text over (emptied); waits while more than ahead_max bytes are ahead of the socket. 0,
 * TG_CANCELED (client gone), TG_TIMEOUT (client stalls). */
int read_stream_write(struct read_stream *stream, struct buf *text, size_t ahead_max,
                      uint64_t stall_ms);
/* The rest, and the end: a whole answer if nothing was written yet. Lets go of the stream. */
void read_stream_end(struct read_stream *stream, struct buf *text);
/* Instead of an end: an answer with that status if nothing was written yet, else the connection is
 * broken off. Lets go. */
void read_stream_fail(struct read_stream *stream, int status, struct buf *body);

#endif
