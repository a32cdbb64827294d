// A release by one whose work was rolled back and whose claim is gone with it: a failure is recorded where nobody else
// is at work.
#include "state_fixture.hpp"

namespace idem {
namespace {

TEST(ReleaseWithoutAClaim, RecordsTheFailureOfANewEvent) {
    for (Request fail : {Ask(Action::Fail), InTransactionMode(Ask(Action::Fail))}) {
        Decision decision = Decide(fail, Nothing(), kNow);
        Record record = ExpectWritten(decision, Effect::Insert, Outcome::Backoff);
        EXPECT_EQ(decision.retry_after, 0);
        EXPECT_EQ(record.state, State::Failed);
        EXPECT_EQ(record.attempt, 1);
        EXPECT_EQ(record.failures, 1);
        EXPECT_EQ(record.claimable_at, kNow);
        EXPECT_EQ(record.settled_at, 0);
        EXPECT_EQ(record.expires_at, kNow + kWindows.unresolved);
    }
}

TEST(ReleaseWithoutAClaim, KeepsTheEventForAsLongAsTheCallerSays) {
    Request fail = Ask(Action::Fail);
    fail.retry_after = kMinute;
    for (const Sighting &seen : {Nothing(), Seen(Waiting(State::Failed, kNow))}) {
        Decision decision = Decide(fail, seen, kNow);
        EXPECT_EQ(decision.retry_after, kMinute);
        EXPECT_EQ(decision.record.claimable_at, kNow + kMinute);
    }
}

// Failed, or received, requeued or given back: else what fails after a rollback would be tried for ever.
TEST(ReleaseWithoutAClaim, RecordsTheFailureOfARetry) {
    for (State state : {State::Failed, State::Pending}) {
        Decision decision = Decide(Ask(Action::Fail), Seen(Waiting(state, kNow)), kNow);
        Record record = ExpectWritten(decision, Effect::Update, Outcome::Backoff);
        EXPECT_EQ(record.state, State::Failed);
        EXPECT_EQ(record.attempt, kAttempt + 1);
        EXPECT_EQ(record.failures, 3);
        EXPECT_EQ(record.first_seen_at, kNow - kDay);
    }
}

TEST(ReleaseWithoutAClaim, IsDeadAfterTheLastFailureThatIsAllowed) {
    Decision retry = Decide(AtMost(3, Ask(Action::Fail)), Seen(Waiting(State::Failed, kNow)), kNow);
    EXPECT_EQ(ExpectWritten(retry, Effect::Update, Outcome::Dead).state, State::Dead);
    Decision first = Decide(AtMost(1, Ask(Action::Fail)), Nothing(), kNow);
    Record record = ExpectWritten(first, Effect::Insert, Outcome::Dead);
    EXPECT_EQ(record.state, State::Dead);
    EXPECT_EQ(record.attempt, 1);
    EXPECT_EQ(record.failures, 1);
    EXPECT_EQ(record.settled_at, 0);
    EXPECT_EQ(record.expires_at, kNow + kWindows.unresolved);
}

// The claim was rolled back with its savepoint; what this transaction did before it stands.
TEST(ReleaseWithoutAClaim, RecordsTheFailureOfAnEventThatThisTransactionReceivedOrRequeued) {
    Sighting unclaimed = Seen(Waiting(State::Pending, kNow), Holder::OursSettled);
    Decision decision = Decide(Ask(Action::Fail), unclaimed, kNow);
    EXPECT_EQ(ExpectWritten(decision, Effect::Update, Outcome::Backoff).attempt, kAttempt + 1);
    ExpectRefused(Decide(Ask(Action::Commit), unclaimed, kNow), Fault::NoSuchClaim);
}

TEST(ReleaseWithoutAClaim, RecordsTheFailureOfAForgottenEvent) {
    Record record = ExpectWritten(Decide(Ask(Action::Fail), Seen(Done(kNow)), kNow), Effect::Update, Outcome::Backoff);
    EXPECT_EQ(record.attempt, kAttempt + 1);
    EXPECT_EQ(record.failures, 1);
    EXPECT_EQ(record.first_seen_at, kNow);
}

TEST(ReleaseWithoutAClaim, OnlyTellsWhatHappenedMeanwhile) {
    for (Action action : {Action::Fail, Action::GiveBack}) {
        Request release = Ask(action);
        ExpectKept(Decide(release, Seen(Done(kNow + 1)), kNow), Outcome::Duplicate, kForever);
        ExpectKept(Decide(release, Seen(Dead()), kNow), Outcome::Dead, kForever);
        ExpectKept(Decide(release, Seen(Lease(kNow + 5)), kNow), Outcome::Busy, 5);
        ExpectKept(Decide(release, Seen(Lease(kNow)), kNow), Outcome::Backoff, 0);
        ExpectKept(Decide(release, Seen(Waiting(State::Failed, kNow + 5)), kNow), Outcome::Backoff, 5);
        ExpectKept(Decide(release, Seen(Waiting(State::Pending, kNow + 5)), kNow), Outcome::Backoff, 5);
        ExpectKept(Decide(release, Seen(Waiting(State::Failed, kNow), Holder::Other), kNow), Outcome::Busy, kSecond);
    }
}

TEST(ReleaseWithoutAClaim, GivesBackNothing) {
    ExpectKept(Decide(Ask(Action::GiveBack), Nothing(), kNow), Outcome::Backoff, 0);
    ExpectKept(Decide(Ask(Action::GiveBack), Seen(Waiting(State::Failed, kNow)), kNow), Outcome::Backoff, 0);
    ExpectKept(Decide(Ask(Action::GiveBack), Seen(Done(kNow)), kNow), Outcome::Backoff, 0);
}

}  // namespace
}  // namespace idem
