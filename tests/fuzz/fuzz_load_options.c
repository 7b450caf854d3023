/* SPDX-License-Identifier: Apache-2.0 */
/* Any lines `name:value` as the headers of a load, and a line of Authorization: refused with a
 * sentence, or options within their bounds. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/check.h"
#include "common/net/auth.h"
#include "participant/ingest/load_options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEADERS_MAX = 32 };

struct headers {
    unsigned count;
    char *names[HEADERS_MAX];
    char *values[HEADERS_MAX];
};

static const char *lookup(void *ctx, const char *name)
{
    const struct headers *headers = ctx;
    for (unsigned i = 0; i < headers->count; i++)
        if (strcmp(headers->names[i], name) == 0 && headers->values[i][0] != '\0')
            return headers->values[i];
    return NULL;
}

/* Cuts the text at newlines and colons. */
static void cut(char *text, struct headers *headers)
{
    headers->count = 0;
    for (char *line = text; line != NULL && headers->count < HEADERS_MAX;) {
        char *next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        char *colon = strchr(line, ':');
        if (colon != NULL) {
            *colon = '\0';
            headers->names[headers->count] = line;
            headers->values[headers->count++] = colon + 1;
        }
        line = next;
    }
}

static void check(const struct load_options *options)
{
    TG_CHECK(memchr(options->label, 0, sizeof options->label) != NULL);
    TG_CHECK(options->timeout_ms >= LOAD_TIMEOUT_S_MIN * UINT64_C(1000));
    TG_CHECK(options->timeout_ms <= LOAD_TIMEOUT_S_MAX * UINT64_C(1000));
    TG_CHECK(options->max_filter_ratio >= 0 && options->max_filter_ratio <= 1);
    TG_CHECK(options->format == LOAD_CSV || options->format == LOAD_JSON);
    TG_CHECK(options->enclose >= -1 && options->enclose <= 255);
    if (options->format == LOAD_CSV)
        TG_CHECK(options->column_separator.len > 0 && options->line_delimiter.len > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct headers headers;
    struct load_options options;
    struct auth_basic basic;
    struct tg_errmsg msg = {""};
    char *text = malloc(size + 1);
    TG_CHECK(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    (void)auth_parse_basic(text, &basic, &msg);
    cut(text, &headers);
    msg.text[0] = '\0';
    if (load_options_parse(lookup, &headers, "label", &options, &msg) == 0) {
        check(&options);
    } else {
        TG_CHECK(msg.text[0] != '\0');
    }
    load_options_close(&options);
    free(text);
    return 0;
}
