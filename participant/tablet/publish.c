/* SPDX-License-Identifier: Apache-2.0 */
/* Publishing: from the message through the store to what readers see. */
#include "participant/tablet/publish.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/failpoint.h"
#include "common/base/log.h"

struct publish_call {
    struct tablet_set *set;
    struct msg_publish message;
    struct msg_publish_reply reply;
    publish_done done;
    void *data;
};

static void end_call(struct publish_call *call, int err)
{
    call->done(call->data, err, &call->reply);
    msg_publish_close(&call->message);
    free(call);
}

/* The binding is durable; now readers may see it. Completions come in the order of commits, so prev
 * is the last here. */
static void show(struct publish_call *call, const struct publish_bind *bind, uint8_t *status)
{
    struct version_map share;
    bool already;
    tablet_set_share(call->set, bind->tablet, &share);
    enum publish_status check = version_map_bind_check(&share, bind, &already);
    version_map_close(&share);
    if (check == PUBLISH_BOUND && already)
        return;
    int err = tablet_set_append(call->set, bind);
    if (err == 0)
        return;
    /* It is bound on disk and unseen by readers: they refuse with BEHIND, which is safe; a restart
     * mends it. */
    log_error("tablet", "bound but not shown tablet=%lu version=%lu reason=%s", bind->tablet,
              bind->version, log_quote(tg_err_sentence(err)));
    *status = PUBLISH_FAILED;
}

static void bound(void *data, int err)
{
    struct publish_call *call = data;
    FAILPOINT("part.bind_after_commit_before_reply");
    for (uint32_t i = 0; i < call->reply.count && err == 0; i++) {
        const struct publish_bind *bind = &call->message.binds[i];
        if (call->reply.status[i] == PUBLISH_BOUND)
            show(call, bind, &call->reply.status[i]);
        else
            log_warn("tablet", "not bound tablet=%lu version=%lu prev=%lu txn=%lu status=%u",
                     bind->tablet, bind->version, bind->prev, bind->txn, call->reply.status[i]);
    }
    end_call(call, err);
}

void publish_apply(struct store *store, struct tablet_set *set, struct clock *clock,
                   struct msg_publish *message, publish_done done, void *data)
{
    struct publish_call *call = calloc(1, sizeof *call);
    if (call == NULL) {
        struct msg_publish_reply none = {0};
        msg_publish_close(message);
        done(data, TG_NOMEM, &none);
        return;
    }
    call->set = set;
    call->message = *message;
    memset(message, 0, sizeof *message);
    call->done = done;
    call->data = data;
    uint32_t count = call->message.bind_count;
    if (count == 0) {
        end_call(call, 0);
        return;
    }
    call->reply.status = malloc(count);
    if (call->reply.status == NULL) {
        end_call(call, TG_NOMEM);
        return;
    }
    memset(call->reply.status, PUBLISH_FAILED, count);
    call->reply.count = count;
    int err = version_store_bind(store, call->message.binds, count, clock_wall_us(clock),
                                 publish_decide, call->reply.status, bound, call);
    if (err != 0)
        end_call(call, err);
}
