/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of api_load share. Private to them. */
#ifndef TG_PARTICIPANT_API_API_LOAD_INTERNAL_H
#define TG_PARTICIPANT_API_API_LOAD_INTERNAL_H

#include <pthread.h>

#include "common/model/ids.h"
#include "participant/api/api_load.h"
#include "participant/ingest/load_calls.h"
#include "participant/ingest/load_pool.h"
#include "participant/ingest/stream_load.h"

#define API_LOAD_JSON "application/json;charset=utf-8"

struct api_load {
    struct api_load_options options;
    struct load_world world;
    struct load_calls calls;
    struct stream_load_context context;
    struct load_pool *pool;
    struct error_logs *errors;
    pthread_mutex_t lock;
    pthread_cond_t ended; /* uploads became 0 */
    uint32_t uploads;     /* under lock: loads from their head to their end */
    char address[ADDRESS_BYTES];
};

/* Who sends the request; TG_DENIED with Doris's message, code in front. */
int api_load_authenticate(const struct api_load *api, const struct http_request *request,
                          char user[NAME_BYTES], struct tg_errmsg *msg);

#endif
