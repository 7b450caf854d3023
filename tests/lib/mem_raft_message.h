/* SPDX-License-Identifier: Apache-2.0 */
/* Deep copies of raft's messages, in raft's heap, as its receiving side expects them. */
#ifndef TG_TESTS_LIB_MEM_RAFT_MESSAGE_H
#define TG_TESTS_LIB_MEM_RAFT_MESSAGE_H

#include <raft.h>

void mem_raft_message_copy(struct raft_message *to, const struct raft_message *from);
/* Frees a copy that nobody received. */
void mem_raft_message_close(struct raft_message *message);

#endif
