/* SPDX-License-Identifier: Apache-2.0 */
/* Waits until the log has admitted this coordinator: asks all that it knows who leads and who else
 * there is, and the one that leads whether it may start. */
#include "coordinator/join.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/net/rpc_pool.h"
#include "common/proto/message.h"

enum { JOIN_PATH_BYTES = 1200, JOIN_TEXT_BYTES = 64, JOIN_PEERS_MAX = DISPATCH_PEERS_MAX };

/* ---- the number ---- */

static int read_nonce(const char *path, uint64_t id, uint64_t *nonce)
{
    char text[JOIN_TEXT_BYTES] = "";
    uint64_t whose = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return TG_NOT_FOUND;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0 || sscanf(text, "%" SCNu64 " %" SCNx64, &whose, nonce) != 2 || whose != id ||
        *nonce == 0)
        return TG_NOT_FOUND;
    return 0;
}

static int sync_dir(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd < 0 ? -1 : fsync(fd);

    if (fd >= 0)
        close(fd);
    return rc;
}

static int write_nonce(const char *data_dir, const char *path, uint64_t id, uint64_t nonce,
                       struct tg_errmsg *msg)
{
    char text[JOIN_TEXT_BYTES];
    char fresh[JOIN_PATH_BYTES + 8];
    int len = snprintf(text, sizeof text, "%" PRIu64 " %016" PRIx64 "\n", id, nonce);

    snprintf(fresh, sizeof fresh, "%s.new", path);
    int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool good = fd >= 0 && write(fd, text, (size_t)len) == len && fsync(fd) == 0;
    int why = errno;

    if (fd >= 0 && close(fd) != 0)
        good = false;
    if (good && (rename(fresh, path) != 0 || sync_dir(data_dir) != 0)) {
        good = false;
        why = errno;
    }
    return good ? 0
                : tg_fail(msg, why == ENOSPC ? TG_NOSPACE : TG_IO, "cannot write %s: %s", path,
                          strerror(why));
}

int join_nonce(const char *data_dir, uint64_t id, struct random_source *random, uint64_t *nonce,
               struct tg_errmsg *msg)
{
    char path[JOIN_PATH_BYTES];

    snprintf(path, sizeof path, "%s/join", data_dir);
    if (read_nonce(path, id, nonce) == 0)
        return 0;
    do
        *nonce = random_u64(random);
    while (*nonce == 0);
    return write_nonce(data_dir, path, id, *nonce, msg);
}

/* ---- waiting ---- */

struct join_peer {
    struct join *join;
    uint64_t id;
    char rpc[ADDRESS_BYTES];
    bool asked;
};

struct join {
    struct loop *loop;
    uint64_t self;
    uint64_t nonce;
    struct rpc_pool pool;
    struct loop_timer *timer;
    bool closing;
    bool over;
    uint64_t logged_ms;
    uint32_t count;
    struct join_peer peers[JOIN_PEERS_MAX];
    void (*done)(void *data, int err, const char *sentence, const struct coordinator_infos *infos);
    void *data;
};

static void end(struct join *join, int err, const char *sentence,
                const struct coordinator_infos *infos)
{
    join->over = true;
    loop_timer_stop(join->timer);
    join->done(join->data, err, sentence, infos);
}

static void know(struct join *join, uint64_t id, const char *rpc)
{
    for (uint32_t i = 0; i < join->count; i++)
        if (join->peers[i].id == id)
            return;
    if (id == join->self || join->count == JOIN_PEERS_MAX || rpc[0] == '\0')
        return;
    struct join_peer *peer = &join->peers[join->count++];
    *peer = (struct join_peer){.join = join, .id = id};
    snprintf(peer->rpc, sizeof peer->rpc, "%s", rpc);
}

static void on_verdict(void *data, const struct rpc_reply *reply)
{
    struct join_peer *peer = data;
    struct join *join = peer->join;
    struct msg_coordinator_reply answer;

    peer->asked = false;
    if (join->closing || join->over)
        return;
    if (reply->err == TG_REFUSED) {
        end(join, TG_REFUSED, reply->message, NULL);
        return;
    }
    if (reply->err != 0 || msg_coordinator_reply_decode(reply->head, &answer) != 0)
        return;
    if (answer.admitted) {
        end(join, 0, "", &answer.coordinators);
        return;
    }
    uint64_t now = loop_now_ms(join->loop);
    if (now - join->logged_ms >= JOIN_LOG_MS) {
        join->logged_ms = now;
        log_info("join", "waiting id=%" PRIu64 " cluster=%s why=%s", join->self,
                 answer.cluster_uuid, log_quote("it has to be added: tidegate coordinator add"));
    }
}

static void on_status(void *data, const struct rpc_reply *reply)
{
    struct join_peer *peer = data;
    struct join *join = peer->join;
    struct msg_status_reply status;
    struct msg_coordinator message = {
        .order = COORDINATOR_ORDER_JOIN, .id = join->self, .nonce = join->nonce};
    struct buf head = BUF_INIT;
    struct rpc_client *client;

    peer->asked = false;
    if (join->closing || join->over || reply->err != 0 ||
        msg_status_reply_decode(reply->head, &status) != 0)
        return;
    for (uint32_t i = 0; i < status.coordinators.count; i++)
        know(join, status.coordinators.list[i].id, status.coordinators.list[i].rpc);
    if (status.leader == 0 || status.leader != status.coordinator ||
        (client = rpc_pool_client(&join->pool, peer->id, peer->rpc, NULL)) == NULL)
        return;
    msg_coordinator_encode(&message, &head);
    peer->asked = true;
    rpc_client_call(client, MSG_COORDINATOR, slice_of(head.data, head.len), slice_of(NULL, 0),
                    JOIN_ASK_MS, on_verdict, peer);
    buf_close(&head);
}

static void ask(void *data)
{
    struct join *join = data;

    for (uint32_t i = 0; i < join->count; i++) {
        struct join_peer *peer = &join->peers[i];
        struct rpc_client *client =
            peer->asked ? NULL : rpc_pool_client(&join->pool, peer->id, peer->rpc, NULL);

        if (client == NULL)
            continue;
        peer->asked = true;
        rpc_client_call(client, MSG_STATUS, slice_of(NULL, 0), slice_of(NULL, 0), JOIN_ASK_MS,
                        on_status, peer);
    }
}

int join_start(struct loop *loop, const struct dispatch *dispatch, const char *secret,
               uint64_t nonce,
               void (*done)(void *data, int err, const char *sentence,
                            const struct coordinator_infos *infos),
               void *data, struct join **join, struct tg_errmsg *msg)
{
    struct join *j = calloc(1, sizeof *j);
    int err = j == NULL ? tg_fail(msg, TG_NOMEM, "out of memory") : 0;

    if (err == 0)
        err = rpc_pool_init(&j->pool, loop, secret, msg);
    if (err == 0) {
        j->timer = loop_timer_open(loop, ask, j);
        err = j->timer == NULL ? tg_fail(msg, TG_NOMEM, "out of memory") : 0;
    }
    if (err != 0) {
        free(j);
        return err;
    }
    j->loop = loop;
    j->self = dispatch->self;
    j->nonce = nonce;
    j->done = done;
    j->data = data;
    for (uint32_t i = 0; i < dispatch->peer_count; i++)
        know(j, dispatch->peers[i].id, dispatch->peers[i].rpc);
    loop_timer_start(j->timer, 0, JOIN_PAUSE_MS);
    *join = j;
    return 0;
}

void join_close(struct join *join)
{
    if (join == NULL)
        return;
    join->closing = true;
    rpc_pool_close(&join->pool);
    loop_timer_close(join->timer);
    free(join);
}
