#include "server/event_call.hpp"

#include "server/attempt.hpp"
#include "server/gate.hpp"
#include "server/judging.hpp"
#include "server/open_claims.hpp"

namespace idem {
namespace {

void CheckWindows(const DedupTable &table, const EventCall &call) {
    bool hot = call.hot_window > table.windows.hot;
    if (!hot && call.cold_window <= table.windows.cold) return;
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
             errmsg("%s is longer than that of dedup table \"%s\"", hot ? "hot_window" : "cold_window", table.name),
             errdetail("A call may shorten the table's window, not lengthen it.")));
}

// A claim in transaction mode that settles without a write needs no storage at all.
std::optional<EventAnswer> SettleByWord(const DedupTable &table, const EventCall &call) {
    if (Claims(call)) return std::nullopt;
    const OpenClaim *claim = FindOpenClaim(table.relation, call.event.key);
    if (claim == nullptr) return std::nullopt;
    Sighting seen = {};
    seen.found = true;
    seen.holder = Holder::OursOpen;
    seen.record = claim->record;
    Decision decision = Decide(RequestOf(table, call), seen, GetCurrentTimestamp());
    if (decision.effect == Effect::Refuse) RaiseFault(decision.fault, call, seen.record);
    if (decision.effect != Effect::Keep) return std::nullopt;
    if (call.action != Action::Extend) SettleOpenClaim(claim);
    return EventAnswer{decision, true, true, nullptr, nullptr};
}

// Outside the gate, in the way the server itself waits.
void WaitOutside(const Try &end) {
    if (end.end == Try::WaitForInsertion) SpeculativeInsertionWait(end.inserter, end.token);
    if (end.end == Try::WaitForLock) {
        LockRelationOid(end.locked, end.lock);
        UnlockRelationOid(end.locked, end.lock);
    }
}

EventAnswer PerformOnce(const EventCall &call) {
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        DedupTable *table = OpenDedupTable(call.dedup);
        CheckWindows(*table, call);
        if (std::optional<EventAnswer> answer = SettleByWord(*table, call)) return *answer;

        Try end = {};
        end.end = Try::Again;
        UnderGate([&] {
            if (table->current) end = TryCall(table, call);
        });
        if (end.end == Try::Answered) return end.answer;
        WaitOutside(end);
    }
}

}  // namespace

EventAnswer Perform(const EventCall &call) {
    constexpr long kFirstPause = 1;  // ms
    constexpr long kLongestPause = 32;

    TimestampTz deadline = call.wait > 0 ? GetCurrentTimestamp() + call.wait : 0;
    for (long pause = kFirstPause;; pause = Min(2 * pause, kLongestPause)) {
        EventAnswer answer = PerformOnce(call);
        if (answer.decision.outcome != Outcome::Busy || answer.ours || deadline == 0) return answer;
        long rest = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline);
        if (rest <= 0) return answer;
        WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, Min(pause, rest), PG_WAIT_EXTENSION);
        ResetLatch(MyLatch);
    }
}

std::optional<EventRow> ReadEvent(Oid dedup, const Key &key) {
    // A turn of the ring that the snapshot sees was told before the snapshot was taken.
    AcceptInvalidationMessages();
    DedupTable *table = OpenDedupTable(dedup);
    while (!table->current) table = OpenDedupTable(dedup);
    for (int64_t g = table->current_generation; g >= table->oldest_generation; g--)
        if (std::optional<EventRow> row = ReadVisibleRow(&table->SlotOf(g), key, GetActiveSnapshot())) return row;
    return std::nullopt;
}

}  // namespace idem
