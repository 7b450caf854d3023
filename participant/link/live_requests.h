/* SPDX-License-Identifier: Apache-2.0 */
/* The loads that run here, by request id: what a heartbeat lists as live (rule 7),
 * and where an abort from elsewhere stops them. Callable from any thread. */
#ifndef TG_PARTICIPANT_LINK_LIVE_REQUESTS_H
#define TG_PARTICIPANT_LINK_LIVE_REQUESTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

struct live_requests;

/* One load's entry, owned by the load from begin to end. */
struct live_request {
    uint64_t id;
    atomic_bool stopped; /* the load must stop: its transaction is over, or the node shuts down */
    /* Called once when stopped is set, from any thread, under the registry's lock: wakes up, does
     * not block. May be NULL. */
    void (*on_stop)(struct live_request *request);
    void *data;
    struct live_request *next, *prev; /* the registry's */
};

struct live_requests *live_requests_open(void); /* NULL on TG_NOMEM */
void live_requests_close(struct live_requests *requests);
/* Gives the next id (they grow inside an epoch) and lists it as live before anything is sent.
 * TG_LIMIT beyond HEARTBEAT_LIVE_MAX, TG_CLOSED after live_requests_stop_all: then it is not
 * listed.
 */
int live_requests_begin(struct live_requests *requests, struct live_request *request);
void live_requests_end(struct live_requests *requests, struct live_request *request);
void live_requests_stop(struct live_requests *requests, uint64_t id);
/* Stops all, and refuses new ones from now on. */
void live_requests_stop_all(struct live_requests *requests);
/* The largest id given out so far and a copy of the live ones, taken at one moment. 0 or TG_NOMEM.
 */
int live_requests_list(struct live_requests *requests, uint64_t *high, uint64_t **ids,
                       uint32_t *count);

#endif
