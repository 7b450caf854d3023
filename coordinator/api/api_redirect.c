/* SPDX-License-Identifier: Apache-2.0 */
/* 307 to a participant: loads and reads. Decided from the head alone, so that a client that waits
 * for 100 Continue has not sent its body yet, and one that has gets the answer all the same. */
#include "coordinator/api/api_redirect.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"

struct redirect {
    struct backend_wait wait; /* first */
    struct api_request *request;
    bool of_load;
};

/* The same path and query at the participant, with the credentials that the request carried: some
 * clients take them from there, some cannot do without. */
static void print_location(const struct api_request *request, const char *http, struct buf *out)
{
    const struct http_request *head = http_exchange_request(request->exchange);

    buf_append_str(out, "Location: http://");
    if (request->user.user[0] != '\0') {
        http_encode_userinfo(request->user.user, out);
        buf_append_u8(out, ':');
        http_encode_userinfo(request->user.password, out);
        buf_append_u8(out, '@');
    }
    buf_printf(out, "%s%s?%s\r\n", http, head->path, head->query);
}

static void chosen(struct backend_wait *wait, const char *http)
{
    struct redirect *redirect = (struct redirect *)wait;
    struct api_request *request = redirect->request;
    struct buf location = BUF_INIT;

    if (request->exchange == NULL) {
        /* the client has gone meanwhile */
    } else if (http != NULL) {
        print_location(request, http, &location);
        http_exchange_respond(request->exchange, 307, "text/html;charset=utf-8",
                              buf_cstr(&location), "", 0);
    } else if (redirect->of_load) {
        api_answer_failed(request, "No backend load available., policy: no participant is alive");
    } else {
        api_answer_refused(request, 503, "no participant is alive");
    }
    buf_close(&location);
    api_request_release(request);
    free(redirect);
}

static void redirect(struct api_request *request, bool of_load)
{
    struct redirect *r = calloc(1, sizeof *r);

    TG_CHECK_MEMORY(r != NULL);
    r->wait.chosen = chosen;
    r->request = request;
    r->of_load = of_load;
    api_request_hold(request);
    backend_list_choose(&request->api->backends, &r->wait);
}

void api_redirect_load(struct api_request *request)
{
    struct tg_errmsg msg;

    if (api_request_check_user(request, &msg) != 0)
        api_answer_failed(request, msg.text);
    else if (request->api->options.strict_expect &&
             !http_exchange_request(request->exchange)->has_expect)
        api_answer_failed(request, "There is no 100-continue header");
    else
        redirect(request, true);
}

void api_redirect_read(struct api_request *request)
{
    struct tg_errmsg msg;

    if (api_request_check_user(request, &msg) != 0)
        api_answer_refused(request, 401, msg.text);
    else
        redirect(request, false);
}
