// The order of judgement, said a second time and in another form: lists of rules, of which the first that matches
// decides. Every input is judged by both.
#include "state_sweep.hpp"

namespace idem {
namespace {

struct Rule {
    const char *name;
    bool (*matches)(const Point &);
    Effect effect;
    Outcome outcome;  // of what is not refused
    Fault fault;
};

constexpr Rule Answers(const char *name, bool (*matches)(const Point &), Outcome outcome) {
    return {name, matches, Effect::Keep, outcome, Fault::None};
}

constexpr Rule Inserts(const char *name, bool (*matches)(const Point &), Outcome outcome) {
    return {name, matches, Effect::Insert, outcome, Fault::None};
}

constexpr Rule Updates(const char *name, bool (*matches)(const Point &), Outcome outcome) {
    return {name, matches, Effect::Update, outcome, Fault::None};
}

constexpr Rule Refuses(const char *name, bool (*matches)(const Point &), Fault fault) {
    return {name, matches, Effect::Refuse, Outcome::Busy, fault};
}

bool New(const Point &p) { return !p.seen.found; }
bool Pending(const Point &p) { return Is(p, State::Pending); }
bool Processing(const Point &p) { return Is(p, State::Processing); }
bool IsDone(const Point &p) { return Is(p, State::Done); }
bool Failed(const Point &p) { return Is(p, State::Failed); }
bool IsDead(const Point &p) { return Is(p, State::Dead); }
bool OtherFingerprint(const Point &p) { return p.seen.fingerprint == FingerprintMatch::Different; }
bool SameOwner(const Point &p) { return Asks(p, Action::Acquire) && p.seen.same_owner; }
bool SameOwnerOfOurs(const Point &p) { return OursOpen(p) && SameOwner(p); }
bool NotALease(const Point &p) { return !Processing(p); }

bool TooOldToBeKnown(const Point &p) {
    return Absent(p) && p.request.has_occurred_at && p.request.occurred_at < kStaleSince;
}

bool RanOutForTheLastTime(const Point &p) { return RanOutAlone(p) && LastFailure(p); }
bool SuspectAmongOthers(const Point &p) { return RanOut(p) && p.request.together; }

constexpr Rule kClaiming[] = {
    Answers("may have been forgotten", TooOldToBeKnown, Outcome::Stale),
    Inserts("a new event", New, Outcome::Acquired),
    Answers("another open transaction's", Others, Outcome::Busy),
    Updates("forgotten", Forgotten, Outcome::Acquired),
    Answers("a conflict", OtherFingerprint, Outcome::Conflict),
    Answers("our own claim, asked for again", SameOwnerOfOurs, Outcome::Acquired),
    Answers("our own claim, asked for by somebody else", OursOpen, Outcome::Busy),
    Answers("done", IsDone, Outcome::Duplicate),
    Answers("dead, even if due", IsDead, Outcome::Dead),
    Answers("its lease ran out, and others are to be claimed with it", SuspectAmongOthers, Outcome::Busy),
    Updates("its lease ran out for the last time", RanOutForTheLastTime, Outcome::Dead),
    Updates("due, or its lease ran out", Due, Outcome::Acquired),
    Answers("not due yet", NotALease, Outcome::Backoff),
    Answers("a lease that runs, asked for again", SameOwner, Outcome::Acquired),
    Answers("a lease that runs", Always, Outcome::Busy),
};

constexpr Rule kReceiving[] = {
    Answers("may have been forgotten", TooOldToBeKnown, Outcome::Stale),
    Inserts("a new event", New, Outcome::Acquired),
    Answers("another open transaction's", Others, Outcome::Busy),
    Updates("forgotten", Forgotten, Outcome::Acquired),
    Updates("never claimed, and to be replaced", Replacing, Outcome::Acquired),
    Answers("a conflict", OtherFingerprint, Outcome::Conflict),
    Answers("dead", IsDead, Outcome::Dead),
    Answers("remembered, whatever its state", Always, Outcome::Duplicate),
};

bool NothingToGiveBack(const Point &p) { return Absent(p) && Asks(p, Action::GiveBack); }
bool FailedTry(const Point &p) { return Asks(p, Action::Fail) && (Failed(p) || Pending(p)) && Due(p); }
bool FailedLastTry(const Point &p) { return FailedTry(p) && (p.request.gives_up || LastFailure(p)); }
bool RunningLease(const Point &p) { return Processing(p) && !Due(p); }

bool NewForGood(const Point &p) { return New(p) && p.request.gives_up; }
bool ForgottenForGood(const Point &p) { return Forgotten(p) && p.request.gives_up; }

// A release whose caller holds no claim.
constexpr Rule kRecordingAFailure[] = {
    Answers("nothing to give back", NothingToGiveBack, Outcome::Backoff),
    Inserts("a new event failed for good", NewForGood, Outcome::Dead),
    Inserts("a new event failed", New, Outcome::Backoff),
    Updates("a forgotten event failed for good", ForgottenForGood, Outcome::Dead),
    Updates("a forgotten event failed", Forgotten, Outcome::Backoff),
    Answers("another open transaction's", Others, Outcome::Busy),
    Updates("its last try failed", FailedLastTry, Outcome::Dead),
    Updates("its try failed", FailedTry, Outcome::Backoff),
    Answers("done meanwhile", IsDone, Outcome::Duplicate),
    Answers("dead meanwhile", IsDead, Outcome::Dead),
    Answers("somebody works on it", RunningLease, Outcome::Busy),
    Answers("it waits for a claim", Always, Outcome::Backoff),
};

bool NoAttempt(const Point &p) { return p.request.attempt == 0 && !Ours(p); }
bool NoAttemptOnForgotten(const Point &p) { return NoAttempt(p) && Forgotten(p); }
bool LowerAttempt(const Point &p) { return p.request.attempt != 0 && p.request.attempt < p.seen.record.attempt; }
bool HigherAttempt(const Point &p) { return p.request.attempt > p.seen.record.attempt; }
bool ForgottenButALease(const Point &p) { return Forgotten(p) && !Processing(p); }

// Who may not settle, however.
constexpr Rule kNotHolding[] = {
    Refuses("no record", New, Fault::NoSuchClaim),
    Refuses("no attempt, and forgotten", NoAttemptOnForgotten, Fault::NoSuchClaim),
    Refuses("no attempt, and not our claim", NoAttempt, Fault::AttemptMissing),
    Refuses("another open transaction's", Others, Fault::LeaseLost),
    Refuses("taken over", LowerAttempt, Fault::LeaseLost),
    Refuses("an attempt never given out", HigherAttempt, Fault::NoSuchClaim),
    Refuses("settled and forgotten", ForgottenButALease, Fault::NoSuchClaim),
};

bool OpenClaim(const Point &p) { return OursOpen(p) || (Committed(p) && Processing(p)); }
bool Extending(const Point &p) { return Asks(p, Action::Extend); }
bool ExtendingForNothing(const Point &p) {
    return Extending(p) && (!Processing(p) || p.seen.record.claimable_at >= kNow + kWindows.hot);
}
bool Committing(const Point &p) { return Asks(p, Action::Commit); }
// In transaction mode the record of an open claim says done already.
bool CommittingNothingNew(const Point &p) {
    bool soon = kNow - p.seen.record.claimed_at <= kOnePercent;
    return Committing(p) && IsDone(p) && soon && !p.request.has_result && !p.request.has_cold_window;
}

bool FailingForTheLastTime(const Point &p) { return Asks(p, Action::Fail) && (p.request.gives_up || LastFailure(p)); }

constexpr Rule kSettlingAnOpenClaim[] = {
    Answers("heartbeat that adds nothing", ExtendingForNothing, Outcome::Acquired),
    Updates("heartbeat", Extending, Outcome::Acquired),
    Answers("commit of what the claim wrote", CommittingNothingNew, Outcome::Duplicate),
    Updates("commit", Committing, Outcome::Duplicate),
    Updates("failure that was the last", FailingForTheLastTime, Outcome::Dead),
    Updates("release", Always, Outcome::Backoff),
};

bool CommittingAgain(const Point &p) { return Committing(p) && IsDone(p); }
bool AnotherResult(const Point &p) { return CommittingAgain(p) && !p.seen.same_result; }
bool FailingAgain(const Point &p) { return Asks(p, Action::Fail) && Failed(p); }
bool FailingTheDeadAgain(const Point &p) { return Asks(p, Action::Fail) && IsDead(p); }
bool GivingBackAgain(const Point &p) { return Asks(p, Action::GiveBack) && Pending(p); }

constexpr Rule kSettlingAgain[] = {
    Refuses("commit of another result", AnotherResult, Fault::ResultDiffers),
    Answers("commit", CommittingAgain, Outcome::Duplicate),
    Answers("failure", FailingAgain, Outcome::Backoff),
    Answers("failure that was the last", FailingTheDeadAgain, Outcome::Dead),
    Answers("giving back", GivingBackAgain, Outcome::Backoff),
    Refuses("something else", Always, Fault::NoSuchClaim),
};

bool DueAndNeverFailed(const Point &p) { return Pending(p) && Due(p) && p.seen.record.failures == 0; }

bool BelievableLease(const Point &p) { return RunningLease(p) && !BeyondBelief(p); }

// What may not be changed by hand, however.
constexpr Rule kNotByHand[] = {
    Refuses("no record", New, Fault::NoSuchEvent),
    Answers("in the hands of another open transaction", Others, Outcome::Busy),
    Refuses("forgotten, though its record is there", Forgotten, Fault::NoSuchEvent),
    Answers("in the hands of our own open claim", OursOpen, Outcome::Busy),
    Answers("done", IsDone, Outcome::Duplicate),
    Answers("somebody works on it", BelievableLease, Outcome::Busy),
};

constexpr Rule kRequeueing[] = {
    Answers("it waits for a claim already", DueAndNeverFailed, Outcome::Backoff),
    Updates("requeued", Always, Outcome::Backoff),
};

constexpr Rule kResolving[] = {
    Updates("resolved", Always, Outcome::Duplicate),
};

bool Current(const Point &p) { return !p.seen.sealed; }
bool NotCommitted(const Point &p) { return !Committed(p); }

constexpr Rule kMoving[] = {
    Answers("in the current generation", Current, Outcome::Busy),
    Answers("no record, or in somebody's hands", NotCommitted, Outcome::Busy),
    Answers("forgotten", Forgotten, Outcome::Busy),
    Answers("settled", IsDone, Outcome::Busy),
    Updates("unsettled", Always, Outcome::Busy),
};

bool Follows(const Rule &rule, const Point &p) {
    const Decision &decision = p.decision;
    return decision.effect == rule.effect && decision.fault == rule.fault &&
           (rule.effect == Effect::Refuse || decision.outcome == rule.outcome);
}

// For every input that the list is about, the first matching rule decides, if there is one; and no rule is idle.
template <typename IsAbout, size_t kRules>
void ExpectFirstMatchDecides(IsAbout is_about, const Rule (&rules)[kRules]) {
    size_t matched[kRules] = {};
    const Rule *broken = nullptr;
    ExpectWherever(is_about, [&](const Point &p) {
        for (size_t i = 0; i < kRules; i++) {
            if (!rules[i].matches(p)) continue;
            matched[i]++;
            if (!Follows(rules[i], p)) broken = &rules[i];
            return broken == nullptr;
        }
        return true;
    });
    if (broken != nullptr) FAIL() << "rule: " << broken->name;
    for (size_t i = 0; i < kRules; i++) EXPECT_GT(matched[i], 0u) << "nothing is decided by: " << rules[i].name;
}

template <size_t kRules>
bool MatchesNone(const Rule (&rules)[kRules], const Point &p) {
    for (const Rule &rule : rules)
        if (rule.matches(p)) return false;
    return true;
}

bool MaySettle(const Point &p) { return Settling(p) && MatchesNone(kNotHolding, p); }

bool MaySettleAnOpenClaim(const Point &p) { return MaySettle(p) && OpenClaim(p); }
bool MaySettleAgain(const Point &p) { return MaySettle(p) && !OpenClaim(p); }
bool MayRequeue(const Point &p) { return Asks(p, Action::Requeue) && MatchesNone(kNotByHand, p); }
bool MayResolve(const Point &p) { return Asks(p, Action::Resolve) && MatchesNone(kNotByHand, p); }

TEST(OrderOfJudgement, OfAClaim) { ExpectFirstMatchDecides(Claiming, kClaiming); }

TEST(OrderOfJudgement, OfReceiving) { ExpectFirstMatchDecides(Receiving, kReceiving); }

TEST(OrderOfJudgement, OfAReleaseWithoutAClaim) { ExpectFirstMatchDecides(WithoutClaim, kRecordingAFailure); }

TEST(OrderOfJudgement, OfWhoMayNotSettle) { ExpectFirstMatchDecides(Settling, kNotHolding); }

TEST(OrderOfJudgement, OfSettlingAnOpenClaim) { ExpectFirstMatchDecides(MaySettleAnOpenClaim, kSettlingAnOpenClaim); }

TEST(OrderOfJudgement, OfSettlingAgain) { ExpectFirstMatchDecides(MaySettleAgain, kSettlingAgain); }

TEST(OrderOfJudgement, OfWhatMayNotBeChangedByHand) { ExpectFirstMatchDecides(ByHand, kNotByHand); }

TEST(OrderOfJudgement, OfRequeueing) { ExpectFirstMatchDecides(MayRequeue, kRequeueing); }

TEST(OrderOfJudgement, OfResolving) { ExpectFirstMatchDecides(MayResolve, kResolving); }

TEST(OrderOfJudgement, OfMoving) { ExpectFirstMatchDecides(Moving, kMoving); }

}  // namespace
}  // namespace idem
