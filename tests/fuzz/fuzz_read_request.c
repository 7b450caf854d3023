/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the target of a request: its path's parts and its query decoded, and what the query
 * says of a read. A token that was read is printed as one that is read the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/net/http_server.h"
#include "participant/read/read_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int lookup(void *ctx, const char *name, unsigned nth, char *out, size_t cap)
{
    return http_request_query(ctx, name, nth, out, cap);
}

static int token_lookup(void *ctx, const char *name, unsigned nth, char *out, size_t cap)
{
    const char *token = ctx;
    if (strcmp(name, "token") != 0 || nth > 0)
        return TG_NOT_FOUND;
    TG_CHECK(strlen(token) < cap);
    memcpy(out, token, strlen(token) + 1);
    return 0;
}

static void check_token(const struct read_request *request)
{
    char token[READ_TOKEN_BYTES];
    struct read_request again;
    struct tg_errmsg msg;
    read_token_print(request->token_table, request->after.value, request->skip, token);
    TG_CHECK(read_request_parse(READ_CHANGES, "d", "t", token_lookup, token, &again, &msg) == 0);
    TG_CHECK(again.token_table == request->token_table && again.skip == request->skip);
    TG_CHECK(again.after.value == request->after.value);
    read_request_close(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct read_request request; /* large */
    struct http_request http = {0};
    struct tg_errmsg msg = {""};
    char part[256];
    char stranger[64];
    size_t count;
    char *query = size <= HTTP_TARGET_BYTES_MAX ? malloc(size + 1) : NULL;
    if (query == NULL)
        return 0;
    if (size > 0)
        memcpy(query, data, size);
    query[size] = '\0';
    (void)http_decode_segment(slice_of(data, size), part, sizeof part);
    http.query = query;
    for (int kind = READ_SCAN; kind <= READ_CHANGES; kind++) {
        const char *const *known = read_request_parameters((enum read_kind)kind, &count);
        (void)http_request_stranger(&http, known, count, stranger, sizeof stranger);
        msg.text[0] = '\0';
        int err = read_request_parse((enum read_kind)kind, "d", "t", lookup, &http, &request, &msg);
        TG_CHECK(err == 0 || msg.text[0] != '\0');
        if (err == 0 && kind == READ_CHANGES && request.token_table != 0)
            check_token(&request);
        read_request_close(&request);
    }
    free(query);
    return 0;
}
