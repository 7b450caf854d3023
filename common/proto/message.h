/* SPDX-License-Identifier: Apache-2.0 */
/* The list of message types between the programs. A head is a msgpack array whose first element is
 * MESSAGE_VERSION (an unknown one is refused); an answer's verdict travels in the RPC frame as an
 * enum tg_err with a sentence. */
#ifndef TG_COMMON_PROTO_MESSAGE_H
#define TG_COMMON_PROTO_MESSAGE_H

enum { MESSAGE_VERSION = 1 };

enum message_type {
    /* anybody → a coordinator: who are you, who leads (msg_status.h) */
    MSG_STATUS = 1,
    /* participant → leading coordinator (msg_member.h) */
    MSG_REGISTER = 10,
    MSG_HEARTBEAT = 11,
    /* coordinator → leading coordinator: its membership, an operator's orders (msg_coordinator.h) */
    MSG_COORDINATOR = 12,
    /* participant or coordinator → leading coordinator (msg_txn.h) */
    MSG_TXN_BEGIN = 20,
    MSG_LOAD_DONE = 21,
    MSG_LOAD_FAILED = 22,
    MSG_TXN_2PC = 23,
    /* the same (msg_read.h, msg_query.h) */
    MSG_READ_POINT = 30,
    MSG_QUERY = 31,
    /* leading coordinator → participant (msg_publish.h) */
    MSG_PUBLISH = 50,
    MSG_CLONE = 51, /* msg_clone.h */
    /* participant → participant (msg_replicate.h, msg_read.h) */
    MSG_REPLICATE = 60,
    MSG_READ_TABLET = 61,
    MSG_CLONE_LIST = 62, /* msg_clone.h */
    MSG_CLONE_READ = 63
};

#endif
