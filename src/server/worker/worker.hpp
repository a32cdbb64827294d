// The purge worker: a process that makes one pass over the dedup tables of one database, and ends.
#pragma once

#include "server/base/postgres.hpp"

namespace idem {

// What the launcher registers to have a database purged. The name is for the process list.
BackgroundWorker PurgeWorker(Oid database, const char *name);

}  // namespace idem
