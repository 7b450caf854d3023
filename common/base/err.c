/* SPDX-License-Identifier: Apache-2.0 */
/* Names, sentences and statuses of the error list, and messages that layers put together. */
#include "common/base/err.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct err_info {
    int value;
    const char *name;
    const char *sentence;
    int http_status;
    bool may_retry;
};

static const struct err_info infos[] = {{0, "OK", "success", 200, false},
#define ERR_INFO(name, value, text, http, retry) {value, #name, text, http, retry},
                                        TG_ERRORS(ERR_INFO)
#undef ERR_INFO
};

enum { INFO_COUNT = sizeof infos / sizeof infos[0] };

static const struct err_info unknown = {0, "UNKNOWN", "unknown error", 500, false};

/* The list is numbered -1, -2, … without a gap; the check keeps a later edit honest. */
static const struct err_info *err_find(int err)
{
    if (err > 0 || err <= -INFO_COUNT || infos[-err].value != err)
        return &unknown;
    return &infos[-err];
}

const char *tg_err_name(int err)
{
    return err_find(err)->name;
}

const char *tg_err_sentence(int err)
{
    return err_find(err)->sentence;
}

int tg_err_http_status(int err)
{
    return err_find(err)->http_status;
}

bool tg_err_may_retry(int err)
{
    return err_find(err)->may_retry;
}

int tg_fail(struct tg_errmsg *msg, int err, const char *format, ...)
{
    if (msg == NULL)
        return err;
    /* Formatted aside, because the arguments may point into msg itself. */
    char text[TG_ERRMSG_MAX];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n < 0)
        text[0] = '\0';
    memcpy(msg->text, text, strlen(text) + 1);
    return err;
}

int tg_wrap(struct tg_errmsg *msg, int err, const char *format, ...)
{
    if (msg == NULL)
        return err;
    char text[TG_ERRMSG_MAX];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    size_t len = n < 0 ? 0 : strnlen(text, sizeof text - 1);
    if (len > 0) {
        int more = snprintf(text + len, sizeof text - len, ": %s", msg->text);
        (void)more; /* a cut message is still a message */
        memcpy(msg->text, text, strlen(text) + 1);
    }
    return err;
}
