// Every input of the state machine that can make a difference: each point in time before, at and after the moment that
// counts, each attempt below, at and above the record's, each limit of attempts not reached, just reached and exceeded,
// and all the rest whole. What an action does not read is either all there or not at all; that it does not read it is a
// promise of its own.
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
inline bool Receiving(const Point &p) { return Asks(p, Action::Receive); }
inline bool Releasing(const Point &p) { return Asks(p, Action::Fail) || Asks(p, Action::GiveBack); }
inline bool AsHolder(const Point &p) { return Releasing(p) || Asks(p, Action::Commit) || Asks(p, Action::Extend); }
inline bool ByHand(const Point &p) { return Asks(p, Action::Requeue) || Asks(p, Action::Resolve); }
inline bool Moving(const Point &p) { return Asks(p, Action::Move); }
inline bool Writing(const Point &p) { return Writes(p.decision); }

inline bool HeldBy(const Point &p, Holder holder) { return p.seen.found && p.seen.holder == holder; }
inline bool Committed(const Point &p) { return HeldBy(p, Holder::Nobody); }
inline bool Others(const Point &p) { return HeldBy(p, Holder::Other); }
inline bool OursOpen(const Point &p) { return HeldBy(p, Holder::OursOpen); }
inline bool Ours(const Point &p) { return OursOpen(p) || HeldBy(p, Holder::OursSettled); }

inline bool Is(const Point &p, State state) { return p.seen.found && p.seen.record.state == state; }
inline bool Due(const Point &p) { return p.seen.record.claimable_at <= kNow; }
// Nobody's lease lasts for ever: the clock was wrong when it was taken.
inline bool BeyondBelief(const Point &p) { return p.seen.record.claimable_at == kForever; }
inline bool Forgotten(const Point &p) { return Committed(p) && p.seen.record.expires_at <= kNow; }
inline bool Absent(const Point &p) { return !p.seen.found || Forgotten(p); }

// A lease that may be taken over, and whose failure is the last that is allowed.
inline bool RanOut(const Point &p) { return Is(p, State::Processing) && Due(p) && !Absent(p); }
// One that nobody else can be to blame for.
inline bool RanOutAlone(const Point &p) { return RanOut(p) && !p.seen.record.together; }

inline bool LastFailure(const Point &p) {
    return p.request.max_attempts != 0 && p.seen.record.failures + 1 >= p.request.max_attempts;
}

// Waits for a claim which this transaction does not hold, as it only received, requeued or gave back the event.
// Not claimed since it was received, and to be replaced.
inline bool Replacing(const Point &p) {
    const Record &record = p.seen.record;
    bool unclaimed = record.attempt == 0 || record.claimed_at == kLongAgo;
    return Receiving(p) && p.request.replaces && Is(p, State::Pending) && unclaimed && !Others(p) && !OursOpen(p) &&
           !Absent(p);
}

inline bool Unclaimed(const Point &p) { return HeldBy(p, Holder::OursSettled) && Is(p, State::Pending); }

// A release by one who holds no claim, because its work was rolled back.
inline bool WithoutClaim(const Point &p) {
    return Releasing(p) && p.request.attempt == 0 && (!Ours(p) || Unclaimed(p));
}

// A settling, or a heartbeat, of a claim which the caller says it holds.
inline bool Settling(const Point &p) { return AsHolder(p) && !WithoutClaim(p); }

// Takes one choice out of a number that counts through all combinations.
template <typename Choice, size_t kChoices>
Choice Take(size_t *number, const Choice (&choices)[kChoices]) {
    Choice choice = choices[*number % kChoices];
    *number /= kChoices;
    return choice;
}

// What only claiming and receiving read.
struct ClaimSays {
    FingerprintMatch fingerprint;
    bool same_owner;
    bool has_occurred_at;
    Micros occurred_at;
    bool together;
};

// What only receiving reads.
struct ReceiptSays {
    bool replaces;
    Micros not_before;
};

// What only committing reads.
struct CommitSays {
    bool has_result;
    bool has_cold_window;
    bool same_result;
};

// What only releasing reads.
struct ReleaseSays {
    Micros retry_after;
    bool backs_off;
    bool gives_up;
};

constexpr int32_t kSweptAttempt = 5;
constexpr Micros kOnePercent = kWindows.cold / 100;
constexpr Micros kStaleSince = kNow - kWindows.cold + 3600 * kSecond;  // what happened earlier is stale
constexpr bool kBoth[] = {false, true};
constexpr int32_t kSweptFailures = 3;
constexpr int32_t kLimits[] = {0, kSweptFailures, kSweptFailures + 1, kSweptFailures + 2};
constexpr Backoff kBackoff = {kSecond, kMinute, 0.5};

inline void Say(Point *point, const ClaimSays &says) {
    point->request.has_occurred_at = says.has_occurred_at;
    point->request.occurred_at = says.occurred_at;
    point->seen.fingerprint = says.fingerprint;
    point->seen.same_owner = says.same_owner;
    point->request.together = says.together;
}

inline void Say(Point *point, const ReceiptSays &says) {
    point->request.replaces = says.replaces;
    point->request.not_before = says.not_before;
}

inline void Say(Point *point, const CommitSays &says) {
    point->request.has_result = says.has_result;
    point->request.has_cold_window = says.has_cold_window;
    point->seen.same_result = says.same_result;
}

inline void Say(Point *point, const ReleaseSays &says) {
    point->request.retry_after = says.retry_after;
    point->request.backs_off = says.backs_off;
    point->request.gives_up = says.gives_up;
}

// Says all that the action does not read, or nothing of it.
inline void SayUnread(Point *point, bool all) {
    Request &request = point->request;
    bool claims = Claims(request.action);
    if (!claims && request.action != Action::Receive)
        Say(point, all ? ClaimSays{FingerprintMatch::Different, true, true, kStaleSince - 1, true} : ClaimSays{});
    if (request.action == Action::Receive) point->seen.same_owner = point->request.together = all;
    if (request.action != Action::Receive) Say(point, all ? ReceiptSays{true, kNow + kSecond} : ReceiptSays{});
    if (request.action != Action::Commit) Say(point, all ? CommitSays{true, true, true} : CommitSays{});
    if (!Releasing(*point)) Say(point, all ? ReleaseSays{kSecond, true, true} : ReleaseSays{});
    if (request.action == Action::GiveBack) request.backs_off = request.gives_up = all;
    if (!AsHolder(*point)) request.attempt = all ? kSweptAttempt : 0;
    if (!claims && request.action != Action::Fail) request.max_attempts = all ? 1 : 0;
    if (!Moving(*point)) point->seen.sealed = all;
}

// The mode, and the record that is there.
inline void TakeRecord(size_t *number, Point *point) {
    Sighting &seen = point->seen;
    Record &record = seen.record;
    point->request.windows = kWindows;
    point->request.backoff = kBackoff;
    point->request.transaction_mode = Take(number, kBoth);
    int place = Take(number, {0, 1, 2, 3, 4});
    seen.found = place < 4;
    seen.holder = static_cast<Holder>(place % 4);
    int state = Take(number, {0, 1, 2, 3, 4, 5, 6});
    record.together = state == kStateCount + 1;
    bool never_claimed = state == kStateCount;
    record.state = never_claimed ? State::Pending : record.together ? State::Processing : static_cast<State>(state);
    record.attempt = never_claimed ? 0 : kSweptAttempt;
    record.failures = never_claimed ? 0 : kSweptFailures;
    record.first_seen_at = kNow - 20 * kDay;
    record.claimed_at = kNow - Take(number, {Micros{1}, kOnePercent, kOnePercent + 1});
    record.claimable_at = Take(number, {kNow - 1, kNow, kNow + 1, kForever});
    record.settled_at = record.state == State::Done ? record.claimed_at : 0;
    record.expires_at = Take(number, {kNow - 1, kNow, kNow + 1});
}

// The number-th input of a kind, not yet decided. False if there are not that many.
using PointOf = bool (*)(size_t number, Point *point);

inline bool ClaimOf(size_t number, Point *point) {
    ClaimSays says;
    point->request.action = Take(&number, {Action::Acquire, Action::Accept, Action::Receive});
    says.fingerprint = Take(&number, {FingerprintMatch::Unknown, FingerprintMatch::Same, FingerprintMatch::Different});
    says.same_owner = Take(&number, kBoth);
    says.occurred_at = Take(&number, {Micros{0}, kStaleSince, kStaleSince - 1});
    says.has_occurred_at = says.occurred_at != 0;
    // What only the one or the other reads is taken as one.
    int choice = Take(&number, {0, 1, 2, 3});
    says.together = point->request.action != Action::Receive && choice % 2 != 0;
    Say(point, ReceiptSays{choice % 2 != 0, choice / 2 != 0 ? kNow + kSecond : 0});
    point->request.max_attempts = Take(&number, kLimits);
    Say(point, says);
    TakeRecord(&number, point);
    SayUnread(point, Take(&number, kBoth));
    return number == 0;
}

inline void TakeAttempt(size_t *number, Point *point) {
    point->request.attempt = Take(number, {0, kSweptAttempt - 1, kSweptAttempt, kSweptAttempt + 1});
}

inline bool CommitOf(size_t number, Point *point) {
    point->request.action = Take(&number, {Action::Commit, Action::Extend});
    TakeAttempt(&number, point);
    Say(point, CommitSays{Take(&number, kBoth), Take(&number, kBoth), Take(&number, kBoth)});
    TakeRecord(&number, point);
    SayUnread(point, Take(&number, kBoth));
    return number == 0;
}

inline bool ReleaseOf(size_t number, Point *point) {
    point->request.action = Take(&number, {Action::Fail, Action::GiveBack});
    TakeAttempt(&number, point);
    Say(point, Take(&number, {ReleaseSays{0, false, false}, ReleaseSays{kSecond, false, false},
                              ReleaseSays{0, true, false}, ReleaseSays{0, true, true}}));
    point->request.max_attempts = Take(&number, kLimits);
    TakeRecord(&number, point);
    SayUnread(point, Take(&number, kBoth));
    return number == 0;
}

inline bool ByOthersOf(size_t number, Point *point) {
    point->request.action = Take(&number, {Action::Requeue, Action::Resolve, Action::Move});
    point->seen.sealed = Take(&number, kBoth);
    TakeRecord(&number, point);
    SayUnread(point, Take(&number, kBoth));
    return number == 0;
}

// For every input that the promise is about, the promise must hold; shows the first one where it does not. A promise
// about nothing is broken too.
template <typename IsAbout, typename Holds>
void ExpectWherever(IsAbout is_about, Holds holds) {
    size_t inputs = 0;
    Point point = {};
    for (PointOf point_of : {ClaimOf, CommitOf, ReleaseOf, ByOthersOf})
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
