/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines: put together on the caller's stack, handed over whole under one lock. */
#include "common/base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/base/time_text.h"

enum {
    LINE_MAX_BYTES = 4096, /* a longer line is cut, marked with "..." */
    QUOTE_TEXT_MAX = 400,  /* bytes of the text that log_quote shows */
    QUOTE_BUFFERS = 8      /* log_quote calls that one statement may hold */
};

static const char *const level_names[] = {"DEBUG", "INFO", "WARN", "ERROR"};
static const char *const level_words[] = {"debug", "info", "warn", "error"};
enum { LEVELS = sizeof level_names / sizeof level_names[0] };

static atomic_int lowest = LOG_INFO;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void (*sink)(void *data, enum log_level level, const char *line);
static void *sink_data;

void log_set_level(enum log_level level)
{
    atomic_store_explicit(&lowest, (int)level, memory_order_relaxed);
}

int log_level_parse(const char *text, enum log_level *level)
{
    for (int i = 0; i < LEVELS; i++) {
        if (strcmp(text, level_words[i]) == 0) {
            *level = (enum log_level)i;
            return 0;
        }
    }
    return TG_INVALID;
}

void log_set_sink(void (*new_sink)(void *data, enum log_level level, const char *line), void *data)
{
    pthread_mutex_lock(&lock);
    sink = new_sink;
    sink_data = data;
    pthread_mutex_unlock(&lock);
}

/* line has room for one byte behind its len. A full pipe or disk must not stop the process, so what
 * cannot be written is dropped. */
static void write_stderr(char *line, size_t len)
{
    line[len] = '\n';
    size_t at = 0;
    while (at < len + 1) {
        ssize_t n = write(STDERR_FILENO, line + at, len + 1 - at);
        if (n <= 0)
            return;
        at += (size_t)n;
    }
}

void log_write(enum log_level level, const char *part, const char *format, ...)
{
    if ((int)level < atomic_load_explicit(&lowest, memory_order_relaxed))
        return;
    char line[LINE_MAX_BYTES + 1];
    char stamp[TIME_TEXT_SIZE];
    time_text_print(clock_wall_us(clock_system()), stamp);
    int head = snprintf(line, LINE_MAX_BYTES, "%s %s %.64s ", stamp, level_names[level], part);
    size_t len = head < 0 ? 0 : (size_t)head;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line + len, LINE_MAX_BYTES - len, format, args);
    va_end(args);
    len += n < 0 ? 0 : (size_t)n;
    if (len >= LINE_MAX_BYTES) {
        len = LINE_MAX_BYTES - 1;
        memcpy(line + len - 3, "...", 3);
    }
    /* One event, one line: whatever the values hold. */
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)line[i] < ' ')
            line[i] = ' ';
    }
    pthread_mutex_lock(&lock);
    if (sink != NULL)
        sink(sink_data, level, line);
    else
        write_stderr(line, len);
    pthread_mutex_unlock(&lock);
}

const char *log_quote(const char *text)
{
    /* Every byte may become four ("\x01"), plus quotes, dots and the zero. */
    static _Thread_local char buffers[QUOTE_BUFFERS][QUOTE_TEXT_MAX * 4 + 8];
    static _Thread_local unsigned next;
    static const char hex[] = "0123456789abcdef";
    char *start = buffers[next++ % QUOTE_BUFFERS];
    char *out = start;
    *out++ = '"';
    size_t i = 0;
    for (; text != NULL && text[i] != '\0' && i < QUOTE_TEXT_MAX; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\') {
            *out++ = '\\';
            *out++ = (char)c;
        } else if (c == '\n' || c == '\t' || c == '\r') {
            *out++ = '\\';
            *out++ = c == '\n' ? 'n' : c == '\t' ? 't' : 'r';
        } else if (c < ' ' || c == 0x7F) {
            *out++ = '\\';
            *out++ = 'x';
            *out++ = hex[c >> 4];
            *out++ = hex[c & 15];
        } else {
            *out++ = (char)c;
        }
    }
    if (text != NULL && text[i] != '\0' && i == QUOTE_TEXT_MAX) {
        memcpy(out, "...", 3);
        out += 3;
    }
    *out++ = '"';
    *out = '\0';
    return start;
}
