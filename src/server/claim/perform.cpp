#include "server/claim/perform.hpp"

#include "server/base/subtransaction.hpp"
#include "server/claim/attempt.hpp"
#include "server/claim/bypass.hpp"
#include "server/claim/judging.hpp"
#include "server/claim/open_claims.hpp"
#include "server/claim/succession.hpp"
#include "server/claim/tally.hpp"
#include "server/table/gate.hpp"

namespace idem {
namespace {

// A claim in transaction mode that settles without a write needs no storage at all, as long as nothing has changed that
// may have removed its row (TRUNCATE).
std::optional<EventAnswer> SettleByWord(const DedupTable &table, const Policy &policy, const EventCall &call) {
    if (!Settles(call) && call.action != Action::Extend) return std::nullopt;
    const OpenClaim *claim = FindOpenClaim(table.relation, call.event.key);
    if (claim == nullptr || claim->loaded != table.loaded) return std::nullopt;
    Sighting seen = {};
    seen.found = true;
    seen.holder = Holder::OursOpen;
    seen.record = claim->record;
    Decision decision = Decide(RequestOf(policy, call), seen, GetCurrentTimestamp());
    if (decision.effect == Effect::Refuse && call.forgiving)
        return EventAnswer{decision, false, false, nullptr, nullptr, nullptr};
    if (decision.effect == Effect::Refuse) RaiseFault(decision.fault, call, seen.record);
    if (decision.effect != Effect::Keep) return std::nullopt;
    if (call.action != Action::Extend) SettleOpenClaim(claim);
    EventAnswer answer = {};
    answer.decision = decision;
    answer.known = answer.ours = true;
    answer.settled = Settles(call);
    answer.claimed_at = claim->record.claimed_at;
    return answer;
}

// Outside the gate, in the way the server itself waits.
void WaitOutside(const Obstacle &obstacle) {
    if (obstacle.kind == Obstacle::Insertion) SpeculativeInsertionWait(obstacle.inserter, obstacle.token);
    if (obstacle.kind == Obstacle::Lock) {
        LockRelationOid(obstacle.locked, obstacle.lock);
        UnlockRelationOid(obstacle.locked, obstacle.lock);
    }
}

// Waits for another transaction's end for so many milliseconds at most, as whoever changes a row waits for its holder:
// the server sees two who wait for each other, and raises 40P01 in one.
void WaitForEnd(TransactionId holder, long ms) {
    auto time_is_over = [](const ErrorData &error) { return error.sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE; };
    (void)InSubtransaction(time_is_over, [&] {
        int level = NewGUCNestLevel();
        (void)set_config_option("lock_timeout", psprintf("%ld", ms), PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true,
                                0, false);
        XactLockTableWait(holder, nullptr, nullptr, XLTW_None);
        AtEOXact_GUC(true, level);
    });
}

// A wait for what no lock tells of, the end of a lease or of a look FOR UPDATE: short pauses, each longer than the one
// before.
class Pauses {
public:
    explicit Pauses(Micros longest) : deadline_(longest > 0 ? GetCurrentTimestamp() + longest : 0) {}

    // Pauses, or waits for the transaction's end if there is one; false if the time is over.
    bool Pause(TransactionId holder) {
        constexpr long kLongestPause = 32;  // ms
        if (deadline_ == 0) return false;
        long rest = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline_);
        if (rest <= 0) return false;
        if (TransactionIdIsValid(holder)) {
            WaitForEnd(holder, rest);
            return true;
        }
        WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, Min(pause_, rest), PG_WAIT_EXTENSION);
        ResetLatch(MyLatch);
        pause_ = Min(2 * pause_, kLongestPause);
        return true;
    }

    // Whether a moment comes before the time is over.
    bool Reach(Micros moment) const { return moment <= deadline_; }

private:
    TimestampTz deadline_;
    long pause_ = 1;  // ms
};

// Whether another answer may be had by waiting: until another transaction ends; where only what is final is an answer,
// until a lease or a backoff ends that does so in time. What this transaction holds itself lasts as long as it waits.
bool WorthWaiting(const EventCall &call, const EventAnswer &answer, const Pauses &pauses) {
    const Decision &decision = answer.decision;
    if (decision.outcome == Outcome::Busy && answer.ours) return false;
    if (!WantsFinal(call)) return decision.outcome == Outcome::Busy;
    if (IsFinal(decision.outcome)) return false;
    return !answer.known || pauses.Reach(decision.record.claimable_at);
}

// Whoever holds the row of a claim that is to be settled may only be extending it, moving it out of a generation that
// is to be emptied, or looking at it FOR UPDATE. That is soon over, and an ID001 would undo work whose message is sent.
constexpr Micros kPatienceOfSettling = kSecond;

EventAnswer PerformOnce(const EventCall &call) {
    std::optional<Pauses> pauses;
    bool patient = Settles(call) || call.action == Action::Extend;
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        DedupTable *table = OpenDedupTable(call.dedup);
        Policy policy = table->PolicyOf(ViewOf(call.event.handler));
        CheckWindows(policy, call);
        if (std::optional<EventAnswer> answer = SettleByWord(*table, policy, call)) return *answer;

        Try tried = {std::nullopt, ChangeInTheWay()};
        UnderGate([&] {
            if (table->current) tried = TryCall(table, policy, call, patient);
        });
        if (tried.answer) return *tried.answer;
        WaitOutside(tried.obstacle);
        if (tried.obstacle.kind == Obstacle::Holder) {
            if (!pauses) pauses = Pauses(kPatienceOfSettling);
            patient = pauses->Pause(InvalidTransactionId);
        }
    }
}

// The SQL function that does it, for messages.
const char *FunctionOf(Action action) {
    switch (action) {
        case Action::Acquire:
            return "idem_acquire()";
        case Action::Accept:
            return "idem_accept()";
        case Action::Commit:
            return "idem_commit()";
        case Action::Fail:
        case Action::GiveBack:
            return "idem_release()";
        case Action::Extend:
            return "idem_extend()";
        case Action::Move:
            return "idem_purge()";
        case Action::Receive:
            return "idem_receive()";
        case Action::Requeue:
            return "idem_requeue()";
        case Action::Resolve:
            return "idem_resolve()";
    }
    return nullptr;
}

}  // namespace

void RequireWritable(Action action) { PreventCommandIfReadOnly(FunctionOf(action)); }

namespace {

EventAnswer PerformWaiting(const EventCall &call) {
    bool settles = Settles(call) || call.action == Action::Extend;
    if (settles && IsBypassed(call)) return SettleBypassed(call);
    RequireWritable(call.action);
    Pauses pauses(call.wait);
    MemoryContext caller = CurrentMemoryContext;
    MemoryContext tries = nullptr;  // of all tries but the first; the answer of the last stays there
    for (;;) {
        EventAnswer answer = PerformOnce(call);
        if (!WorthWaiting(call, answer, pauses) || !pauses.Pause(answer.holder)) {
            MemoryContextSwitchTo(caller);
            CountAnswer(call, answer);
            if (WantsFinal(call) && !IsFinal(answer.decision.outcome)) RaiseNotFinal(call, answer);
            return answer;
        }
        if (tries == nullptr)
            tries = AllocSetContextCreate(caller, "idem tries", ALLOCSET_SMALL_SIZES);
        else
            MemoryContextReset(tries);
        MemoryContextSwitchTo(tries);
    }
}

}  // namespace

EventAnswer PerformStored(const EventCall &call) {
    EventCall placed = call;
    if (call.action == Action::Receive && call.ordering != nullptr)
        placed.behind = WaitsBehind(OrderingKey{call.dedup, call.event.handler, call.ordering});
    EventAnswer answer = PerformWaiting(placed);
    if (answer.left != nullptr) LetNextGoOn(OrderingKey{call.dedup, call.event.handler, answer.left}, PerformStored);
    answer.left = nullptr;
    return answer;
}

EventAnswer Perform(const EventCall &call) {
    if (!MayBypass(call)) return PerformStored(call);
    EventAnswer answer = {};
    const char *why = WhyUnavailable([&] { answer = PerformStored(call); });
    if (why == nullptr) {
        ForgetBypass(call, answer);
        return answer;
    }
    answer = Bypass(call);
    WarnBypassed(call, 1, why);
    return answer;
}

std::optional<EventRow> ReadEvent(Oid dedup, const Key &key) {
    // A turn of the ring that the snapshot sees was told before the snapshot was taken.
    AcceptInvalidationMessages();
    DedupTable *table = OpenDedupTable(dedup);
    while (!table->current) table = OpenDedupTable(dedup);
    std::optional<EventRow> found;
    for (int64_t g = table->current_generation; g >= table->FirstGeneration(); g--) {
        std::optional<EventRow> row = ReadVisibleRow(&table->SlotOf(g), key, GetActiveSnapshot());
        if (row && ExpiresAt(*row) > GetCurrentTimestamp()) return row;
        if (!found) found = row;
    }
    return found;
}

}  // namespace idem
