// Settling as its users know it: commit, release, heartbeat, and who may.
#include "state_fixture.hpp"

namespace idem {
namespace {

constexpr Action kSettling[] = {Action::Commit, Action::Fail, Action::GiveBack, Action::Extend};
constexpr Micros kOnePercent = kWindows.cold / 100;

// What the claim of transaction mode wrote `ago` in this transaction.
Sighting OpenInTransactionMode(Micros ago) {
    Record record = Done(kNow - ago + kWindows.cold);
    record.claimed_at = record.settled_at = kNow - ago;
    return Seen(record, Holder::OursOpen);
}

Sighting OpenLease() { return Seen(Lease(kNow + kMinute), Holder::OursOpen); }

Request WithResult(Request request) {
    request.has_result = true;
    return request;
}

// --- commit

TEST(Commit, OfALeaseIsDoneForTheColdWindowFromNow) {
    Decision decision = Decide(Ask(Action::Commit, kAttempt), Seen(Lease(kNow + kMinute)), kNow);
    Record record = ExpectWritten(decision, Effect::Update, Outcome::Duplicate);
    EXPECT_EQ(record.state, State::Done);
    EXPECT_EQ(record.attempt, kAttempt);
    EXPECT_EQ(record.failures, 2);
    EXPECT_EQ(record.first_seen_at, kNow - kDay);
    EXPECT_EQ(record.claimed_at, kNow - kMinute);
    EXPECT_EQ(record.claimable_at, 0);
    EXPECT_EQ(record.settled_at, kNow);
    EXPECT_EQ(record.expires_at, kNow + kWindows.cold);
}

TEST(Commit, InTheClaimingTransactionNeedsNoAttempt) {
    ExpectWritten(Decide(Ask(Action::Commit), OpenLease(), kNow), Effect::Update, Outcome::Duplicate);
}

TEST(Commit, InTransactionModeWritesNothing) {
    Request commit = InTransactionMode(Ask(Action::Commit));
    ExpectKept(Decide(commit, OpenInTransactionMode(kSecond), kNow), Outcome::Duplicate, kForever);
}

TEST(Commit, InTransactionModeWritesAResult) {
    Request commit = InTransactionMode(WithResult(Ask(Action::Commit)));
    ExpectWritten(Decide(commit, OpenInTransactionMode(kSecond), kNow), Effect::Update, Outcome::Duplicate);
}

TEST(Commit, InTransactionModeWritesAColdWindowOfItsOwn) {
    Request commit = InTransactionMode(Ask(Action::Commit));
    commit.has_cold_window = true;
    commit.windows.cold = kDay;
    Decision decision = Decide(commit, OpenInTransactionMode(kSecond), kNow);
    EXPECT_EQ(ExpectWritten(decision, Effect::Update, Outcome::Duplicate).expires_at, kNow + kDay);
}

TEST(Commit, InTransactionModeWritesWhereMoreThanOnePercentOfTheColdWindowHasPassed) {
    Request commit = InTransactionMode(Ask(Action::Commit));
    ExpectKept(Decide(commit, OpenInTransactionMode(kOnePercent), kNow), Outcome::Duplicate, kForever);
    Decision decision = Decide(commit, OpenInTransactionMode(kOnePercent + 1), kNow);
    Record record = ExpectWritten(decision, Effect::Update, Outcome::Duplicate);
    EXPECT_EQ(record.settled_at, kNow);
    EXPECT_EQ(record.expires_at, kNow + kWindows.cold);
}

TEST(Commit, AgainWithTheSameResultWritesNothing) {
    Sighting seen = Seen(Done(kNow + 1));
    seen.same_result = true;
    ExpectKept(Decide(Ask(Action::Commit, kAttempt), seen, kNow), Outcome::Duplicate, kForever);
    seen.holder = Holder::OursSettled;
    ExpectKept(Decide(Ask(Action::Commit), seen, kNow), Outcome::Duplicate, kForever);
}

TEST(Commit, AgainWithAnotherResultIsRefused) {
    ExpectRefused(Decide(WithResult(Ask(Action::Commit, kAttempt)), Seen(Done(kNow + 1)), kNow), Fault::ResultDiffers);
}

TEST(Commit, AfterAReleaseIsRefused) {
    for (State state : {State::Failed, State::Pending})
        ExpectRefused(Decide(Ask(Action::Commit, kAttempt), Seen(Waiting(state, kNow)), kNow), Fault::NoSuchClaim);
}

// --- release

TEST(Release, WithAnErrorIsFailedAndDueAtOnce) {
    Decision decision = Decide(Ask(Action::Fail, kAttempt), Seen(Lease(kNow + kMinute)), kNow);
    Record record = ExpectWritten(decision, Effect::Update, Outcome::Backoff);
    EXPECT_EQ(decision.retry_after, 0);
    EXPECT_EQ(record.state, State::Failed);
    EXPECT_EQ(record.attempt, kAttempt);
    EXPECT_EQ(record.failures, 3);
    EXPECT_EQ(record.claimable_at, kNow);
    EXPECT_EQ(record.settled_at, 0);
    EXPECT_EQ(record.expires_at, kNow + kWindows.unresolved);
}

TEST(Release, WithoutAnErrorIsGivenBackAndDoesNotCount) {
    Decision decision = Decide(Ask(Action::GiveBack, kAttempt), Seen(Lease(kNow + kMinute)), kNow);
    Record record = ExpectWritten(decision, Effect::Update, Outcome::Backoff);
    EXPECT_EQ(decision.retry_after, 0);
    EXPECT_EQ(record.state, State::Pending);
    EXPECT_EQ(record.attempt, kAttempt);
    EXPECT_EQ(record.failures, 2);
    EXPECT_EQ(record.claimable_at, kNow);
}

TEST(Release, KeepsTheEventForAsLongAsTheCallerSays) {
    for (Action action : {Action::Fail, Action::GiveBack}) {
        Request release = Ask(action, kAttempt);
        release.retry_after = kMinute;
        Decision decision = Decide(release, Seen(Lease(kNow + 1)), kNow);
        Record record = ExpectWritten(decision, Effect::Update, Outcome::Backoff);
        EXPECT_EQ(decision.retry_after, kMinute);
        EXPECT_EQ(record.claimable_at, kNow + kMinute);
        EXPECT_EQ(record.expires_at, kNow + kMinute + kWindows.unresolved);
    }
}

TEST(Release, InTransactionModeTakesBackWhatTheClaimWrote) {
    Decision decision = Decide(InTransactionMode(Ask(Action::Fail)), OpenInTransactionMode(kSecond), kNow);
    Record record = ExpectWritten(decision, Effect::Update, Outcome::Backoff);
    EXPECT_EQ(record.state, State::Failed);
    EXPECT_EQ(record.claimable_at, kNow);
    EXPECT_EQ(record.settled_at, 0);
    EXPECT_EQ(record.expires_at, kNow + kWindows.unresolved);
}

TEST(Release, AgainAnswersAsTheFirstTimeAndWritesNothing) {
    ExpectKept(Decide(Ask(Action::Fail, kAttempt), Seen(Waiting(State::Failed, kNow)), kNow), Outcome::Backoff, 0);
    ExpectKept(Decide(Ask(Action::Fail, kAttempt), Seen(Waiting(State::Failed, kNow + 5)), kNow), Outcome::Backoff, 5);
    ExpectKept(Decide(Ask(Action::GiveBack, kAttempt), Seen(Waiting(State::Pending, kNow)), kNow), Outcome::Backoff, 0);
    ExpectKept(Decide(Ask(Action::Fail, kAttempt), Seen(Dead()), kNow), Outcome::Dead, kForever);
}

TEST(Release, AfterACommitIsRefused) {
    for (Action action : {Action::Fail, Action::GiveBack})
        ExpectRefused(Decide(Ask(action, kAttempt), Seen(Done(kNow + 1)), kNow), Fault::NoSuchClaim);
}

TEST(Release, WithAnErrorBacksOffLongerWithEachFailure) {
    Request fail = Ask(Action::Fail, kAttempt);
    fail.backs_off = true;
    fail.backoff = {kMinute, kDay, 0.5};
    Decision decision = Decide(fail, Seen(Lease(kNow + kMinute)), kNow);
    Record record = ExpectWritten(decision, Effect::Update, Outcome::Backoff);
    EXPECT_EQ(record.failures, 3);
    EXPECT_EQ(decision.retry_after, 2 * kMinute);
    EXPECT_EQ(record.claimable_at, kNow + 2 * kMinute);
    EXPECT_EQ(record.expires_at, kNow + 2 * kMinute + kWindows.unresolved);
}

TEST(Release, WithTheLastErrorThatIsAllowedIsDead) {
    for (const Sighting &seen : {Seen(Lease(kNow + kMinute)), Seen(Lease(kNow)), OpenInTransactionMode(kSecond)}) {
        EXPECT_EQ(Decide(AtMost(4, Ask(Action::Fail, kAttempt)), seen, kNow).record.state, State::Failed);
        Decision decision = Decide(AtMost(3, Ask(Action::Fail, kAttempt)), seen, kNow);
        Record record = ExpectWritten(decision, Effect::Update, Outcome::Dead);
        EXPECT_EQ(decision.retry_after, kForever);
        EXPECT_EQ(record.state, State::Dead);
        EXPECT_EQ(record.attempt, kAttempt);
        EXPECT_EQ(record.failures, 3);
        EXPECT_EQ(record.claimable_at, kForever);
        EXPECT_EQ(record.settled_at, 0);
        EXPECT_EQ(record.expires_at, kNow + kWindows.unresolved);
    }
}

TEST(Release, WithoutAnErrorIsNeverDead) {
    Decision decision = Decide(AtMost(1, Ask(Action::GiveBack, kAttempt)), Seen(Lease(kNow)), kNow);
    EXPECT_EQ(ExpectWritten(decision, Effect::Update, Outcome::Backoff).state, State::Pending);
}

TEST(Release, WithTheMostFailuresThatCanBeCounted) {
    Record record = Lease(kNow);
    record.failures = INT32_MAX;
    EXPECT_EQ(Decide(Ask(Action::Fail, kAttempt), Seen(record), kNow).record.failures, INT32_MAX);
}

// --- heartbeat

TEST(Extend, LetsALeaseRunForAnotherHotWindowFromNow) {
    Decision decision = Decide(Ask(Action::Extend, kAttempt), Seen(Lease(kNow + kMinute)), kNow);
    Record record = ExpectWritten(decision, Effect::Update, Outcome::Acquired);
    EXPECT_EQ(record.state, State::Processing);
    EXPECT_EQ(record.attempt, kAttempt);
    EXPECT_EQ(record.claimed_at, kNow - kMinute);
    EXPECT_EQ(record.claimable_at, kNow + kWindows.hot);
    EXPECT_EQ(record.expires_at, kNow + kWindows.hot + kWindows.unresolved);
}

TEST(Extend, NeverShortensALease) {
    Request extend = Ask(Action::Extend, kAttempt);
    Decision shorter = Decide(extend, Seen(Lease(kNow + kWindows.hot + 1)), kNow);
    ExpectKept(shorter, Outcome::Acquired, kForever);
    EXPECT_EQ(shorter.record.claimable_at, kNow + kWindows.hot + 1);
    Decision longer = Decide(extend, Seen(Lease(kNow + kWindows.hot - 1)), kNow);
    ExpectWritten(longer, Effect::Update, Outcome::Acquired);
}

TEST(Extend, InTransactionModeHasNothingToDo) {
    Request extend = InTransactionMode(Ask(Action::Extend));
    ExpectKept(Decide(extend, OpenInTransactionMode(kSecond), kNow), Outcome::Acquired, kForever);
}

TEST(Extend, OfASettledClaimIsRefused) {
    ExpectRefused(Decide(Ask(Action::Extend, kAttempt), Seen(Done(kNow + 1)), kNow), Fault::NoSuchClaim);
    ExpectRefused(Decide(Ask(Action::Extend, kAttempt), Seen(Waiting(State::Failed, kNow)), kNow), Fault::NoSuchClaim);
}

// --- who may settle

TEST(Settling, IsAllowedAfterTheLeaseRanOutAsLongAsNobodyTookOver) {
    Record forgotten_by_all_others = Remembered(State::Processing, kNow - 400 * kDay, kNow - 35 * kDay);
    for (const Record &record : {Lease(kNow), Lease(kNow - kDay), forgotten_by_all_others})
        for (Action action : kSettling) {
            Decision decision = Decide(Ask(action, kAttempt), Seen(record), kNow);
            EXPECT_EQ(decision.effect, Effect::Update);
            EXPECT_EQ(decision.record.attempt, kAttempt);
        }
}

TEST(Settling, ByAZombieWhoseClaimWasTakenOverIsLeaseLost) {
    for (Action action : kSettling)
        for (const Record &record : {Lease(kNow + kMinute), Lease(kNow), Done(kNow + 1), Waiting(State::Failed, kNow)})
            ExpectRefused(Decide(Ask(action, kAttempt - 1), Seen(record), kNow), Fault::LeaseLost);
}

TEST(Settling, BesideAnotherOpenTransactionIsLeaseLost) {
    for (Action action : kSettling)
        ExpectRefused(Decide(Ask(action, kAttempt), Seen(Lease(kNow + kMinute), Holder::Other), kNow),
                      Fault::LeaseLost);
}

TEST(Settling, WithAnAttemptThatWasNeverGivenOutIsRefused) {
    for (Action action : kSettling) {
        ExpectRefused(Decide(Ask(action, kAttempt + 1), Seen(Lease(kNow + kMinute)), kNow), Fault::NoSuchClaim);
        ExpectRefused(Decide(Ask(action, 1), Nothing(), kNow), Fault::NoSuchClaim);
    }
}

TEST(Settling, OfAForgottenEventIsRefused) {
    for (Action action : kSettling)
        ExpectRefused(Decide(Ask(action, kAttempt), Seen(Done(kNow)), kNow), Fault::NoSuchClaim);
}

TEST(Settling, WithAWrongAttemptIsRefusedInTheClaimingTransactionToo) {
    ExpectRefused(Decide(Ask(Action::Commit, kAttempt - 1), OpenLease(), kNow), Fault::LeaseLost);
    ExpectRefused(Decide(Ask(Action::Commit, kAttempt + 1), OpenLease(), kNow), Fault::NoSuchClaim);
}

TEST(Settling, WithoutAttemptOutsideTheClaimingTransactionIsRefused) {
    for (Action action : {Action::Commit, Action::Extend}) {
        ExpectRefused(Decide(Ask(action), Seen(Lease(kNow + kMinute)), kNow), Fault::AttemptMissing);
        ExpectRefused(Decide(Ask(action), Seen(Done(kNow + 1)), kNow), Fault::AttemptMissing);
        ExpectRefused(Decide(Ask(action), Seen(Lease(kNow), Holder::Other), kNow), Fault::AttemptMissing);
        ExpectRefused(Decide(Ask(action), Nothing(), kNow), Fault::NoSuchClaim);
    }
}

}  // namespace
}  // namespace idem
