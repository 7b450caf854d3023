/* SPDX-License-Identifier: Apache-2.0 */
/* Versions bound here whose data is damaged. */
#include "participant/maintain/damage_list.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/err.h"

void damage_list_init(struct damage_list *damage)
{
    memset(damage, 0, sizeof *damage);
    pthread_mutex_init(&damage->lock, NULL);
}

void damage_list_close(struct damage_list *damage)
{
    pthread_mutex_destroy(&damage->lock);
}

static struct damaged_version *find(struct damage_list *damage, tablet_id tablet)
{
    for (uint32_t i = 0; i < damage->count; i++)
        if (damage->list[i].tablet == tablet)
            return &damage->list[i];
    return NULL;
}

bool damage_list_add(struct damage_list *damage, tablet_id tablet, version_t version)
{
    pthread_mutex_lock(&damage->lock);
    struct damaged_version *found = find(damage, tablet);
    bool added = found != NULL || damage->count < HEARTBEAT_DAMAGED_MAX;
    if (found != NULL && version < found->version)
        found->version = version;
    else if (found == NULL && added)
        damage->list[damage->count++] = (struct damaged_version){tablet, version};
    pthread_mutex_unlock(&damage->lock);
    return added;
}

bool damage_list_has(struct damage_list *damage, tablet_id tablet)
{
    pthread_mutex_lock(&damage->lock);
    bool has = find(damage, tablet) != NULL;
    pthread_mutex_unlock(&damage->lock);
    return has;
}

void damage_list_remove(struct damage_list *damage, tablet_id tablet)
{
    pthread_mutex_lock(&damage->lock);
    struct damaged_version *found = find(damage, tablet);
    if (found != NULL)
        *found = damage->list[--damage->count];
    pthread_mutex_unlock(&damage->lock);
}

int damage_list_copy(struct damage_list *damage, struct damaged_version **list, uint32_t *count)
{
    int err = 0;

    *list = NULL;
    pthread_mutex_lock(&damage->lock);
    *count = damage->count;
    if (damage->count > 0) {
        *list = malloc(damage->count * sizeof **list);
        if (*list == NULL)
            err = TG_NOMEM;
        else
            memcpy(*list, damage->list, damage->count * sizeof **list);
    }
    pthread_mutex_unlock(&damage->lock);
    return err;
}
