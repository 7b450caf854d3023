/* SPDX-License-Identifier: Apache-2.0 */
/* How a replica that is behind is made good: the leader orders a clone (MSG_CLONE) and asks for it
 * again until it is done; the participant reads the versions it lacks (MSG_CLONE_LIST) and their
 * rowsets (MSG_CLONE_READ) from one that has them. */
#ifndef TG_COMMON_PROTO_MSG_CLONE_H
#define TG_COMMON_PROTO_MSG_CLONE_H

#include <stdbool.h>

#include "common/base/buf.h"
#include "common/model/ids.h"
#include "common/model/rowset.h"
#include "common/proto/msg_publish.h"

/* ---- leading coordinator → participant: clone a tablet ---- */

/* The order and the question how far it is are the same message: the first one with a round number
 * begins it, the others ask. Rounds of one tablet grow. */
struct msg_clone {
    node_id node; /* to whom, … */
    uint64_t
        epoch; /* … in which registration: a participant in another one refuses with TG_FENCED */
    tablet_id tablet;
    table_id table;
    uint64_t round;
    version_t lacks; /* what is bound here from this version on is read and checked first: it was
                        reported as damaged; 0: nothing */
    /* A replica that has more. The asked one itself: no other can be asked, so it is only to check
     * and prove what it has. */
    node_id source;
    bool trusted;   /* it is a good one: where versions here contradict its, those here are wrong */
    version_t last; /* the last version of the tablet in the log */
    bool catching;  /* the following is said: */
    version_t missed; /* the last version that it has to have: there is none from it to prove; … */
    version_t prove;  /* … the digest over all that is bound up to here is wanted; … */
    bool chain_known;            /* … by the log … */
    struct digest chain;         /* … it must be this one */
    char address[ADDRESS_BYTES]; /* its rpc address */
};
enum clone_state {
    CLONE_UNDER_WAY = 0, /* or waiting for its turn */
    CLONE_DONE = 1,      /* the tablet here has all that the source had */
    CLONE_FAILED = 2     /* another round may succeed */
};
/* Verdicts: 0; TG_FENCED; TG_BUSY (too many wait here); TG_CLOSED. */
struct msg_clone_reply {
    enum clone_state state;
    version_t bound;     /* the last version bound here, … */
    version_t damaged;   /* … the first one that cannot be read, as far as was looked, … */
    version_t proven;    /* … as far as ordered … */
    struct digest chain; /* … the digest over what is bound */
    uint64_t bytes;      /* fetched in this round so far */
    int err;             /* CLONE_FAILED: why, … */
    char reason[200];    /* … as a sentence */
};
void msg_clone_encode(const struct msg_clone *message, struct buf *out);
int msg_clone_decode(struct slice head, struct msg_clone *message);
void msg_clone_reply_encode(const struct msg_clone_reply *reply, struct buf *out);
int msg_clone_reply_decode(struct slice head, struct msg_clone_reply *reply);

/* ---- participant → source: the versions behind one ---- */

enum { CLONE_LIST_VERSIONS_MAX = 256, CLONE_LIST_ROWSETS_MAX = 4096 /* about, in one answer */ };

struct msg_clone_list {
    node_id source; /* to whom: another one refuses with TG_FENCED */
    tablet_id tablet;
    version_t after; /* the last version bound at the asker's, 0 if none */
};
struct msg_clone_list_reply {
    version_t last;      /* the last version bound at the source */
    version_t at;        /* the smaller one of `after` and last … */
    struct digest chain; /* … and the digest over the source's versions up to it: the asker's must
                            be the same, else one of them holds something wrong */
    uint32_t count;      /* versions above `after`, in order; there are more if the last of them is
                            below last */
    struct publish_bind *binds; /* owned */
};
void msg_clone_list_encode(const struct msg_clone_list *message, struct buf *out);
int msg_clone_list_decode(struct slice head, struct msg_clone_list *message);
void msg_clone_list_reply_encode(const struct msg_clone_list_reply *reply, struct buf *out);
int msg_clone_list_reply_decode(struct slice head, struct msg_clone_list_reply *reply);
void msg_clone_list_reply_close(struct msg_clone_list_reply *reply);

/* ---- participant → source: bytes of a rowset ---- */

enum { CLONE_READ_BYTES_MAX = 1024 * 1024 };

struct msg_clone_read {
    node_id source;
    tablet_id tablet;
    rowset_id rowset;
    uint64_t offset; /* at 0 the answer has the description too */
    uint32_t len;    /* at most CLONE_READ_BYTES_MAX; the answer has less at the end only */
};
/* Verdicts: 0; TG_NOT_FOUND; TG_CORRUPT: the source's own copy is damaged. The bytes are the
 * payload. */
struct msg_clone_read_reply {
    bool with_meta;
    struct rowset_meta meta; /* initialised; owned */
};
void msg_clone_read_encode(const struct msg_clone_read *message, struct buf *out);
int msg_clone_read_decode(struct slice head, struct msg_clone_read *message);
/* meta may be NULL: none. */
void msg_clone_read_reply_encode(const struct rowset_meta *meta, struct buf *out);
int msg_clone_read_reply_decode(struct slice head, struct msg_clone_read_reply *reply);
void msg_clone_read_reply_close(struct msg_clone_read_reply *reply);

#endif
