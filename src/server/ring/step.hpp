// The steps in which a ring is turned and purged: each is a transaction of its own, and harmless wherever it is cut
// off, as what it left undone, the next pass does (docs/storage.md says why they are exact).
#pragma once

#include "server/base/postgres.hpp"
#include "server/base/subtransaction.hpp"
#include "server/table/dedup_table.hpp"

namespace idem {

enum class Patience : uint8_t {
    Waits,     // for whoever has locked the table
    PassesBy,  // a table that is locked
};

// A scan which works no longer than it rests disturbs nobody. Whoever waits for it would rather have it over.
enum class Pace : uint8_t { AtOnce, WithRests };

// How a pass over one table goes about it.
struct Pass {
    Oid dedup;
    Patience patience;
    Pace pace;
    int gate_timeout_ms;  // for how long a step may wait for the gate; 55P03 when it is over
    bool asked;           // somebody asks for this very turn: scans the oldest generation anew, and warns anyway
    bool verify;          // scan for live events before emptying, even where a filter vouches for an earlier scan
};

// Whom a step makes the user again.
struct Caller {
    Oid user;
    int security_context;
    int guc_level;
};

// Nothing here wants a snapshot older than its locks. A transaction that has one for its whole length can't be without
// it: that one is committed, and what follows is in a new one. Needs a non-atomic SPI connection.
void BecomeReadCommitted();

// Begins a step: returns the table, locked against others who turn, purge or alter it until the step ends, with the
// user switched to the table's owner under a safe search_path. Returns nullptr if the table is gone or, where one does
// not wait, locked. Raises 42704 if the extension is gone.
DedupTable *BeginStep(Oid dedup, Patience patience, Caller *caller);

// Lets no lock be waited for longer than idem.purge_lock_timeout, until the step ends: for who is to write to idem's
// own tables, which somebody may have locked, while others wait for him.
void LimitLockWaits();

// Makes whoever called the user again.
void EndStep(const Caller &caller);

// Commits what the step has done.
void CommitStep();

// Runs step(table) as a step; false if there was none, or it returned false. It is called in a transaction with a
// non-atomic SPI connection (SPI_OPT_NONATOMIC), and leaves a new transaction. An error of the step leaves nothing of
// it, wherever it was raised: the subtransaction takes back the user, snapshots, and the connections to SPI of whatever
// function or trigger was running, so that whoever catches it is at his own connection and may roll back.
template <class F>
bool InStep(Oid dedup, Patience patience, F step) {
    BecomeReadCommitted();
    bool done = false;
    auto nothing = [](const ErrorData &) { return false; };
    (void)InSubtransaction(nothing, [&] {
        Caller caller;
        DedupTable *table = BeginStep(dedup, patience, &caller);
        if (table != nullptr) {
            // A procedure's portal would make a snapshot for SPI where there is none; the worker has no portal.
            PushActiveSnapshot(GetTransactionSnapshot());
            done = step(*table);
            PopActiveSnapshot();
        }
        EndStep(caller);
    });
    CommitStep();
    return done;
}

}  // namespace idem
