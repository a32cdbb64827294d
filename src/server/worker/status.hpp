// When the purge worker came through each database, in shared memory for the functions that show it.
//
// Only there when the library is preloaded, as the worker is.
#pragma once

#include "server/base/postgres.hpp"
#include "server/base/shared_memory.hpp"
#include "server/ring/purge.hpp"

namespace idem {

// The passes over one database.
struct PassStatus {
    Oid database;
    TimestampTz started_at;   // the latest one
    TimestampTz finished_at;  // the latest one that came to its end; 0 = none
    TimestampTz took_since;   // when that one had started
    Purged purged;            // by the one that finished
};

// The worker begins a pass over its database, and is through. If it ends otherwise, finished_at stays.
void ReportPassStarted();
void ReportPassFinished(Purged purged);

// Nothing where there was no pass over the database, or there is no shared memory to tell it from.
std::optional<PassStatus> PassesOf(Oid database);

// The names in idem.databases of which there is no database, as a list of char *. Needs a transaction.
List *UnknownDatabases();

// Why no worker comes to this database; nullptr: one does. Needs a transaction.
const char *WhyNoWorker();

// Where it is told.
extern const SharedPart kWorkerStatus;

}  // namespace idem
