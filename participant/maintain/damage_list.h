/* SPDX-License-Identifier: Apache-2.0 */
/* Versions bound here whose data was read and found damaged: told to the leader with each heartbeat
 * until a repair has replaced them. Any thread. */
#ifndef TG_PARTICIPANT_MAINTAIN_DAMAGE_LIST_H
#define TG_PARTICIPANT_MAINTAIN_DAMAGE_LIST_H

#include <pthread.h>
#include <stdbool.h>

#include "common/proto/msg_member.h"

struct damage_list {
    pthread_mutex_t lock;
    uint32_t count;
    struct damaged_version list[HEARTBEAT_DAMAGED_MAX]; /* one a tablet: its first damaged one */
};

void damage_list_init(struct damage_list *damage);
void damage_list_close(struct damage_list *damage);
/* False if it is full: found again by the next read. */
bool damage_list_add(struct damage_list *damage, tablet_id tablet, version_t version);
/* Damage of that tablet is known. */
bool damage_list_has(struct damage_list *damage, tablet_id tablet);
void damage_list_remove(struct damage_list *damage, tablet_id tablet);
/* A copy, to be freed; *count 0 and NULL if there are none. TG_NOMEM. */
int damage_list_copy(struct damage_list *damage, struct damaged_version **list, uint32_t *count);

#endif
