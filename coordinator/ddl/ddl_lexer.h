/* SPDX-License-Identifier: Apache-2.0 */
/* Words, numbers, strings and signs of a statement, each with its place. */
#ifndef TG_COORDINATOR_DDL_DDL_LEXER_H
#define TG_COORDINATOR_DDL_DDL_LEXER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

enum { DDL_TOKEN_BYTES = 65536 };

enum ddl_token_kind { DDL_END, DDL_WORD, DDL_QUOTED_NAME, DDL_NUMBER, DDL_STRING, DDL_SIGN };

struct ddl_token {
    enum ddl_token_kind kind;
    const char *at; /* where it starts in the statement */
    size_t raw_len;
    char *text; /* content without quotes and escapes; the lexer's, until the next token */
    size_t len;
};

struct ddl_lexer {
    const char *text;
    size_t len;
    size_t next;
    struct ddl_token token;
    char *scratch; /* DDL_TOKEN_BYTES + 1 */
    int err;
    struct tg_errmsg *msg;
};

/* Reads the first token. 0, TG_NOMEM or TG_SYNTAX. */
int ddl_lexer_open(struct ddl_lexer *lexer, const char *text, size_t len, struct tg_errmsg *msg);
void ddl_lexer_close(struct ddl_lexer *lexer);
/* Steps to the next token. After an error the token stays DDL_END. */
void ddl_lexer_step(struct ddl_lexer *lexer);

/* Looks: is the token this keyword (any case, unquoted) or this sign? */
bool ddl_lexer_is(const struct ddl_lexer *lexer, const char *word_or_sign);
/* If so, steps over it. */
bool ddl_lexer_take(struct ddl_lexer *lexer, const char *word_or_sign);
/* Steps over it or fails with "expected …". Returns lexer->err. */
int ddl_lexer_expect(struct ddl_lexer *lexer, const char *word_or_sign);
/* A name, quoted or not, into out (cap bytes). */
int ddl_lexer_name(struct ddl_lexer *lexer, const char *what, char *out, size_t cap);
/* An unsigned number. */
int ddl_lexer_uint(struct ddl_lexer *lexer, const char *what, uint64_t max, uint64_t *value);
/* A string in quotes: a heap copy. */
int ddl_lexer_string(struct ddl_lexer *lexer, const char *what, char **out);
/* Sets the error at the current token: "line L, column C: expected WHAT, found 'x'". Keeps the
 * first error. */
int ddl_lexer_fail(struct ddl_lexer *lexer, const char *what);
/* Any other sentence, with the place. */
int ddl_lexer_fail_at(struct ddl_lexer *lexer, int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
