/* SPDX-License-Identifier: Apache-2.0 */
/* One batch of the log, command after command. */
#include "coordinator/consensus/batch.h"

#include <string.h>

#include "common/base/log.h"
#include "coordinator/state/command.h"

static void batch_void(struct apply_result *results, uint32_t results_max, uint32_t count,
                       uint64_t stamp_us)
{
    log_error("consensus", "void batch stamp=%lu commands=%u", (unsigned long)stamp_us, count);
    for (uint32_t i = 0; i < count && i < results_max; i++) {
        memset(&results[i], 0, sizeof results[i]);
        results[i].err = TG_STALE;
        tg_fail(&results[i].msg, TG_STALE, "the batch's time does not follow the log's");
    }
}

int batch_apply(struct state *state, struct slice bytes, struct apply_result *results,
                uint32_t results_max, uint32_t *count, struct tg_errmsg *msg)
{
    struct cursor cursor;
    struct batch_header header;
    cursor_init(&cursor, bytes.data, bytes.len);
    *count = 0;
    int err = batch_decode_header(&cursor, &header);
    if (err != 0)
        return tg_fail(msg, err, "a batch of %zu bytes in the log cannot be read: %s", bytes.len,
                       tg_err_sentence(err));
    *count = header.count;
    if (state_begin_batch(state, &header) != 0) {
        batch_void(results, results_max, header.count, header.stamp_us);
        return 0;
    }
    struct apply_result nobodys = {0};
    for (uint32_t i = 0; i < header.count; i++) {
        struct apply_result *result = i < results_max ? &results[i] : &nobodys;
        struct command command;
        err = command_decode(&cursor, &command);
        if (err != 0)
            return tg_fail(msg, err, "command %u of %u in a batch of the log cannot be read: %s",
                           i + 1, header.count, tg_err_sentence(err));
        memset(result, 0, sizeof *result);
        state_apply(state, &command, result);
        command_close(&command);
    }
    return 0;
}
