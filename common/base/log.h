/* SPDX-License-Identifier: Apache-2.0 */
/* Levelled log lines, one event a line, key=value:
 *   2026-01-31T12:00:00.123456Z INFO consensus elected term=4 leader=2
 * Callable from any thread. */
#ifndef TG_COMMON_BASE_LOG_H
#define TG_COMMON_BASE_LOG_H

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

/* Lines below this level are dropped; LOG_INFO at start. */
void log_set_level(enum log_level level);
/* "debug" … "error" to a level; 0 or TG_INVALID. */
int log_level_parse(const char *text, enum log_level *level);
/* Where whole lines go (no newline in line); NULL restores stderr. Set before threads start. */
void log_set_sink(void (*sink)(void *data, enum log_level level, const char *line), void *data);

/* part: who speaks ("raft", "load"); event and pairs in format: "begin txn=%lu label=%s". Values
 * with blanks or quotes come from log_quote. */
void log_write(enum log_level level, const char *part, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define log_debug(part, ...) log_write(LOG_DEBUG, part, __VA_ARGS__)
#define log_info(part, ...)  log_write(LOG_INFO, part, __VA_ARGS__)
#define log_warn(part, ...)  log_write(LOG_WARN, part, __VA_ARGS__)
#define log_error(part, ...) log_write(LOG_ERROR, part, __VA_ARGS__)

/* text as a quoted value ("a \"b\"\n"), in one of a few per-thread buffers (use it in the same
 * statement); cut at 400 bytes. */
const char *log_quote(const char *text);

#endif
