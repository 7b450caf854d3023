/* SPDX-License-Identifier: Apache-2.0 */
/* The raft library's codes as ours. */
#ifndef TG_COORDINATOR_CONSENSUS_RAFT_ERR_H
#define TG_COORDINATOR_CONSENSUS_RAFT_ERR_H

/* 0 for 0; TG_IO for codes this version does not know. A code that leaves an outcome open becomes
 * TG_UNKNOWN_OUTCOME. */
int raft_err(int code);
/* "LEADERSHIPLOST"; "UNKNOWN" for strangers. The library's own text knows fewer. */
const char *raft_err_name(int code);

#endif
