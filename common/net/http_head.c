/* SPDX-License-Identifier: Apache-2.0 */
/* Request heads: strict scan, llhttp, and our own rules on framing. */
#include "common/net/http_head.h"

#include <ctype.h>
#include <llhttp.h>
#include <string.h>
#include <strings.h>

#include "common/base/err.h"

enum {
    HTTP_FIRST_LINE_REST = 64,      /* method, blanks and version around the target */
    HTTP_CONTENT_LENGTH_DIGITS = 18 /* fits into 63 bits */
};

/* ---- scan ---- */

static int http_head_refuse(struct http_head_scan *scan, int err, int status, const char *why)
{
    scan->status = status;
    scan->why = why;
    return err;
}

/* What may stand in a head: the parser accepts a lone CR as a line's end in places, and folded
 * lines (both have been used to smuggle requests), so neither reaches it. */
int http_head_scan(struct http_head_scan *scan, const uint8_t *bytes, size_t len, size_t *end)
{
    size_t limit = len < HTTP_HEAD_BYTES_MAX ? len : HTTP_HEAD_BYTES_MAX;
    for (; scan->at < limit; scan->at++) {
        size_t at = scan->at;
        uint8_t byte = bytes[at];
        bool after_cr = at > 0 && bytes[at - 1] == '\r';
        if (byte == '\n') {
            if (!after_cr)
                return http_head_refuse(scan, TG_INVALID, 400, "line feed without carriage return");
            if (at - scan->line_start == 1 && scan->first_line_done) {
                *end = at + 1;
                return 0;
            }
            scan->first_line_done = true;
            scan->line_start = at + 1;
        } else if (after_cr) {
            return http_head_refuse(scan, TG_INVALID, 400, "carriage return without line feed");
        } else if (byte == '\r') {
            continue;
        } else if (at == scan->line_start && (byte == ' ' || byte == '\t')) {
            return http_head_refuse(scan, TG_INVALID, 400, "folded header line");
        } else if ((byte < ' ' && byte != '\t') || byte == 0x7f) {
            return http_head_refuse(scan, TG_INVALID, 400, "control character in the head");
        } else if (!scan->first_line_done && at >= HTTP_TARGET_BYTES_MAX + HTTP_FIRST_LINE_REST) {
            return http_head_refuse(scan, TG_TOO_LARGE, 414, "request target too long");
        }
    }
    if (scan->at >= HTTP_HEAD_BYTES_MAX)
        return http_head_refuse(scan, TG_TOO_LARGE, 431, "request head too large");
    return TG_INCOMPLETE;
}

/* ---- parse ---- */

struct http_head_span {
    char *start;
    size_t len;
};

struct http_head_parse {
    struct http_head_span target;
    struct http_head_span name[HTTP_HEADERS_MAX];
    struct http_head_span value[HTTP_HEADERS_MAX];
    size_t count;
    bool too_many;
    bool complete;
};

/* The parser hands out const text; it is ours and writable (http_head_parse got it as such). */
static void http_head_extend(struct http_head_span *span, const char *at, size_t len)
{
    if (span->start == NULL)
        span->start = (char *)(uintptr_t)at;
    span->len = (size_t)(at + len - span->start);
}

static int http_head_on_url(llhttp_t *parser, const char *at, size_t len)
{
    struct http_head_parse *parse = parser->data;
    http_head_extend(&parse->target, at, len);
    return 0;
}

static int http_head_on_field(llhttp_t *parser, const char *at, size_t len)
{
    struct http_head_parse *parse = parser->data;
    if (parse->count == HTTP_HEADERS_MAX) {
        parse->too_many = true;
        return HPE_USER;
    }
    http_head_extend(&parse->name[parse->count], at, len);
    return 0;
}

static int http_head_on_value(llhttp_t *parser, const char *at, size_t len)
{
    struct http_head_parse *parse = parser->data;
    http_head_extend(&parse->value[parse->count], at, len);
    return 0;
}

static int http_head_on_value_complete(llhttp_t *parser)
{
    struct http_head_parse *parse = parser->data;
    parse->count++;
    return 0;
}

static int http_head_on_complete(llhttp_t *parser)
{
    struct http_head_parse *parse = parser->data;
    parse->complete = true;
    return HPE_PAUSED; /* bodies are read by http_body */
}

static const char *http_head_end_span(struct http_head_span span)
{
    if (span.len == 0)
        return ""; /* an empty span may point behind its line: nothing is to be written there */
    while (span.len > 0 && (span.start[span.len - 1] == ' ' || span.start[span.len - 1] == '\t'))
        span.len--;
    span.start[span.len] = '\0';
    return span.start;
}

/* Names in lower case. The parser, as some distributions build it, lets blanks and empty names
 * through. */
static bool http_head_take_headers(struct http_head *head, struct http_head_parse *parse)
{
    for (size_t i = 0; i < parse->count; i++) {
        struct http_head_span name = parse->name[i];
        if (name.len == 0)
            return false;
        for (size_t k = 0; k < name.len; k++) {
            unsigned char byte = (unsigned char)name.start[k];
            if (!isalnum(byte) && (byte == '\0' || strchr("!#$%&'*+-.^_`|~", byte) == NULL))
                return false;
            name.start[k] = (char)tolower(byte);
        }
        head->headers[i].name = http_head_end_span(name);
        head->headers[i].value = http_head_end_span(parse->value[i]);
    }
    head->request.headers = head->headers;
    head->request.header_count = parse->count;
    return true;
}

static int http_head_deny(int *status, const char **why, int code, const char *sentence)
{
    *status = code;
    *why = sentence;
    return code == 413 || code == 414 || code == 431 ? TG_TOO_LARGE : TG_INVALID;
}

/* Path and query. The absolute form (http://host/path), which proxies send, means the same as its
 * path. */
static int http_head_take_target(struct http_head *head, char *target, char *spare, int *status,
                                 const char **why)
{
    if (strlen(target) > HTTP_TARGET_BYTES_MAX)
        return http_head_deny(status, why, 414, "request target too long");
    if (strncasecmp(target, "http://", 7) == 0) {
        target += 7;
        target += strcspn(target, "/?#");
    }
    if (target[0] != '/' && strcmp(target, "*") != 0)
        return http_head_deny(status, why, 400, "request target is not a path");
    if (strchr(target, '#') != NULL)
        return http_head_deny(status, why, 400, "request target with a fragment");
    size_t path_len = strcspn(target, "?");
    memcpy(spare, target, path_len);
    spare[path_len] = '\0';
    head->request.target = target;
    head->request.path = spare;
    head->request.query = target[path_len] == '?' ? target + path_len + 1 : "";
    return 0;
}

/* True if the comma-separated list has the token. */
static bool http_head_has_token(const char *list, const char *token)
{
    size_t token_len = strlen(token);
    while (*list != '\0') {
        list += strspn(list, ", \t");
        size_t len = strcspn(list, ", \t");
        if (len == token_len && strncasecmp(list, token, len) == 0)
            return true;
        list += len;
    }
    return false;
}

static bool http_head_length(const char *text, uint64_t *length)
{
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || text[digits] != '\0' || digits > HTTP_CONTENT_LENGTH_DIGITS)
        return false;
    *length = 0;
    for (; *text != '\0'; text++)
        *length = *length * 10 + (uint64_t)(*text - '0');
    return true;
}

static int http_head_take_framing(struct http_head *head, int *status, const char **why)
{
    struct http_request *request = &head->request;
    unsigned hosts = 0;
    unsigned lengths = 0;
    unsigned encodings = 0;
    request->keep_alive = head->minor_version == 1;
    for (size_t i = 0; i < request->header_count; i++) {
        const char *name = request->headers[i].name;
        const char *value = request->headers[i].value;
        if (strcmp(name, "host") == 0) {
            hosts++;
        } else if (strcmp(name, "content-length") == 0) {
            lengths++;
            if (!http_head_length(value, &request->content_length))
                return http_head_deny(status, why, 400, "Content-Length is not a number");
        } else if (strcmp(name, "transfer-encoding") == 0) {
            encodings++;
            if (strcasecmp(value, "chunked") != 0)
                return http_head_deny(status, why, 501, "only Transfer-Encoding: chunked is known");
        } else if (strcmp(name, "expect") == 0) {
            request->has_expect = true;
            if (strcasecmp(value, "100-continue") == 0 && head->minor_version == 1)
                request->expect_continue = true;
        } else if (strcmp(name, "connection") == 0) {
            if (http_head_has_token(value, "close"))
                request->keep_alive = false;
            else if (http_head_has_token(value, "keep-alive"))
                request->keep_alive = true;
        }
    }
    if (hosts > 1 || (hosts == 0 && head->minor_version == 1))
        return http_head_deny(status, why, 400, "there must be exactly one Host header");
    if (lengths > 1 || encodings > 1)
        return http_head_deny(status, why, 400, "repeated framing header");
    if (encodings == 1 && head->minor_version == 0)
        return http_head_deny(status, why, 400, "Transfer-Encoding in HTTP/1.0");
    if (encodings == 1 && lengths == 1 && strcmp(request->method, "PUT") != 0)
        return http_head_deny(status, why, 400, "both Content-Length and Transfer-Encoding");
    request->framing = encodings == 1 ? (lengths == 1 ? HTTP_BODY_BOTH : HTTP_BODY_CHUNKED)
                                      : (lengths == 1 ? HTTP_BODY_LENGTH : HTTP_BODY_NONE);
    return 0;
}

int http_head_parse(struct http_head *head, char *text, size_t len, int *status, const char **why)
{
    memset(&head->request, 0, sizeof head->request);
    struct http_head_parse parse;
    memset(&parse, 0, sizeof parse);
    llhttp_settings_t settings;
    llhttp_settings_init(&settings);
    settings.on_url = http_head_on_url;
    settings.on_header_field = http_head_on_field;
    settings.on_header_value = http_head_on_value;
    settings.on_header_value_complete = http_head_on_value_complete;
    settings.on_headers_complete = http_head_on_complete;
    llhttp_t parser;
    llhttp_init(&parser, HTTP_REQUEST, &settings);
    parser.data = &parse;
    /* Both framing headers are refused below, with an answer of the handler's own for uploads. */
    llhttp_set_lenient_chunked_length(&parser, 1);
    enum llhttp_errno rc = llhttp_execute(&parser, text, len);
    if (parse.too_many)
        return http_head_deny(status, why, 431, "too many headers");
    if (rc == HPE_INVALID_VERSION)
        return http_head_deny(status, why, 505, "only HTTP/1.0 and HTTP/1.1 are spoken");
    if (!parse.complete)
        return http_head_deny(status, why, 400, "malformed request head");
    if (parser.http_major != 1 || parser.http_minor > 1)
        return http_head_deny(status, why, 505, "only HTTP/1.0 and HTTP/1.1 are spoken");
    head->minor_version = parser.http_minor;
    head->request.method = llhttp_method_name((llhttp_method_t)parser.method);
    if (parse.target.start == NULL)
        return http_head_deny(status, why, 400, "malformed request head");
    parse.target.start[parse.target.len] = '\0';
    if (!http_head_take_headers(head, &parse))
        return http_head_deny(status, why, 400, "malformed header name");
    int err = http_head_take_target(head, parse.target.start, text + len + 1, status, why);
    if (err == 0)
        err = http_head_take_framing(head, status, why);
    return err;
}
