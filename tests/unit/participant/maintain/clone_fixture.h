/* SPDX-License-Identifier: Apache-2.0 */
/* Two stores, one of which is cloned from the other, and what tests do to them. */
#ifndef TG_TESTS_UNIT_PARTICIPANT_MAINTAIN_CLONE_FIXTURE_H
#define TG_TESTS_UNIT_PARTICIPANT_MAINTAIN_CLONE_FIXTURE_H

#include "participant/maintain/cloner.h"

#include "common/proto/message.h"
#include "participant/maintain/clone_source.h"
#include "participant/store/store_internal.h"
#include "participant/store/store_keys.h"
#include "tests/lib/test_dir.h"
#include "tests/unit/participant/tablet/publish_fixture.h"

enum { TABLET = 5, SMALL = 3000, LARGE = 3000000, TXN = 100 };

struct pair {
    struct fixture *here;  /* the replica that is behind */
    struct fixture *there; /* the source */
    struct tablet_set *here_set;
    struct tablet_set *there_set;
    struct damage_list damage;
    struct clone_calls calls;
    struct throttle throttle;
    atomic_bool stop;
    uint64_t bytes;         /* fetched by the last round */
    bool chain_known, self; /* of the order: the log says; nobody else is there */
    version_t missed, prove;
    struct digest chain;
    bool untrusted;                     /* the source is not known to be good */
    unsigned lists, reads;              /* questions to the source */
    unsigned fail_reads;                /* from this read on */
    void (*between)(struct pair *pair); /* before each read */
};

static inline int call_source(void *ctx, node_id node, const char *address, uint16_t type,
                              struct buf *head, const atomic_bool *stop, struct buf *reply_head,
                              struct buf *reply_payload, struct tg_errmsg *msg)
{
    struct pair *pair = ctx;
    struct slice bytes = slice_of(head->data, head->len);
    int err;

    (void)stop;
    assert_int_equal(node, 1);
    assert_string_equal(address, "there");
    if (type == MSG_CLONE_LIST) {
        struct msg_clone_list message;
        struct msg_clone_list_reply reply;

        pair->lists++;
        assert_int_equal(msg_clone_list_decode(bytes, &message), 0);
        err = clone_source_list(pair->there_set, &message, &reply);
        if (err == 0) {
            msg_clone_list_reply_encode(&reply, reply_head);
            msg_clone_list_reply_close(&reply);
        }
    } else {
        struct msg_clone_read message;

        assert_int_equal(type, MSG_CLONE_READ);
        pair->reads++;
        if (pair->between != NULL)
            pair->between(pair);
        assert_int_equal(msg_clone_read_decode(bytes, &message), 0);
        err = pair->fail_reads != 0 && pair->reads >= pair->fail_reads
                  ? TG_UNREACHABLE
                  : clone_source_read(pair->there->store, &message, reply_head, reply_payload);
    }
    buf_close(head);
    return err == 0 ? 0 : tg_fail(msg, err, "%s", tg_err_sentence(err));
}

static inline int setup(void **state)
{
    struct pair *pair = calloc(1, sizeof *pair);
    void *fixture;

    fixture_setup(&fixture);
    pair->here = fixture;
    fixture_setup(&fixture);
    pair->there = fixture;
    assert_int_equal(tablet_set_open(pair->here->store, &pair->here_set), 0);
    assert_int_equal(tablet_set_open(pair->there->store, &pair->there_set), 0);
    damage_list_init(&pair->damage);
    throttle_init(&pair->throttle, clock_system(), 0);
    pair->calls = (struct clone_calls){.ctx = pair, .call = call_source};
    *state = pair;
    return 0;
}

static inline int teardown(void **state)
{
    struct pair *pair = *state;
    void *fixture = pair->here;

    tablet_set_close(pair->here_set);
    tablet_set_close(pair->there_set);
    throttle_close(&pair->throttle);
    damage_list_close(&pair->damage);
    fixture_teardown(&fixture);
    fixture = pair->there;
    fixture_teardown(&fixture);
    free(pair);
    return 0;
}

/* Version v, of transaction TXN + v, binds rowset v. */
static inline void add_version(struct fixture *fixture, struct tablet_set *set, version_t version,
                               size_t len)
{
    struct publish_wait wait;
    struct publish_rowset rowset = {.rowset = version};

    if (len > 0) {
        assert_int_equal(fixture_put(fixture, TXN + version, version, TABLET, len, 70000), 0);
        rowset.digest = fixture_digest(version, len);
    }
    struct publish_bind bind = publish_bind_of(TABLET, version, tablet_set_last(set, TABLET),
                                               TXN + version, len > 0 ? &rowset : NULL);
    bind.replace = len == 0;
    publish_and_wait(fixture, set, &bind, 1, &wait);
    assert_int_equal(wait.status[0], PUBLISH_BOUND);
}

static inline int run(struct pair *pair, version_t lacks, version_t *bound)
{
    struct tg_errmsg msg = {{0}};
    struct clone_tablet clone = {
        .store = pair->here->store,
        .tablets = pair->here_set,
        .clock = clock_system(),
        .throttle = &pair->throttle,
        .calls = &pair->calls,
        .stop = &pair->stop,
        .order = {.tablet = TABLET,
                  .table = FIXTURE_TABLE,
                  .lacks = lacks,
                  .node = 2,
                  .source = pair->self ? 2 : 1,
                  .trusted = !pair->untrusted,
                  .last = UINT64_MAX,
                  .catching = pair->chain_known,
                  .missed = pair->missed,
                  .prove = pair->prove,
                  .chain_known = pair->chain_known,
                  .chain = pair->chain,
                  .address = "there"},
    };
    struct clone_end end;
    int err = clone_tablet_run(&clone, &end, &msg);

    *bound = end.bound;
    pair->bytes = atomic_load(&clone.bytes);
    if (err != 0)
        print_message("clone: %s\n", msg.text);
    return err;
}

static inline struct digest chain_of(struct tablet_set *set)
{
    struct version_map map;
    struct digest chain;

    tablet_set_share(set, TABLET, &map);
    assert_int_equal(version_map_chain(&map, UINT64_MAX, &chain), 0);
    version_map_close(&map);
    return chain;
}

static inline void is_equal(struct pair *pair)
{
    struct digest here = chain_of(pair->here_set);
    struct digest there = chain_of(pair->there_set);
    uint32_t count;
    txn_id txns[8];

    assert_true(digest_equal(&here, &there));
    /* Nothing is left staged. */
    assert_int_equal(rowset_drop_list(pair->here->store, 0, txns, 8, &count), 0);
    assert_int_equal(count, 0);
}

static inline void restart_here(struct pair *pair)
{
    tablet_set_close(pair->here_set);
    fixture_reopen(pair->here);
    assert_int_equal(tablet_set_open(pair->here->store, &pair->here_set), 0);
}

/* ---- damage ---- */

static inline int spoil(void *data, struct lmdb_txn *txn)
{
    MDB_dbi *database = data;
    struct store_key key;
    struct slice bytes;

    store_key_block(&key, TABLET, 2, 0);
    if (!lmdb_txn_get(txn, *database, store_key_slice(&key), &bytes))
        return txn->err;
    struct buf copy = BUF_INIT;
    buf_append(&copy, bytes.data, bytes.len);
    copy.data[copy.len / 2] ^= 1;
    lmdb_txn_put(txn, *database, store_key_slice(&key), slice_of(copy.data, copy.len));
    buf_close(&copy);
    return txn->err;
}

/* A bit of its first extent, whichever environment has it. */
static inline void spoil_rowset_2(struct fixture *fixture)
{
    for (int class = 0; class < BLOCK_CLASSES; class ++)
        assert_int_equal(store_writer_run(fixture->store->block_writer[class], false, 100, spoil,
                                          &fixture->store->db_block[class]),
                         0);
}

#endif
