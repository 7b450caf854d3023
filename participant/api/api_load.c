/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP side of loads: heads of requests, opening and closing. */
#include "participant/api/api_load.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/uuid.h"
#include "common/net/auth.h"
#include "participant/api/api_load_internal.h"
#include "participant/api/api_upload.h"

#define INVALID "[INVALID_ARGUMENT]"

/* ---- the head, on the loop ---- */

int api_load_authenticate(const struct api_load *api, const struct http_request *request,
                          char user[NAME_BYTES], struct tg_errmsg *msg)
{
    const char *password = api->options.root_password;
    struct auth_basic basic;
    struct tg_errmsg why = {{0}};

    if (auth_parse_basic(http_request_header(request, "authorization"), &basic, &why) != 0)
        return tg_fail(msg, TG_DENIED, "[NOT_AUTHORIZED]%s", why.text);
    snprintf(user, NAME_BYTES, "%.*s", NAME_BYTES - 1, basic.user);
    if (strcmp(basic.user, "root") == 0 &&
        auth_equal(basic.password, strlen(basic.password), password, strlen(password)))
        return 0;
    return tg_fail(msg, TG_DENIED,
                   "[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = Access denied for user "
                   "'%s@%s' (using password: %s)",
                   basic.user, request->peer, basic.password[0] != 0 ? "YES" : "NO");
}

static int check_framing(const struct http_request *request, struct tg_errmsg *msg)
{
    if (request->framing == HTTP_BODY_NONE)
        return tg_fail(msg, TG_INVALID,
                       INVALID "content_length is empty and transfer-encoding!=chunked, please set "
                               "content_length or transfer-encoding=chunked");
    if (request->framing == HTTP_BODY_BOTH)
        return tg_fail(msg, TG_INVALID,
                       INVALID "please do not set both content_length and transfer-encoding");
    return 0;
}

/* Doris's sentences. A body without a length is measured as it comes. */
static int check_length(const struct api_load *api, const struct http_request *request,
                        const struct load_options *options, struct tg_errmsg *msg)
{
    bool document = options->format == LOAD_JSON && !options->by_line &&
                    (!options->strip_outer_array || options->has_json_root);

    if (request->framing != HTTP_BODY_LENGTH)
        return 0;
    if (document && request->content_length > api->options.json_body_bytes_max)
        return tg_fail(msg, TG_TOO_LARGE,
                       "[E-217]json body size %llu exceed BE's conf `streaming_load_json_max_mb` "
                       "%llu. increase it if you are sure this load is reasonable",
                       (unsigned long long)request->content_length,
                       (unsigned long long)api->options.json_body_bytes_max);
    if (request->content_length > api->options.body_bytes_max)
        return tg_fail(msg, TG_TOO_LARGE, LOAD_TOO_LARGE,
                       (unsigned long long)request->content_length,
                       (unsigned long long)api->options.body_bytes_max);
    return 0;
}

static const char *lookup(void *ctx, const char *name)
{
    return http_request_header(ctx, name);
}

/* This node as the client reached it. */
static void choose_address(const struct api_load *api, const struct http_request *request,
                           char address[ADDRESS_BYTES])
{
    static const char GOOD[] =
        ".-:[]0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const char *host = http_request_header(request, "host");

    if (api->address[0] != 0 || host == NULL || strlen(host) >= ADDRESS_BYTES ||
        strspn(host, GOOD) != strlen(host))
        host = api->address;
    snprintf(address, ADDRESS_BYTES, "%s", host);
}

void api_load_stream_load(struct api_load *api, struct http_exchange *exchange,
                          const struct http_params *params)
{
    const struct http_request *http = http_exchange_request(exchange);
    struct upload_head head = {.length = http->framing == HTTP_BODY_LENGTH ? http->content_length
                                                                           : UPLOAD_LENGTH_UNKNOWN,
                               .expects_continue = http->expect_continue};
    struct tg_errmsg msg = {{0}};
    struct tg_errmsg first = {{0}};
    char label[UUID_TEXT_SIZE];
    uint8_t bytes[16];

    random_fill(api->options.random, bytes, sizeof bytes);
    struct uuid uuid = uuid_v4(bytes);
    uuid_print(&uuid, label);
    memcpy(head.db, params->value[0], sizeof head.db);
    memcpy(head.table, params->value[1], sizeof head.table);
    choose_address(api, http, head.address);
    /* The headers are read first, because every answer echoes some of them. */
    int bad_headers =
        load_options_parse(lookup, (void *)(uintptr_t)http, label, &head.options, &msg);
    int err = api_load_authenticate(api, http, head.user, &first);
    if (err == 0)
        err = check_framing(http, &first);
    if (err == 0 && bad_headers == 0)
        err = check_length(api, http, &head.options, &first);
    if (err == 0 && bad_headers != 0)
        first = msg;
    if (err != 0 || bad_headers != 0) {
        api_upload_refuse(exchange, &head.options, first.text);
        load_options_close(&head.options);
        return;
    }
    api_upload_start(api, exchange, &head);
}

/* ---- opening and closing ---- */

int api_load_open(const struct api_load_options *options, struct api_load **api,
                  struct tg_errmsg *msg)
{
    struct api_load *a = calloc(1, sizeof *a);

    if (a == NULL)
        return tg_fail(msg, TG_NOMEM, "no memory for loads");
    a->options = *options;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->ended, NULL);
    a->world = (struct load_world){
        .coordinators = options->coordinators, .peers = options->peers, .store = options->store};
    load_calls_init(&a->calls, &a->world);
    int err =
        error_logs_open(options->error_log_dir, options->clock, options->random, &a->errors, msg);
    if (err == 0 && (err = load_pool_open((uint32_t)options->loads_max, &a->pool)) != 0)
        tg_fail(msg, err, "no threads for loads");
    if (err != 0) {
        api_load_close(a);
        return err;
    }
    a->context = (struct stream_load_context){.calls = &a->calls,
                                              .clock = options->clock,
                                              .live = options->requests,
                                              .identity = options->identity,
                                              .errors = a->errors,
                                              .memory_bytes = options->load_memory_bytes,
                                              .memory_total_bytes = 2 * options->load_memory_bytes,
                                              .memory.limit = options->loads_memory_bytes,
                                              .body_bytes_max = options->body_bytes_max,
                                              .publish_wait_ms = options->publish_timeout_ms};
    *api = a;
    return 0;
}

void api_load_close(struct api_load *api)
{
    if (api == NULL)
        return;
    atomic_store(&api->context.closing, true);
    live_requests_stop_all(api->options.requests);
    pthread_mutex_lock(&api->lock);
    while (api->uploads > 0)
        pthread_cond_wait(&api->ended, &api->lock);
    pthread_mutex_unlock(&api->lock);
    load_pool_close(api->pool);
    error_logs_close(api->errors);
    pthread_cond_destroy(&api->ended);
    pthread_mutex_destroy(&api->lock);
    free(api);
}

struct load_memory *api_load_memory(struct api_load *api)
{
    return &api->context.memory;
}

void api_load_set_address(struct api_load *api, const char *address)
{
    snprintf(api->address, sizeof api->address, "%s", address);
}

void api_load_error_log(struct api_load *api, struct http_exchange *exchange,
                        const struct http_params *params)
{
    static const char GONE[] = "no such error log\n";
    char name[ERROR_LOG_NAME_BYTES];
    struct buf text = BUF_INIT;

    (void)params;
    int err = http_request_query(http_exchange_request(exchange), "file", 0, name, sizeof name);
    if (err == 0)
        err = error_logs_read(api->errors, name, &text);
    if (err == 0)
        http_exchange_respond(exchange, 200, "text/plain;charset=utf-8", NULL, text.data, text.len);
    else
        http_exchange_respond(exchange, 404, "text/plain", NULL, GONE, sizeof GONE - 1);
    buf_close(&text);
}
