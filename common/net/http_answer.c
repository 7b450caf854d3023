/* SPDX-License-Identifier: Apache-2.0 */
/* Answer heads. */
#include "common/net/http_answer.h"

#include <stdio.h>

static const struct {
    int status;
    const char *text;
} http_statuses[] = {
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {206, "Partial Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Content"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {507, "Insufficient Storage"},
};

const char *http_status_text(int status)
{
    for (size_t i = 0; i < sizeof http_statuses / sizeof http_statuses[0]; i++)
        if (http_statuses[i].status == status)
            return http_statuses[i].text;
    return "Status";
}

/* strftime would follow the process's locale. */
static void http_answer_date(struct buf *out, time_t now)
{
    static const char days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    struct tm tm;
    if (gmtime_r(&now, &tm) == NULL)
        return;
    buf_printf(out, "Date: %s, %02d %s %04d %02d:%02d:%02d GMT\r\n", days[tm.tm_wday], tm.tm_mday,
               months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

void http_answer_head(struct buf *out, const struct http_answer *answer)
{
    buf_printf(out, "HTTP/1.1 %d %s\r\n", answer->status, http_status_text(answer->status));
    http_answer_date(out, answer->now);
    if (answer->content_type != NULL) {
        buf_append_str(out, "Content-Type: ");
        buf_append_str(out, answer->content_type);
        buf_append_str(out, "\r\n");
    }
    if (answer->framing == HTTP_ANSWER_LENGTH)
        buf_printf(out, "Content-Length: %zu\r\n", answer->length);
    else if (answer->framing == HTTP_ANSWER_CHUNKED)
        buf_append_str(out, "Transfer-Encoding: chunked\r\n");
    buf_append_str(out,
                   answer->keep_alive ? "Connection: keep-alive\r\n" : "Connection: close\r\n");
    if (answer->headers != NULL)
        buf_append_str(out, answer->headers);
    buf_append_str(out, "\r\n");
}

void http_answer_chunk_begin(struct buf *out, size_t len)
{
    char line[24];
    int n = snprintf(line, sizeof line, "%zx\r\n", len);
    buf_append(out, line, (size_t)n);
}
