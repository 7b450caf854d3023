/* SPDX-License-Identifier: Apache-2.0 */
/* The side that is cloned from: answers MSG_CLONE_LIST and MSG_CLONE_READ, on threads of its own
 * because reading may wait for the disk. */
#ifndef TG_PARTICIPANT_MAINTAIN_CLONE_SOURCE_H
#define TG_PARTICIPANT_MAINTAIN_CLONE_SOURCE_H

#include "common/proto/msg_clone.h"
#include "participant/store/store.h"
#include "participant/tablet/tablet_set.h"

enum { CLONE_SOURCE_THREADS = 2, CLONE_SOURCE_QUEUE_MAX = 256 };

/* ---- the answers ---- */

/* The reply is the caller's to close. 0 or TG_NOMEM. */
int clone_source_list(struct tablet_set *tablets, const struct msg_clone_list *message,
                      struct msg_clone_list_reply *reply);
/* Head (with the description at offset 0) and bytes are appended. TG_NOT_FOUND, TG_CORRUPT, TG_IO,
 * TG_INVALID (beyond the end), TG_NOMEM. */
int clone_source_read(struct store *store, const struct msg_clone_read *message, struct buf *head,
                      struct buf *payload);

/* ---- threads ---- */

struct clone_source;

/* head and payload are the callee's to take or leave; on an error they are empty. On a thread of
 * the source, or on the caller's if the call is refused. */
typedef void clone_source_done(void *data, int err, struct buf *head, struct buf *payload);

int clone_source_open(struct store *store, struct tablet_set *tablets,
                      struct clone_source **source);
/* Waiting questions end with TG_CLOSED. Joins the threads. */
void clone_source_close(struct clone_source *source);
/* type: MSG_CLONE_LIST or MSG_CLONE_READ; head: the message, copied. node: this one's id: a message
 * to another one ends with TG_FENCED. Never waits. */
void clone_source_serve(struct clone_source *source, node_id node, uint16_t type, struct slice head,
                        clone_source_done *done, void *data);

#endif
