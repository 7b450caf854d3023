/* SPDX-License-Identifier: Apache-2.0 */
/* Writing JSON: strings with their escapes, and a writer that keeps commas and indentation. */
#include <inttypes.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/json.h"
#include "common/base/utf8.h"

static void append_escaped(struct buf *out, uint8_t c)
{
    static const char hex[] = "0123456789ABCDEF";
    char text[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
    switch (c) {
    case '"':
    case '\\':
        text[1] = (char)c;
        break;
    case '\b':
        text[1] = 'b';
        break;
    case '\f':
        text[1] = 'f';
        break;
    case '\n':
        text[1] = 'n';
        break;
    case '\r':
        text[1] = 'r';
        break;
    case '\t':
        text[1] = 't';
        break;
    default:
        buf_append(out, text, sizeof text);
        return;
    }
    buf_append(out, text, 2);
}

void json_append_string(struct buf *out, struct slice text)
{
    buf_append_u8(out, '"');
    size_t run = 0; /* where the bytes start that need no change */
    for (size_t at = 0; at < text.len;) {
        uint8_t c = text.data[at];
        if (c >= ' ' && c < 0x80 && c != '"' && c != '\\') {
            at++;
            continue;
        }
        size_t n = c < 0x80 ? 0 : utf8_char_len(text.data + at, text.len - at);
        if (n > 0) {
            at += n;
            continue;
        }
        buf_append(out, text.data + run, at - run);
        if (c < 0x80)
            append_escaped(out, c);
        else
            buf_append_str(out, "\xEF\xBF\xBD");
        run = ++at;
    }
    if (run < text.len)
        buf_append(out, text.data + run, text.len - run);
    buf_append_u8(out, '"');
}

void json_append_cstr(struct buf *out, const char *text)
{
    json_append_string(out, slice_str(text));
}

void json_writer_init(struct json_writer *writer, struct buf *out, int indent)
{
    *writer = (struct json_writer){.out = out, .indent = indent, .first = true};
}

static void new_line(struct json_writer *writer)
{
    if (writer->indent == 0)
        return;
    buf_append_u8(writer->out, '\n');
    size_t blanks = (size_t)writer->indent * (size_t)writer->depth;
    uint8_t *at = buf_extend(writer->out, blanks);
    if (at != NULL)
        memset(at, ' ', blanks);
}

/* Before a key, or before a value that has none: the comma and the line. */
static void before_item(struct json_writer *writer)
{
    if (writer->after_key) {
        writer->after_key = false;
        return;
    }
    if (!writer->first)
        buf_append_u8(writer->out, ',');
    writer->first = false;
    if (writer->depth > 0)
        new_line(writer);
}

static void open_container(struct json_writer *writer, char bracket)
{
    before_item(writer);
    buf_append_u8(writer->out, (uint8_t)bracket);
    writer->depth++;
    writer->first = true;
}

static void close_container(struct json_writer *writer, char bracket)
{
    TG_CHECK(writer->depth > 0 && !writer->after_key);
    writer->depth--;
    if (!writer->first)
        new_line(writer);
    writer->first = false;
    buf_append_u8(writer->out, (uint8_t)bracket);
}

void json_writer_object(struct json_writer *writer)
{
    open_container(writer, '{');
}

void json_writer_object_end(struct json_writer *writer)
{
    close_container(writer, '}');
}

void json_writer_array(struct json_writer *writer)
{
    open_container(writer, '[');
}

void json_writer_array_end(struct json_writer *writer)
{
    close_container(writer, ']');
}

void json_writer_key(struct json_writer *writer, const char *key)
{
    TG_CHECK(!writer->after_key);
    before_item(writer);
    json_append_cstr(writer->out, key);
    buf_append_str(writer->out, writer->indent == 0 ? ":" : ": ");
    writer->after_key = true;
}

void json_writer_str(struct json_writer *writer, const char *text)
{
    json_writer_slice(writer, slice_str(text));
}

void json_writer_slice(struct json_writer *writer, struct slice text)
{
    before_item(writer);
    json_append_string(writer->out, text);
}

void json_writer_int(struct json_writer *writer, int64_t value)
{
    before_item(writer);
    buf_printf(writer->out, "%" PRId64, value);
}

void json_writer_uint(struct json_writer *writer, uint64_t value)
{
    before_item(writer);
    buf_printf(writer->out, "%" PRIu64, value);
}

void json_writer_bool(struct json_writer *writer, bool value)
{
    before_item(writer);
    buf_append_str(writer->out, value ? "true" : "false");
}

void json_writer_null(struct json_writer *writer)
{
    before_item(writer);
    buf_append_str(writer->out, "null");
}

void json_writer_raw(struct json_writer *writer, struct slice json)
{
    before_item(writer);
    buf_append(writer->out, json.data, json.len);
}
