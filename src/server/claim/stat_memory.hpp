// What is counted and measured, of each handler of each dedup table: in shared memory, and in a file across restarts.
//
// A file of the server's own, as pg_stat_statements has one, not a table: it is written without WAL and read before
// anybody can connect. It is saved after each pass of the launcher in which something changed, and at a clean shutdown;
// a crash loses what came since. Where the library isn't preloaded there is nothing, and adding does nothing.
//
// PostgreSQL 18 lets an extension have a kind of cumulative statistics of its own, but 15 to 17 don't, and it knows
// neither a bound on entries nor one for the rest, nor saves anything before a crash; so there is one way for all
// versions.
#pragma once

#include "core/numbers.hpp"
#include "server/base/arguments.hpp"
#include "server/base/postgres.hpp"
#include "server/base/shared_memory.hpp"

namespace idem {

// What a session has to add for one handler.
struct Tally {
    struct Delivery {
        Key key;
        Micros span;  // since the first one
    };
    static constexpr int kMostSpans = 64;

    Oid dedup;
    int handler_bytes;
    char handler[kMostHandlerBytes];
    int64_t counts[kCounterCount];
    Micros last_duplicate_at;
    Micros last_conflict_at;
    double late_by_chance;
    Micros oldest_stale;
    int delivery_count;
    Delivery deliveries[kMostSpans];  // redeliveries
    int work_count;
    Micros work[kMostSpans];
};

// Whether there is anything to add to: not on a standby.
bool StatsAreKept();

// Adds to the handler's numbers. A handler that is new when idem.stat_handlers are known counts among the others. Takes
// the lock "idem stat" for microseconds; raises nothing.
void AddTally(const Tally &tally);

// A handler's numbers, as they are now.
struct HandlerStat {
    Oid database;
    Oid dedup;  // InvalidOid: all handlers that found no entry of their own, in whatever database
    TimestampTz reset_at;
    TimestampTz late_told_at;  // when the log last told of late events, of so many as there were then
    int64_t late_told;
    double by_chance_told;
    int handler_bytes;
    char handler[kMostHandlerBytes];
    Numbers numbers;
};

// Calls use(stat) on a copy of each entry of this database, and on that of the others if anything was counted there.
void ReadStats(void (*use)(const HandlerStat &stat, void *argument), void *argument);

// Forgets what was counted of a dedup table of this database; InvalidOid: of the others.
void ResetStats(Oid dedup);

// Forgets those of dropped dedup tables of this database, and of dropped databases.
void DropStats(bool (*table_exists)(Oid dedup), bool (*database_exists)(Oid database));

// What is to be told of late events of a dedup table; nothing if it was told within a day, or if there were no more of
// them since than chance explains.
struct LateEvents {
    int64_t late;
    int64_t acquired;
    double by_chance;
};
std::optional<LateEvents> LateEventsToTell(Oid dedup);

// Writes the file if anything has changed since it was written. A failure is logged.
void SaveStats();

// Where they are.
extern const SharedPart kStatMemory;

}  // namespace idem
