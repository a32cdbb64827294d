// Promises which hold for every input of the state machine, whatever the reason of a single decision.
#include "state_sweep.hpp"

namespace idem {
namespace {

bool NotWriting(const Point &p) { return !Writing(p); }
bool Keeping(const Point &p) { return p.decision.effect == Effect::Keep; }
bool Refusing(const Point &p) { return p.decision.effect == Effect::Refuse; }
bool Stale(const Point &p) { return p.decision.outcome == Outcome::Stale; }
bool ClaimingOrReceiving(const Point &p) { return Claiming(p) || Receiving(p); }
bool WritingClaim(const Point &p) { return Claiming(p) && Writing(p) && p.decision.outcome == Outcome::Acquired; }
bool GivingUp(const Point &p) { return Writing(p) && p.decision.record.state == State::Dead; }
bool WritingFailureWithoutClaim(const Point &p) { return WithoutClaim(p) && Writing(p); }
bool WritingSettling(const Point &p) { return Settling(p) && Writing(p); }
bool WritingByHand(const Point &p) { return ByHand(p) && Writing(p); }

int32_t NextToken(const Point &p) { return p.seen.found ? p.seen.record.attempt + 1 : 1; }

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
    ExpectWherever([](const Point &p) { return ClaimingOrReceiving(p) || Moving(p); },
                   [](const Point &p) { return !Refusing(p); });
}

TEST(EveryClaim, WritesOnlyWhereItIsAcquiredOrGivesTheEventUp) {
    auto writing = [](const Point &p) { return ClaimingOrReceiving(p) && Writing(p); };
    ExpectWherever(writing, [](const Point &p) {
        return p.decision.outcome == Outcome::Acquired || (Claiming(p) && RanOut(p) && GivingUp(p));
    });
}

TEST(EveryClaim, IsDoneAtOnceExactlyIfTheClaimingTransactionSettlesIt) {
    ExpectWherever(WritingClaim, [](const Point &p) {
        bool settles = p.request.transaction_mode || Asks(p, Action::Accept);
        return p.decision.record.state == (settles ? State::Done : State::Processing);
    });
}

TEST(EveryAction, DependsOnNothingThatOnlyOthersSay) {
    ExpectWherever(Always, [](const Point &p) {
        Point other = p;
        for (bool all : kBoth) {
            SayUnread(&other, all);
            if (!Same(p.decision, Decide(other.request, other.seen, kNow))) return false;
        }
        return true;
    });
}

// --- nothing happens twice

TEST(EveryClaim, IsKeptOutByALeaseThatRuns) {
    auto beside_a_lease = [](const Point &p) {
        return ClaimingOrReceiving(p) && Is(p, State::Processing) && !Due(p) && !Absent(p);
    };
    ExpectWherever(beside_a_lease, Keeping);
}

TEST(EveryClaim, IsKeptOutByAnOpenClaim) {
    auto beside_an_open_claim = [](const Point &p) { return ClaimingOrReceiving(p) && (Others(p) || OursOpen(p)); };
    ExpectWherever(beside_an_open_claim, Keeping);
}

TEST(EveryClaim, IsKeptOutByADoneEvent) {
    auto on_a_done_event = [](const Point &p) { return ClaimingOrReceiving(p) && Is(p, State::Done) && !Absent(p); };
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

TEST(EveryClaim, IsKeptOutByADeadEvent) {
    auto on_a_dead_event = [](const Point &p) { return ClaimingOrReceiving(p) && Is(p, State::Dead) && !Absent(p); };
    ExpectWherever(on_a_dead_event, Keeping);
}

TEST(EveryEvent, IsReceivedOnlyWhereNobodyRemembersIt) {
    ExpectWherever(Receiving, [](const Point &p) { return Writing(p) == ((Absent(p) && !Stale(p)) || Replacing(p)); });
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
        return ClaimingOrReceiving(p) && Absent(p) && p.request.has_occurred_at && Keeping(p) &&
               Same(p.decision.record, Record{});
    });
}

TEST(EveryOtherFingerprint, KeepsTheClaimFromALiveEvent) {
    auto forged = [](const Point &p) {
        return ClaimingOrReceiving(p) && p.seen.fingerprint == FingerprintMatch::Different && !Absent(p) &&
               !Replacing(p);
    };
    ExpectWherever(forged, [](const Point &p) {
        return Keeping(p) && p.decision.outcome == (Others(p) ? Outcome::Busy : Outcome::Conflict);
    });
}

TEST(EveryEventInSomebodysHands, IsNotChangedByHandNorMoved) {
    auto in_hands = [](const Point &p) {
        bool lease_runs = Is(p, State::Processing) && !Due(p) && !Absent(p) && !BeyondBelief(p);
        return (ByHand(p) && (Others(p) || OursOpen(p) || lease_runs)) ||
               (Moving(p) && p.seen.holder != Holder::Nobody);
    };
    ExpectWherever(in_hands, Keeping);
}

TEST(EveryChangeByHand, IsToAnEventThatIsRememberedAndUnsettled) {
    ExpectWherever(WritingByHand, [](const Point &p) { return !Absent(p) && !Is(p, State::Done); });
}

TEST(EveryRecordOfAnotherOpenTransaction, IsLeftAloneBeforeFingerprintAndExpiry) {
    ExpectWherever(Others, [](const Point &p) {
        if (!Settling(p)) return Keeping(p) && p.decision.outcome == Outcome::Busy;
        return p.decision.fault == (p.request.attempt == 0 ? Fault::AttemptMissing : Fault::LeaseLost);
    });
}

// --- fencing

TEST(EveryClaim, GetsTheNextFencingToken) {
    ExpectWherever(WritingClaim, [](const Point &p) { return p.decision.record.attempt == NextToken(p); });
}

TEST(EveryFailureWithoutAClaim, IsAnAttemptOfItsOwn) {
    ExpectWherever(WritingFailureWithoutClaim,
                   [](const Point &p) { return p.decision.record.attempt == NextToken(p); });
}

TEST(EveryFailureWithoutAClaim, IsRecordedOnlyWhereNobodyIsAtWork) {
    ExpectWherever(WritingFailureWithoutClaim, [](const Point &p) {
        bool awaits_a_try = Is(p, State::Failed) || Is(p, State::Pending);
        return Asks(p, Action::Fail) && (Absent(p) || (awaits_a_try && Due(p) && !OursOpen(p)));
    });
}

TEST(EveryResolving, TakesTheFencingToken) {
    auto resolving = [](const Point &p) { return Asks(p, Action::Resolve) && Writing(p); };
    ExpectWherever(resolving, [](const Point &p) { return p.decision.record.attempt == NextToken(p); });
}

TEST(EveryFencingToken, IsKeptByWhoeverMakesNoClaim) {
    auto without_a_claim = [](const Point &p) {
        return Writing(p) && (Receiving(p) || Asks(p, Action::Requeue) || Moving(p) || (Claiming(p) && GivingUp(p)));
    };
    ExpectWherever(without_a_claim, [](const Point &p) {
        return p.decision.record.attempt == (p.seen.found ? p.seen.record.attempt : 0);
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

// The zombie: whoever held the claim before anybody but itself wrote.
TEST(EveryTakenOverClaim, CanNoLongerBeCommittedNorExtendedNorReleasedByItsHolder) {
    auto taken_over = [](const Point &p) { return Committed(p) && Writing(p) && !Settling(p) && !Moving(p); };
    ExpectWherever(taken_over, [](const Point &p) {
        int32_t token = p.seen.record.attempt;
        if (token == 0) return true;
        for (Action action : {Action::Commit, Action::Extend, Action::Fail, Action::GiveBack}) {
            Request late = Ask(action, token);
            Sighting seen = Seen(p.decision.record);
            seen.same_result = true;
            Decision decision = Decide(late, seen, kNow);
            bool confirms = action == Action::Commit || action == Action::Extend;
            if (Writes(decision) || (confirms && decision.effect != Effect::Refuse)) return false;
        }
        return true;
    });
}

}  // namespace
}  // namespace idem
