// A dedup table as its callers need it: checked, resolved and remembered until the server says that something changed.
//
// Loading costs a dozen catalog look-ups, a call must not; so each session keeps what it loaded, and the server's
// relation cache invalidation (inval.c) says when that is out of date. A turn of the ring sends one for the table, so
// the position of the ring can be trusted by whoever finds `current` true while holding the gate (docs/storage.md).
#pragma once

#include "core/ring.hpp"
#include "core/state.hpp"
#include "server/base/postgres.hpp"
#include "server/table/event_row.hpp"
#include "server/table/policy.hpp"

namespace idem {

// What is needed to insert into a slot's indexes, built at the first write.
struct IndexWriter {
    EState *estate;
    ResultRelInfo *result;
    Oid *indexes;
    int count;
};

// One partition.
struct Slot {
    Oid relation;
    int number;
    MemoryContext context;  // the table's
    TupleDesc desc;         // not counted, so that a tuple slot over it may be dropped without care
    ColumnMap columns;
    bool constrained;  // by more than what every row of idem's fulfils
    bool watched;      // it tells when somebody else writes to it (idem_touch)
    bool has_touch;    // it has the trigger for that, which may be switched off
    IndexWriter writer;
};

struct DedupTable {
    Oid relation;
    bool current;     // false: something changed since it was loaded
    uint64_t loaded;  // no other load in this session has the same number
    MemoryContext context;
    char name[NAMEDATALEN];
    Policy policy;
    HandlerPolicy *handlers;  // those who differ from it
    int handler_count;
    int slot_count;
    Slot *slots;
    int64_t oldest_generation;
    int64_t current_generation;

    int filter;   // of its sealed generations (filter_memory.hpp)
    bool strays;  // a slot outside the ring holds rows: left to be emptied, or written by somebody else

    // The policy of a handler.
    Policy PolicyOf(std::string_view handler) const {
        for (int i = 0; i < handler_count; i++)
            if (handlers[i].handler == handler) return Changed(policy, handlers[i].change);
        return policy;
    }

    // Numbers below zero are of slots that were not opened yet.
    Slot &SlotOf(int64_t generation) { return slots[(generation % slot_count + slot_count) % slot_count]; }

    // Where looking for an event ends.
    int64_t FirstGeneration() const { return strays ? current_generation - slot_count + 1 : oldest_generation; }
};

// The dedup table, loaded if need be; valid until another is opened, and while it is held until the transaction ends.
// Takes no lock that outlives it.
// Raises 42P01 (no such relation), 42809 (not a dedup table, or not in order).
DedupTable *OpenDedupTable(Oid relation);

// Whoever runs code that may open tables while he uses one holds all tables meanwhile. An error lets go of them when
// the transaction ends.
void HoldDedupTables();
void LetGoOfDedupTables();

// Once a transaction has ended, or is prepared: nobody holds any.
void ForgetHolders();

// The dedup table if it is loaded and up to date; else nullptr.
const DedupTable *LoadedDedupTable(Oid relation);

// Raises unless the relation is a dedup table in order: OF idem_event, partitioned by slot, with slots 0 … n-1 and
// nothing that idem's writes would pass by (row security, rules, triggers). Returns the number of slots. Raises 42809.
int CheckDedupTable(Oid relation);

// To be called once, when the library is loaded.
void WatchDedupTables();

}  // namespace idem
