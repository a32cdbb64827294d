// What tells whether a partition is still the one that was counted.
//
// A filter knows what was in a partition when it was scanned, and the partition's trigger tells of what others write
// later. But a partition can be detached, loaded and attached again, or its trigger switched off and on, and nobody
// tells of what came meanwhile. Each of these leaves a trace in the catalogs that nothing undoes: a row written anew,
// by another transaction than before. The edition is made of these traces, so what was counted counts only while it is
// the same.
#pragma once

#include "server/base/postgres.hpp"

namespace idem {

// Differs from before whenever the partition was detached or attached, rewritten or truncated, or any of its triggers
// changed; not by GRANT, VACUUM, ANALYZE or new indexes. As the catalogs say now, what this transaction has changed
// itself included. Nobody rewrites a partition that the caller has locked; the rest changes under
// ShareUpdateExclusiveLock on the dedup table, or ShareRowExclusiveLock on the partition.
//
// All these changes send a relcache invalidation, of the partition or of its parent, before whoever makes them learns
// that they are committed.
uint64_t EditionOf(Oid partition);

}  // namespace idem
