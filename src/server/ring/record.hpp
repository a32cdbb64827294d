// What purging has done to each dedup table, for its operator: idem_purge_state. A pass that does nothing writes
// nothing.
#pragma once

#include "server/base/postgres.hpp"

namespace idem {

// What a step adds to the counts.
struct PurgeDone {
    int64_t turned = 0;
    int64_t retired = 0;
    int64_t events_freed = 0;
    int64_t bytes_freed = 0;
    int64_t events_moved = 0;
    int64_t events_given_up = 0;
};

// Each belongs to the transaction of the step that it tells of. The caller has locked the ring.
void RecordPurge(Oid dedup, const PurgeDone &done);

// The ring has no slot to go on to, or has one again; returns whether that is news.
bool RecordFull(Oid dedup, bool full);

// The latest pass failed so, or did not (nullptr); returns whether that is news.
bool RecordFailure(Oid dedup, const char *error);
bool HasFailed(Oid dedup);

}  // namespace idem
