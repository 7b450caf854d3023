/* SPDX-License-Identifier: Apache-2.0 */
/* Small texts of load headers: separators with escapes or as hex, lists of names, time zones. */
#ifndef TG_PARTICIPANT_INGEST_LOAD_TEXT_H
#define TG_PARTICIPANT_INGEST_LOAD_TEXT_H

#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/model/ids.h"

enum { LOAD_SEPARATOR_MAX = 64, LOAD_COLUMNS_MAX = COLUMNS_MAX + 64 };

struct load_separator {
    uint8_t bytes[LOAD_SEPARATOR_MAX];
    uint32_t len; /* 1 or more */
};

/* "\x0102", "\x01\x02", or text with \t \n \r \\ \' \". TG_INVALID with the message for the client.
 */
int load_text_separator(const char *value, struct load_separator *separator, struct tg_errmsg *msg);
/* A separator as people read it: control characters escaped. Appends to out. */
void load_text_print_separator(const struct load_separator *separator, struct buf *out);

/* Names in order, as they were written (without back-quotes). */
struct load_names {
    uint32_t count;
    char (*names)[NAME_BYTES]; /* owned */
};
void load_names_close(struct load_names *names);
/* "a, `b`, c": TG_UNSUPPORTED for `name = expression`, TG_INVALID for what is no list of names,
 * TG_LIMIT, TG_NOMEM. *names was zero. */
int load_names_parse(const char *value, struct load_names *names, struct tg_errmsg *msg);

/* "+08:00", "UTC", "Asia/Shanghai" … to microseconds east of UTC. Zones with daylight saving time
 * have no fixed offset and are refused (TG_INVALID). */
int load_text_timezone(const char *value, int64_t *offset_us, struct tg_errmsg *msg);

#endif
