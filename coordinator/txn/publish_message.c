/* SPDX-License-Identifier: Apache-2.0 */
/* What of a transaction a participant still has to bind, and when its replicas suffice. */
#include "coordinator/txn/publish_message.h"

#include <stdlib.h>

#include "common/base/check.h"

/* The tablet of a publish entry, NULL if its table was dropped since, or no copy is left. */
static const struct tablet *live_tablet(const struct state *state, const struct txn *txn,
                                        const struct txn_publish_tablet *publish)
{
    if (txn->tables[publish->table_index].gone || publish->lost)
        return NULL;
    return catalog_tablet(&state->catalog, publish->tablet);
}

static void add_rowsets(const struct txn *txn, struct publish_bind *bind)
{
    bind->rowsets = calloc(txn->load_count + 1, sizeof *bind->rowsets);
    TG_CHECK_MEMORY(bind->rowsets != NULL);
    for (uint32_t i = 0; i < txn->load_count; i++) { /* loads are in order of their rowset ids */
        const struct txn_load *load = &txn->loads[i];

        for (uint32_t j = 0; j < load->tablet_count; j++)
            if (load->tablets[j].tablet == bind->tablet)
                bind->rowsets[bind->rowset_count++] = (struct publish_rowset){
                    .rowset = load->rowset,
                    .digest = load->tablets[j].digest,
                };
    }
}

static void add_bind(struct msg_publish *message, const struct txn *txn,
                     const struct txn_publish_tablet *publish)
{
    const struct txn_table_ref *table = &txn->tables[publish->table_index];

    if ((message->bind_count & (message->bind_count - 1)) == 0) { /* grow at powers of two */
        size_t room = message->bind_count == 0 ? 1 : message->bind_count * 2u;
        struct publish_bind *binds = realloc(message->binds, room * sizeof *binds);

        TG_CHECK_MEMORY(binds != NULL);
        message->binds = binds;
    }
    struct publish_bind *bind = &message->binds[message->bind_count++];
    *bind = (struct publish_bind){
        .tablet = publish->tablet,
        .table = table->table,
        .version = table->version,
        .prev = publish->prev,
        .txn = txn->id,
        .replace = table->truncate,
    };
    add_rowsets(txn, bind);
}

void publish_message_add(const struct state *state, const struct txn *txn, const uint8_t *bound,
                         struct msg_publish *message)
{
    for (uint32_t i = 0; i < txn->publish_count && message->bind_count < PUBLISH_BINDS_MAX; i++) {
        const struct tablet *tablet = live_tablet(state, txn, &txn->publish[i]);
        int slot = tablet != NULL ? tablet_slot(tablet, message->node) : -1;

        if (slot >= 0 && (tablet_published_to(tablet) & ~bound[i]) >> slot & 1)
            add_bind(message, txn, &txn->publish[i]);
    }
}

static int by_version(const void *a, const void *b)
{
    const struct publish_bind *x = a;
    const struct publish_bind *y = b;

    if (x->version != y->version)
        return x->version < y->version ? -1 : 1;
    return x->tablet < y->tablet ? -1 : x->tablet > y->tablet;
}

void publish_message_sort(struct msg_publish *message)
{
    qsort(message->binds, message->bind_count, sizeof *message->binds, by_version);
}

bool publish_message_is_complete(const struct state *state, const struct txn *txn,
                                 const uint8_t *bound)
{
    for (uint32_t i = 0; i < txn->publish_count; i++) {
        const struct tablet *tablet = live_tablet(state, txn, &txn->publish[i]);

        if (tablet == NULL)
            continue;
        uint8_t awaited = tablet_awaited(tablet, txn->tables[txn->publish[i].table_index].version);
        if ((bound[i] & awaited) != awaited)
            return false;
    }
    return true;
}
