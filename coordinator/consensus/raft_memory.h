/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for the raft library. */
#ifndef TG_COORDINATOR_CONSENSUS_RAFT_MEMORY_H
#define TG_COORDINATOR_CONSENSUS_RAFT_MEMORY_H

/* From now on the process ends, with a sentence, where raft would get no memory: what the library
 * does after such an error has never been trodden enough. Call it before anything else of raft. */
void raft_memory_set(void);

#endif
