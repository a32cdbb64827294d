// What the parts of the state machine (core/state.hpp) share: how a record is judged, and how one is written. Each part
// decides about some of the actions; nobody else includes this.
#pragma once

#include "core/state.hpp"

namespace idem {

Decision DecideClaim(const Request &request, const Sighting &seen, Micros now);    // Acquire, Accept
Decision DecideReceive(const Request &request, const Sighting &seen, Micros now);  // Receive
Decision DecideSettle(const Request &request, const Sighting &seen, Micros now);   // Commit, Fail, GiveBack, Extend
Decision DecideRequeue(const Request &request, const Sighting &seen, Micros now);  // Requeue
Decision DecideResolve(const Request &request, const Sighting &seen, Micros now);  // Resolve
Decision DecideMove(const Sighting &seen, Micros now);                             // Move

// --- how a record is judged

inline bool Due(const Record &record, Micros now) { return record.claimable_at <= now; }

// Not there, or committed and forgotten. What was never committed can't be forgotten.
inline bool Absent(const Sighting &seen, Micros now) {
    return !seen.found || (seen.holder == Holder::Nobody && seen.record.expires_at <= now);
}

// Where a live record stands for those who don't hold it; Acquired = it may be claimed.
Outcome Standing(const Record &record, Micros now);

// Whether the request's limit of tries is reached.
bool Exhausted(const Request &request, const Record &record);

// --- what is answered

// Nobody can tell when another transaction ends; a second is what senders wait anyway.
constexpr Micros kOpenTransactionRetry = kSecond;

// When a retry helps, where a record stands so.
Micros RetryAfter(const Record &record, Outcome outcome, Micros now);

inline Decision Keep(Outcome outcome, const Record &record, Micros retry_after) {
    return {Effect::Keep, Fault::None, outcome, record, retry_after};
}

inline Decision Refuse(Fault fault, const Record &record) {
    return {Effect::Refuse, fault, Outcome::Busy, record, kForever};
}

inline Decision Write(const Sighting &seen, Outcome outcome, const Record &record, Micros retry_after) {
    return {seen.found ? Effect::Update : Effect::Insert, Fault::None, outcome, record, retry_after};
}

// Keeps the record and tells where it stands.
Decision Tell(const Record &record, Micros now);

// --- what is written

// Tokens start over after 2^31 - 1 of them: a claim that old is nobody's any more, and 0 is no token.
inline int32_t NextAttempt(int32_t attempt) { return attempt == INT32_MAX ? 1 : attempt + 1; }

inline void CountFailure(Record *record) {
    if (record->failures < INT32_MAX) record->failures++;
}

// The first claim on an event, new or forgotten. A forgotten record's attempts go on, as long as there is one to be
// seen.
Record FirstClaim(const Request &request, const Sighting &seen, Micros now);

// A further claim on a remembered event.
Record NextClaim(const Request &request, const Sighting &seen, Micros now);

// Due since now, with no failures that count.
Record Waiting(const Request &request, const Record &before, Micros now);

// Done since now.
Record Committed(const Request &request, const Record &before, Micros now);

// Its tries are used up: it waits for somebody to decide.
Record GivenUp(const Request &request, const Record &before, Micros now);

}  // namespace idem
