/* SPDX-License-Identifier: Apache-2.0 */
/* A table from the raft library's codes to ours. */
#include "coordinator/consensus/raft_err.h"

#include <raft.h>
#include <stddef.h>

#include "common/base/err.h"

static const struct {
    int code;
    int err;
    const char *name;
} raft_err_table[] = {
    {RAFT_NOMEM, TG_NOMEM, "NOMEM"},
    {RAFT_BADID, TG_INVALID, "BADID"},
    {RAFT_DUPLICATEID, TG_EXISTS, "DUPLICATEID"},
    {RAFT_DUPLICATEADDRESS, TG_EXISTS, "DUPLICATEADDRESS"},
    {RAFT_BADROLE, TG_INVALID, "BADROLE"},
    {RAFT_MALFORMED, TG_INVALID, "MALFORMED"},
    {RAFT_NOTLEADER, TG_NOT_LEADER, "NOTLEADER"},
    {RAFT_LEADERSHIPLOST, TG_UNKNOWN_OUTCOME, "LEADERSHIPLOST"},
    {RAFT_SHUTDOWN, TG_UNKNOWN_OUTCOME, "SHUTDOWN"},
    {RAFT_CANTBOOTSTRAP, TG_EXISTS, "CANTBOOTSTRAP"},
    {RAFT_CANTCHANGE, TG_BUSY, "CANTCHANGE"},
    {RAFT_CORRUPT, TG_CORRUPT, "CORRUPT"},
    {RAFT_CANCELED, TG_UNKNOWN_OUTCOME, "CANCELED"},
    {RAFT_NAMETOOLONG, TG_TOO_LARGE, "NAMETOOLONG"},
    {RAFT_TOOBIG, TG_TOO_LARGE, "TOOBIG"},
    {RAFT_NOCONNECTION, TG_UNREACHABLE, "NOCONNECTION"},
    {RAFT_BUSY, TG_BUSY, "BUSY"},
    {RAFT_IOERR, TG_IO, "IOERR"},
    {RAFT_NOTFOUND, TG_NOT_FOUND, "NOTFOUND"},
    {RAFT_INVALID, TG_INVALID, "INVALID"},
    {RAFT_UNAUTHORIZED, TG_DENIED, "UNAUTHORIZED"},
    {RAFT_NOSPACE, TG_NOSPACE, "NOSPACE"},
    {RAFT_TOOMANY, TG_LIMIT, "TOOMANY"},
};

enum { RAFT_ERR_COUNT = sizeof raft_err_table / sizeof raft_err_table[0] };

int raft_err(int code)
{
    if (code == 0)
        return 0;
    for (size_t i = 0; i < RAFT_ERR_COUNT; i++)
        if (raft_err_table[i].code == code)
            return raft_err_table[i].err;
    return TG_IO;
}

const char *raft_err_name(int code)
{
    if (code == 0)
        return "OK";
    for (size_t i = 0; i < RAFT_ERR_COUNT; i++)
        if (raft_err_table[i].code == code)
            return raft_err_table[i].name;
    return "UNKNOWN";
}
