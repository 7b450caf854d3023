/* SPDX-License-Identifier: Apache-2.0 */
/* A blocking client of a cluster: statements, loads and reads through any of its nodes, with
 * credentials, following the redirects that a coordinator answers. One thread. */
#ifndef TG_CLIENT_CLIENT_H
#define TG_CLIENT_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/json.h"
#include "common/net/http_client.h"

enum {
    CLIENT_ADDRESS_BYTES = 256, /* host:port */
    CLIENT_TARGET_BYTES = 8192, /* path and query of a redirect */
    CLIENT_REDIRECTS_MAX = 3
};

struct client;

struct client_options {
    const char *url; /* "host:port" or "http://host:port" of any node */
    const char *user;
    const char *password;
    uint64_t timeout_ms; /* the longest silence of the server */
};

/* Connects with the first request. TG_INVALID (the address), TG_NOMEM. */
int client_open(const struct client_options *options, struct client **client,
                struct tg_errmsg *msg);
void client_close(struct client *client);

/* One request; target begins with "/". headers: "Name: value\r\n" lines or NULL; credentials are
 * added. Returns 0 whenever a whole answer came, whatever its status; otherwise what
 * http_client_request says. Close the reply either way. */
int client_request(struct client *client, const char *method, const char *target,
                   const char *headers, const void *body, size_t len, struct http_reply *reply,
                   struct tg_errmsg *msg);
/* A PUT whose body is produced in pieces (http_client_request_chunked). A redirect is followed only
 * before the first piece was taken: ask for it with "Expect: 100-continue". */
int client_upload(struct client *client, const char *target, const char *headers,
                  long (*produce)(void *data, void *bytes, size_t cap), void *data,
                  struct http_reply *reply, struct tg_errmsg *msg);

/* Opens the envelope {"msg","code","data"} of an answer: 0 with *doc owned by the caller and *data
 * inside it (NULL if there is none), TG_REFUSED with the server's sentence, TG_CORRUPT. */
int client_envelope(const struct http_reply *reply, struct json_doc **doc,
                    const struct json_value **data, struct tg_errmsg *msg);
/* A statement (DDL, SHOW, DESCRIBE) in database db ("" for none). As client_envelope. */
int client_sql(struct client *client, const char *db, const char *statement, struct json_doc **doc,
               const struct json_value **data, struct tg_errmsg *msg);

/* Appends text with everything but letters, digits and -_.~ percent-encoded. */
void client_url_encode(const char *text, struct buf *out);

#endif
