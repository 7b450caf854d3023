/* SPDX-License-Identifier: Apache-2.0 */
/* The store of one participant: three LMDB environments in its data directory, each with a writer
 * thread of its own, and who this node is. What lies in it: docs/formats.md, "LMDB layout".
 *
 *   DATA/meta         identity, tablets, versions, rowsets; the content of small rowsets
 *   DATA/blocks-64k   the content of larger ones, in extents of 65,520 bytes …
 *   DATA/blocks-256k  … and of 262,128 bytes
 *
 * The rest of the store's verbs: rowset_store.h (writing rowsets), rowset_reader.h (reading them),
 * rowset_drop.h (dropping them), version_store.h (versions). All are safe on any thread unless they
 * say otherwise. */
#ifndef TG_PARTICIPANT_STORE_STORE_H
#define TG_PARTICIPANT_STORE_STORE_H

#include <stdint.h>

#include "common/base/err.h"
#include "common/model/ids.h"

struct store;

struct store_options {
    uint64_t meta_map_bytes;     /* address space of the meta environment: it cannot grow beyond */
    uint64_t blocks_map_bytes;   /* of each block environment */
    uint64_t disk_reserve_bytes; /* no new rowset is begun when the disk has less free than this */
    uint64_t writer_queue_bytes; /* waiting for a writer thread before producers are slowed */
    uint64_t cache_bytes;        /* decoded rowset descriptions and small contents kept in memory */
};

/* 64 GiB, 256 GiB, 256 MiB, 32 MiB, 32 MiB. */
void store_options_init(struct store_options *options);

/* Opens the store in an existing directory (or makes a new one in an empty directory).
 * TG_UNSUPPORTED: written by a newer format; TG_IO, TG_NOSPACE, TG_NOMEM, TG_INVALID, TG_CORRUPT;
 * the message says where. At most one store per directory and process; a second process on the same
 * directory: TG_BUSY. */
int store_open(const char *dir, const struct store_options *options, struct store **store,
               struct tg_errmsg *msg);
/* Finishes all queued work (its callbacks run), then closes. No other call may be running. NULL is
 * allowed. */
void store_close(struct store *store);

/* ---- who this node is (rule 13) ---- */
enum { STORE_UUID_BYTES = 37 };
struct store_identity {
    char node_uuid[STORE_UUID_BYTES];    /* "" in a new store */
    char cluster_uuid[STORE_UUID_BYTES]; /* "" before the first registration was accepted */
    node_id node;                        /* 0 before */
    uint64_t nonce;                      /* that the cluster accepted last, 0 in a new store */
    uint64_t pending_nonce;              /* sent to the cluster, answer not known yet; 0 if none */
    uint64_t epoch;                      /* of the last accepted registration */
};
int store_identity_load(struct store *store, struct store_identity *identity);
/* Durable when it returns. Waits: not on an event loop once it serves. 0, TG_NOSPACE, TG_IO. */
int store_identity_save(struct store *store, const struct store_identity *identity);

/* Free and total bytes of the disk below the store. */
int store_disk(const struct store *store, uint64_t *free_bytes, uint64_t *total_bytes);

/* Bytes of each environment's pages in use (free ones left out). */
struct store_usage {
    uint64_t meta_bytes;
    uint64_t blocks_64k_bytes;
    uint64_t blocks_256k_bytes;
};
int store_measure(struct store *store, struct store_usage *usage);

#endif
