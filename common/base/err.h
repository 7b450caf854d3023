/* SPDX-License-Identifier: Apache-2.0 */
/* The one list of errors: a name for branching, a sentence for people, an HTTP status, and whether
 * a retry can help. Every function of Tidegate that returns int returns 0 or one of these. */
#ifndef TG_COMMON_BASE_ERR_H
#define TG_COMMON_BASE_ERR_H

#include <stdarg.h>
#include <stdbool.h>

/* X(name, value, sentence, HTTP status, retry may help) */
#define TG_ERRORS(X)                                                          \
    X(NOMEM, -1, "out of memory", 503, true)                                  \
    X(INVALID, -2, "invalid argument", 400, false)                            \
    X(CORRUPT, -3, "data is damaged", 500, false)                             \
    X(UNSUPPORTED, -4, "not supported", 400, false)                           \
    X(LIMIT, -5, "a limit was reached", 503, true)                            \
    X(TOO_LARGE, -6, "too large", 413, false)                                 \
    X(NOT_FOUND, -7, "not found", 404, false)                                 \
    X(EXISTS, -8, "exists already", 409, false)                               \
    X(IO, -9, "input/output error", 500, false)                               \
    X(NOSPACE, -10, "no space left", 507, true)                               \
    X(CLOSED, -11, "closed", 503, true)                                       \
    X(TIMEOUT, -12, "timed out", 504, true)                                   \
    X(CANCELED, -13, "canceled", 503, true)                                   \
    X(UNREACHABLE, -14, "peer cannot be reached", 503, true)                  \
    X(NOT_LEADER, -15, "not the leader", 503, true)                           \
    X(UNKNOWN_OUTCOME, -16, "the outcome is not known yet", 503, true)        \
    X(DENIED, -17, "access denied", 401, false)                               \
    X(FENCED, -18, "this node's registration is no longer valid", 503, false) \
    X(LABEL_EXISTS, -19, "label already exists", 200, false)                  \
    X(TXN_NOT_FOUND, -20, "transaction not found", 200, false)                \
    X(TXN_STATE, -21, "transaction is in another state", 200, false)          \
    X(TXN_ABORTED, -22, "transaction is aborted", 200, false)                 \
    X(QUORUM, -23, "not enough replicas", 503, true)                          \
    X(BEHIND, -24, "this replica is behind", 503, true)                       \
    X(STALE, -25, "made from outdated metadata", 503, true)                   \
    X(DATA_QUALITY, -26, "too many filtered rows", 200, false)                \
    X(SYNTAX, -27, "syntax error", 400, false)                                \
    X(FUTURE, -28, "the time lies in the future", 400, true)                  \
    X(EXPIRED, -29, "the version is no longer kept", 410, false)              \
    X(NOT_YET, -30, "the version does not exist yet", 404, true)              \
    X(BUSY, -31, "busy", 503, true)                                           \
    X(DIGEST, -32, "digest does not match", 500, true)                        \
    X(REFUSED, -33, "refused", 403, false)                                    \
    X(INCOMPLETE, -34, "more bytes are needed", 400, false)

enum tg_err {
    TG_OK = 0,
#define TG_ERR_ENUM(name, value, text, http, retry) TG_##name = value,
    TG_ERRORS(TG_ERR_ENUM)
#undef TG_ERR_ENUM
};

/* The longest message an error carries, with its final zero byte. */
enum { TG_ERRMSG_MAX = 512 };

/* A message that each layer may prefix with what it was doing ("open store: no space left"). */
struct tg_errmsg {
    char text[TG_ERRMSG_MAX];
};

const char *tg_err_name(int err);     /* "NOT_LEADER"; "OK" for 0; "UNKNOWN" for strangers */
const char *tg_err_sentence(int err); /* the sentence of the list */
int tg_err_http_status(int err);      /* 200 for 0 */
bool tg_err_may_retry(int err);

/* Sets the message (msg may be NULL: then only the code travels) and returns err, so that a failing
 * function can end with `return tg_fail(msg, TG_INVALID, "bucket count %u is not in 1..%u", …)`.
 * Text beyond TG_ERRMSG_MAX is cut. */
int tg_fail(struct tg_errmsg *msg, int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "format…: " before what msg already says; returns err unchanged. */
int tg_wrap(struct tg_errmsg *msg, int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
