/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration files through libinih. The library cuts a line that is longer than its buffer in
 * two without a word, so lines are handed to it one by one and measured first. */
#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/config.h"
#include "common/base/config_table.h"

struct file_reader {
    const struct config_option *options;
    size_t count;
    const char *path;
    void *into;
    struct tg_errmsg *msg;
    struct slice rest; /* what was not handed over yet */
    int line;          /* number of the line handed over last */
    int err;
    int seen[CONFIG_OPTIONS_MAX]; /* line where each option was set, 0 if it was not */
};

static int read_whole(const char *path, struct buf *out, struct tg_errmsg *msg)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL)
        return tg_fail(msg, errno == ENOENT ? TG_NOT_FOUND : TG_IO, "%s: %s", path,
                       strerror(errno));
    uint8_t *at = buf_extend(out, CONFIG_FILE_MAX + 1);
    size_t len = at == NULL ? 0 : fread(at, 1, CONFIG_FILE_MAX + 1, file);
    bool failed = ferror(file) != 0;
    (void)fclose(file);
    if (at == NULL)
        return tg_fail(msg, TG_NOMEM, "%s: out of memory", path);
    out->len = len;
    if (failed)
        return tg_fail(msg, TG_IO, "%s: cannot be read", path);
    if (len > CONFIG_FILE_MAX)
        return tg_fail(msg, TG_INVALID, "%s: longer than %d bytes", path, CONFIG_FILE_MAX);
    if (len > 0 && memchr(out->data, 0, len) != NULL)
        return tg_fail(msg, TG_INVALID, "%s: holds a zero byte, so it is not text", path);
    return 0;
}

/* fgets for the library: the next line with its newline, NULL at the end or after a failure. */
static char *next_line(char *into, int size, void *data)
{
    struct file_reader *reader = data;
    if (reader->err != 0 || reader->rest.len == 0)
        return NULL;
    reader->line++;
    const uint8_t *end = memchr(reader->rest.data, '\n', reader->rest.len);
    size_t len = end == NULL ? reader->rest.len : (size_t)(end - reader->rest.data) + 1;
    size_t room = size > 2 ? (size_t)size - 2 : 0;
    if (len > room || len > CONFIG_LINE_MAX) {
        reader->err = tg_fail(reader->msg, TG_INVALID, "%s:%d: the line is too long", reader->path,
                              reader->line);
        return NULL;
    }
    memcpy(into, reader->rest.data, len);
    into[len] = '\0';
    reader->rest = slice_of(reader->rest.data + len, reader->rest.len - len);
    return into;
}

static int set_pair(struct file_reader *reader, const char *section, const char *name,
                    const char *value)
{
    if (section[0] != '\0')
        return tg_fail(reader->msg, TG_INVALID, "[%.60s]: sections are not used", section);
    size_t index;
    int err = config_find(reader->options, reader->count, slice_str(name), &index, reader->msg);
    if (err != 0)
        return err;
    if (reader->seen[index] != 0)
        return tg_fail(reader->msg, TG_INVALID, "%s is set already in line %d",
                       reader->options[index].name, reader->seen[index]);
    reader->seen[index] = reader->line;
    return config_set(&reader->options[index], value, reader->into, reader->msg);
}

/* Debian 13 builds the library with the line number as a further argument. */
#if INI_HANDLER_LINENO
static int on_pair(void *data, const char *section, const char *name, const char *value, int line)
{
    (void)line;
#else
static int on_pair(void *data, const char *section, const char *name, const char *value)
{
#endif
    struct file_reader *reader = data;
    if (reader->err != 0)
        return 0;
    int err = set_pair(reader, section, name, value == NULL ? "" : value);
    if (err != 0)
        reader->err = tg_wrap(reader->msg, err, "%s:%d", reader->path, reader->line);
    return err == 0;
}

int config_read_file(const struct config_option *options, size_t count, const char *path,
                     void *into, struct tg_errmsg *msg)
{
    TG_CHECK(count <= CONFIG_OPTIONS_MAX);
    /* The library's switches are variables of its own. */
    ini_use_stack = false;
    ini_max_line = CONFIG_LINE_MAX + 3;
    ini_initial_alloc = CONFIG_LINE_MAX + 3;
    ini_allow_realloc = false;
    ini_allow_multiline = false;
    ini_allow_inline_comments = false;
    ini_stop_on_first_error = true;

    struct buf text = BUF_INIT;
    int err = read_whole(path, &text, msg);
    if (err == 0) {
        struct file_reader reader = {.options = options,
                                     .count = count,
                                     .path = path,
                                     .into = into,
                                     .msg = msg,
                                     .rest = slice_of(text.data, text.len)};
        int outcome = ini_parse_stream(next_line, &reader, on_pair, &reader);
        err = reader.err;
        if (err == 0 && outcome > 0)
            err = tg_fail(msg, TG_INVALID, "%s:%d: not a 'key = value' line", path, reader.line);
        else if (err == 0 && outcome < 0)
            err = tg_fail(msg, TG_NOMEM, "%s: out of memory", path);
    }
    buf_close(&text);
    return err;
}
