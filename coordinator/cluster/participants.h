/* SPDX-License-Identifier: Apache-2.0 */
/* How a coordinator reaches participants: one call interface, implemented on RPC clients in
 * production and by a simulated network in tests. */
#ifndef TG_COORDINATOR_CLUSTER_PARTICIPANTS_H
#define TG_COORDINATOR_CLUSTER_PARTICIPANTS_H

#include <stdint.h>

#include "common/model/ids.h"
#include "common/proto/msg_clone.h"
#include "common/proto/msg_publish.h"

/* reply is NULL unless err is 0. err: 0, TG_FENCED, TG_TIMEOUT, TG_UNREACHABLE, TG_CLOSED …: none
 * of them means that nothing was bound. */
typedef void participants_publish_done(void *data, int err, const struct msg_publish_reply *reply);

/* The same for a clone. */
typedef void participants_clone_done(void *data, int err, const struct msg_clone_reply *reply);

struct participants {
    const struct participants_ops *ops;
};
struct participants_ops {
    /* address: the member's rpc address. done is called once, never from inside. The message stays
     * the caller's. */
    void (*publish)(struct participants *participants, node_id node, const char *address,
                    const struct msg_publish *message, uint64_t timeout_ms,
                    participants_publish_done *done, void *data);
    void (*clone)(struct participants *participants, node_id node, const char *address,
                  const struct msg_clone *message, uint64_t timeout_ms,
                  participants_clone_done *done, void *data);
};

#endif
