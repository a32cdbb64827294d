// Promises about time and about failures, which hold for every input of the state machine: nothing lasts for ever, what
// is said about time is true, and what is written is understood by the next who comes.
#include "core/backoff.hpp"
#include "state_sweep.hpp"

namespace idem {
namespace {

bool Keeping(const Point &p) { return p.decision.effect == Effect::Keep; }
bool Refusing(const Point &p) { return p.decision.effect == Effect::Refuse; }
bool WritingState(const Point &p, State state) { return Writing(p) && p.decision.record.state == state; }
bool WritingDone(const Point &p) { return WritingState(p, State::Done) && !Moving(p); }
bool WritingDead(const Point &p) { return WritingState(p, State::Dead) && !Moving(p); }
bool WritingALease(const Point &p) { return WritingState(p, State::Processing) && !Moving(p); }
bool WritingClaimable(const Point &p) { return Writing(p) && !WritingDone(p) && !WritingDead(p) && !Moving(p); }
bool WritingRelease(const Point &p) { return Releasing(p) && Writing(p); }
bool Requeueing(const Point &p) { return Asks(p, Action::Requeue) && Writing(p); }
bool Resolving(const Point &p) { return Asks(p, Action::Resolve) && Writing(p); }
bool Failing(const Point &p) { return Asks(p, Action::Fail) && Writing(p); }

// Whoever asked is told; a mover tells nobody.
bool Answering(const Point &p) { return !Moving(p); }

bool Waiting(const Point &p) {
    bool wait = p.decision.outcome == Outcome::Busy || p.decision.outcome == Outcome::Backoff;
    return Answering(p) && !Refusing(p) && wait;
}

// What an acquire is told at `at`, once the record is committed.
Decision AcquireAt(const Record &record, Micros at) { return Decide(Ask(Action::Acquire), Seen(record), at); }

// For how long the release keeps others out.
Micros Pause(const Point &p) {
    bool backs_off = Asks(p, Action::Fail) && p.request.backs_off;
    return backs_off ? PauseAfter(kBackoff, p.decision.record.failures) : p.request.retry_after;
}

// --- nothing lasts for ever

TEST(EveryWrittenRecord, EndsAtAPointInTime) {
    ExpectWherever(Writing, [](const Point &p) {
        return p.decision.record.expires_at > kNow &&
               p.decision.record.expires_at <= kNow + kWindows.hot + kWindows.unresolved;
    });
}

TEST(EveryWrittenRecord, IsClaimableWithinTheHotWindowUnlessDoneOrDead) {
    ExpectWherever(WritingClaimable, [](const Point &p) {
        const Record &record = p.decision.record;
        return record.claimable_at >= kNow && record.claimable_at <= kNow + kWindows.hot &&
               record.expires_at == record.claimable_at + kWindows.unresolved && record.settled_at == 0;
    });
}

TEST(EveryWrittenRecord, IsRememberedForTheColdWindowIfDone) {
    ExpectWherever(WritingDone, [](const Point &p) {
        const Record &record = p.decision.record;
        return record.expires_at == kNow + kWindows.cold && record.settled_at == kNow && record.claimable_at == 0;
    });
}

TEST(EveryWrittenRecord, IsKeptForTheUnresolvedWindowIfDead) {
    ExpectWherever(WritingDead, [](const Point &p) {
        const Record &record = p.decision.record;
        return record.expires_at == kNow + kWindows.unresolved && record.settled_at == 0 &&
               record.claimable_at == kForever;
    });
}

TEST(EveryWrittenRecord, TellsWhenTheEventWasFirstSeenAndLastClaimed) {
    auto of_an_event = [](const Point &p) { return Writing(p) && !Moving(p); };
    ExpectWherever(of_an_event, [](const Point &p) {
        bool claims = Claiming(p) && p.decision.outcome == Outcome::Acquired;
        bool first = !Settling(p) && Absent(p);
        bool attempt = claims || WithoutClaim(p);
        bool again = Receiving(p) && !Replacing(p);
        Micros received = p.decision.record.attempt == 0 ? kNow : kLongAgo;
        return p.decision.record.first_seen_at == (first ? kNow : p.seen.record.first_seen_at) &&
               p.decision.record.claimed_at == (attempt ? kNow
                                                : again ? received
                                                        : p.seen.record.claimed_at);
    });
}

TEST(EveryWrittenRecord, IsClaimableOnceTimeHasPassed) {
    ExpectWherever(Writing, [](const Point &p) {
        Micros end = kNow + kWindows.hot + kWindows.unresolved;
        return AcquireAt(p.decision.record, end).outcome == Outcome::Acquired &&
               AcquireAt(p.decision.record, end + 1000 * kDay).outcome == Outcome::Acquired;
    });
}

TEST(EveryMove, LeavesTheRecordAsItIsAndIsNeededOnlyOnce) {
    auto moving = [](const Point &p) { return Moving(p) && Writing(p); };
    ExpectWherever(moving, [](const Point &p) {
        Sighting moved = Seen(p.decision.record);
        return p.seen.sealed && !Is(p, State::Done) && Same(p.decision.record, p.seen.record) &&
               Decide(p.request, moved, kNow).effect == Effect::Keep;
    });
}

TEST(EveryLiveUnsettledEvent, IsMovedOutOfASealedGenerationUnlessItIsInSomebodysHands) {
    auto to_be_moved = [](const Point &p) {
        return Moving(p) && p.seen.sealed && Committed(p) && !Absent(p) && !Is(p, State::Done);
    };
    ExpectWherever(to_be_moved, Writing);
}

// --- failures

TEST(EveryWrittenRecord, CountsAFailureExactlyForATryThatFailed) {
    ExpectWherever(Writing, [](const Point &p) {
        if (Requeueing(p)) return p.decision.record.failures == 0;
        bool first = !Settling(p) && Absent(p);
        int32_t more = Asks(p, Action::Fail) || (Claiming(p) && RanOutAlone(p)) ? 1 : 0;
        return p.decision.record.failures == (first ? 0 : p.seen.record.failures) + more;
    });
}

TEST(EveryEvent, IsGivenUpExactlyAtAFailureThatReachesTheLimit) {
    auto failing = [](const Point &p) { return Failing(p) || (Claiming(p) && RanOutAlone(p) && Writing(p)); };
    ExpectWherever(failing, [](const Point &p) {
        int32_t limit = p.request.max_attempts;
        bool for_good = Asks(p, Action::Fail) && p.request.gives_up;
        return WritingDead(p) == (for_good || (limit != 0 && p.decision.record.failures >= limit));
    });
    ExpectWherever(WritingDead, failing);
}

TEST(EveryEventThatIsGivenUp, IsToldDead) {
    ExpectWherever(WritingDead, [](const Point &p) { return p.decision.outcome == Outcome::Dead; });
}

TEST(EveryRequeuedEvent, MayBeAcquiredAtOnceAndFailAsOftenAsANewOne) {
    ExpectWherever(Requeueing, [](const Point &p) {
        Decision next = AcquireAt(p.decision.record, kNow);
        if (next.outcome != Outcome::Acquired || next.record.attempt != p.seen.record.attempt + 1) return false;
        Decision fails = Decide(AtMost(2, Ask(Action::Fail, next.record.attempt)), Seen(next.record), kNow);
        return fails.record.state == State::Failed && fails.record.failures == 1;
    });
}

// --- what is said about time is true

TEST(EveryAnswer, SaysWhenToRetryExactlyIfItIsBusyOrBackoff) {
    ExpectWherever(Answering, [](const Point &p) {
        Micros retry_after = p.decision.retry_after;
        return Waiting(p) ? retry_after >= 0 && retry_after < kForever : retry_after == kForever;
    });
}

TEST(EveryAnswer, IsAcquiredAfterTheWaitItNamesAndNotBefore) {
    auto waiting = [](const Point &p) {
        return Waiting(p) && Keeping(p) && Committed(p) && p.seen.record.claimable_at < kForever;
    };
    ExpectWherever(waiting, [](const Point &p) {
        const Record &record = p.seen.record;
        Micros end = kNow + p.decision.retry_after;
        bool remembered = end - 1 < record.expires_at;
        if (p.decision.retry_after > 0 && remembered && AcquireAt(record, end - 1).outcome != p.decision.outcome)
            return false;
        return AcquireAt(record, end).outcome == Outcome::Acquired;
    });
}

// --- what is written is understood by the next who comes

TEST(EveryWrittenLease, KeepsTheNextOneOutUntilItEnds) {
    ExpectWherever(WritingALease, [](const Point &p) {
        const Record &record = p.decision.record;
        Decision takeover = AcquireAt(record, record.claimable_at);
        return AcquireAt(record, kNow).outcome == Outcome::Busy &&
               AcquireAt(record, record.claimable_at - 1).outcome == Outcome::Busy &&
               takeover.outcome == Outcome::Acquired && takeover.record.attempt == record.attempt + 1;
    });
}

TEST(EveryWrittenDoneEvent, IsADuplicateUntilItsColdWindowEnds) {
    ExpectWherever(WritingDone, [](const Point &p) {
        const Record &record = p.decision.record;
        return AcquireAt(record, kNow).outcome == Outcome::Duplicate &&
               AcquireAt(record, record.expires_at - 1).outcome == Outcome::Duplicate &&
               AcquireAt(record, record.expires_at).outcome == Outcome::Acquired;
    });
}

TEST(EveryWrittenDeadEvent, IsForNobodyUntilItIsForgotten) {
    ExpectWherever(WritingDead, [](const Point &p) {
        const Record &record = p.decision.record;
        return AcquireAt(record, kNow).outcome == Outcome::Dead &&
               AcquireAt(record, record.expires_at - 1).outcome == Outcome::Dead &&
               AcquireAt(record, record.expires_at).outcome == Outcome::Acquired;
    });
}

TEST(EveryWrittenRelease, MayBeAcquiredAfterItsRetryTimeWithTheNextFencingToken) {
    auto release = [](const Point &p) { return WritingRelease(p) && !WritingDead(p); };
    ExpectWherever(release, [](const Point &p) {
        Micros due = kNow + Pause(p);
        if (p.decision.retry_after != Pause(p)) return false;
        if (AcquireAt(p.decision.record, due - 1).outcome != Outcome::Backoff) return false;
        Decision next = AcquireAt(p.decision.record, due);
        return next.effect == Effect::Update && next.outcome == Outcome::Acquired &&
               next.record.attempt == p.decision.record.attempt + 1;
    });
}

TEST(EverySettling, SaidAgainWithItsAttemptWritesNothingAndAnswersTheSame) {
    auto settling = [](const Point &p) { return Settling(p) && Writing(p) && p.seen.record.attempt != 0; };
    ExpectWherever(settling, [](const Point &p) {
        Request again = p.request;
        again.attempt = p.decision.record.attempt;
        Sighting seen = Seen(p.decision.record);
        seen.same_result = true;
        Decision second = Decide(again, seen, kNow);
        return second.effect == Effect::Keep && second.outcome == p.decision.outcome &&
               second.retry_after == p.decision.retry_after;
    });
}

TEST(EveryChangeByHand, SaidAgainWritesNothingAndAnswersTheSame) {
    auto by_hand = [](const Point &p) { return Requeueing(p) || Resolving(p); };
    ExpectWherever(by_hand, [](const Point &p) {
        Decision second = Decide(p.request, Seen(p.decision.record), kNow);
        return second.effect == Effect::Keep && second.outcome == p.decision.outcome &&
               second.retry_after == p.decision.retry_after;
    });
}

}  // namespace
}  // namespace idem
