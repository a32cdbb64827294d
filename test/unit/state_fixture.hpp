// What the tests of the state machine share: one moment, one event's record in each state, and words for what is
// printed when a promise is broken.
#pragma once

#include <ostream>
#include <string_view>

#include <gtest/gtest.h>

#include "core/state.hpp"
#include "core/window.hpp"

namespace idem {

constexpr Micros kNow = 10000 * kDay;
constexpr Windows kWindows = {15 * 60 * kSecond, 30 * kDay, 365 * kDay};

inline std::string_view NameOf(State state) {
    constexpr std::string_view kNames[kStateCount] = {"pending", "processing", "done", "failed", "dead"};
    return kNames[static_cast<int>(state)];
}

inline std::string_view NameOf(Outcome outcome) {
    constexpr std::string_view kNames[kOutcomeCount] = {"acquired", "duplicate", "busy",  "backoff",
                                                        "dead",     "conflict",  "stale", "bypassed"};
    return kNames[static_cast<int>(outcome)];
}

inline std::string_view NameOf(Holder holder) {
    constexpr std::string_view kNames[] = {"nobody", "other", "ours, open", "ours, settled"};
    return kNames[static_cast<int>(holder)];
}

inline std::string_view NameOf(FingerprintMatch match) {
    constexpr std::string_view kNames[] = {"unknown", "same", "different"};
    return kNames[static_cast<int>(match)];
}

inline std::string_view NameOf(Action action) {
    constexpr std::string_view kNames[] = {"acquire", "accept", "commit",  "fail",    "give back",
                                           "extend",  "move",   "receive", "requeue", "resolve"};
    return kNames[static_cast<int>(action)];
}

inline std::string_view NameOf(Effect effect) {
    constexpr std::string_view kNames[] = {"keep", "insert", "update", "refuse"};
    return kNames[static_cast<int>(effect)];
}

inline std::string_view NameOf(Fault fault) {
    constexpr std::string_view kNames[] = {"none",          "lease lost",      "no such claim",
                                           "no such event", "attempt missing", "result differs"};
    return kNames[static_cast<int>(fault)];
}

// GoogleTest prints through these.
inline void PrintTo(State state, std::ostream *out) { *out << NameOf(state); }
inline void PrintTo(Outcome outcome, std::ostream *out) { *out << NameOf(outcome); }
inline void PrintTo(Effect effect, std::ostream *out) { *out << NameOf(effect); }
inline void PrintTo(Fault fault, std::ostream *out) { *out << NameOf(fault); }

inline void PrintTo(const Record &record, std::ostream *out) {
    *out << NameOf(record.state) << ", attempt " << record.attempt << ", failures " << record.failures
         << ", first seen at " << record.first_seen_at << ", claimed at " << record.claimed_at << ", claimable at "
         << record.claimable_at << ", settled at " << record.settled_at << ", expires at " << record.expires_at
         << (record.together ? ", together with others" : "");
}

inline void PrintTo(const Request &request, std::ostream *out) {
    *out << NameOf(request.action) << (request.transaction_mode ? " in transaction mode" : " in lease mode")
         << ", attempt " << request.attempt << (request.has_result ? ", with result" : "")
         << (request.has_cold_window ? ", with a cold window" : "");
    if (request.has_occurred_at) *out << ", occurred at " << request.occurred_at;
    if (request.together) *out << ", together with others";
    if (request.replaces) *out << ", replacing";
    if (request.behind) *out << ", behind another";
    if (request.not_before != 0) *out << ", not before " << request.not_before;
    if (request.gives_up) *out << ", giving up";
    if (request.retry_after != 0) *out << ", retry after " << request.retry_after;
    if (request.backs_off)
        *out << ", backing off " << request.backoff.fraction << " of " << request.backoff.base << " to "
             << request.backoff.cap;
    if (request.max_attempts != 0) *out << ", at most " << request.max_attempts << " attempts";
}

inline void PrintTo(const Sighting &seen, std::ostream *out) {
    if (!seen.found) *out << "absent; what would be there: ";
    PrintTo(seen.record, out);
    *out << "; holder: " << NameOf(seen.holder) << "; fingerprint: " << NameOf(seen.fingerprint)
         << (seen.same_owner ? "; same owner" : "") << (seen.same_result ? "; same result" : "")
         << (seen.sealed ? "; in a sealed generation" : "");
}

inline void PrintTo(const Decision &decision, std::ostream *out) {
    *out << NameOf(decision.effect) << ", fault: " << NameOf(decision.fault)
         << ", outcome: " << NameOf(decision.outcome) << ", retry after " << decision.retry_after << ", record: ";
    PrintTo(decision.record, out);
}

inline bool Claims(Action action) { return action == Action::Acquire || action == Action::Accept; }

inline bool Writes(const Decision &decision) {
    return decision.effect == Effect::Insert || decision.effect == Effect::Update;
}

inline bool Same(const Record &a, const Record &b) {
    return a.state == b.state && a.attempt == b.attempt && a.failures == b.failures &&
           a.first_seen_at == b.first_seen_at && a.claimed_at == b.claimed_at && a.claimable_at == b.claimable_at &&
           a.settled_at == b.settled_at && a.expires_at == b.expires_at && a.together == b.together;
}

inline bool Same(const Decision &a, const Decision &b) {
    return a.effect == b.effect && a.fault == b.fault && a.outcome == b.outcome && a.retry_after == b.retry_after &&
           Same(a.record, b.record);
}

// --- one event, in each state, as it is seen

constexpr Micros kMinute = 60 * kSecond;
constexpr int32_t kAttempt = 4;

// An event claimed for the fourth time a minute ago, after two failures; each state with its own end.
inline Record Remembered(State state, Micros claimable_at, Micros expires_at) {
    return {state, kAttempt, 2, kNow - kDay, kNow - kMinute, claimable_at, 0, expires_at};
}

inline Record Lease(Micros end) { return Remembered(State::Processing, end, end + kWindows.unresolved); }
inline Record Waiting(State state, Micros due_at) { return Remembered(state, due_at, due_at + kWindows.unresolved); }
inline Record Dead() { return Remembered(State::Dead, kForever, kNow + kDay); }

inline Record Done(Micros expires_at) {
    Record record = Remembered(State::Done, 0, expires_at);
    record.settled_at = kNow - kMinute;
    return record;
}

inline Sighting Seen(const Record &record, Holder holder = Holder::Nobody) {
    Sighting seen = {};
    seen.found = true;
    seen.holder = holder;
    seen.record = record;
    return seen;
}

inline Sighting Nothing() { return {}; }

inline Sighting WithFingerprint(Sighting seen, FingerprintMatch match) {
    seen.fingerprint = match;
    return seen;
}

inline Sighting OfSameOwner(Sighting seen) {
    seen.same_owner = true;
    return seen;
}

inline Request Ask(Action action, int32_t attempt = 0) {
    Request request = {};
    request.action = action;
    request.attempt = attempt;
    request.windows = kWindows;
    return request;
}

inline Request AtMost(int32_t max_attempts, Request request) {
    request.max_attempts = max_attempts;
    return request;
}

inline Request InTransactionMode(Request request) {
    request.transaction_mode = true;
    return request;
}

inline void ExpectKept(const Decision &decision, Outcome outcome, Micros retry_after) {
    SCOPED_TRACE(testing::PrintToString(decision));
    EXPECT_EQ(decision.effect, Effect::Keep);
    EXPECT_EQ(decision.outcome, outcome);
    EXPECT_EQ(decision.retry_after, retry_after);
}

inline void ExpectRefused(const Decision &decision, Fault fault) {
    SCOPED_TRACE(testing::PrintToString(decision));
    EXPECT_EQ(decision.effect, Effect::Refuse);
    EXPECT_EQ(decision.fault, fault);
}

inline Record ExpectWritten(const Decision &decision, Effect effect, Outcome outcome) {
    SCOPED_TRACE(testing::PrintToString(decision));
    EXPECT_EQ(decision.effect, effect);
    EXPECT_EQ(decision.outcome, outcome);
    EXPECT_EQ(decision.fault, Fault::None);
    return decision.record;
}

inline Record ExpectAcquired(const Sighting &seen, Micros now = kNow) {
    return ExpectWritten(Decide(Ask(Action::Acquire), seen, now), Effect::Update, Outcome::Acquired);
}

}  // namespace idem
