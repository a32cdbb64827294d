// Promises which hold for every input of the state machine, whatever the reason of a single decision.
#include "state_sweep.hpp"

namespace idem {
namespace {

bool NotWriting(const Point &p) { return !Writing(p); }
bool Keeping(const Point &p) { return p.decision.effect == Effect::Keep; }
bool Refusing(const Point &p) { return p.decision.effect == Effect::Refuse; }
bool Stale(const Point &p) { return p.decision.outcome == Outcome::Stale; }
bool WritingDone(const Point &p) { return Writing(p) && p.decision.record.state == State::Done; }
bool WritingUnsettled(const Point &p) { return Writing(p) && p.decision.record.state != State::Done; }
bool WritingALease(const Point &p) { return Writing(p) && p.decision.record.state == State::Processing; }
bool WritingClaim(const Point &p) { return Claiming(p) && Writing(p); }
bool WritingFailureWithoutClaim(const Point &p) { return WithoutClaim(p) && Writing(p); }
bool WritingSettling(const Point &p) { return Settling(p) && Writing(p); }

bool Waiting(const Point &p) {
    return !Refusing(p) && (p.decision.outcome == Outcome::Busy || p.decision.outcome == Outcome::Backoff);
}

// What an acquire is told at `at`, once the record is committed.
Decision AcquireAt(const Record &record, Micros at) { return Decide(Ask(Action::Acquire), Seen(record), at); }

// --- the form of a decision

TEST(EveryDecision, IsTheSameForTheSameInput) {
    ExpectWherever(Always, [](const Point &p) { return Same(p.decision, Decide(p.request, p.seen, kNow)); });
}

TEST(EveryDecision, WritesANewRecordExactlyWhereNoneIs) {
    ExpectWherever(Writing, [](const Point &p) { return (p.decision.effect == Effect::Insert) == !p.seen.found; });
}

TEST(EveryDecision, RaisesAFaultExactlyWhereItRefuses) {
    ExpectWherever(Always, [](const Point &p) { return Refusing(p) == (p.decision.fault != Fault::None); });
}

TEST(EveryDecision, ShowsTheRecordSeenWhereItWritesNone) {
    auto keeping_or_refusing = [](const Point &p) { return NotWriting(p) && !Stale(p); };
    ExpectWherever(keeping_or_refusing, [](const Point &p) { return Same(p.decision.record, p.seen.record); });
}

TEST(EveryDecision, ReadsNoRecordThatIsNotThere) {
    auto not_there = [](const Point &p) { return !p.seen.found; };
    ExpectWherever(not_there, [](const Point &p) {
        Decision other = Decide(p.request, Nothing(), kNow);
        if (!Writes(other)) other.record = p.decision.record;
        return Same(p.decision, other);
    });
}

TEST(EveryDecision, LeavesBypassedToTheServer) {
    ExpectWherever(Always, [](const Point &p) { return p.decision.outcome != Outcome::Bypassed; });
}

TEST(EveryClaim, IsAnsweredByAValueAndNeverByAnError) {
    ExpectWherever(Claiming, [](const Point &p) { return !Refusing(p); });
}

TEST(EveryClaim, WritesOnlyWhereItIsAcquired) {
    ExpectWherever(WritingClaim, [](const Point &p) { return p.decision.outcome == Outcome::Acquired; });
}

TEST(EveryClaim, IsDoneAtOnceExactlyIfTheClaimingTransactionSettlesIt) {
    ExpectWherever(WritingClaim, [](const Point &p) {
        bool settles = p.request.transaction_mode || Asks(p, Action::Accept);
        return p.decision.record.state == (settles ? State::Done : State::Processing);
    });
}

TEST(EveryClaim, DependsOnNothingThatOnlySettlingSays) {
    ExpectWherever(Claiming, [](const Point &p) {
        Point other = p;
        Say(&other, p.request.attempt == 0 ? kEverySettling : kNoSettling);
        return Same(p.decision, Decide(other.request, other.seen, kNow));
    });
}

TEST(EverySettling, DependsOnNothingThatOnlyClaimingSays) {
    auto not_claiming = [](const Point &p) { return !Claiming(p); };
    ExpectWherever(not_claiming, [](const Point &p) {
        Point other = p;
        Say(&other, p.request.has_occurred_at ? kNoClaiming : kEveryClaiming);
        return Same(p.decision, Decide(other.request, other.seen, kNow));
    });
}

// --- nothing happens twice

TEST(EveryClaim, IsKeptOutByALeaseThatRuns) {
    auto beside_a_lease = [](const Point &p) {
        return Claiming(p) && Is(p, State::Processing) && !Due(p) && !Absent(p);
    };
    ExpectWherever(beside_a_lease, Keeping);
}

TEST(EveryClaim, IsKeptOutByAnOpenClaim) {
    auto beside_an_open_claim = [](const Point &p) { return Claiming(p) && (Others(p) || OursOpen(p)); };
    ExpectWherever(beside_an_open_claim, Keeping);
}

TEST(EveryClaim, IsKeptOutByADoneEvent) {
    auto on_a_done_event = [](const Point &p) { return Claiming(p) && Is(p, State::Done) && !Absent(p); };
    ExpectWherever(on_a_done_event, Keeping);
}

TEST(EveryClaim, IsSharedOnlyWithTheSameOwner) {
    auto shared = [](const Point &p) {
        return Claiming(p) && p.decision.outcome == Outcome::Acquired && NotWriting(p);
    };
    ExpectWherever(shared, [](const Point &p) {
        bool lease_runs = Is(p, State::Processing) && !Due(p);
        return Asks(p, Action::Acquire) && p.seen.same_owner && (OursOpen(p) || lease_runs);
    });
}

TEST(EveryDoneEvent, IsOverwrittenByNobodyButItsOwnOpenClaim) {
    auto done = [](const Point &p) { return Is(p, State::Done) && !Absent(p) && !OursOpen(p); };
    ExpectWherever(done, NotWriting);
}

TEST(EveryConflict, OverwritesNothing) {
    auto conflict = [](const Point &p) { return p.decision.outcome == Outcome::Conflict; };
    ExpectWherever(conflict, Keeping);
}

TEST(EveryStaleEvent, IsOneThatNobodyRemembersAndLeavesNoTrace) {
    ExpectWherever(Stale, [](const Point &p) {
        return Claiming(p) && Absent(p) && p.request.has_occurred_at && Keeping(p) && Same(p.decision.record, Record{});
    });
}

TEST(EveryOtherFingerprint, KeepsTheClaimFromALiveEvent) {
    auto forged = [](const Point &p) {
        return Claiming(p) && p.seen.fingerprint == FingerprintMatch::Different && !Absent(p);
    };
    ExpectWherever(forged, [](const Point &p) {
        return Keeping(p) && p.decision.outcome == (Others(p) ? Outcome::Busy : Outcome::Conflict);
    });
}

TEST(EveryRecordOfAnotherOpenTransaction, IsLeftAloneBeforeFingerprintAndExpiry) {
    ExpectWherever(Others, [](const Point &p) {
        if (!Settling(p)) return Keeping(p) && p.decision.outcome == Outcome::Busy;
        return p.decision.fault == (p.request.attempt == 0 ? Fault::AttemptMissing : Fault::LeaseLost);
    });
}

// --- fencing

TEST(EveryClaim, GetsTheNextFencingToken) {
    ExpectWherever(WritingClaim, [](const Point &p) {
        return p.decision.record.attempt == (p.seen.found ? p.seen.record.attempt + 1 : 1);
    });
}

TEST(EveryFailureWithoutAClaim, IsAnAttemptOfItsOwn) {
    ExpectWherever(WritingFailureWithoutClaim, [](const Point &p) {
        return p.decision.record.attempt == (p.seen.found ? p.seen.record.attempt + 1 : 1);
    });
}

TEST(EveryFailureWithoutAClaim, IsRecordedOnlyWhereNobodyIsAtWork) {
    ExpectWherever(WritingFailureWithoutClaim, [](const Point &p) {
        return Asks(p, Action::Fail) && (Absent(p) || (Is(p, State::Failed) && Due(p)));
    });
}

TEST(EverySettling, KeepsTheFencingTokenOfItsClaim) {
    ExpectWherever(WritingSettling, [](const Point &p) { return p.decision.record.attempt == p.seen.record.attempt; });
}

TEST(EverySettling, WithAnotherAttemptThanTheRecordsIsRefused) {
    auto with_another_attempt = [](const Point &p) {
        return Settling(p) && p.request.attempt != 0 && p.request.attempt != p.seen.record.attempt;
    };
    ExpectWherever(with_another_attempt, Refusing);
}

TEST(EverySettling, WritesOnlyOverTheClaimOfItsCaller) {
    ExpectWherever(WritingSettling, [](const Point &p) {
        bool by_token = p.request.attempt == p.seen.record.attempt;
        return OursOpen(p) || (by_token && Committed(p) && Is(p, State::Processing));
    });
}

// --- nothing lasts for ever, and what is said about time is true

TEST(EveryWrittenRecord, EndsAtAPointInTime) {
    ExpectWherever(Writing, [](const Point &p) {
        return p.decision.record.expires_at > kNow &&
               p.decision.record.expires_at <= kNow + kWindows.hot + kWindows.unresolved;
    });
}

TEST(EveryWrittenRecord, IsClaimableWithinTheHotWindowUnlessDone) {
    ExpectWherever(WritingUnsettled, [](const Point &p) {
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

TEST(EveryWrittenRecord, TellsWhenTheEventWasFirstSeenAndLastClaimed) {
    ExpectWherever(Writing, [](const Point &p) {
        bool attempt = !Settling(p);
        bool first = attempt && Absent(p);
        return p.decision.record.first_seen_at == (first ? kNow : p.seen.record.first_seen_at) &&
               p.decision.record.claimed_at == (attempt ? kNow : p.seen.record.claimed_at);
    });
}

TEST(EveryWrittenRecord, CountsAFailureExactlyForATryThatFailed) {
    ExpectWherever(Writing, [](const Point &p) {
        bool first = !Settling(p) && Absent(p);
        bool ran_out = Claiming(p) && Is(p, State::Processing) && !Absent(p);
        int32_t more = Asks(p, Action::Fail) || ran_out ? 1 : 0;
        return p.decision.record.failures == (first ? 0 : p.seen.record.failures) + more;
    });
}

TEST(EveryAnswer, SaysWhenToRetryExactlyIfItIsBusyOrBackoff) {
    ExpectWherever(Always, [](const Point &p) {
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

TEST(EveryWrittenRelease, MayBeAcquiredAfterItsRetryTimeWithTheNextFencingToken) {
    auto release = [](const Point &p) { return Releasing(p) && Writing(p); };
    ExpectWherever(release, [](const Point &p) {
        Micros due = kNow + p.request.retry_after;
        if (AcquireAt(p.decision.record, due - 1).outcome != Outcome::Backoff) return false;
        Decision next = AcquireAt(p.decision.record, due);
        return next.effect == Effect::Update && next.outcome == Outcome::Acquired &&
               next.record.attempt == p.decision.record.attempt + 1;
    });
}

TEST(EverySettling, SaidAgainWithItsAttemptWritesNothingAndAnswersTheSame) {
    ExpectWherever(WritingSettling, [](const Point &p) {
        Request again = p.request;
        again.attempt = p.decision.record.attempt;
        Sighting seen = Seen(p.decision.record);
        seen.same_result = true;
        Decision second = Decide(again, seen, kNow);
        return second.effect == Effect::Keep && second.outcome == p.decision.outcome &&
               second.retry_after == p.decision.retry_after;
    });
}

TEST(EveryWrittenRecord, IsClaimableOnceTimeHasPassed) {
    ExpectWherever(Writing, [](const Point &p) {
        Micros end = kNow + kWindows.hot + kWindows.unresolved;
        return AcquireAt(p.decision.record, end).outcome == Outcome::Acquired &&
               AcquireAt(p.decision.record, end + 1000 * kDay).outcome == Outcome::Acquired;
    });
}

}  // namespace
}  // namespace idem
