/* SPDX-License-Identifier: Apache-2.0 */
/* Words, numbers, strings and signs of a statement. */
#include "coordinator/ddl/ddl_lexer.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_word_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

int ddl_lexer_fail_at(struct ddl_lexer *lexer, int err, const char *format, ...)
{
    char sentence[TG_ERRMSG_MAX];
    size_t line = 1;
    size_t column = 1;
    va_list args;

    if (lexer->err != 0)
        return lexer->err;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    for (const char *p = lexer->text; p < lexer->token.at; p++) {
        column++;
        if (*p == '\n') {
            line++;
            column = 1;
        }
    }
    lexer->err = tg_fail(lexer->msg, err, "line %zu, column %zu: %s", line, column, sentence);
    lexer->token.kind = DDL_END;
    return err;
}

int ddl_lexer_fail(struct ddl_lexer *lexer, const char *what)
{
    const struct ddl_token *token = &lexer->token;

    if (token->kind == DDL_END)
        return ddl_lexer_fail_at(lexer, TG_SYNTAX, "expected %s, found the end of the statement",
                                 what);
    int shown = token->raw_len < 40 ? (int)token->raw_len : 40;
    return ddl_lexer_fail_at(lexer, TG_SYNTAX, "expected %s, found '%.*s'", what, shown, token->at);
}

/* Blanks and comments: "-- …", "# …" to the end of the line, and slash-star ones. */
static void skip_blanks(struct ddl_lexer *lexer)
{
    const char *t = lexer->text;
    size_t i = lexer->next;

    while (i < lexer->len) {
        if (isspace((unsigned char)t[i])) {
            i++;
        } else if (t[i] == '#' || (t[i] == '-' && i + 1 < lexer->len && t[i + 1] == '-')) {
            while (i < lexer->len && t[i] != '\n')
                i++;
        } else if (t[i] == '/' && i + 1 < lexer->len && t[i + 1] == '*') {
            size_t end = i + 2;

            while (end + 1 < lexer->len && !(t[end] == '*' && t[end + 1] == '/'))
                end++;
            i = end + 2 <= lexer->len ? end + 2 : lexer->len;
        } else {
            break;
        }
    }
    lexer->next = i;
}

static char unescaped(char c)
{
    switch (c) {
    case 'n':
        return '\n';
    case 't':
        return '\t';
    case 'r':
        return '\r';
    case '0':
        return '\0';
    default:
        return c;
    }
}

/* From the opening quote on. A doubled quote is one; a backslash escapes inside strings, not inside
 * back-quoted names. */
static void read_quoted(struct ddl_lexer *lexer, char quote)
{
    struct ddl_token *token = &lexer->token;
    size_t i = lexer->next + 1;
    size_t n = 0;
    bool closed = false;

    while (i < lexer->len && n < DDL_TOKEN_BYTES) {
        char c = lexer->text[i];

        if (c == quote) {
            if (i + 1 >= lexer->len || lexer->text[i + 1] != quote) {
                closed = true;
                i++;
                break;
            }
            i++;
        } else if (c == '\\' && quote != '`' && i + 1 < lexer->len) {
            c = unescaped(lexer->text[++i]);
        }
        lexer->scratch[n++] = c;
        i++;
    }
    token->kind = quote == '`' ? DDL_QUOTED_NAME : DDL_STRING;
    token->raw_len = i - lexer->next;
    token->len = n;
    lexer->next = i;
    if (!closed)
        ddl_lexer_fail_at(lexer, TG_SYNTAX, "a quote is opened here and never closed");
    else if (memchr(lexer->scratch, 0, n) != NULL)
        ddl_lexer_fail_at(lexer, TG_SYNTAX, "a zero byte inside quotes");
}

void ddl_lexer_step(struct ddl_lexer *lexer)
{
    struct ddl_token *token = &lexer->token;

    if (lexer->err != 0)
        return;
    skip_blanks(lexer);
    const char *start = lexer->text + lexer->next;
    size_t left = lexer->len - lexer->next;
    token->at = start;
    token->text = lexer->scratch;
    token->raw_len = 0;
    token->len = 0;
    if (left == 0) {
        token->kind = DDL_END;
    } else if (*start == '\'' || *start == '"' || *start == '`') {
        read_quoted(lexer, *start);
    } else if (is_word_byte(*start) ||
               (*start == '.' && left > 1 && isdigit((unsigned char)start[1]))) {
        bool number = isdigit((unsigned char)*start) || *start == '.';
        size_t n = 1;

        while (n < left && (is_word_byte(start[n]) || (number && start[n] == '.')))
            n++;
        if (n > DDL_TOKEN_BYTES) {
            ddl_lexer_fail_at(lexer, TG_SYNTAX, "a word of more than %d bytes", DDL_TOKEN_BYTES);
            return;
        }
        memcpy(lexer->scratch, start, n);
        token->kind = number ? DDL_NUMBER : DDL_WORD;
        token->raw_len = token->len = n;
        lexer->next += n;
    } else {
        lexer->scratch[0] = *start;
        token->kind = DDL_SIGN;
        token->raw_len = token->len = 1;
        lexer->next++;
    }
    lexer->scratch[token->len] = 0;
}

int ddl_lexer_open(struct ddl_lexer *lexer, const char *text, size_t len, struct tg_errmsg *msg)
{
    *lexer = (struct ddl_lexer){.text = text, .len = len, .msg = msg};
    lexer->token.at = text;
    lexer->scratch = malloc(DDL_TOKEN_BYTES + 1);
    if (lexer->scratch == NULL)
        return tg_fail(msg, TG_NOMEM, "no memory to read the statement");
    lexer->scratch[0] = 0;
    ddl_lexer_step(lexer);
    return lexer->err;
}

void ddl_lexer_close(struct ddl_lexer *lexer)
{
    free(lexer->scratch);
    lexer->scratch = NULL;
}

bool ddl_lexer_is(const struct ddl_lexer *lexer, const char *what)
{
    const struct ddl_token *token = &lexer->token;

    if (token->kind != DDL_WORD && token->kind != DDL_SIGN)
        return false;
    return strcasecmp(token->text, what) == 0;
}

bool ddl_lexer_take(struct ddl_lexer *lexer, const char *what)
{
    if (!ddl_lexer_is(lexer, what))
        return false;
    ddl_lexer_step(lexer);
    return lexer->err == 0;
}

int ddl_lexer_expect(struct ddl_lexer *lexer, const char *what)
{
    char quoted[80];

    if (lexer->err != 0 || ddl_lexer_take(lexer, what))
        return lexer->err;
    snprintf(quoted, sizeof quoted, isalpha((unsigned char)what[0]) ? "%s" : "'%s'", what);
    return ddl_lexer_fail(lexer, quoted);
}

int ddl_lexer_name(struct ddl_lexer *lexer, const char *what, char *out, size_t cap)
{
    const struct ddl_token *token = &lexer->token;

    if (lexer->err != 0)
        return lexer->err;
    if (token->kind != DDL_WORD && token->kind != DDL_QUOTED_NAME)
        return ddl_lexer_fail(lexer, what);
    if (token->len == 0)
        return ddl_lexer_fail_at(lexer, TG_SYNTAX, "an empty name");
    if (token->len >= cap)
        return ddl_lexer_fail_at(lexer, TG_INVALID, "the name '%.40s…' is longer than %zu bytes",
                                 token->text, cap - 1);
    memcpy(out, token->text, token->len + 1);
    ddl_lexer_step(lexer);
    return lexer->err;
}

int ddl_lexer_uint(struct ddl_lexer *lexer, const char *what, uint64_t max, uint64_t *value)
{
    const struct ddl_token *token = &lexer->token;
    uint64_t v = 0;

    if (lexer->err != 0)
        return lexer->err;
    if (token->kind != DDL_NUMBER && token->kind != DDL_STRING)
        return ddl_lexer_fail(lexer, what);
    if (token->len == 0)
        return ddl_lexer_fail(lexer, what);
    for (size_t i = 0; i < token->len; i++) {
        if (!isdigit((unsigned char)token->text[i]))
            return ddl_lexer_fail(lexer, what);
        if (v > (max - (uint64_t)(token->text[i] - '0')) / 10)
            return ddl_lexer_fail_at(lexer, TG_INVALID, "%s is larger than %lu", what, max);
        v = v * 10 + (uint64_t)(token->text[i] - '0');
    }
    *value = v;
    ddl_lexer_step(lexer);
    return lexer->err;
}

int ddl_lexer_string(struct ddl_lexer *lexer, const char *what, char **out)
{
    if (lexer->err != 0)
        return lexer->err;
    if (lexer->token.kind != DDL_STRING)
        return ddl_lexer_fail(lexer, what);
    char *copy = strdup(lexer->token.text);
    if (copy == NULL)
        return ddl_lexer_fail_at(lexer, TG_NOMEM, "out of memory");
    free(*out);
    *out = copy;
    ddl_lexer_step(lexer);
    return lexer->err;
}
