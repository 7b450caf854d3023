/* SPDX-License-Identifier: Apache-2.0 */
/* The participant's HTTP routes, behind one gate: joined to the cluster, and credentials. */
#ifndef TG_PARTICIPANT_API_API_H
#define TG_PARTICIPANT_API_API_H

#include <stdbool.h>

#include "common/net/http_server.h"
#include "participant/api/api_load.h"
#include "participant/api/api_read.h"
#include "participant/api/api_rowsets.h"
#include "participant/link/coordinator_client.h"
#include "participant/tablet/tablet_set.h"

struct api {
    struct coordinator_client *coordinators;
    struct api_load *load;
    struct api_read *read;
    struct tablet_set *tablets;
    struct api_rowsets *rowsets;
    struct scrubber *scrubber;
    const char *root_password;
    bool joined; /* before: everything but GET / and health is answered 503 */
    void (*refresh_metrics)(void *data); /* sets gauges before they are printed; NULL: nothing */
    void *refresh_data;
};

/* http_server_handlers.on_request; ctx is a struct api. */
void api_on_request(void *ctx, struct http_exchange *exchange);

#endif
