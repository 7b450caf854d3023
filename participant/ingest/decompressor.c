/* SPDX-License-Identifier: Apache-2.0 */
/* gz and raw deflate by zlib, bz2 and lz4 by libarchive's filters. */
#include "participant/ingest/decompressor.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdlib.h>
#include <zlib.h>

#include "common/base/check.h"

enum { GZIP_WINDOW = 15 + 16, RAW_WINDOW = -15 };

struct decompressor {
    struct load_source source;
    struct load_source *inner;
    enum load_compression kind;
    uint8_t input[DECOMPRESSOR_INPUT_BYTES];
    bool inner_ended;
    uint64_t deadline_ms; /* of the read under way */
    uint64_t output;
    /* zlib */
    z_stream z;
    bool z_open;
    bool in_member; /* bytes of a member were read, its end was not */
    bool complete;  /* raw deflate: its end was read, nothing may follow */
    /* libarchive */
    struct archive *archive;
    bool header_read;
    bool ended;
    int inner_err; /* of the source, met inside libarchive */
    struct tg_errmsg inner_msg;
};

static int damaged(struct tg_errmsg *msg, const char *why)
{
    return tg_fail(msg, TG_CORRUPT, "[INTERNAL_ERROR]decompression failed: %s", why);
}

static int refill(struct decompressor *d, size_t *n, struct tg_errmsg *msg)
{
    int err = d->inner->read(d->inner, d->input, sizeof d->input, d->deadline_ms, n, msg);

    if (err == 0 && *n == 0)
        d->inner_ended = true;
    return err;
}

static int inflate_more(struct decompressor *d, uint8_t *out, size_t cap, size_t *n,
                        struct tg_errmsg *msg)
{
    d->z.next_out = out;
    d->z.avail_out = (uInt)(cap < UINT32_MAX ? cap : UINT32_MAX);
    const uInt room = d->z.avail_out;
    while (d->z.avail_out == room) {
        if (d->z.avail_in == 0 && !d->inner_ended) {
            size_t len = 0;
            int err = refill(d, &len, msg);
            if (err != 0)
                return err;
            d->z.next_in = d->input;
            d->z.avail_in = (uInt)len;
        }
        if (d->z.avail_in == 0) {
            if (d->in_member)
                return damaged(msg, "the body is cut off");
            break;
        }
        if (d->complete)
            return damaged(msg, "bytes behind the end");
        d->in_member = true;
        int rc = inflate(&d->z, Z_NO_FLUSH);
        if (rc == Z_STREAM_END) { /* another member may follow */
            d->in_member = false;
            d->complete = d->kind == LOAD_DEFLATE;
            inflateReset(&d->z);
        } else if (rc != Z_OK && rc != Z_BUF_ERROR) {
            return damaged(msg, d->z.msg != NULL ? d->z.msg : "bad data");
        }
    }
    *n = room - d->z.avail_out;
    return 0;
}

static la_ssize_t give_input(struct archive *archive, void *data, const void **bytes)
{
    struct decompressor *d = data;
    size_t n = 0;

    *bytes = d->input;
    if (d->inner_ended)
        return 0;
    d->inner_err = refill(d, &n, &d->inner_msg);
    if (d->inner_err == 0)
        return (la_ssize_t)n;
    archive_set_error(archive, ARCHIVE_FAILED, "the body broke off");
    return ARCHIVE_FATAL;
}

static int archive_failed(struct decompressor *d, struct tg_errmsg *msg)
{
    if (d->inner_err != 0)
        return tg_fail(msg, d->inner_err, "%s", d->inner_msg.text);
    const char *why = archive_error_string(d->archive);
    return damaged(msg, why != NULL ? why : "bad data");
}

static int read_header(struct decompressor *d, struct tg_errmsg *msg)
{
    struct archive_entry *entry;
    int wanted = d->kind == LOAD_BZ2 ? ARCHIVE_FILTER_BZIP2 : ARCHIVE_FILTER_LZ4;

    d->header_read = true;
    int rc = archive_read_open(d->archive, d, NULL, give_input, NULL);
    if (rc == ARCHIVE_OK)
        rc = archive_read_next_header(d->archive, &entry);
    if (rc == ARCHIVE_EOF && d->inner->received == 0) { /* an empty body */
        d->ended = true;
        return 0;
    }
    if (rc != ARCHIVE_OK && rc != ARCHIVE_WARN)
        return archive_failed(d, msg);
    /* What no filter wants is passed through as it is: that must not be loaded. */
    if (archive_filter_code(d->archive, 0) != wanted)
        return damaged(msg, "the body is not compressed as compress_type says");
    return 0;
}

static int archive_more(struct decompressor *d, uint8_t *out, size_t cap, size_t *n,
                        struct tg_errmsg *msg)
{
    if (!d->header_read) {
        int err = read_header(d, msg);
        if (err != 0)
            return err;
    }
    if (d->ended)
        return 0;
    la_ssize_t got = archive_read_data(d->archive, out, cap);
    if (got < 0 || d->inner_err != 0)
        return archive_failed(d, msg);
    *n = (size_t)got;
    d->ended = got == 0;
    return 0;
}

static int decompressor_read(struct load_source *source, uint8_t *out, size_t cap,
                             uint64_t deadline_ms, size_t *n, struct tg_errmsg *msg)
{
    struct decompressor *d = source->ctx;

    d->deadline_ms = deadline_ms;
    *n = 0;
    int err = d->z_open ? inflate_more(d, out, cap, n, msg) : archive_more(d, out, cap, n, msg);
    source->received = d->inner->received;
    d->output += *n;
    if (err == 0 && d->output > DECOMPRESSOR_OUTPUT_MAX)
        return damaged(msg, "the body is too large when decompressed");
    return err;
}

static void decompressor_accept(struct load_source *source)
{
    struct decompressor *d = source->ctx;

    if (d->inner->accept != NULL)
        d->inner->accept(d->inner);
}

static int open_archive(struct decompressor *d)
{
    d->archive = archive_read_new();
    if (d->archive == NULL)
        return TG_NOMEM;
    int rc = d->kind == LOAD_BZ2 ? archive_read_support_filter_bzip2(d->archive)
                                 : archive_read_support_filter_lz4(d->archive);
    if (rc != ARCHIVE_OK)
        return TG_UNSUPPORTED;
    if (archive_read_support_format_raw(d->archive) != ARCHIVE_OK ||
        archive_read_support_format_empty(d->archive) != ARCHIVE_OK)
        return TG_UNSUPPORTED;
    return 0;
}

int decompressor_open(enum load_compression kind, struct load_source *inner,
                      struct decompressor **decompressor)
{
    struct decompressor *d = calloc(1, sizeof *d);
    int err = 0;

    if (d == NULL)
        return TG_NOMEM;
    d->kind = kind;
    d->inner = inner;
    d->source =
        (struct load_source){.read = decompressor_read, .accept = decompressor_accept, .ctx = d};
    if (kind == LOAD_GZ || kind == LOAD_DEFLATE) {
        d->z_open = inflateInit2(&d->z, kind == LOAD_GZ ? GZIP_WINDOW : RAW_WINDOW) == Z_OK;
        err = d->z_open ? 0 : TG_NOMEM;
    } else {
        err = open_archive(d);
    }
    if (err != 0) {
        decompressor_close(d);
        return err;
    }
    *decompressor = d;
    return 0;
}

void decompressor_close(struct decompressor *decompressor)
{
    if (decompressor == NULL)
        return;
    if (decompressor->z_open)
        inflateEnd(&decompressor->z);
    if (decompressor->archive != NULL)
        archive_read_free(decompressor->archive);
    free(decompressor);
}

struct load_source *decompressor_source(struct decompressor *decompressor)
{
    return &decompressor->source;
}
