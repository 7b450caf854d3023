/* SPDX-License-Identifier: Apache-2.0 */
/* The loads that run here, by request id. */
#include "participant/link/live_requests.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/proto/msg_member.h"

struct live_requests {
    pthread_mutex_t lock;
    uint64_t last_id;
    uint32_t count;
    bool closing; /* no new ones */
    struct live_request *first;
};

struct live_requests *live_requests_open(void)
{
    struct live_requests *requests = calloc(1, sizeof *requests);

    if (requests != NULL)
        pthread_mutex_init(&requests->lock, NULL);
    return requests;
}

void live_requests_close(struct live_requests *requests)
{
    if (requests == NULL)
        return;
    pthread_mutex_destroy(&requests->lock);
    free(requests);
}

int live_requests_begin(struct live_requests *requests, struct live_request *request)
{
    int err = 0;

    atomic_store(&request->stopped, false);
    request->prev = NULL;
    pthread_mutex_lock(&requests->lock);
    if (requests->closing) {
        err = TG_CLOSED;
    } else if (requests->count >= HEARTBEAT_LIVE_MAX) {
        err = TG_LIMIT;
    } else {
        request->id = ++requests->last_id;
        request->next = requests->first;
        if (requests->first != NULL)
            requests->first->prev = request;
        requests->first = request;
        requests->count++;
    }
    pthread_mutex_unlock(&requests->lock);
    return err;
}

void live_requests_end(struct live_requests *requests, struct live_request *request)
{
    pthread_mutex_lock(&requests->lock);
    if (request->prev != NULL)
        request->prev->next = request->next;
    else
        requests->first = request->next;
    if (request->next != NULL)
        request->next->prev = request->prev;
    requests->count--;
    pthread_mutex_unlock(&requests->lock);
}

static void stop_locked(struct live_request *request)
{
    if (!atomic_exchange(&request->stopped, true) && request->on_stop != NULL)
        request->on_stop(request);
}

void live_requests_stop(struct live_requests *requests, uint64_t id)
{
    pthread_mutex_lock(&requests->lock);
    for (struct live_request *r = requests->first; r != NULL; r = r->next)
        if (r->id == id)
            stop_locked(r);
    pthread_mutex_unlock(&requests->lock);
}

void live_requests_stop_all(struct live_requests *requests)
{
    pthread_mutex_lock(&requests->lock);
    requests->closing = true;
    for (struct live_request *r = requests->first; r != NULL; r = r->next)
        stop_locked(r);
    pthread_mutex_unlock(&requests->lock);
}

int live_requests_list(struct live_requests *requests, uint64_t *high, uint64_t **ids,
                       uint32_t *count)
{
    int err = 0;

    *ids = NULL;
    *count = 0;
    pthread_mutex_lock(&requests->lock);
    *high = requests->last_id;
    if (requests->count > 0) {
        *ids = malloc(requests->count * sizeof **ids);
        if (*ids == NULL)
            err = TG_NOMEM;
        else
            for (struct live_request *r = requests->first; r != NULL; r = r->next)
                (*ids)[(*count)++] = r->id;
    }
    pthread_mutex_unlock(&requests->lock);
    return err;
}
