/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the head of a message between nodes: refused, or a message that is the same after
 * one more journey. The first byte says which message. */
#include <stdint.h>

#include "common/base/check.h"
#include "common/proto/msg_clone.h"
#include "common/proto/msg_coordinator.h"
#include "common/proto/msg_member.h"
#include "common/proto/msg_publish.h"
#include "common/proto/msg_query.h"
#include "common/proto/msg_read.h"
#include "common/proto/msg_replicate.h"
#include "common/proto/msg_status.h"
#include "common/proto/msg_txn.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NOTHING(message) ((void)(message))

/* What was read, written and read again is written as the same bytes. */
#define TRAVELS(name, close)                                                                   \
    static void try_##name(struct slice head)                                                  \
    {                                                                                          \
        struct name first = {0}, again = {0};                                                  \
        struct buf once = BUF_INIT, twice = BUF_INIT;                                          \
        if (name##_decode(head, &first) != 0)                                                  \
            return;                                                                            \
        name##_encode(&first, &once);                                                          \
        TG_CHECK(once.err == 0);                                                               \
        TG_CHECK(name##_decode(slice_of(once.data, once.len), &again) == 0);                   \
        name##_encode(&again, &twice);                                                         \
        TG_CHECK(slice_equal(slice_of(once.data, once.len), slice_of(twice.data, twice.len))); \
        close(&first);                                                                         \
        close(&again);                                                                         \
        buf_close(&once);                                                                      \
        buf_close(&twice);                                                                     \
    }

TRAVELS(msg_clone, NOTHING)
TRAVELS(msg_clone_reply, NOTHING)
TRAVELS(msg_clone_list, NOTHING)
TRAVELS(msg_clone_list_reply, msg_clone_list_reply_close)
TRAVELS(msg_clone_read, NOTHING)
TRAVELS(msg_register, NOTHING)
TRAVELS(msg_register_reply, NOTHING)
TRAVELS(msg_heartbeat, msg_heartbeat_close)
TRAVELS(msg_heartbeat_reply, msg_heartbeat_reply_close)
TRAVELS(msg_publish, msg_publish_close)
TRAVELS(msg_publish_reply, msg_publish_reply_close)
TRAVELS(msg_query, msg_query_close)
TRAVELS(msg_query_reply, msg_query_reply_close)
TRAVELS(msg_read_point, NOTHING)
TRAVELS(msg_read_point_reply, msg_read_point_reply_close)
TRAVELS(msg_read_tablet, msg_read_tablet_close)
TRAVELS(msg_read_tablet_reply, msg_read_tablet_reply_close)
TRAVELS(msg_replicate, msg_replicate_close)
TRAVELS(msg_status_reply, NOTHING)
TRAVELS(msg_txn_begin, NOTHING)
TRAVELS(msg_txn_begin_reply, msg_txn_begin_reply_close)
TRAVELS(msg_load_done, msg_load_done_close)
TRAVELS(msg_txn_reply, NOTHING)
TRAVELS(msg_load_failed, NOTHING)
TRAVELS(msg_txn_2pc, NOTHING)
TRAVELS(msg_txn_2pc_reply, NOTHING)
TRAVELS(msg_coordinator, NOTHING)
TRAVELS(msg_coordinator_reply, NOTHING)

static void try_msg_clone_read_reply(struct slice head)
{
    struct msg_clone_read_reply reply;
    if (msg_clone_read_reply_decode(head, &reply) == 0)
        msg_clone_read_reply_close(&reply);
}

static void (*const tries[])(struct slice) = {
    try_msg_clone,
    try_msg_clone_reply,
    try_msg_clone_list,
    try_msg_clone_list_reply,
    try_msg_clone_read,
    try_msg_clone_read_reply,
    try_msg_register,
    try_msg_register_reply,
    try_msg_heartbeat,
    try_msg_heartbeat_reply,
    try_msg_publish,
    try_msg_publish_reply,
    try_msg_query,
    try_msg_query_reply,
    try_msg_read_point,
    try_msg_read_point_reply,
    try_msg_read_tablet,
    try_msg_read_tablet_reply,
    try_msg_replicate,
    try_msg_status_reply,
    try_msg_txn_begin,
    try_msg_txn_begin_reply,
    try_msg_load_done,
    try_msg_txn_reply,
    try_msg_load_failed,
    try_msg_txn_2pc,
    try_msg_txn_2pc_reply,
    try_msg_coordinator,
    try_msg_coordinator_reply,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0)
        tries[data[0] % (sizeof tries / sizeof tries[0])](slice_of(data + 1, size - 1));
    return 0;
}
