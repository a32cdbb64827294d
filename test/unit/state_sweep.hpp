// Every input of the state machine that can make a difference: each point in time before, at and after the moment that
// counts, each attempt below, at and above the record's, and all the rest whole. What only settling reads is for a
// claim either all there or not at all, and the other way round; that neither reads it is a promise of its own.
#pragma once

#include <cstddef>

#include <gtest/gtest.h>

#include "state_fixture.hpp"

namespace idem {

// One input, and what was decided.
struct Point {
    Request request;
    Sighting seen;
    Decision decision;
};

inline bool Always(const Point &) { return true; }

inline bool Asks(const Point &p, Action action) { return p.request.action == action; }
inline bool Claiming(const Point &p) { return Claims(p.request.action); }
inline bool Releasing(const Point &p) { return Asks(p, Action::Fail) || Asks(p, Action::GiveBack); }
inline bool Writing(const Point &p) { return Writes(p.decision); }

inline bool HeldBy(const Point &p, Holder holder) { return p.seen.found && p.seen.holder == holder; }
inline bool Committed(const Point &p) { return HeldBy(p, Holder::Nobody); }
inline bool Others(const Point &p) { return HeldBy(p, Holder::Other); }
inline bool OursOpen(const Point &p) { return HeldBy(p, Holder::OursOpen); }
inline bool Ours(const Point &p) { return OursOpen(p) || HeldBy(p, Holder::OursSettled); }

inline bool Is(const Point &p, State state) { return p.seen.found && p.seen.record.state == state; }
inline bool Due(const Point &p) { return p.seen.record.claimable_at <= kNow; }
inline bool Forgotten(const Point &p) { return Committed(p) && p.seen.record.expires_at <= kNow; }
inline bool Absent(const Point &p) { return !p.seen.found || Forgotten(p); }

// A release by one who holds no claim, because its work was rolled back.
inline bool WithoutClaim(const Point &p) { return Releasing(p) && p.request.attempt == 0 && !Ours(p); }

// A settling of a claim which the caller says it holds.
inline bool Settling(const Point &p) { return !Claiming(p) && !WithoutClaim(p); }

// Takes one choice out of a number that counts through all combinations.
template <typename Choice, size_t kChoices>
Choice Take(size_t *number, const Choice (&choices)[kChoices]) {
    Choice choice = choices[*number % kChoices];
    *number /= kChoices;
    return choice;
}

// What only settling reads.
struct SettlingSays {
    int32_t attempt;
    bool has_result;
    bool has_cold_window;
    bool same_result;
    Micros retry_after;
};

// What only claiming reads.
struct ClaimingSays {
    FingerprintMatch fingerprint;
    bool same_owner;
    bool has_occurred_at;
    Micros occurred_at;
};

constexpr int32_t kSweptAttempt = 5;
constexpr Micros kOnePercent = kWindows.cold / 100;
constexpr Micros kStaleSince = kNow - kWindows.cold + 3600 * kSecond;  // what happened earlier is stale
constexpr bool kBoth[] = {false, true};

inline void Say(Point *point, const SettlingSays &says) {
    point->request.attempt = says.attempt;
    point->request.has_result = says.has_result;
    point->request.has_cold_window = says.has_cold_window;
    point->request.retry_after = says.retry_after;
    point->seen.same_result = says.same_result;
}

inline void Say(Point *point, const ClaimingSays &says) {
    point->request.has_occurred_at = says.has_occurred_at;
    point->request.occurred_at = says.occurred_at;
    point->seen.fingerprint = says.fingerprint;
    point->seen.same_owner = says.same_owner;
}

constexpr SettlingSays kNoSettling = {0, false, false, false, 0};
constexpr SettlingSays kEverySettling = {kSweptAttempt, true, true, true, kSecond};
constexpr ClaimingSays kNoClaiming = {FingerprintMatch::Unknown, false, false, 0};
constexpr ClaimingSays kEveryClaiming = {FingerprintMatch::Different, true, true, kStaleSince - 1};

// The mode, and the record that is there.
inline void TakeRecord(size_t *number, Point *point) {
    Sighting &seen = point->seen;
    Record &record = seen.record;
    point->request.windows = kWindows;
    point->request.transaction_mode = Take(number, kBoth);
    int place = Take(number, {0, 1, 2, 3, 4});
    seen.found = place < 4;
    seen.holder = static_cast<Holder>(place % 4);
    record.state = Take(number, {State::Pending, State::Processing, State::Done, State::Failed, State::Dead});
    record.attempt = kSweptAttempt;
    record.failures = 3;
    record.first_seen_at = kNow - 20 * kDay;
    record.claimed_at = kNow - Take(number, {Micros{1}, kOnePercent, kOnePercent + 1});
    record.claimable_at = Take(number, {kNow - 1, kNow, kNow + 1, kForever});
    record.settled_at = record.state == State::Done ? record.claimed_at : 0;
    record.expires_at = Take(number, {kNow - 1, kNow, kNow + 1});
}

// The number-th claim, not yet decided. False if there are not that many.
inline bool ClaimOf(size_t number, Point *point) {
    ClaimingSays says;
    point->request.action = Take(&number, {Action::Acquire, Action::Accept});
    says.fingerprint = Take(&number, {FingerprintMatch::Unknown, FingerprintMatch::Same, FingerprintMatch::Different});
    says.same_owner = Take(&number, kBoth);
    says.occurred_at = Take(&number, {Micros{0}, kStaleSince, kStaleSince - 1});
    says.has_occurred_at = says.occurred_at != 0;
    Say(point, says);
    Say(point, Take(&number, {kNoSettling, kEverySettling}));
    TakeRecord(&number, point);
    return number == 0;
}

// The number-th settling, not yet decided. False if there are not that many.
inline bool SettlingOf(size_t number, Point *point) {
    SettlingSays says;
    point->request.action = Take(&number, {Action::Commit, Action::Fail, Action::GiveBack, Action::Extend});
    says.attempt = Take(&number, {0, kSweptAttempt - 1, kSweptAttempt, kSweptAttempt + 1});
    says.has_result = Take(&number, kBoth);
    says.has_cold_window = Take(&number, kBoth);
    says.same_result = Take(&number, kBoth);
    says.retry_after = Take(&number, {Micros{0}, kSecond});
    Say(point, says);
    Say(point, Take(&number, {kNoClaiming, kEveryClaiming}));
    TakeRecord(&number, point);
    return number == 0;
}

// For every input that the promise is about, the promise must hold; shows the first one where it does not. A promise
// about nothing is broken too.
template <typename IsAbout, typename Holds>
void ExpectWherever(IsAbout is_about, Holds holds) {
    size_t inputs = 0;
    Point point = {};
    for (auto point_of : {ClaimOf, SettlingOf})
        for (size_t number = 0; point_of(number, &point); number++) {
            point.decision = Decide(point.request, point.seen, kNow);
            if (!is_about(point)) continue;
            inputs++;
            if (holds(point)) continue;
            FAIL() << "asked: " << testing::PrintToString(point.request)
                   << "\nseen: " << testing::PrintToString(point.seen) << "\nnow: " << kNow
                   << "\ndecided: " << testing::PrintToString(point.decision);
        }
    EXPECT_GT(inputs, 0u);
}

}  // namespace idem
