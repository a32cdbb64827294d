// What happens to an event beside its claims: it is received, requeued, resolved by hand, moved.
#include "state_fixture.hpp"

namespace idem {
namespace {

Sighting InSealed(Sighting seen) {
    seen.sealed = true;
    return seen;
}

void ExpectHoldersRefused(const Record &record, Fault fault) {
    Sighting seen = Seen(record);
    seen.same_result = true;
    ExpectRefused(Decide(Ask(Action::Commit, kAttempt), seen, kNow), fault);
    ExpectRefused(Decide(Ask(Action::Extend, kAttempt), seen, kNow), fault);
}

// --- receive

TEST(Received, NewEventIsPendingAndDueAtOnce) {
    for (const Request &receive : {Ask(Action::Receive), InTransactionMode(Ask(Action::Receive))}) {
        Record record = ExpectWritten(Decide(receive, Nothing(), kNow), Effect::Insert, Outcome::Acquired);
        EXPECT_EQ(record.state, State::Pending);
        EXPECT_EQ(record.attempt, 0);
        EXPECT_EQ(record.failures, 0);
        EXPECT_EQ(record.first_seen_at, kNow);
        EXPECT_EQ(record.claimable_at, kNow);
        EXPECT_EQ(record.expires_at, kNow + kWindows.unresolved);
    }
}

TEST(Received, ForgottenEventIsNewButItsAttemptsGoOn) {
    Decision decision = Decide(Ask(Action::Receive), Seen(Done(kNow)), kNow);
    Record record = ExpectWritten(decision, Effect::Update, Outcome::Acquired);
    EXPECT_EQ(record.attempt, kAttempt);
    EXPECT_EQ(record.failures, 0);
    EXPECT_EQ(record.first_seen_at, kNow);
    EXPECT_EQ(record.settled_at, 0);
    EXPECT_EQ(ExpectAcquired(Seen(record)).attempt, kAttempt + 1);
}

TEST(Received, AgainIsADuplicateWhateverBecameOfIt) {
    for (const Record &record : {Waiting(State::Pending, kNow), Waiting(State::Failed, kNow + 1), Lease(kNow),
                                 Lease(kNow + 1), Done(kNow + 1)})
        ExpectKept(Decide(Ask(Action::Receive), Seen(record), kNow), Outcome::Duplicate, kForever);
    ExpectKept(Decide(Ask(Action::Receive), Seen(Dead()), kNow), Outcome::Dead, kForever);
}

TEST(Received, BesideAnotherOpenTransactionIsBusy) {
    ExpectKept(Decide(Ask(Action::Receive), Seen(Done(kNow), Holder::Other), kNow), Outcome::Busy, kSecond);
}

TEST(Received, WithAnotherFingerprintIsAConflictAndTooLateIsStale) {
    Sighting forged = WithFingerprint(Seen(Waiting(State::Pending, kNow)), FingerprintMatch::Different);
    ExpectKept(Decide(Ask(Action::Receive), forged, kNow), Outcome::Conflict, kForever);
    Request late = Ask(Action::Receive);
    late.has_occurred_at = true;
    late.occurred_at = kNow - kWindows.cold;
    ExpectKept(Decide(late, Nothing(), kNow), Outcome::Stale, kForever);
}

// --- requeue

TEST(Requeued, EventIsDueAtOnceWithNoFailures) {
    for (const Record &before : {Dead(), Waiting(State::Failed, kNow + kMinute), Waiting(State::Failed, kNow),
                                 Waiting(State::Pending, kNow + kMinute), Waiting(State::Pending, kNow)}) {
        Decision decision = Decide(Ask(Action::Requeue), Seen(before), kNow);
        Record record = ExpectWritten(decision, Effect::Update, Outcome::Backoff);
        EXPECT_EQ(decision.retry_after, 0);
        EXPECT_EQ(record.state, State::Pending);
        EXPECT_EQ(record.attempt, kAttempt);
        EXPECT_EQ(record.failures, 0);
        EXPECT_EQ(record.first_seen_at, kNow - kDay);
        EXPECT_EQ(record.claimable_at, kNow);
        EXPECT_EQ(record.expires_at, kNow + kWindows.unresolved);
        EXPECT_EQ(ExpectAcquired(Seen(record)).attempt, kAttempt + 1);
    }
}

// Otherwise the next claim might count its last failure and give it up, just after somebody wanted it tried again.
TEST(Requeued, LeaseThatRanOutIsLostToItsHolder) {
    Decision decision = Decide(Ask(Action::Requeue), Seen(Lease(kNow)), kNow);
    Record record = ExpectWritten(decision, Effect::Update, Outcome::Backoff);
    ExpectHoldersRefused(record, Fault::NoSuchClaim);
    EXPECT_EQ(Decide(AtMost(1, Ask(Action::Acquire)), Seen(record), kNow).outcome, Outcome::Acquired);
}

TEST(Requeued, WithoutAnyFailureKeepsItsPlaceInTheQueue) {
    Record received = Waiting(State::Pending, kNow - kMinute);
    received.failures = 0;
    ExpectKept(Decide(Ask(Action::Requeue), Seen(received), kNow), Outcome::Backoff, 0);
}

// --- resolve

TEST(Resolved, EventIsDoneForTheColdWindow) {
    for (const Record &before :
         {Dead(), Waiting(State::Failed, kNow + kMinute), Waiting(State::Pending, kNow), Lease(kNow)}) {
        Decision decision = Decide(Ask(Action::Resolve), Seen(before), kNow);
        Record record = ExpectWritten(decision, Effect::Update, Outcome::Duplicate);
        EXPECT_EQ(record.state, State::Done);
        EXPECT_EQ(record.failures, 2);
        EXPECT_EQ(record.claimable_at, 0);
        EXPECT_EQ(record.settled_at, kNow);
        EXPECT_EQ(record.expires_at, kNow + kWindows.cold);
        ExpectHoldersRefused(record, Fault::LeaseLost);
    }
}

TEST(Resolved, AfterTheLastFencingTokenIsLostToItsHolderToo) {
    Record last = Lease(kNow);
    last.attempt = INT32_MAX;
    Sighting resolved = Seen(Decide(Ask(Action::Resolve), Seen(last), kNow).record);
    resolved.same_result = true;
    ExpectRefused(Decide(Ask(Action::Commit, INT32_MAX), resolved, kNow), Fault::NoSuchClaim);
}

// --- either

TEST(ByHand, NothingIsChangedThatSomebodyWorksOn) {
    for (Action action : {Action::Requeue, Action::Resolve}) {
        ExpectKept(Decide(Ask(action), Seen(Lease(kNow + kMinute)), kNow), Outcome::Busy, kMinute);
        for (Holder holder : {Holder::Other, Holder::OursOpen})
            for (const Record &record : {Dead(), Lease(kNow), Waiting(State::Failed, kNow), Done(kNow)})
                ExpectKept(Decide(Ask(action), Seen(record, holder), kNow), Outcome::Busy, kSecond);
    }
}

TEST(ByHand, NothingIsChangedThatIsDone) {
    for (Action action : {Action::Requeue, Action::Resolve})
        ExpectKept(Decide(Ask(action), Seen(Done(kNow + 1)), kNow), Outcome::Duplicate, kForever);
}

TEST(ByHand, AnEventThatNobodyRemembersIsRefused) {
    for (Action action : {Action::Requeue, Action::Resolve}) {
        ExpectRefused(Decide(Ask(action), Nothing(), kNow), Fault::NoSuchEvent);
        ExpectRefused(Decide(Ask(action), Seen(Dead()), Dead().expires_at), Fault::NoSuchEvent);
    }
}

TEST(ByHand, WhatThisTransactionSettledMayBeChanged) {
    Sighting failed = Seen(Waiting(State::Failed, kNow + kMinute), Holder::OursSettled);
    ExpectWritten(Decide(Ask(Action::Requeue), failed, kNow), Effect::Update, Outcome::Backoff);
    ExpectWritten(Decide(Ask(Action::Resolve), failed, kNow), Effect::Update, Outcome::Duplicate);
}

// --- move

TEST(Moved, UnsettledEventKeepsItsRecord) {
    for (const Record &record :
         {Dead(), Waiting(State::Failed, kNow), Waiting(State::Pending, kNow + 1), Lease(kNow), Lease(kNow + 1)}) {
        Decision decision = Decide(Ask(Action::Move), InSealed(Seen(record)), kNow);
        EXPECT_EQ(decision.effect, Effect::Update);
        EXPECT_TRUE(Same(decision.record, record));
    }
}

TEST(Moved, IsNothingElse) {
    Request move = Ask(Action::Move);
    EXPECT_EQ(Decide(move, Seen(Dead()), kNow).effect, Effect::Keep) << "not sealed";
    EXPECT_EQ(Decide(move, InSealed(Seen(Done(kNow + 1))), kNow).effect, Effect::Keep) << "settled";
    EXPECT_EQ(Decide(move, InSealed(Seen(Dead())), Dead().expires_at).effect, Effect::Keep) << "forgotten";
    EXPECT_EQ(Decide(move, Nothing(), kNow).effect, Effect::Keep) << "not there";
    for (Holder holder : {Holder::Other, Holder::OursOpen, Holder::OursSettled})
        EXPECT_EQ(Decide(move, InSealed(Seen(Lease(kNow), holder)), kNow).effect, Effect::Keep) << "held";
}

}  // namespace
}  // namespace idem
