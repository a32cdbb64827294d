#include "server/attempt.hpp"

#include <bit>

#include "server/filter_memory.hpp"
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

// As many sealed generations as are looked into before the current one, where a filter names them.
constexpr int kFewGenerations = 2;

// One try, in the generations as they are while the gate is held. Each step returns false when `end` says how it ended.
struct Attempt {
    DedupTable &table;
    const Policy &policy;  // of the call's handler
    const EventCall &call;
    bool patient;
    std::optional<OpenedSlot> current;
    std::optional<Place> place;
    std::optional<Found> leftover;  // an expired row in the current generation where `place` is elsewhere
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

    bool OpenCurrent() {
        OpenedSlot opened;
        if (current) return true;
        if (!Open(table.current_generation, RowExclusiveLock, &opened)) return false;
        current = opened;
        return true;
    }

    bool InCurrent() const { return place && place->generation == table.current_generation; }

    bool Expired(const Found &found) const {
        return !found.ours && !found.other && ExpiresAt(found.row) <= GetCurrentTimestamp();
    }

    bool FoundLive() const { return place && !Expired(place->found); }

    bool LookIn(const OpenedSlot &opened, int64_t generation) {
        LookUp look = LookForKey(opened, call.event.key, !Claims(call));
        if (look.look == Look::Inserting) {
            end = TryAgain();
            end.end = Try::WaitForInsertion;
            end.inserter = look.inserter;
            end.token = look.token;
            return false;
        }
        if (look.look == Look::Row && !place) {
            place = Place{generation, look.found};
        } else if (look.look == Look::Row && !Expired(look.found)) {
            if (InCurrent()) leftover = place->found;
            place = Place{generation, look.found};
        } else if (look.look == Look::Row && generation == table.current_generation) {
            leftover = look.found;
        }
        return true;
    }

    bool LookInCurrent() { return OpenCurrent() && LookIn(*current, table.current_generation); }

    // The event's row where this transaction holds the claim.
    bool FindOwn() {
        const OpenClaim *claim = FindOpenClaim(table.relation, call.event.key);
        if (claim == nullptr || claim->generation != table.current_generation || !OpenCurrent()) return false;
        std::optional<Found> own = ReadOwnRow(*current, claim->at);
        if (own) place = Place{claim->generation, *own};
        return own.has_value();
    }

    // Looks into the sealed ones of these slots (a bit each), newest first, until the event is found alive.
    bool LookInSealed(uint64_t slots) {
        for (int64_t g = table.current_generation - 1; g >= table.FirstGeneration() && !FoundLive(); g--) {
            if ((slots >> table.SlotOf(g).number & 1) == 0) continue;
            OpenedSlot sealed;
            if (!Open(g, AccessShareLock, &sealed)) return false;
            bool looked = LookIn(sealed, g);
            CloseSlot(sealed, false);
            if (!looked) return false;
        }
        return true;
    }

    // The slots of sealed generations that may hold the event.
    uint64_t Candidates() const {
        uint64_t sealed = 0;
        uint64_t unwatched = 0;
        for (int64_t g = table.FirstGeneration(); g < table.current_generation; g++) {
            const Slot &slot = table.SlotOf(g);
            uint64_t bit = uint64_t{1} << slot.number;
            sealed |= bit;
            if (!slot.watched) unwatched |= bit;
        }
        if (sealed == unwatched || table.strays) return sealed;
        uint64_t may_hold = SlotsThatMayHold(table.filter, table.relation, table.oldest_generation, call.event.key);
        return sealed & (may_hold | unwatched);
    }

    // Finds the event where it lives, or else where it expired. Each look-up of a claim may come in any order, as its
    // insert would conflict; nor does the order matter to what is found alive. But "nowhere" is certain to a settling
    // only if the current generation was looked into after the sealed ones: another may move the row meanwhile.
    bool FindRow() {
        if (FindOwn()) return true;
        uint64_t candidates = Candidates();
        bool few = table.filter >= 0 && std::popcount(candidates) <= kFewGenerations;
        if (candidates == 0 || few) return LookInSealed(candidates) && (FoundLive() || LookInCurrent());
        if (!LookInCurrent() || !LookInSealed(candidates)) return false;
        return FoundLive() || Claims(call) || LookInCurrent();
    }

    const Place *WhereFound() const { return place ? &*place : nullptr; }

    // Raises 40001 where the row that decides is too new for the transaction's snapshot.
    bool CheckSnapshot() {
        if (!IsolationUsesXactSnapshot()) return true;
        if (InCurrent()) {
            CheckVisible(*current, place->found.at);
            return true;
        }
        OpenedSlot sealed;
        if (!Open(place->generation, AccessShareLock, &sealed)) return false;
        CheckVisible(sealed, place->found.at);
        CloseSlot(sealed, false);
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
    bool WriteRow(const Decision &decision, Written *written, ItemPointerData *at) {
        EventRow row = RowOf(table, call, WhereFound(), decision);
        if (!OpenCurrent()) return false;
        Oid locked = TryOpenForWriting(&*current);
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
        *written = leftover ? UpdateRow(*current, *leftover, &row, at) : InsertRow(*current, &row, at);
        // Who saw the sealed row had to delete it first, so nobody else can have come between.
        if (place && *written != Written::Done)
            elog(ERROR, "event moved out of a sealed generation of \"%s\" exists in the current one", table.name);
        return true;
    }

    // Tells the transaction's list of open claims what happened.
    void Track(const Decision &decision, const ItemPointerData &at, bool wrote) {
        const OpenClaim *open = FindOpenClaim(table.relation, call.event.key);
        if (call.action == Action::Acquire && policy.transaction_mode && wrote &&
            decision.outcome == Outcome::Acquired) {
            // A payload that an earlier try brought goes with the claim: its row says done and has none.
            bool inherits = call.payload == nullptr && GoesOn(WhereFound(), decision);
            Jsonb *payload = inherits ? PayloadOf(place->found.row) : call.payload;
            OpenClaim claim = {table.relation, call.event.key, table.current_generation, at, decision.record, payload};
            AddOpenClaim(claim, call.event.handler, call.event.event_id);
        } else if (Settles(call) && open != nullptr) {
            SettleOpenClaim(open);
        }
    }

    // Raises the fault, unless it may go away.
    bool Refuse(const Decision &decision, const Sighting &seen) {
        bool may_pass = decision.fault == Fault::LeaseLost && seen.holder == Holder::Other;
        if (!patient || !may_pass) RaiseFault(decision.fault, call, seen.record);
        end = TryAgain();
        end.end = Try::WaitForHolder;
        return false;
    }

    // Decides and writes; returns whether the current slot was written to.
    bool Settle() {
        Request request = RequestOf(policy, call);
        Sighting seen = SightingOf(table, call, WhereFound());
        seen.sealed = place && !InCurrent();
        Micros now = GetCurrentTimestamp();
        Decision decision = Decide(request, seen, now);
        if (decision.effect == Effect::Refuse) return Refuse(decision, seen);
        if (seen.found && seen.holder == Holder::Nobody && !CheckSnapshot()) return false;

        bool wrote = false;
        ItemPointerData at = {};
        if (decision.effect != Effect::Keep) {
            Written written = Written::Done;
            if (!WriteRow(decision, &written, &at)) return false;
            if (written == Written::Conflict) {
                end = TryAgain();
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
        end.end = Try::Answered;
        end.answer = AnswerOf(call, WhereFound(), decision, wrote || seen.holder != Holder::Other, wrote);
        return wrote;
    }
};
static_assert(std::is_trivially_destructible_v<Attempt>, "an error jumps over destructors");

}  // namespace

Try TryCallIn(DedupTable *table, const Policy &policy, const EventCall &call, bool patient,
              std::optional<OpenedSlot> *current, bool *wrote) {
    Attempt attempt = {*table, policy, call, patient, *current, std::nullopt, std::nullopt, TryAgain()};
    if (attempt.FindRow() && attempt.Settle()) *wrote = true;
    *current = attempt.current;
    return attempt.end;
}

Try TryCall(DedupTable *table, const Policy &policy, const EventCall &call, bool patient) {
    std::optional<OpenedSlot> current;
    bool wrote = false;
    Try end = TryCallIn(table, policy, call, patient, &current, &wrote);
    if (current) CloseSlot(*current, wrote);
    return end;
}

}  // namespace idem
