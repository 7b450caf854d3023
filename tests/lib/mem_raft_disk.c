/* SPDX-License-Identifier: Apache-2.0 */
/* What an in-memory raft server keeps across a crash. */
#include "tests/lib/mem_raft_disk.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"

void mem_raft_disk_init(struct mem_raft_disk *disk)
{
    memset(disk, 0, sizeof *disk);
    disk->first = 1;
}

static void mem_raft_disk_drop_snapshot(struct mem_raft_disk *disk)
{
    buf_close(&disk->snapshot.configuration);
    buf_close(&disk->snapshot.data);
    memset(&disk->snapshot, 0, sizeof disk->snapshot);
}

void mem_raft_disk_close(struct mem_raft_disk *disk)
{
    mem_raft_disk_truncate(disk, disk->first);
    free(disk->entries);
    mem_raft_disk_drop_snapshot(disk);
}

static void *mem_copy(const void *bytes, size_t len)
{
    void *copy = malloc(len > 0 ? len : 1);
    TG_CHECK(copy != NULL);
    if (len > 0)
        memcpy(copy, bytes, len);
    return copy;
}

static void *mem_raft_copy(const void *bytes, size_t len)
{
    void *copy = raft_malloc(len > 0 ? len : 1);
    TG_CHECK(copy != NULL);
    if (len > 0)
        memcpy(copy, bytes, len);
    return copy;
}

void mem_raft_disk_append(struct mem_raft_disk *disk, const struct raft_entry *entry)
{
    if (disk->count == disk->capacity) {
        disk->capacity = disk->capacity == 0 ? 64 : 2 * disk->capacity;
        disk->entries = realloc(disk->entries, disk->capacity * sizeof *disk->entries);
        TG_CHECK(disk->entries != NULL);
    }
    TG_CHECK(entry->buf.len % 8 == 0);
    disk->entries[disk->count++] = (struct mem_raft_entry){
        entry->term, entry->type, mem_copy(entry->buf.base, entry->buf.len), entry->buf.len};
}

void mem_raft_disk_truncate(struct mem_raft_disk *disk, raft_index index)
{
    TG_CHECK(index >= disk->first);
    while (disk->count > 0 && disk->first + disk->count > index)
        free(disk->entries[--disk->count].bytes);
}

static void mem_raft_disk_trim(struct mem_raft_disk *disk, raft_index first)
{
    size_t gone = 0;
    while (gone < disk->count && disk->first + gone < first)
        free(disk->entries[gone++].bytes);
    disk->count -= gone;
    disk->first += gone;
    if (gone > 0 && disk->count > 0)
        memmove(disk->entries, disk->entries + gone, disk->count * sizeof *disk->entries);
}

void mem_raft_disk_put_snapshot(struct mem_raft_disk *disk, const struct raft_snapshot *snapshot,
                                unsigned trailing)
{
    struct raft_buffer encoded;
    TG_CHECK(raft_configuration_encode(&snapshot->configuration, &encoded) == 0);
    mem_raft_disk_drop_snapshot(disk);
    disk->snapshot.index = snapshot->index;
    disk->snapshot.term = snapshot->term;
    disk->snapshot.configuration_index = snapshot->configuration_index;
    buf_append(&disk->snapshot.configuration, encoded.base, encoded.len);
    for (unsigned i = 0; i < snapshot->n_bufs; i++)
        buf_append(&disk->snapshot.data, snapshot->bufs[i].base, snapshot->bufs[i].len);
    raft_free(encoded.base);
    if (trailing == 0) {
        mem_raft_disk_truncate(disk, disk->first);
        disk->first = snapshot->index + 1;
    } else if (snapshot->index > trailing) {
        mem_raft_disk_trim(disk, snapshot->index - trailing + 1);
    }
}

struct raft_snapshot *mem_raft_disk_get_snapshot(const struct mem_raft_disk *disk)
{
    if (disk->snapshot.index == 0)
        return NULL;
    const struct mem_raft_snapshot *from = &disk->snapshot;
    struct raft_snapshot *snapshot = raft_malloc(sizeof *snapshot);
    TG_CHECK(snapshot != NULL);
    memset(snapshot, 0, sizeof *snapshot);
    snapshot->index = from->index;
    snapshot->term = from->term;
    snapshot->configuration_index = from->configuration_index;
    struct raft_buffer encoded = {from->configuration.data, from->configuration.len};
    raft_configuration_init(&snapshot->configuration);
    TG_CHECK(raft_configuration_decode(&encoded, &snapshot->configuration) == 0);
    snapshot->bufs = raft_malloc(sizeof *snapshot->bufs);
    TG_CHECK(snapshot->bufs != NULL);
    snapshot->bufs[0].base = mem_raft_copy(from->data.data, from->data.len);
    snapshot->bufs[0].len = from->data.len;
    snapshot->n_bufs = 1;
    return snapshot;
}

void mem_raft_disk_load(struct mem_raft_disk *disk, struct raft_snapshot **snapshot,
                        raft_index *start_index, struct raft_entry **entries, size_t *count)
{
    if (disk->first + disk->count <= disk->snapshot.index) {
        mem_raft_disk_truncate(disk, disk->first);
        disk->first = disk->snapshot.index + 1;
    }
    *snapshot = mem_raft_disk_get_snapshot(disk);
    *start_index = disk->count > 0 ? disk->first : disk->snapshot.index + 1;
    *entries = NULL;
    *count = disk->count;
    if (disk->count == 0)
        return;
    *entries = raft_calloc(disk->count, sizeof **entries);
    TG_CHECK(*entries != NULL);
    for (size_t i = 0; i < disk->count; i++) {
        struct raft_entry *entry = &(*entries)[i];
        entry->term = disk->entries[i].term;
        entry->type = disk->entries[i].type;
        entry->buf.base = mem_raft_copy(disk->entries[i].bytes, disk->entries[i].len);
        entry->buf.len = disk->entries[i].len;
        entry->batch = entry->buf.base;
    }
}
