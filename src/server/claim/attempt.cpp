#include "server/claim/attempt.hpp"

#include "server/claim/commit_order.hpp"
#include "server/claim/evaluation.hpp"
#include "server/claim/judging.hpp"
#include "server/claim/open_claims.hpp"
#include "server/claim/tally.hpp"

namespace idem {
namespace {

// What follows the search: to decide, and to write. Each step returns false when `obstacle`, or the search's, says why
// it could not be taken.
struct Attempt {
    DedupTable &table;
    const Policy &policy;  // of the call's handler
    const EventCall &call;
    bool patient;
    Finding finding;
    std::optional<Obstacle> obstacle;
    std::optional<EventAnswer> answer;

    // Raises 40001 where the row that decides is too new for the transaction's snapshot.
    bool CheckSnapshot() {
        if (!IsolationUsesXactSnapshot()) return true;
        if (finding.InCurrent()) {
            CheckVisible(*finding.current(), finding.place()->found.at);
            return true;
        }
        OpenedSlot sealed;
        if (!finding.Open(finding.place()->generation, AccessShareLock, &sealed)) return false;
        CheckVisible(sealed, finding.place()->found.at);
        CloseSlot(sealed, false);
        return true;
    }

    // A serializable transaction that is told "absent" has read that: whoever writes the event is in conflict with it.
    // New events go to the current generation.
    bool NoteAbsence() {
        if (!IsolationIsSerializable() || finding.place()) return true;
        if (!finding.OpenCurrent()) return false;
        ReadAbsence(*finding.current(), call.event.key);
        return true;
    }

    // Takes the row out of a sealed generation, where nothing is changed in place, so that it can go to the current
    // one.
    bool TakeFromSealed(Written *written) {
        OpenedSlot sealed;
        if (!finding.Open(finding.place()->generation, RowExclusiveLock, &sealed)) return false;
        *written = DeleteRow(sealed, finding.place()->found);
        CloseSlot(sealed, *written == Written::Done);
        return true;
    }

    // Writes the decision's record to the current generation.
    bool WriteRow(const Decision &decision, Written *written, ItemPointerData *at) {
        EventRow row = RowOf(table, call, finding.WhereFound(), decision);
        if (!finding.OpenCurrent()) return false;
        Oid locked = TryOpenForWriting(&*finding.current());
        if (OidIsValid(locked)) {
            obstacle = LockInTheWay(locked, RowExclusiveLock);
            return false;
        }
        if (finding.InCurrent()) {
            *written = UpdateRow(*finding.current(), finding.place()->found, &row, at);
            return true;
        }
        if (finding.place()) {
            if (!TakeFromSealed(written)) return false;
            if (*written != Written::Done) return true;
        }
        *written = finding.leftover() ? UpdateRow(*finding.current(), *finding.leftover(), &row, at)
                                      : InsertRow(*finding.current(), &row, at);
        // Who saw the sealed row had to delete it first, so nobody else can have come between.
        if (finding.place() && *written != Written::Done)
            elog(ERROR, "event moved out of a sealed generation of \"%s\" exists in the current one", table.name);
        return true;
    }

    // Tells the transaction's list of open claims what happened.
    void Track(const Decision &decision, const ItemPointerData &at, bool wrote) {
        const OpenClaim *open = FindOpenClaim(table.relation, call.event.key);
        if (call.action == Action::Acquire && policy.transaction_mode && wrote &&
            decision.outcome == Outcome::Acquired) {
            // A payload that an earlier try brought goes with the claim: its row says done and has none.
            bool inherits = call.payload == nullptr && GoesOn(finding.WhereFound(), decision);
            Jsonb *payload = inherits ? PayloadOf(finding.place()->found.row) : call.payload;
            OpenClaim claim = {table.relation,  call.event.key, table.current_generation, at, table.loaded,
                               decision.record, payload};
            bool first = !HasOpenClaims();
            AddOpenClaim(claim, call.event.handler, call.event.event_id);
            if (first) ComeFirstAtCommit();
        } else if (Settles(call) && open != nullptr) {
            SettleOpenClaim(open);
        }
    }

    // Wakes who waits for work: an event is due, or may be the last that another of its ordering key waits for. The
    // server sends it when the transaction has committed, so whoever is woken sees the event.
    void Notify(const Record &record, Micros now) {
        bool due = (record.state == State::Pending || record.state == State::Failed) && record.claimable_at <= now;
        bool ends = record.state == State::Done || record.state == State::Dead;
        bool ordered = finding.place() && finding.place()->found.row.Has(Column::Ordering);
        if (call.action == Action::Move || !(due || (ends && ordered))) return;
        Async_Notify(ChannelOf(table.relation), text_to_cstring(call.event.handler));
    }

    // The ordering key of an event that blocks nobody of that key any more.
    text *LeftKey(const Record &record) {
        if (!finding.place() || !finding.place()->found.row.Has(Column::Ordering)) return nullptr;
        text *ordering = DatumGetTextPP(finding.place()->found.row.Get(Column::Ordering));
        bool settled = record.state == State::Done || (record.state == State::Dead && policy.skips_dead);
        bool other_key = call.ordering != nullptr && ViewOf(call.ordering) != ViewOf(ordering);
        return settled || other_key ? ordering : nullptr;
    }

    // Raises the fault, unless it may go away.
    bool Refuse(const Decision &decision, const Sighting &seen) {
        bool may_pass = decision.fault == Fault::LeaseLost && seen.holder == Holder::Other;
        if (!patient || !may_pass) {
            if (!call.forgiving) RaiseFault(decision.fault, call, seen.record);
            answer = EventAnswer{decision, false, false, nullptr, nullptr, nullptr};
            return false;
        }
        obstacle = {Obstacle::Holder, InvalidTransactionId, 0, InvalidOid, NoLock};
        return false;
    }

    // Decides and writes; returns whether the current slot was written to.
    bool Settle() {
        bool own_is_gone = !finding.place() || !finding.place()->found.ours;
        if ((Settles(call) || call.action == Action::Extend) && own_is_gone &&
            FindOpenClaim(table.relation, call.event.key) != nullptr)
            RaiseClaimGone(call);
        Request request = RequestOf(policy, call);
        Sighting seen = SightingOf(table, call, finding.WhereFound());
        seen.sealed = finding.place() && !finding.InCurrent();
        Micros now = GetCurrentTimestamp();
        Decision decision = Decide(request, seen, now);
        bool writes = decision.effect != Effect::Keep && decision.effect != Effect::Refuse;
        if (!writes && !NoteAbsence()) return false;
        if (decision.effect == Effect::Refuse) return Refuse(decision, seen);
        if (seen.found && seen.holder == Holder::Nobody && !CheckSnapshot()) return false;
        if (seen.found && RefusedByItself(call, finding.place()->found, decision)) RaiseEvaluatedAgain(call);

        bool wrote = false;
        ItemPointerData at = {};
        if (decision.effect != Effect::Keep) {
            Written written = Written::Done;
            if (!WriteRow(decision, &written, &at)) return false;
            if (written == Written::Conflict) {
                obstacle = ChangeInTheWay();
                return false;
            }
            wrote = written == Written::Done;
            if (!wrote) {  // held: decide anew, knowing that
                if (seen.holder == Holder::OursOpen || seen.holder == Holder::OursSettled) RaiseLocked(call);
                seen.holder = Holder::Other;
                decision = Decide(request, seen, now);
                if (decision.effect == Effect::Refuse) return Refuse(decision, seen);
            }
        }
        Track(decision, at, wrote);
        if (wrote && policy.notifies) Notify(decision.record, now);
        answer = AnswerOf(call, finding.WhereFound(), decision, wrote || seen.holder != Holder::Other, wrote);
        bool held = seen.holder == Holder::OursOpen || seen.record.state == State::Processing;
        if (wrote && !seen.found && decision.outcome == Outcome::Acquired) CountIfLate(call);
        answer->settled = Settles(call) && (wrote || seen.holder == Holder::OursOpen);
        if (answer->settled && held) answer->claimed_at = seen.record.claimed_at;
        if (wrote) answer->left = LeftKey(decision.record);
        return wrote;
    }
};
static_assert(std::is_trivially_destructible_v<Attempt>, "an error jumps over destructors");

}  // namespace

Try TryCallIn(DedupTable *table, const Policy &policy, const EventCall &call, bool patient,
              std::optional<OpenedSlot> *current, bool *wrote) {
    Attempt attempt = {*table, policy, call, patient, Finding(table, call, *current), std::nullopt, std::nullopt};
    HoldDedupTables();
    if (attempt.finding.FindRow() && attempt.Settle()) *wrote = true;
    LetGoOfDedupTables();
    *current = attempt.finding.current();
    return {attempt.answer, attempt.obstacle.value_or(attempt.finding.obstacle())};
}

Try TryCall(DedupTable *table, const Policy &policy, const EventCall &call, bool patient) {
    std::optional<OpenedSlot> current;
    bool wrote = false;
    Try tried = TryCallIn(table, policy, call, patient, &current, &wrote);
    if (current) CloseSlot(*current, wrote);
    return tried;
}

}  // namespace idem
