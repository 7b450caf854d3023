/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/cluster: every coordinator by its own word, and the rest as the leader sees it. */
#ifndef TG_COORDINATOR_API_API_CLUSTER_H
#define TG_COORDINATOR_API_API_CLUSTER_H

#include "coordinator/api/api_request.h"

void api_cluster(struct api_request *request);

#endif
