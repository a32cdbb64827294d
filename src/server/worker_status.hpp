// What the purge worker does and did, in shared memory: for the functions that show it, and in pg_stat_activity.
//
// Only there when the library is preloaded, as the worker is. The reporting functions do nothing in any other process,
// so that PurgeTable may call them wherever it runs.
#pragma once

#include "server/postgres.hpp"

namespace idem {

enum class Phase : uint8_t { Retire, Move, Seal, Turn, Empty };
constexpr int kPhaseCount = 5;
const char *PhaseName(Phase phase);

// The passes over one database.
struct PassStatus {
    Oid database;
    TimestampTz started_at;   // the latest one
    TimestampTz finished_at;  // the latest one that came to its end; 0 = none
    int tables;               // seen by the one that finished
    int failed_tables;
};

// Where the worker is.
struct PassProgress {
    Oid database;
    Oid table;
    Phase phase;
    BlockNumber done;
    BlockNumber total;
};

// The worker begins a pass over its database, comes to a table, and is through. If it ends otherwise, no progress is
// shown any more and finished_at stays.
void ReportPassStarted();
void ReportTable();
void ReportPassFinished(int failed_tables);

// Where the worker is in a table: `done` of `total` blocks, 0 of 0 where there is nothing to count. Cheap enough to be
// called for each block. Needs a transaction, and holds no lock when it raises.
void ReportProgress(Oid table, Phase phase, BlockNumber done, BlockNumber total);

// The worker has left the table.
void ReportIdle();

// Both return nothing where there is nothing to tell about the database, or no shared memory to tell it from.
std::optional<PassStatus> PassesOf(Oid database);
std::optional<PassProgress> ProgressOf(Oid database);

// Whether the server has preloaded the library.
bool IsPreloaded();

// Reserves the shared memory. To be called while shared_preload_libraries are loaded.
void ReserveWorkerStatus();

}  // namespace idem
