// Sealing a generation: once nothing new comes to it, it is counted and gets its filter.
#pragma once

#include "server/ring/census.hpp"
#include "server/table/filter_memory.hpp"

namespace idem {

// Whether the filter vouches for a sealed generation: all that is there is in it, and nobody else has written there
// since it was scanned.
bool HasColumn(DedupTable &table, int64_t generation);

// Whether a sealed generation is to be scanned: never was, or has no filter though it could have one. Where somebody
// else writes to it all the time, a scan WithRests waits an hour after the last one.
bool NeedsSeal(DedupTable &table, int64_t generation, Pace pace);

// Scans it, registers the census, and builds the filter's column, which is to be published once that is committed: who
// retires may trust the census of a generation with a published column. Takes AccessShareLock on its partition; does
// nothing if that can't be had at once.
std::optional<BuiltColumn> Seal(DedupTable &table, int64_t generation, Pace pace);

// Scans the sealed generations that were not scanned since they were sealed, or that somebody else has written to, and
// builds their filters.
void SealGenerations(const Pass &pass);

}  // namespace idem
