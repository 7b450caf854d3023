/* SPDX-License-Identifier: Apache-2.0 */
/* The way of an answer's text from the thread that reads to the loop that writes.
 *
 * Pieces are posted to the loop one by one. `ahead` counts the bytes that the loop has not yet been
 * able to give to the socket: while the exchange's own buffer is full they wait in `held`, and the
 * reader waits on `moved`. */
#include "participant/api/read_stream.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/check.h"

enum { HEADERS_BYTES = 512, CONTENT_TYPE_BYTES = 64 };

enum piece_kind { PIECE_TEXT, PIECE_END, PIECE_FAIL };

struct piece {
    struct loop_call post;
    struct read_stream *stream;
    enum piece_kind kind;
    int status;
    struct buf text;
};

struct read_stream {
    struct loop *loop;
    struct http_exchange *exchange; /* the loop's; NULL once closed */
    bool begun;                     /* the loop's */
    struct buf held;                /* the loop's: text that waits for the socket */
    bool ended;                     /* the loop's: nothing comes behind held */
    void (*gone)(void *data);       /* the loop's */
    void *gone_data;
    bool (*parks)(void *data, bool parked); /* the reader's */
    void *park_data;
    char headers[HEADERS_BYTES];
    char content_type[CONTENT_TYPE_BYTES];
    atomic_bool stop;
    atomic_int references;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    size_t ahead;
};

static void release(struct read_stream *s)
{
    if (atomic_fetch_sub(&s->references, 1) != 1)
        return;
    pthread_cond_destroy(&s->moved);
    pthread_mutex_destroy(&s->lock);
    buf_close(&s->held);
    free(s);
}

static void moved(struct read_stream *s, size_t bytes)
{
    pthread_mutex_lock(&s->lock);
    s->ahead -= bytes;
    pthread_cond_signal(&s->moved);
    pthread_mutex_unlock(&s->lock);
}

void read_stream_stop_now(struct read_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    atomic_store(&stream->stop, true);
    pthread_cond_signal(&stream->moved);
    pthread_mutex_unlock(&stream->lock);
}

static void on_close(void *data)
{
    struct read_stream *s = data;

    s->exchange = NULL;
    read_stream_stop_now(s);
    if (s->gone != NULL)
        s->gone(s->gone_data);
    release(s);
}

struct read_stream *read_stream_open(struct loop *loop, struct http_exchange *exchange)
{
    struct read_stream *s = calloc(1, sizeof *s);
    pthread_condattr_t attributes;

    if (s == NULL)
        return NULL;
    s->loop = loop;
    s->exchange = exchange;
    atomic_init(&s->stop, false);
    atomic_init(&s->references, 2);
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&s->moved, &attributes);
    pthread_condattr_destroy(&attributes);
    http_exchange_on_close(exchange, on_close, s);
    return s;
}

const atomic_bool *read_stream_stop(const struct read_stream *stream)
{
    return &stream->stop;
}

void read_stream_on_gone(struct read_stream *stream, void (*gone)(void *data), void *data)
{
    stream->gone = gone;
    stream->gone_data = data;
}

void read_stream_headers(struct read_stream *stream, const char *content_type, const char *headers)
{
    TG_CHECK(strlen(headers) < sizeof stream->headers);
    strcpy(stream->headers, headers);
    TG_CHECK(strlen(content_type) < sizeof stream->content_type);
    strcpy(stream->content_type, content_type);
}

/* ---- on the loop ---- */

/* Gives held text to the socket as long as it takes some; then, if all is given and nothing more
 * comes, ends. */
static void pump(struct read_stream *s)
{
    size_t bytes = s->held.len;

    if (s->exchange == NULL || http_exchange_stream_full(s->exchange))
        return;
    if (bytes > 0) {
        http_exchange_stream_write(s->exchange, s->held.data, bytes);
        buf_clear(&s->held);
        moved(s, bytes);
    }
    if (s->ended)
        http_exchange_stream_end(s->exchange);
}

static void on_drain(void *data)
{
    pump(data);
}

static void write_text(struct read_stream *s, struct buf *text)
{
    size_t bytes = text->len;

    if (!s->begun)
        http_exchange_stream_begin(s->exchange, 200, s->content_type, s->headers, on_drain, s);
    s->begun = true;
    if (s->held.len == 0 && !s->ended && !http_exchange_stream_full(s->exchange)) {
        http_exchange_stream_write(s->exchange, text->data, bytes);
        moved(s, bytes);
        return;
    }
    buf_append(&s->held, text->data, bytes);
    if (s->held.err != 0) /* what is lost may not look whole */
        http_exchange_stream_abort(s->exchange);
    else
        pump(s);
}

static void end(struct read_stream *s, struct buf *text)
{
    if (!s->begun) {
        http_exchange_respond(s->exchange, 200, s->content_type, s->headers, text->data, text->len);
        return;
    }
    s->ended = true;
    write_text(s, text);
}

static void fail(struct read_stream *s, const struct piece *piece)
{
    if (s->begun)
        http_exchange_stream_abort(s->exchange);
    else
        http_exchange_respond(s->exchange, piece->status, "application/json;charset=utf-8", NULL,
                              piece->text.data, piece->text.len);
}

static void run_piece(struct loop_call *post)
{
    struct piece *piece = post->data;
    struct read_stream *s = piece->stream;

    if (s->exchange == NULL)
        moved(s, piece->text.len);
    else if (piece->kind == PIECE_TEXT)
        write_text(s, &piece->text);
    else if (piece->kind == PIECE_END)
        end(s, &piece->text);
    else
        fail(s, piece);
    if (piece->kind != PIECE_TEXT)
        release(s);
    buf_close(&piece->text);
    free(piece);
}

/* ---- on the reader's thread ---- */

static void post_piece(struct read_stream *s, enum piece_kind kind, int status, struct buf *text)
{
    struct piece *piece = calloc(1, sizeof *piece);

    TG_CHECK_MEMORY(piece != NULL);
    piece->stream = s;
    piece->kind = kind;
    piece->status = status;
    piece->text = *text;
    buf_init(text);
    pthread_mutex_lock(&s->lock);
    s->ahead += piece->text.len;
    pthread_mutex_unlock(&s->lock);
    piece->post = (struct loop_call){.run = run_piece, .data = piece};
    loop_post(s->loop, &piece->post);
}

static struct timespec in_ms(uint64_t ms)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t)(ms / 1000);
    at.tv_nsec += (long)(ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

void read_stream_on_park(struct read_stream *stream, bool (*parks)(void *data, bool parked),
                         void *data)
{
    stream->parks = parks;
    stream->park_data = data;
}

/* With the lock held, but not while parks is called. False: the client stalls. */
static bool wait_for_client(struct read_stream *s, size_t ahead_max, uint64_t stall_ms)
{
    uint64_t waited_ms = 0;
    bool parked = false;
    bool crowded = false;

    while (s->ahead > ahead_max && !atomic_load(&s->stop) &&
           waited_ms < (crowded && stall_ms > READ_CROWDED_MS ? READ_CROWDED_MS : stall_ms)) {
        uint64_t left = stall_ms - waited_ms;
        uint64_t slice = left < READ_PARK_MS ? left : READ_PARK_MS;
        size_t before = s->ahead;
        struct timespec until = in_ms(slice);
        int waited = pthread_cond_timedwait(&s->moved, &s->lock, &until);
        if (s->ahead < before)
            waited_ms = 0;
        else if (waited == ETIMEDOUT)
            waited_ms += slice;
        if (s->parks != NULL && waited == ETIMEDOUT && s->ahead > ahead_max) {
            pthread_mutex_unlock(&s->lock);
            crowded = s->parks(s->park_data, true);
            pthread_mutex_lock(&s->lock);
            parked = true;
        }
    }
    bool moved_on = s->ahead <= ahead_max;
    if (parked) {
        pthread_mutex_unlock(&s->lock);
        (void)s->parks(s->park_data, false);
        pthread_mutex_lock(&s->lock);
    }
    return moved_on;
}

int read_stream_write(struct read_stream *s, struct buf *text, size_t ahead_max, uint64_t stall_ms)
{
    pthread_mutex_lock(&s->lock);
    bool stalls = !wait_for_client(s, ahead_max, stall_ms);
    pthread_mutex_unlock(&s->lock);
    if (atomic_load(&s->stop))
        return TG_CANCELED;
    if (stalls)
        return TG_TIMEOUT;
    post_piece(s, PIECE_TEXT, 0, text);
    return 0;
}

void read_stream_end(struct read_stream *stream, struct buf *text)
{
    post_piece(stream, PIECE_END, 200, text);
}

void read_stream_fail(struct read_stream *stream, int status, struct buf *body)
{
    post_piece(stream, PIECE_FAIL, status, body);
}
