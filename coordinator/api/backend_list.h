/* SPDX-License-Identifier: Apache-2.0 */
/* Participants that a client may be sent to, in turn: not those that drain. The leader knows who is alive; a follower
 * asks it and remembers the answer for a moment. */
#ifndef TG_COORDINATOR_API_BACKEND_LIST_H
#define TG_COORDINATOR_API_BACKEND_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/ids.h"
#include "coordinator/api/leader_call.h"

enum {
    BACKEND_LIST_KEEP_MS = 1000, /* an answer of the leader is good for so long */
    BACKEND_LIST_ASK_MS = 2000,  /* how long it is waited for; then what was known last is used */
    BACKEND_LIST_WAITING_MAX = 8192
};

struct backend_wait {
    /* http: the chosen one's "host:port", NULL if there is none alive. */
    void (*chosen)(struct backend_wait *wait, const char *http);
    struct backend_wait *next;
};

struct backend {
    char http[ADDRESS_BYTES];
    bool alive; /* and not draining */
};

struct backend_list {
    struct leader_link *link;
    uint32_t count;
    struct backend list[NODES_MAX];
    bool known; /* the leader has told once */
    uint64_t told_ms;
    bool asking;
    uint32_t turn;
    uint32_t waiting_count;
    struct backend_wait *waiting; /* for the answer under way */
};

void backend_list_init(struct backend_list *list, struct leader_link *link);
/* Chooses one: a living one if there is any. The answer may come from inside. wait is the caller's
 * and must live until then. */
void backend_list_choose(struct backend_list *list, struct backend_wait *wait);

#endif
