/* SPDX-License-Identifier: Apache-2.0 */
/* The rows that a load refused, for people: one file a load, few rows, kept for two days, served at
 * ErrorURL. The files are bounded in number and bytes: the oldest go first. */
#ifndef TG_PARTICIPANT_INGEST_ERROR_LOG_H
#define TG_PARTICIPANT_INGEST_ERROR_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/base/random.h"

enum {
    ERROR_LOG_ROWS_MAX = 50,
    ERROR_LOG_LINE_MAX = 64 * 1024, /* bytes of a row that are shown */
    ERROR_LOG_FILES_MAX = 1000,
    ERROR_LOG_NAME_BYTES = 64
};
#define ERROR_LOG_KEEP_US         (UINT64_C(48) * 3600 * 1000000)
#define ERROR_LOG_TOTAL_BYTES_MAX (UINT64_C(256) * 1024 * 1024)

/* The folder with all of them. Any thread. */
struct error_logs;
/* dir is made if it is not there. TG_IO, TG_NOMEM with a message. */
int error_logs_open(const char *dir, struct clock *clock, struct random_source *random,
                    struct error_logs **logs, struct tg_errmsg *msg);
void error_logs_close(struct error_logs *logs);
/* Appends a file's content to out. name is what ErrorURL said; anything else is TG_NOT_FOUND. */
int error_logs_read(struct error_logs *logs, const char *name, struct buf *out);

/* One load's. Nothing is written before the first row; what cannot be written is left out. */
struct error_log {
    struct error_logs *logs; /* NULL: rows are counted, nothing is kept */
    char name[ERROR_LOG_NAME_BYTES];
    uint32_t rows;
    struct buf text;
    char first[256]; /* the first reason */
};
void error_log_init(struct error_log *log, struct error_logs *logs);
/* Whether another row would be kept. */
static inline bool error_log_has_room(const struct error_log *log)
{
    return log->rows < ERROR_LOG_ROWS_MAX;
}
void error_log_add(struct error_log *log, const char *reason, struct slice line);
/* Writes the file if there are rows. Returns its name, NULL if there is none. */
const char *error_log_finish(struct error_log *log);
void error_log_close(struct error_log *log);

#endif
