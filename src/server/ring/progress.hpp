// How far the purge worker is, step by step: in shared memory for the functions that show it, and in pg_stat_activity.
//
// The reporting functions do nothing in any other process, so that a step may call them wherever it runs.
#pragma once

#include "server/base/postgres.hpp"
#include "server/base/shared_memory.hpp"

namespace idem {

enum class Phase : uint8_t { Retire, Move, Seal, Turn, Empty };
constexpr int kPhaseCount = 5;
const char *PhaseName(Phase phase);

// Where the worker is.
struct PassProgress {
    Oid database;
    Oid table;
    Phase phase;
    BlockNumber done;
    BlockNumber total;
};

// This process is the worker, until it ends.
void BeginReporting();

// Where the worker is in a table: `done` of `total` blocks, 0 of 0 where there is nothing to count. Cheap enough to be
// called for each block. Needs a transaction, and holds no lock when it raises.
void ReportProgress(Oid table, Phase phase, BlockNumber done, BlockNumber total);

// The worker has left the table.
void ReportIdle();

// Nothing where the worker is not at this database, or is not there.
std::optional<PassProgress> ProgressOf(Oid database);

// Where it is told.
extern const SharedPart kWorkerProgress;

}  // namespace idem
