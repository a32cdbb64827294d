// The steps of turning a ring: open a generation, move what must outlive the oldest one, retire and empty it.
//
// Each commits (purge_step.hpp), and is harmless wherever it is cut off: what it left undone, the next pass does. Why
// they are exact is in docs/storage.md.
#pragma once

#include "server/census.hpp"
#include "server/purge_step.hpp"

namespace idem {

// How a pass over one table goes about it.
struct Pass {
    Oid dedup;
    Patience patience;
    Pace pace;
    int gate_timeout_ms;  // for how long a step may wait for the gate; 55P03 when it is over
    bool asked;           // somebody asks for this very turn: scans the oldest generation anew, and warns anyway
    bool verify;          // scan for live events before emptying, even where a filter vouches for an earlier scan
};

// Whether a subscription of this database's may write to the table. Then rows must stay where the publisher has put
// them, expired or not, or his next change of one finds none; he empties his slots, and that is replicated too.
bool IsSubscribed(const DedupTable &table);

// What a pass over a table has to do. An idle table has nothing, and looking writes nothing.
struct Due {
    bool seal;
    bool tidy;
    bool retire;
    bool turn;
    bool failed_before;  // the latest pass did, so that its success is news
};
Due WhatIsDue(const Pass &pass);

// Scans the sealed generations that were not scanned since they were sealed, or that somebody else has written to, and
// builds their filters.
void SealGenerations(const Pass &pass);

// Empties slots outside the ring; those that hold live events, which somebody else has written, are taken into it.
// Gives partitions back the trigger that tells of others' writes.
void TidySlots(const Pass &pass);

// Retires and empties the oldest generations as long as all that is in them has expired. Moves unsettled events to the
// current generation first.
void RetireGenerations(const Pass &pass);

// Opens the next generation. Where there is no slot for it, warns if that is news; events go on into the current one.
void TurnRing(const Pass &pass);

}  // namespace idem
