/* SPDX-License-Identifier: Apache-2.0 */
/* Versions of tablets: which rowsets each binds. Binding, the tablet's last version and the end of
 * "staged" change in one LMDB transaction. Whether a bind may be done is
 * decided by the caller's pure function under the writer; this file fetches the facts and writes.
 */
#ifndef TG_PARTICIPANT_STORE_VERSION_STORE_H
#define TG_PARTICIPANT_STORE_VERSION_STORE_H

#include <stdbool.h>

#include "common/proto/msg_publish.h"
#include "participant/store/store.h"

/* What is here of one rowset that a bind names. */
struct bind_staged {
    bool sealed;          /* complete, durable and not bound yet */
    struct digest digest; /* of a sealed one */
};
/* All that a decision may look at. */
struct bind_facts {
    version_t last;  /* the tablet's last bound version, 0 if none */
    bool bound;      /* the bind's version is bound already … */
    bool bound_same; /* … by the same transaction, with the same rowsets and digests */
    const struct bind_staged *staged; /* bind->rowset_count of them, in order */
};
typedef enum publish_status (*bind_decide)(const struct publish_bind *bind,
                                           const struct bind_facts *facts);

/* A version of a tablet as it is stored. */
struct version_record {
    tablet_id tablet;
    table_id table;
    version_t version;
    version_t prev;
    txn_id txn;
    bool replace;
    uint64_t bound_us; /* this node's wall clock at the binding, for people */
    uint32_t rowset_count;
    const struct publish_rowset *rowsets; /* ascending ids; valid during the callback */
};

/* Called once, on the meta writer's thread, after everything was made durable (err 0; status[i]
 * says of each bind what became of it) or nothing was (err: TG_NOSPACE, TG_IO, TG_CLOSED, TG_NOMEM
 * …; all status are PUBLISH_FAILED). Commits complete in order. */
typedef void (*version_store_done)(void *data, int err);

/* Applies binds in order; each sees what those before it did. `binds` and `status` (count of them)
 * must stay until done. now_us: wall clock. Does not wait; 0 and done is called later, or TG_BUSY,
 * TG_CLOSED, TG_NOMEM and it is not. */
int version_store_bind(struct store *store, const struct publish_bind *binds, uint32_t count,
                       uint64_t now_us, bind_decide decide, uint8_t *status,
                       version_store_done done, void *data);

/* All versions of all tablets, by tablet and then version. Stops when fn returns other than 0 and
 * returns that. A chain with a hole: TG_CORRUPT. */
int version_store_each(struct store *store, int (*fn)(void *data, const struct version_record *),
                       void *data);

#endif
