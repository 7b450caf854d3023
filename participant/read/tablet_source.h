/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of one tablet, from the own store or a peer. Positions mean the same on every replica,
 * because replicas hold the same bytes: so a source can change replica in the middle. */
#ifndef TG_PARTICIPANT_READ_TABLET_SOURCE_H
#define TG_PARTICIPANT_READ_TABLET_SOURCE_H

#include "participant/read/table_reader.h"

struct merge_cursor;

/* Nodes that did not answer during a read: asked last from then on. Shared by its sources. */
struct silent_nodes {
    uint32_t count;
    node_id nodes[NODES_MAX];
};

struct tablet_source {
    const struct table_reader_context *context;
    const struct msg_read_point_reply *point;
    const struct read_point_tablet *tablet;
    struct msg_read_tablet message; /* position moves on; its columns and schema are borrowed */
    const atomic_bool *stop;        /* may be NULL */
    struct silent_nodes *silent;
    bool begun;
    uint8_t replica;               /* index in tablet->replicas being read */
    struct merge_cursor *cursor;   /* open while the replica is this node */
    struct block_decoder *decoder; /* made when a peer first answers */
    bool done;
};

/* columns may hold more than the read wants (keys for ordering). All must outlive the source.
 * Nothing is read yet. 0 or TG_NOMEM. */
int tablet_source_open(struct tablet_source *source, const struct table_reader_context *context,
                       const struct table_read *read, const struct read_point_tablet *tablet,
                       const uint32_t *columns, uint32_t column_count, struct silent_nodes *silent);
void tablet_source_close(struct tablet_source *source);
/* Fills out (cleared first) with up to max rows; 0 rows: the end. TG_UNREACHABLE: no replica could
 * serve; TG_CORRUPT: the last one asked has damaged data; TG_CANCELED: stopped; what asking another
 * replica cannot change (TG_INVALID, TG_LIMIT, TG_NOMEM …). */
int tablet_source_next(struct tablet_source *source, uint32_t max, struct vector *out,
                       struct vector *versions, uint32_t *rows, struct tg_errmsg *msg);

#endif
