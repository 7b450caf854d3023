/* SPDX-License-Identifier: Apache-2.0 */
/* The blocking HTTP client. */
#include "common/net/http_client.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/net/http_body.h"
#include "common/net/tcp.h"

enum { HTTP_CLIENT_READ_BYTES = 64 * 1024 };

struct http_client {
    char *address;
    struct sockaddr_storage socket_address;
    int timeout_ms;
    int fd;        /* -1: not connected */
    bool kept;     /* an answer came over this connection before */
    struct buf in; /* read, not yet used */
    uint8_t scratch[HTTP_CLIENT_READ_BYTES];
};

/* One request under way. */
struct http_call {
    const char *method;
    bool waits_for_continue;
    bool continued;
    struct http_reply *reply;
    bool head_done;
    bool answered; /* at least a byte of the answer came */
    struct tg_errmsg *msg;
};

int http_client_open(const char *address, uint64_t timeout_ms, struct http_client **out,
                     struct tg_errmsg *msg)
{
    char host[TCP_HOST_BYTES];
    uint16_t port;
    struct sockaddr_storage socket_address;
    int err = tcp_split_address(address, host, &port, msg);
    if (err == 0)
        err = tcp_resolve(host, port, &socket_address, msg);
    if (err != 0)
        return err;
    struct http_client *client = calloc(1, sizeof *client);
    if (client == NULL || (client->address = strdup(address)) == NULL) {
        free(client);
        return tg_fail(msg, TG_NOMEM, "no memory for an HTTP client");
    }
    client->socket_address = socket_address;
    client->timeout_ms = timeout_ms > INT32_MAX ? INT32_MAX : (int)timeout_ms;
    client->fd = -1;
    *out = client;
    return 0;
}

static void http_client_hang_up(struct http_client *client)
{
    if (client->fd >= 0)
        close(client->fd);
    client->fd = -1;
    client->kept = false;
    buf_close(&client->in);
}

void http_client_close(struct http_client *client)
{
    if (client == NULL)
        return;
    http_client_hang_up(client);
    free(client->address);
    free(client);
}

static int http_client_poll(int fd, short events, int timeout_ms, short *got)
{
    struct pollfd poll_fd = {.fd = fd, .events = events};
    int rc;
    do
        rc = poll(&poll_fd, 1, timeout_ms);
    while (rc < 0 && errno == EINTR);
    *got = poll_fd.revents;
    return rc < 0 ? TG_IO : rc == 0 ? TG_TIMEOUT : 0;
}

static int http_client_dial(struct http_client *client, struct tg_errmsg *msg)
{
    int family = client->socket_address.ss_family;
    socklen_t len = family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return tg_fail(msg, TG_IO, "cannot make a socket: %s", strerror(errno));
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    int problem = 0;
    if (connect(fd, (struct sockaddr *)&client->socket_address, len) != 0) {
        problem = errno;
        short got;
        if (problem == EINPROGRESS) {
            socklen_t size = sizeof problem;
            if (http_client_poll(fd, POLLOUT, client->timeout_ms, &got) != 0)
                problem = ETIMEDOUT;
            else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &size) != 0)
                problem = errno;
        }
    }
    if (problem != 0) {
        close(fd);
        return tg_fail(msg, TG_UNREACHABLE, "cannot connect to %s: %s", client->address,
                       strerror(problem));
    }
    client->fd = fd;
    return 0;
}

/* ---- the answer ---- */

/* What came into client->in. 0, TG_CLOSED at the end of the connection. */
static int http_client_receive(struct http_client *client, struct http_call *call)
{
    ssize_t n = recv(client->fd, client->scratch, sizeof client->scratch, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return tg_fail(call->msg, TG_CLOSED, "%s closed the connection", client->address);
    call->answered = true;
    buf_append(&client->in, client->scratch, (size_t)n);
    return client->in.err;
}

static int http_client_receive_wait(struct http_client *client, struct http_call *call)
{
    short got;
    int err = http_client_poll(client->fd, POLLIN, client->timeout_ms, &got);
    if (err != 0)
        return tg_fail(call->msg, err, "no answer from %s", client->address);
    return http_client_receive(client, call);
}

/* Takes a whole head, if there is one, out of client->in. Heads of 100s are dropped. 0 or
 * TG_INCOMPLETE or TG_CORRUPT. */
static int http_client_take_head(struct http_client *client, struct http_call *call)
{
    while (!call->head_done) {
        uint8_t *end =
            client->in.len == 0 ? NULL : memmem(client->in.data, client->in.len, "\r\n\r\n", 4);
        if (end == NULL && client->in.len > HTTP_CLIENT_HEAD_BYTES_MAX)
            return tg_fail(call->msg, TG_TOO_LARGE, "head of the answer is too large");
        if (end == NULL)
            return TG_INCOMPLETE;
        size_t len = (size_t)(end - client->in.data) + 4;
        const char *text = (const char *)client->in.data;
        const char *line_end = memchr(text, '\r', len);
        if (len < 16 || strncmp(text, "HTTP/1.", 7) != 0 || text[8] != ' ' ||
            !isdigit((unsigned char)text[9]) || !isdigit((unsigned char)text[10]) ||
            !isdigit((unsigned char)text[11]))
            return tg_fail(call->msg, TG_CORRUPT, "%s does not answer in HTTP", client->address);
        int status = (text[9] - '0') * 100 + (text[10] - '0') * 10 + (text[11] - '0');
        if (status >= 200) {
            call->head_done = true;
            call->reply->status = status;
            const char *headers = line_end + 2;
            buf_append(&call->reply->head, headers, len - (size_t)(headers - text) - 2);
        } else {
            call->continued = true;
        }
        buf_consume(&client->in, len);
    }
    return 0;
}

int http_reply_header(const struct http_reply *reply, const char *name, char *out, size_t cap)
{
    const char *at = (const char *)reply->head.data;
    const char *end = reply->head.len > 0 ? at + reply->head.len : at;
    size_t name_len = strlen(name);
    while (reply->head.len > 0 && at < end) {
        const char *line_end = memchr(at, '\r', (size_t)(end - at));
        if (line_end == NULL)
            break;
        if ((size_t)(line_end - at) > name_len && at[name_len] == ':' &&
            strncasecmp(at, name, name_len) == 0) {
            const char *value = at + name_len + 1;
            while (value < line_end && (*value == ' ' || *value == '\t'))
                value++;
            size_t len = (size_t)(line_end - value);
            if (len >= cap)
                return TG_TOO_LARGE;
            memcpy(out, value, len);
            out[len] = '\0';
            return 0;
        }
        at = line_end + 2;
    }
    return TG_NOT_FOUND;
}

static int http_client_framing(struct http_call *call, struct http_body *body)
{
    char value[64];
    int status = call->reply->status;
    if (strcmp(call->method, "HEAD") == 0 || status == 204 || status == 304) {
        http_body_init(body, HTTP_BODY_BY_LENGTH, 0);
    } else if (http_reply_header(call->reply, "transfer-encoding", value, sizeof value) == 0) {
        http_body_init(body, HTTP_BODY_BY_CHUNKS, 0);
    } else if (http_reply_header(call->reply, "content-length", value, sizeof value) == 0) {
        char *end;
        unsigned long long length = strtoull(value, &end, 10);
        if (!isdigit((unsigned char)value[0]) || *end != '\0')
            return tg_fail(call->msg, TG_CORRUPT, "malformed Content-Length in the answer");
        http_body_init(body, HTTP_BODY_BY_LENGTH, length);
    } else {
        http_body_init(body, HTTP_BODY_UNTIL_END, 0);
    }
    return 0;
}

static int http_client_read_body(struct http_client *client, struct http_call *call, bool *to_end)
{
    struct http_body body;
    int err = http_client_framing(call, &body);
    if (err != 0)
        return err;
    *to_end = body.kind == HTTP_BODY_UNTIL_END;
    struct buf *out = &call->reply->body;
    for (;;) {
        static const uint8_t nothing;
        const uint8_t *start = client->in.len > 0 ? client->in.data : &nothing;
        const uint8_t *at = start;
        const uint8_t *end = start + client->in.len;
        enum http_body_event event;
        struct slice piece;
        while ((event = http_body_next(&body, &at, end, &piece)) == HTTP_BODY_PIECE)
            buf_append(out, piece.data, piece.len);
        buf_consume(&client->in, (size_t)(at - start));
        if (out->err != 0)
            return tg_fail(call->msg, TG_NOMEM, "no memory for the answer");
        if (out->len > HTTP_CLIENT_BODY_BYTES_MAX)
            return tg_fail(call->msg, TG_TOO_LARGE, "answer too large");
        if (event == HTTP_BODY_DONE)
            return 0;
        if (event == HTTP_BODY_BROKEN)
            return tg_fail(call->msg, TG_CORRUPT, "broken answer: %s", body.why);
        err = http_client_receive_wait(client, call);
        if (err == TG_CLOSED && *to_end) {
            if (call->msg != NULL)
                call->msg->text[0] = '\0'; /* the expected end, no error */
            return 0;
        }
        if (err != 0)
            return err;
    }
}

/* ---- the request ---- */

/* Sends len bytes. *stopped: a final answer is there already, so the rest need not be sent. */
static int http_client_send(struct http_client *client, struct http_call *call, const void *bytes,
                            size_t len, bool *stopped)
{
    const uint8_t *at = bytes;
    while (len > 0) {
        short got;
        int err = http_client_poll(client->fd, POLLIN | POLLOUT, client->timeout_ms, &got);
        if (err != 0)
            return tg_fail(call->msg, err, "%s takes no more bytes", client->address);
        if ((got & (POLLIN | POLLERR | POLLHUP)) != 0) {
            err = http_client_receive(client, call);
            if (err == 0)
                err = http_client_take_head(client, call);
            if (err == 0)
                *stopped = true;
            if (err != TG_INCOMPLETE)
                return err;
        }
        if ((got & POLLOUT) == 0)
            continue;
        ssize_t n = send(client->fd, at, len, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return tg_fail(call->msg, TG_CLOSED, "%s: %s", client->address, strerror(errno));
        if (n > 0) {
            at += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

static int http_client_wait_continue(struct http_client *client, struct http_call *call,
                                     bool *stopped)
{
    while (!call->continued) {
        short got;
        int err = http_client_poll(client->fd, POLLIN, HTTP_CLIENT_CONTINUE_MS, &got);
        if (err == TG_TIMEOUT)
            return 0;
        if (err == 0)
            err = http_client_receive(client, call);
        if (err == 0)
            err = http_client_take_head(client, call);
        if (err == 0)
            *stopped = true;
        if (err != TG_INCOMPLETE)
            return err;
    }
    return 0;
}

struct http_upload {
    const void *bytes; /* whole body, or */
    size_t len;
    long (*produce)(void *data, void *bytes, size_t cap);
    void *data;
};

static int http_client_send_chunks(struct http_client *client, struct http_call *call,
                                   const struct http_upload *upload, bool *stopped)
{
    enum { PREFIX = 16, SUFFIX = 2 };
    char *memory = malloc(PREFIX + HTTP_CLIENT_CHUNK_BYTES + SUFFIX);
    if (memory == NULL)
        return tg_fail(call->msg, TG_NOMEM, "no memory for the upload");
    int err = 0;
    long n = 1;
    while (err == 0 && n > 0 && !*stopped) {
        n = upload->produce(upload->data, memory + PREFIX, HTTP_CLIENT_CHUNK_BYTES);
        if (n < 0 || n > HTTP_CLIENT_CHUNK_BYTES) {
            err = tg_fail(call->msg, TG_CANCELED, "the upload was broken off");
            break;
        }
        char line[PREFIX];
        size_t line_len = (size_t)snprintf(line, sizeof line, "%lx\r\n", (unsigned long)n);
        memcpy(memory + PREFIX - line_len, line, line_len);
        memcpy(memory + PREFIX + n, "\r\n", SUFFIX);
        err = http_client_send(client, call, memory + PREFIX - line_len,
                               line_len + (size_t)n + SUFFIX, stopped);
    }
    free(memory);
    return err;
}

static void http_client_request_head(const struct http_client *client, const struct http_call *call,
                                     const char *target, const char *headers,
                                     const struct http_upload *upload, struct buf *out)
{
    bool has_body =
        upload->len > 0 || strcmp(call->method, "PUT") == 0 || strcmp(call->method, "POST") == 0;
    buf_printf(out, "%s %s HTTP/1.1\r\nHost: %s\r\n", call->method, target, client->address);
    if (upload->produce != NULL)
        buf_append_str(out, "Transfer-Encoding: chunked\r\n");
    else if (has_body)
        buf_printf(out, "Content-Length: %zu\r\n", upload->len);
    if (headers != NULL)
        buf_append_str(out, headers);
    buf_append_str(out, "\r\n");
}

static int http_client_attempt(struct http_client *client, struct http_call *call,
                               const char *target, const char *headers,
                               const struct http_upload *upload)
{
    bool stopped = false;
    bool to_end = false;
    struct buf head = BUF_INIT;
    http_client_request_head(client, call, target, headers, upload, &head);
    int err = head.err;
    bool whole = upload->produce == NULL && !call->waits_for_continue;
    if (whole && upload->len <= HTTP_CLIENT_READ_BYTES)
        buf_append(&head, upload->bytes, upload->len); /* small ones leave in one packet */
    if (err == 0)
        err = http_client_send(client, call, head.data, head.len, &stopped);
    if (err == 0 && !stopped && call->waits_for_continue)
        err = http_client_wait_continue(client, call, &stopped);
    if (err == 0 && !stopped && upload->produce != NULL)
        err = http_client_send_chunks(client, call, upload, &stopped);
    else if (err == 0 && !stopped && (!whole || upload->len > HTTP_CLIENT_READ_BYTES))
        err = http_client_send(client, call, upload->bytes, upload->len, &stopped);
    buf_close(&head);
    while (err == 0 && (err = http_client_take_head(client, call)) == TG_INCOMPLETE)
        err = http_client_receive_wait(client, call);
    if (err == 0)
        err = http_client_read_body(client, call, &to_end);
    char connection[64];
    bool closes =
        http_reply_header(call->reply, "connection", connection, sizeof connection) == 0 &&
        strcasecmp(connection, "close") == 0;
    if (err != 0 || stopped || to_end || closes)
        http_client_hang_up(client);
    else
        client->kept = true;
    return err;
}

static bool http_client_expects(const char *headers)
{
    for (const char *at = headers; at != NULL && *at != '\0';) {
        if (strncasecmp(at, "expect:", 7) == 0)
            return true;
        at = strchr(at, '\n');
        if (at != NULL)
            at++;
    }
    return false;
}

static int http_client_run(struct http_client *client, const char *method, const char *target,
                           const char *headers, const struct http_upload *upload,
                           struct http_reply *reply, struct tg_errmsg *msg)
{
    memset(reply, 0, sizeof *reply);
    struct http_call call = {.method = method, .reply = reply, .msg = msg};
    call.waits_for_continue =
        http_client_expects(headers) && (upload->produce != NULL || upload->len > 0);
    for (;;) {
        bool kept = client->kept;
        int err = client->fd >= 0 ? 0 : http_client_dial(client, msg);
        if (err != 0)
            return err;
        err = http_client_attempt(client, &call, target, headers, upload);
        /* A kept connection may have been closed by the server meanwhile; nothing was lost then,
         * unless pieces of a produced body are gone. */
        if (err != TG_CLOSED || !kept || call.answered || upload->produce != NULL)
            return err;
    }
}

int http_client_request(struct http_client *client, const char *method, const char *target,
                        const char *headers, const void *body, size_t len, struct http_reply *reply,
                        struct tg_errmsg *msg)
{
    struct http_upload upload = {.bytes = body, .len = body == NULL ? 0 : len};
    return http_client_run(client, method, target, headers, &upload, reply, msg);
}

int http_client_request_chunked(struct http_client *client, const char *method, const char *target,
                                const char *headers,
                                long (*produce)(void *data, void *bytes, size_t cap), void *data,
                                struct http_reply *reply, struct tg_errmsg *msg)
{
    struct http_upload upload = {.produce = produce, .data = data};
    return http_client_run(client, method, target, headers, &upload, reply, msg);
}

void http_reply_close(struct http_reply *reply)
{
    buf_close(&reply->head);
    buf_close(&reply->body);
}
