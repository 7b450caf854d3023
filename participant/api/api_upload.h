/* SPDX-License-Identifier: Apache-2.0 */
/* One upload, from an accepted head to its answer. Private to the files of api_load. */
#ifndef TG_PARTICIPANT_API_API_UPLOAD_H
#define TG_PARTICIPANT_API_API_UPLOAD_H

#include "common/net/http_server.h"
#include "participant/api/api_load_internal.h"

#define UPLOAD_LENGTH_UNKNOWN UINT64_MAX

enum {
    UPLOAD_SMALL_BYTES = 256 * 1024, /* bodies up to here are awaited before a thread is */
    UPLOAD_BODY_MS = 20,             /* … for so long */
    UPLOAD_RETRY_MS = 20             /* until a thread is asked for again */
};

/* What the request's head says. */
struct upload_head {
    char db[HTTP_PARAM_BYTES];
    char table[HTTP_PARAM_BYTES];
    char user[NAME_BYTES];
    char address[ADDRESS_BYTES];
    struct load_options options;
    uint64_t length; /* of the body, or UPLOAD_LENGTH_UNKNOWN */
    bool expects_continue;
};

/* On the loop. Answers sooner or later. Takes over head->options. */
void api_upload_start(struct api_load *api, struct http_exchange *exchange,
                      struct upload_head *head);

/* A refusal before anything began. */
void api_upload_refuse(struct http_exchange *exchange, const struct load_options *options,
                       const char *message);

#endif
