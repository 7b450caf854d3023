/* SPDX-License-Identifier: Apache-2.0 */
/* tidegate load: a file or standard input into a table, with progress. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/cli/cli.h"
#include "client/cli/cli_connect.h"

enum { PROGRESS_MS = 200, LOAD_WAIT_S = 3600 /* the answer comes once all is stored */ };

struct load_source {
    int fd;
    uint64_t sent;
    uint64_t size; /* 0 = not known */
    bool shows;    /* progress on stderr */
    double begun;
    double shown;
};

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void show(struct load_source *source, bool done)
{
    double at = now();
    double mb = (double)source->sent / 1e6;
    double passed = at - source->begun;

    if (!source->shows || (!done && at - source->shown < PROGRESS_MS / 1000.0))
        return;
    source->shown = at;
    fprintf(stderr, "\r%.1f MB", mb);
    if (source->size > 0)
        fprintf(stderr, " of %.1f (%.0f %%)", (double)source->size / 1e6,
                100.0 * (double)source->sent / (double)source->size);
    fprintf(stderr, ", %.1f MB/s  %s", passed > 0 ? mb / passed : 0.0, done ? "\n" : "");
}

static long produce(void *data, void *bytes, size_t cap)
{
    struct load_source *source = data;
    ssize_t n;

    do
        n = read(source->fd, bytes, cap);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        source->sent += (uint64_t)n;
    show(source, n <= 0);
    return n;
}

static int open_source(const char *path, struct load_source *source)
{
    struct stat info;
    struct tg_errmsg msg = {{0}};

    source->fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (source->fd < 0) {
        tg_fail(&msg, TG_IO, "cannot read %s: %s", path, strerror(errno));
        return cli_failed(&msg);
    }
    if (fstat(source->fd, &info) == 0 && S_ISREG(info.st_mode))
        source->size = (uint64_t)info.st_size;
    source->begun = now();
    return CLI_OK;
}

static bool is_one_of(struct slice status, const char *a, const char *b)
{
    return slice_equal_str(status, a) || slice_equal_str(status, b);
}

/* The answer to stdout; success is what a Stream Load client takes for it. */
static int judge(const struct http_reply *reply)
{
    struct json_doc *doc = NULL;
    struct slice status = {0};

    fwrite(reply->body.data, 1, reply->body.len, stdout);
    if (json_doc_parse(reply->body.data, reply->body.len, NULL, &doc, NULL) == 0)
        status = json_value_text(json_value_get(json_doc_root(doc), "Status"));
    bool good = reply->status == 200 && is_one_of(status, "Success", "Publish Timeout");
    json_doc_close(doc);
    return good ? CLI_OK : CLI_FAILED;
}

/* "name:value" to a header line. */
static int add_headers(const struct cli_usage *usage, const struct cli_list *list, struct buf *out)
{
    for (size_t i = 0; i < list->count; i++) {
        const char *colon = strchr(list->items[i], ':');

        if (colon == NULL || colon == list->items[i] || strpbrk(list->items[i], "\r\n") != NULL)
            return cli_wrong(usage, "-H '%s' is not name:value", list->items[i]);
        buf_printf(out, "%s\r\n", list->items[i]);
    }
    return CLI_OK;
}

static void add_header(struct buf *out, const char *name, const char *value)
{
    if (value != NULL)
        buf_printf(out, "%s: %s\r\n", name, value);
}

static int upload(struct client *client, const char *target, const char *headers,
                  struct load_source *source)
{
    struct http_reply reply = {0};
    struct tg_errmsg msg = {{0}};
    int rc;

    if (client_upload(client, target, headers, produce, source, &reply, &msg) != 0) {
        rc = cli_failed(&msg);
        fputs("tidegate: the outcome of the load is not known; ask with its label: tidegate txn "
              "state\n",
              stderr);
    } else {
        rc = judge(&reply);
    }
    http_reply_close(&reply);
    return rc;
}

int cli_load(int argc, char **argv)
{
    struct cli_connect connect = CLI_CONNECT_INIT;
    const char *table = NULL;
    const char *label = NULL;
    const char *format = NULL;
    const char *separator = NULL;
    const char *txn = NULL;
    bool two_phase = false;
    bool quiet = false;
    struct cli_list headers = {.count = 0};
    const struct cli_flag flags[] = {
        CLI_CONNECT_TABLE(connect),
        {"table", 't', CLI_TEXT, &table, 0, "NAME", "table"},
        {"label", 'l', CLI_TEXT, &label, 0, "TEXT", "the load's label: it succeeds only once"},
        {"format", 'f', CLI_TEXT, &format, 0, "csv|json", "format of the file (default csv)"},
        {"separator", 's', CLI_TEXT, &separator, 0, "TEXT", "column separator (default tab)"},
        {"two-phase", 0, CLI_BOOL, &two_phase, 0, NULL, "precommit only; commit it with txn"},
        {"txn", 0, CLI_TEXT, &txn, 0, "ID", "add the load to a begun transaction"},
        {"header", 'H', CLI_LIST, &headers, 0, "NAME:VALUE", "any other header of a stream load"},
        {"quiet", 'q', CLI_BOOL, &quiet, 0, NULL, "no progress"}};
    const struct cli_usage usage = {
        "tidegate load --db NAME --table NAME [FLAGS] FILE",
        "Loads FILE ('-' for standard input) and prints the server's answer.", flags,
        sizeof flags / sizeof flags[0]};
    struct load_source source = {.fd = -1};
    struct buf lines = BUF_INIT;
    struct buf target = BUF_INIT;
    struct client *client = NULL;
    struct cli_words words;

    connect.timeout_s = LOAD_WAIT_S;
    int rc = cli_flags_parse(&usage, argc, argv, &words);
    if (rc != CLI_OK)
        return rc;
    if (words.count != 1 || table == NULL || connect.db[0] == '\0')
        return cli_wrong(&usage, "--db, --table and one FILE are needed");
    buf_append_str(&lines, "Expect: 100-continue\r\n");
    add_header(&lines, "label", label);
    add_header(&lines, "format", format);
    add_header(&lines, "column_separator", separator);
    add_header(&lines, "txn_id", txn);
    add_header(&lines, "two_phase_commit", two_phase || txn != NULL ? "true" : NULL);
    rc = add_headers(&usage, &headers, &lines);
    if (rc == CLI_OK)
        rc = open_source(words.items[0], &source);
    if (rc == CLI_OK)
        rc = cli_connect(&connect, &client);
    if (rc == CLI_OK) {
        source.shows = !quiet && isatty(STDERR_FILENO);
        cli_target(&target, connect.db, table, "_stream_load");
        rc = upload(client, buf_cstr(&target), buf_cstr(&lines), &source);
    }
    client_close(client);
    if (source.fd > STDIN_FILENO)
        close(source.fd);
    buf_close(&lines);
    buf_close(&target);
    return rc;
}
