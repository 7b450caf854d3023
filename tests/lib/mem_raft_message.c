/* SPDX-License-Identifier: Apache-2.0 */
/* Copies messages of raft. */
#include "tests/lib/mem_raft_message.h"

#include <string.h>

#include "common/base/check.h"

/* The entries of a message share one piece of memory, named by every entry's batch. */
static void mem_copy_entries(struct raft_append_entries *to, const struct raft_append_entries *from)
{
    size_t total = 0;
    to->entries = NULL;
    if (from->n_entries == 0)
        return;
    for (unsigned i = 0; i < from->n_entries; i++)
        total += from->entries[i].buf.len;
    to->entries = raft_calloc(from->n_entries, sizeof *to->entries);
    char *batch = raft_malloc(total > 0 ? total : 1);
    TG_CHECK(to->entries != NULL && batch != NULL);
    size_t at = 0;
    for (unsigned i = 0; i < from->n_entries; i++) {
        const struct raft_entry *entry = &from->entries[i];
        to->entries[i] = *entry;
        to->entries[i].batch = batch;
        to->entries[i].buf.base = batch + at;
        memcpy(batch + at, entry->buf.base, entry->buf.len);
        at += entry->buf.len;
    }
}

static void mem_copy_snapshot(struct raft_install_snapshot *to,
                              const struct raft_install_snapshot *from)
{
    struct raft_buffer encoded;
    TG_CHECK(raft_configuration_encode(&from->conf, &encoded) == 0);
    raft_configuration_init(&to->conf);
    TG_CHECK(raft_configuration_decode(&encoded, &to->conf) == 0);
    raft_free(encoded.base);
    to->data.len = from->data.len;
    to->data.base = raft_malloc(from->data.len);
    TG_CHECK(to->data.base != NULL);
    memcpy(to->data.base, from->data.base, from->data.len);
}

void mem_raft_message_copy(struct raft_message *to, const struct raft_message *from)
{
    *to = *from;
    if (from->type == RAFT_APPEND_ENTRIES)
        mem_copy_entries(&to->append_entries, &from->append_entries);
    else if (from->type == RAFT_INSTALL_SNAPSHOT)
        mem_copy_snapshot(&to->install_snapshot, &from->install_snapshot);
}

void mem_raft_message_close(struct raft_message *message)
{
    if (message->type == RAFT_APPEND_ENTRIES && message->append_entries.n_entries > 0) {
        raft_free(message->append_entries.entries[0].batch);
        raft_free(message->append_entries.entries);
    } else if (message->type == RAFT_INSTALL_SNAPSHOT) {
        raft_configuration_close(&message->install_snapshot.conf);
        raft_free(message->install_snapshot.data.base);
    }
}
