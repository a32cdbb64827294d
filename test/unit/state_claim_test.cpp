// Claims as their users know them: every outcome, promise by promise.
#include "state_fixture.hpp"

namespace idem {
namespace {

// --- acquired

TEST(Acquired, NewEventIsAttemptOne) {
    Decision decision = Decide(Ask(Action::Acquire), Nothing(), kNow);
    Record record = ExpectWritten(decision, Effect::Insert, Outcome::Acquired);
    EXPECT_EQ(record.attempt, 1);
    EXPECT_EQ(record.failures, 0);
    EXPECT_EQ(record.first_seen_at, kNow);
    EXPECT_EQ(record.claimed_at, kNow);
    EXPECT_EQ(decision.retry_after, kForever);
}

TEST(Acquired, InLeaseModeItIsProcessingForTheHotWindowAndKeptForTheUnresolvedOneAfterIt) {
    Record record = Decide(Ask(Action::Acquire), Nothing(), kNow).record;
    EXPECT_EQ(record.state, State::Processing);
    EXPECT_EQ(record.claimable_at, kNow + kWindows.hot);
    EXPECT_EQ(record.expires_at, kNow + kWindows.hot + kWindows.unresolved);
    EXPECT_EQ(record.settled_at, 0);
}

TEST(Acquired, InTransactionModeItIsWrittenAsDoneForTheColdWindow) {
    Record record = Decide(InTransactionMode(Ask(Action::Acquire)), Nothing(), kNow).record;
    EXPECT_EQ(record.state, State::Done);
    EXPECT_EQ(record.claimable_at, 0);
    EXPECT_EQ(record.settled_at, kNow);
    EXPECT_EQ(record.expires_at, kNow + kWindows.cold);
}

TEST(Acquired, AcceptedItIsWrittenAsDoneInEitherMode) {
    Record record = Decide(Ask(Action::Accept), Nothing(), kNow).record;
    EXPECT_EQ(record.state, State::Done);
    EXPECT_EQ(record.expires_at, kNow + kWindows.cold);
    EXPECT_TRUE(Same(record, Decide(InTransactionMode(Ask(Action::Accept)), Nothing(), kNow).record));
}

TEST(Acquired, ForgottenEventIsNewButItsAttemptsGoOn) {
    for (const Record &forgotten :
         {Done(kNow), Remembered(State::Processing, kNow - kDay, kNow), Remembered(State::Failed, kNow - kDay, kNow),
          Remembered(State::Dead, kForever, kNow)}) {
        Record record = ExpectAcquired(Seen(forgotten));
        EXPECT_EQ(record.attempt, kAttempt + 1);
        EXPECT_EQ(record.failures, 0);
        EXPECT_EQ(record.first_seen_at, kNow);
    }
}

TEST(Acquired, LeaseThatRanOutIsTakenOverAndCountsAsAFailure) {
    ExpectKept(Decide(Ask(Action::Acquire), Seen(Lease(kNow + 1)), kNow), Outcome::Busy, 1);
    Record record = ExpectAcquired(Seen(Lease(kNow)));
    EXPECT_EQ(record.attempt, kAttempt + 1);
    EXPECT_EQ(record.failures, 3);
    EXPECT_EQ(record.first_seen_at, kNow - kDay);
    EXPECT_EQ(record.claimed_at, kNow);
    EXPECT_EQ(record.claimable_at, kNow + kWindows.hot);
}

TEST(Acquired, FailedOrPendingEventIsRetriedOnceItIsDue) {
    for (State state : {State::Failed, State::Pending}) {
        Record record = ExpectAcquired(Seen(Waiting(state, kNow)));
        EXPECT_EQ(record.attempt, kAttempt + 1);
        EXPECT_EQ(record.failures, 2);
        EXPECT_EQ(record.first_seen_at, kNow - kDay);
    }
}

TEST(Acquired, EventReceivedButNeverClaimedIsAttemptOne) {
    Record received = Waiting(State::Pending, kNow);
    received.attempt = 0;
    EXPECT_EQ(ExpectAcquired(Seen(received)).attempt, 1);
}

TEST(Acquired, LeaseMayBeTakenOverInTransactionMode) {
    Decision decision = Decide(InTransactionMode(Ask(Action::Acquire)), Seen(Lease(kNow)), kNow);
    Record record = ExpectWritten(decision, Effect::Update, Outcome::Acquired);
    EXPECT_EQ(record.state, State::Done);
    EXPECT_EQ(record.claimable_at, 0);
    EXPECT_EQ(record.attempt, kAttempt + 1);
}

TEST(Acquired, SameOwnerGetsTheSameClaimWhileItsLeaseRunsAndDoesNotExtendIt) {
    Decision decision = Decide(Ask(Action::Acquire), OfSameOwner(Seen(Lease(kNow + 1))), kNow);
    ExpectKept(decision, Outcome::Acquired, kForever);
    EXPECT_EQ(decision.record.attempt, kAttempt);
    EXPECT_EQ(ExpectAcquired(OfSameOwner(Seen(Lease(kNow)))).attempt, kAttempt + 1);
}

TEST(Acquired, SameOwnerGetsTheSameClaimInItsOwnTransaction) {
    Sighting open = OfSameOwner(Seen(Done(kNow + kDay), Holder::OursOpen));
    ExpectKept(Decide(InTransactionMode(Ask(Action::Acquire)), open, kNow), Outcome::Acquired, kForever);
}

TEST(Acquired, AcceptNeverTakesOverALeaseOfTheSameOwnerUnsettled) {
    ExpectKept(Decide(Ask(Action::Accept), OfSameOwner(Seen(Lease(kNow + kMinute))), kNow), Outcome::Busy, kMinute);
}

// --- duplicate, busy, backoff, dead

TEST(Duplicate, DoneEventUntilItsColdWindowEnds) {
    ExpectKept(Decide(Ask(Action::Acquire), Seen(Done(kNow + 1)), kNow), Outcome::Duplicate, kForever);
    ExpectKept(Decide(Ask(Action::Accept), Seen(Done(kNow + 1)), kNow), Outcome::Duplicate, kForever);
    ExpectAcquired(Seen(Done(kNow)));
}

TEST(Duplicate, EventSettledByThisTransactionHoweverLongItRuns) {
    ExpectKept(Decide(Ask(Action::Acquire), Seen(Done(kNow + kDay), Holder::OursSettled), kNow), Outcome::Duplicate,
               kForever);
    ExpectKept(Decide(Ask(Action::Acquire), Seen(Done(kNow - kDay), Holder::OursSettled), kNow), Outcome::Duplicate,
               kForever);
}

TEST(Duplicate, DoneEventEvenForItsOwner) {
    ExpectKept(Decide(Ask(Action::Acquire), OfSameOwner(Seen(Done(kNow + kDay))), kNow), Outcome::Duplicate, kForever);
}

TEST(Busy, LeaseThatRunsSaysHowLong) {
    ExpectKept(Decide(Ask(Action::Acquire), Seen(Lease(kNow + 7 * kMinute)), kNow), Outcome::Busy, 7 * kMinute);
}

TEST(Busy, OpenTransactionOfSomebodyElseWhateverItsRecordSays) {
    for (const Record &record : {Done(kNow + kDay), Done(kNow), Lease(kNow), Waiting(State::Failed, kNow), Dead()})
        ExpectKept(Decide(Ask(Action::Acquire), Seen(record, Holder::Other), kNow), Outcome::Busy, kSecond);
}

TEST(Busy, OwnOpenClaimForAnybodyButItsOwner) {
    ExpectKept(Decide(Ask(Action::Acquire), Seen(Lease(kNow - 1), Holder::OursOpen), kNow), Outcome::Busy, kSecond);
    ExpectKept(Decide(Ask(Action::Acquire), Seen(Done(kNow + kDay), Holder::OursOpen), kNow), Outcome::Busy, kSecond);
}

TEST(Backoff, FailedOrPendingEventSaysWhenItIsDue) {
    for (State state : {State::Failed, State::Pending})
        ExpectKept(Decide(Ask(Action::Acquire), Seen(Waiting(state, kNow + kMinute)), kNow), Outcome::Backoff, kMinute);
}

TEST(Dead, EventIsForNobodyUntilItIsForgotten) {
    ExpectKept(Decide(Ask(Action::Acquire), Seen(Dead()), kNow), Outcome::Dead, kForever);
    ExpectAcquired(Seen(Dead()), Dead().expires_at);
}

TEST(Dead, EventWhoseLeaseRanOutForTheLastTime) {
    Request ask = AtMost(3, Ask(Action::Acquire));
    ExpectKept(Decide(ask, Seen(Lease(kNow + 1)), kNow), Outcome::Busy, 1);
    for (Action action : {Action::Acquire, Action::Accept}) {
        ask.action = action;
        Decision decision = Decide(ask, Seen(Lease(kNow)), kNow);
        Record record = ExpectWritten(decision, Effect::Update, Outcome::Dead);
        EXPECT_EQ(decision.retry_after, kForever);
        EXPECT_EQ(record.state, State::Dead);
        EXPECT_EQ(record.attempt, kAttempt);
        EXPECT_EQ(record.failures, 3);
        EXPECT_EQ(record.claimed_at, kNow - kMinute);
        EXPECT_EQ(record.claimable_at, kForever);
        EXPECT_EQ(record.expires_at, kNow + kWindows.unresolved);
    }
}

TEST(Dead, NeverAnEventWhoseLeaseHasATryLeft) {
    for (int32_t max_attempts : {0, 4})
        ExpectWritten(Decide(AtMost(max_attempts, Ask(Action::Acquire)), Seen(Lease(kNow)), kNow), Effect::Update,
                      Outcome::Acquired);
}

// A limit that was lowered counts from the next failure.
TEST(Dead, NeverAnEventThatWaitsForItsRetry) {
    for (State state : {State::Failed, State::Pending})
        ExpectWritten(Decide(AtMost(1, Ask(Action::Acquire)), Seen(Waiting(state, kNow)), kNow), Effect::Update,
                      Outcome::Acquired);
}

TEST(Dead, OnlyAfterTheConflictIsTold) {
    Sighting forged = WithFingerprint(Seen(Lease(kNow)), FingerprintMatch::Different);
    ExpectKept(Decide(AtMost(1, Ask(Action::Acquire)), forged, kNow), Outcome::Conflict, kForever);
}

// --- the ends of counting

TEST(Acquired, AfterTheLastFencingTokenComesTheFirst) {
    for (Record record : {Lease(kNow), Waiting(State::Failed, kNow), Done(kNow)}) {
        record.attempt = INT32_MAX;
        Record next = ExpectAcquired(Seen(record));
        EXPECT_EQ(next.attempt, 1);
        ExpectRefused(Decide(Ask(Action::Commit, INT32_MAX), Seen(next), kNow), Fault::NoSuchClaim);
    }
}

TEST(Acquired, AfterTheMostFailuresThatCanBeCounted) {
    Record record = Lease(kNow);
    record.failures = INT32_MAX;
    EXPECT_EQ(ExpectAcquired(Seen(record)).failures, INT32_MAX);
    ExpectWritten(Decide(AtMost(INT32_MAX, Ask(Action::Acquire)), Seen(record), kNow), Effect::Update, Outcome::Dead);
}

// --- stale

Request AskAbout(Micros occurred_at, Micros cold_window = kWindows.cold) {
    Request request = Ask(Action::Acquire);
    request.has_occurred_at = true;
    request.occurred_at = occurred_at;
    request.windows.cold = cold_window;
    return request;
}

TEST(Stale, EventOlderThanTheColdWindowLessAnHourWhereNoneIsRemembered) {
    Micros limit = kNow - kWindows.cold + 60 * kMinute;
    ExpectKept(Decide(AskAbout(limit - 1), Nothing(), kNow), Outcome::Stale, kForever);
    ExpectWritten(Decide(AskAbout(limit), Nothing(), kNow), Effect::Insert, Outcome::Acquired);
}

TEST(Stale, OfAShortColdWindowATenthIsTheMargin) {
    Micros limit = kNow - 60 * kMinute + 6 * kMinute;
    ExpectKept(Decide(AskAbout(limit - 1, 60 * kMinute), Nothing(), kNow), Outcome::Stale, kForever);
    ExpectWritten(Decide(AskAbout(limit, 60 * kMinute), Nothing(), kNow), Effect::Insert, Outcome::Acquired);
}

TEST(Stale, AcceptedEventToo) {
    Request accept = AskAbout(kNow - kWindows.cold);
    accept.action = Action::Accept;
    ExpectKept(Decide(accept, Nothing(), kNow), Outcome::Stale, kForever);
}

TEST(Stale, ForgottenEventWhoseRecordIsStillThereTellsNothingOfIt) {
    Decision decision = Decide(AskAbout(kNow - kWindows.cold), Seen(Done(kNow)), kNow);
    ExpectKept(decision, Outcome::Stale, kForever);
    EXPECT_TRUE(Same(decision.record, Record{}));
}

TEST(Stale, NeverAnEventThatIsRemembered) {
    Request ask = AskAbout(kNow - kWindows.cold);
    ExpectKept(Decide(ask, Seen(Done(kNow + 1)), kNow), Outcome::Duplicate, kForever);
    ExpectKept(Decide(ask, Seen(Lease(kNow + 1)), kNow), Outcome::Busy, 1);
    ExpectKept(Decide(ask, Seen(Done(kNow), Holder::Other), kNow), Outcome::Busy, kSecond);
    ExpectWritten(Decide(ask, Seen(Waiting(State::Failed, kNow)), kNow), Effect::Update, Outcome::Acquired);
}

TEST(Stale, AtTheEndsOfTime) {
    ExpectKept(Decide(AskAbout(INT64_MIN), Nothing(), kNow), Outcome::Stale, kForever);
    ExpectWritten(Decide(AskAbout(kForever), Nothing(), kNow), Effect::Insert, Outcome::Acquired);
}

TEST(Stale, NeverAnEventOfUnknownAge) {
    Request unknown = AskAbout(INT64_MIN);
    unknown.has_occurred_at = false;
    ExpectWritten(Decide(unknown, Nothing(), kNow), Effect::Insert, Outcome::Acquired);
}

// --- conflict

TEST(Conflict, OtherFingerprintOnEveryLiveEvent) {
    for (const Record &record : {Done(kNow + 1), Lease(kNow + kMinute), Lease(kNow), Waiting(State::Failed, kNow),
                                 Waiting(State::Pending, kNow + 1), Dead()}) {
        Sighting forged = WithFingerprint(Seen(record), FingerprintMatch::Different);
        ExpectKept(Decide(Ask(Action::Acquire), forged, kNow), Outcome::Conflict, kForever);
        ExpectKept(Decide(Ask(Action::Acquire), OfSameOwner(forged), kNow), Outcome::Conflict, kForever);
    }
}

TEST(Conflict, WithinOneTransactionToo) {
    for (Holder holder : {Holder::OursOpen, Holder::OursSettled}) {
        Sighting forged = WithFingerprint(Seen(Done(kNow + kDay), holder), FingerprintMatch::Different);
        ExpectKept(Decide(Ask(Action::Acquire), forged, kNow), Outcome::Conflict, kForever);
    }
}

TEST(Conflict, NeverWithAnOpenTransactionWhichMayYetRollBack) {
    Sighting forged = WithFingerprint(Seen(Done(kNow + kDay), Holder::Other), FingerprintMatch::Different);
    ExpectKept(Decide(Ask(Action::Acquire), forged, kNow), Outcome::Busy, kSecond);
}

TEST(Conflict, NeverWithAForgottenEvent) {
    ExpectAcquired(WithFingerprint(Seen(Done(kNow)), FingerprintMatch::Different));
}

TEST(Conflict, NeverWhereAFingerprintIsUnknown) {
    Sighting unknown = WithFingerprint(Seen(Done(kNow + 1)), FingerprintMatch::Unknown);
    ExpectKept(Decide(Ask(Action::Acquire), unknown, kNow), Outcome::Duplicate, kForever);
}

// --- a worker that dies of one event holds others too

Request Together(Request request) {
    request.together = true;
    return request;
}

Sighting RanOutTogether(int32_t failures) {
    Record record = Lease(kNow - 1);
    record.together = true;
    record.failures = failures;
    return Seen(record);
}

TEST(ASuspect, IsHandedOutAloneOrNotAtAll) {
    ExpectKept(Decide(Together(Ask(Action::Acquire)), Seen(Lease(kNow)), kNow), Outcome::Busy, 0);
    ExpectKept(Decide(Together(Ask(Action::Acquire)), RanOutTogether(0), kNow), Outcome::Busy, 0);
    EXPECT_FALSE(ExpectAcquired(RanOutTogether(0)).together);
}

TEST(ASuspect, IsToBlameOnlyIfItWasAlone) {
    EXPECT_EQ(ExpectAcquired(RanOutTogether(2)).failures, 2);
    EXPECT_EQ(ExpectAcquired(Seen(Lease(kNow))).failures, 3);
    Decision last_try = Decide(AtMost(1, Ask(Action::Acquire)), RanOutTogether(1), kNow);
    EXPECT_EQ(last_try.outcome, Outcome::Acquired);
}

TEST(AnEventHandedOutWithOthers, SaysSoUntilItIsSettled) {
    Request first = Together(Ask(Action::Acquire));
    Record record = ExpectWritten(Decide(first, Nothing(), kNow), Effect::Insert, Outcome::Acquired);
    EXPECT_TRUE(record.together);
    Record renewed = Decide(Ask(Action::Extend, record.attempt), Seen(record), kNow + 1).record;
    EXPECT_TRUE(renewed.together);
    for (Action settling : {Action::Commit, Action::Fail, Action::GiveBack})
        EXPECT_FALSE(Decide(Ask(settling, record.attempt), Seen(record), kNow).record.together);
}

// --- what nobody has claimed yet may be replaced

TEST(AReceivedEvent, IsReplacedWhateverItsFingerprintUntilItIsClaimed) {
    Request replacing = Ask(Action::Receive);
    replacing.replaces = true;
    replacing.not_before = kNow + kMinute;
    Record received = Waiting(State::Pending, kNow);
    received.attempt = received.failures = 0;
    Sighting seen = WithFingerprint(Seen(received), FingerprintMatch::Different);
    Record record = ExpectWritten(Decide(replacing, seen, kNow), Effect::Update, Outcome::Acquired);
    EXPECT_EQ(record.claimable_at, kNow + kMinute);
    EXPECT_EQ(record.first_seen_at, received.first_seen_at);
    ExpectKept(Decide(replacing, Seen(Waiting(State::Pending, kNow)), kNow), Outcome::Duplicate, kForever);
    ExpectKept(Decide(replacing, Seen(received, Holder::Other), kNow), Outcome::Busy, kSecond);
}

TEST(AReceivedEvent, IsReplacedUntilItIsClaimedThoughItWasClaimedAndForgottenBefore) {
    Request receiving = Ask(Action::Receive);
    Record forgotten = Waiting(State::Pending, kNow - kDay);
    forgotten.expires_at = kNow;
    Record again = ExpectWritten(Decide(receiving, Seen(forgotten), kNow), Effect::Update, Outcome::Acquired);
    EXPECT_EQ(again.attempt, forgotten.attempt);
    receiving.replaces = true;
    Decision replaced = Decide(receiving, Seen(again), kNow + 1);
    EXPECT_EQ(replaced.outcome, Outcome::Acquired);
    Record claimed = Decide(Ask(Action::Acquire), Seen(replaced.record), kNow + 2).record;
    Record given_back = Decide(Ask(Action::GiveBack, claimed.attempt), Seen(claimed), kNow + 3).record;
    EXPECT_EQ(Decide(receiving, Seen(given_back), kNow + 4).outcome, Outcome::Duplicate);
}

// --- what waits behind an earlier event of its ordering key

TEST(AnEventBehindAnother, IsDueForWhoeverNamesItAndIsLetGoOnByRequeuing) {
    Request receiving = Ask(Action::Receive);
    receiving.behind = true;
    Record behind = ExpectWritten(Decide(receiving, Nothing(), kNow), Effect::Insert, Outcome::Acquired);
    EXPECT_EQ(behind.claimable_at, kLongAgo);
    EXPECT_EQ(behind.expires_at, kNow + kWindows.unresolved);
    EXPECT_EQ(Decide(Ask(Action::Acquire), Seen(behind), kNow + 1).outcome, Outcome::Acquired);
    Record goes_on =
        ExpectWritten(Decide(Ask(Action::Requeue), Seen(behind), kNow + 1), Effect::Update, Outcome::Backoff);
    EXPECT_EQ(goes_on.claimable_at, kNow + 1);
    ExpectKept(Decide(Ask(Action::Requeue), Seen(goes_on), kNow + 1), Outcome::Backoff, 0);
    receiving.not_before = kNow + kMinute;
    EXPECT_EQ(Decide(receiving, Nothing(), kNow).record.claimable_at, kNow + kMinute);
}

}  // namespace
}  // namespace idem
