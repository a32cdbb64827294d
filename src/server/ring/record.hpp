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

// The latest pass failed so, or did not (nullptr); returns whether that is news. The same failure with other numbers in
// it is none.
bool RecordFailure(Oid dedup, const char *error);

// A pass has come through. Not each is recorded, as one with nothing to do shall write nothing.
void RecordPass(Oid dedup);

// Whether that is to be recorded: the record is an hour old, or of a time that is to come.
bool IsPassNews(std::optional<TimestampTz> recorded);

// What is on record of the passes over a table.
struct PurgeRecord {
    bool failed;                           // the latest one
    std::optional<TimestampTz> last_pass;  // to the hour; nothing: none
};
PurgeRecord ReadPurgeRecord(Oid dedup);
void ReadPurgeRecords(void (*use)(Oid dedup, const PurgeRecord &, void *), void *argument);

}  // namespace idem
