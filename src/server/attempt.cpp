#include "server/attempt.hpp"

#include "server/judging.hpp"
#include "server/open_claims.hpp"

namespace idem {
namespace {

Try TryAgain() { return {.end = Try::Again, .inserter = 0, .token = 0, .locked = 0, .lock = 0, .answer = {}}; }

// Why a slot or an index could not be opened: what to wait for.
Try WaitFor(Oid relation, LOCKMODE lock) {
    Try end = TryAgain();
    end.end = Try::WaitForLock;
    end.locked = relation;
    end.lock = lock;
    return end;
}

// One try, in the generations as they are while the gate is held. Each step returns false when `end` says how it ended.
struct Attempt {
    DedupTable &table;
    const EventCall &call;
    std::optional<Place> place;
    Try end;

    bool Open(int64_t generation, LOCKMODE lock, OpenedSlot *opened) {
        Oid locked = TryOpenSlot(&table.SlotOf(generation), lock, opened);
        if (OidIsValid(locked)) {
            end = WaitFor(locked, lock);
            return false;
        }
        if (table.current) return true;
        CloseSlot(*opened, false);  // taking the lock has told that the partition changed
        end = TryAgain();
        return false;
    }

    bool LookIn(const OpenedSlot &opened, int64_t generation) {
        LookUp look = LookForKey(opened, call.event.key, !Claims(call));
        if (look.look == Look::Inserting) {
            end = TryAgain();
            end.end = Try::WaitForInsertion;
            end.inserter = look.inserter;
            end.token = look.token;
            return false;
        }
        if (look.look == Look::Row) place = Place{generation, look.found};
        return true;
    }

    // Finds the event in the newest generation that has it: an older one's row is of an earlier life.
    bool FindRow(const OpenedSlot &current) {
        const OpenClaim *claim = FindOpenClaim(table.relation, call.event.key);
        if (claim != nullptr && claim->generation == table.current_generation) {
            if (std::optional<Found> own = ReadOwnRow(current, claim->at)) {
                place = Place{claim->generation, *own};
                return true;
            }
        }
        if (!LookIn(current, table.current_generation)) return false;
        for (int64_t g = table.current_generation - 1; !place && g >= table.oldest_generation; g--) {
            OpenedSlot older;
            if (!Open(g, AccessShareLock, &older)) return false;
            bool looked = LookIn(older, g);
            CloseSlot(older, false);
            if (!looked) return false;
        }
        // A settling may have moved the row from a sealed generation to the current one after we looked there. Claims
        // need not know: their insert would conflict.
        bool sealed = table.oldest_generation < table.current_generation;
        return place || Claims(call) || !sealed || LookIn(current, table.current_generation);
    }

    const Place *WhereFound() const { return place ? &*place : nullptr; }

    bool InCurrent() const { return place && place->generation == table.current_generation; }

    // Raises 40001 where the row that decides is too new for the transaction's snapshot.
    bool CheckSnapshot(const OpenedSlot &current) {
        if (!IsolationUsesXactSnapshot()) return true;
        if (InCurrent()) {
            CheckVisible(current, place->found.at);
            return true;
        }
        OpenedSlot older;
        if (!Open(place->generation, AccessShareLock, &older)) return false;
        CheckVisible(older, place->found.at);
        CloseSlot(older, false);
        return true;
    }

    // Takes the row out of a sealed generation, where nothing is changed in place, so that it can go to the current
    // one.
    bool TakeFromSealed(Written *written) {
        OpenedSlot sealed;
        if (!Open(place->generation, RowExclusiveLock, &sealed)) return false;
        *written = DeleteRow(sealed, place->found);
        CloseSlot(sealed, *written == Written::Done);
        return true;
    }

    // Writes the decision's record to the current generation.
    bool WriteRow(OpenedSlot *current, const Decision &decision, Written *written, ItemPointerData *at) {
        EventRow row = RowOf(table, call, WhereFound(), decision);
        Oid locked = TryOpenForWriting(current);
        if (OidIsValid(locked)) {
            end = WaitFor(locked, RowExclusiveLock);
            return false;
        }
        if (InCurrent()) {
            *written = UpdateRow(*current, place->found, &row, at);
            return true;
        }
        if (place) {
            if (!TakeFromSealed(written)) return false;
            if (*written != Written::Done) return true;
        }
        *written = InsertRow(*current, &row, at);
        // Who saw the sealed row had to delete it first, so nobody else can have come between.
        if (place && *written != Written::Done)
            elog(ERROR, "event moved out of a sealed generation of \"%s\" exists in the current one", table.name);
        return true;
    }

    // Tells the transaction's list of open claims what happened.
    void Track(const Decision &decision, const ItemPointerData &at, bool wrote) {
        const OpenClaim *open = FindOpenClaim(table.relation, call.event.key);
        if (call.action == Action::Acquire && table.transaction_mode && wrote) {
            // A payload that an earlier try brought goes with the claim: its row says done and has none.
            bool inherits = call.payload == nullptr && GoesOn(WhereFound(), decision);
            Jsonb *payload = inherits ? PayloadOf(place->found.row) : call.payload;
            OpenClaim claim = {table.relation, call.event.key, table.current_generation, at, decision.record, payload};
            AddOpenClaim(claim, call.event.handler, call.event.event_id);
        } else if (!Claims(call) && call.action != Action::Extend && open != nullptr) {
            SettleOpenClaim(open);
        }
    }

    // Decides and writes; returns whether the current slot was written to.
    bool Settle(OpenedSlot *current) {
        Request request = RequestOf(table, call);
        Sighting seen = SightingOf(table, call, WhereFound());
        Micros now = GetCurrentTimestamp();
        Decision decision = Decide(request, seen, now);
        if (decision.effect == Effect::Refuse) RaiseFault(decision.fault, call, seen.record);
        if (seen.found && seen.holder == Holder::Nobody && !CheckSnapshot(*current)) return false;

        bool wrote = false;
        ItemPointerData at = {};
        if (decision.effect != Effect::Keep) {
            Written written = Written::Done;
            if (!WriteRow(current, decision, &written, &at)) return false;
            if (written == Written::Conflict) {
                end = TryAgain();
                return false;
            }
            wrote = written == Written::Done;
            if (!wrote) {  // held: decide anew, knowing that
                if (seen.holder == Holder::OursOpen || seen.holder == Holder::OursSettled) RaiseLocked(call);
                seen.holder = Holder::Other;
                decision = Decide(request, seen, now);
                if (decision.effect == Effect::Refuse) RaiseFault(decision.fault, call, seen.record);
            }
        }
        Track(decision, at, wrote);
        end.end = Try::Answered;
        end.answer = AnswerOf(call, WhereFound(), decision, wrote || seen.holder != Holder::Other, wrote);
        return wrote;
    }

    void Run() {
        OpenedSlot current;
        if (!Open(table.current_generation, RowExclusiveLock, &current)) return;
        bool wrote = FindRow(current) && Settle(&current);
        CloseSlot(current, wrote);
    }
};
static_assert(std::is_trivially_destructible_v<Attempt>, "an error jumps over destructors");

}  // namespace

Try TryCall(DedupTable *table, const EventCall &call) {
    Attempt attempt = {*table, call, std::nullopt, TryAgain()};
    attempt.Run();
    return attempt.end;
}

}  // namespace idem
