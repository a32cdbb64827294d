// Counting what calls are answered, and measuring when: in the session's memory until its transaction ends, or for a
// second at most, so that no call shares a lock with others for it.
//
// What was answered counts, whether it was rolled back or not, as in the server's own pg_stat views. A standby counts
// nothing, as it answers nothing.
#pragma once

#include "core/numbers.hpp"
#include "server/claim/call.hpp"

namespace idem {

// The answer to a claim or a settling.
void CountAnswer(const EventCall &call, const EventAnswer &answer);

// A settling that was refused as its lease is lost; a claim that was left open at the end of its transaction; a claim
// that was bypassed.
void CountOne(Oid dedup, std::string_view handler, Counter counter);

// An event was taken for new: asks whether a generation that was emptied since held it.
void CountIfLate(const EventCall &call);

// To be called at the end of a transaction, when nothing may raise an error any more.
void FlushTally();

}  // namespace idem
