#include "server/claim/finding.hpp"

#include <bit>

#include "server/claim/open_claims.hpp"
#include "server/table/filter_memory.hpp"

namespace idem {
namespace {

// As many sealed generations as are looked into before the current one, where a filter names them.
constexpr int kFewGenerations = 2;

}  // namespace

Obstacle ChangeInTheWay() { return {Obstacle::Change, InvalidTransactionId, 0, InvalidOid, NoLock}; }

Obstacle LockInTheWay(Oid relation, LOCKMODE lock) { return {Obstacle::Lock, InvalidTransactionId, 0, relation, lock}; }

bool Finding::Open(int64_t generation, LOCKMODE lock, OpenedSlot *opened) {
    Oid locked = TryOpenSlot(&table_.SlotOf(generation), lock, opened);
    if (OidIsValid(locked)) {
        obstacle_ = LockInTheWay(locked, lock);
        return false;
    }
    if (table_.current) return true;
    CloseSlot(*opened, false);  // taking the lock has told that the partition changed
    obstacle_ = ChangeInTheWay();
    return false;
}

bool Finding::OpenCurrent() {
    OpenedSlot opened;
    if (current_) return true;
    if (!Open(table_.current_generation, RowExclusiveLock, &opened)) return false;
    current_ = opened;
    return true;
}

bool Finding::InCurrent() const { return place_ && place_->generation == table_.current_generation; }

bool Finding::Expired(const Found &found) const {
    return !found.ours && !found.other && ExpiresAt(found.row) <= GetCurrentTimestamp();
}

bool Finding::LookIn(const OpenedSlot &opened, int64_t generation) {
    LookUp look = LookForKey(opened, call_.event.key, !Claims(call_));
    if (look.look == Look::Inserting) {
        obstacle_ = {Obstacle::Insertion, look.inserter, look.token, InvalidOid, NoLock};
        return false;
    }
    if (look.look == Look::Row && !place_) {
        place_ = Place{generation, look.found};
    } else if (look.look == Look::Row && !Expired(look.found)) {
        if (InCurrent()) leftover_ = place_->found;
        place_ = Place{generation, look.found};
    } else if (look.look == Look::Row && generation == table_.current_generation) {
        leftover_ = look.found;
    }
    return true;
}

// The event's row where this transaction holds the claim, unless something has changed that may have moved it.
bool Finding::FindOwn() {
    const OpenClaim *claim = FindOpenClaim(table_.relation, call_.event.key);
    if (claim == nullptr || claim->loaded != table_.loaded || claim->generation != table_.current_generation ||
        !OpenCurrent())
        return false;
    std::optional<Found> own = ReadOwnRow(*current_, claim->at, call_.event.key);
    if (own) place_ = Place{claim->generation, *own};
    return own.has_value();
}

// Looks into the sealed ones of these slots (a bit each), newest first, until the event is found alive.
bool Finding::LookInSealed(uint64_t slots) {
    for (int64_t g = table_.current_generation - 1; g >= table_.FirstGeneration() && !FoundLive(); g--) {
        if ((slots >> table_.SlotOf(g).number & 1) == 0) continue;
        OpenedSlot sealed;
        if (!Open(g, AccessShareLock, &sealed)) return false;
        bool looked = LookIn(sealed, g);
        CloseSlot(sealed, false);
        if (!looked) return false;
    }
    return true;
}

// The slots of sealed generations that may hold the event.
uint64_t Finding::Candidates() const {
    uint64_t sealed = 0;
    uint64_t unwatched = 0;
    for (int64_t g = table_.FirstGeneration(); g < table_.current_generation; g++) {
        const Slot &slot = table_.SlotOf(g);
        uint64_t bit = uint64_t{1} << slot.number;
        sealed |= bit;
        if (!slot.watched) unwatched |= bit;
    }
    if (sealed == unwatched || table_.strays) return sealed;
    uint64_t may_hold = SlotsThatMayHold(table_.filter, table_.relation, table_.oldest_generation, call_.event.key);
    return sealed & (may_hold | unwatched);
}

// Each look-up of a claim may come in any order, as its insert would conflict; nor does the order matter to what is
// found alive. But "nowhere" is certain to a settling only if the current generation was looked into after the sealed
// ones: another may move the row meanwhile.
bool Finding::FindRow() {
    if (FindOwn()) return true;
    uint64_t candidates = Candidates();
    bool few = table_.filter >= 0 && std::popcount(candidates) <= kFewGenerations;
    if (candidates == 0 || few) return LookInSealed(candidates) && (FoundLive() || LookInCurrent());
    if (!LookInCurrent() || !LookInSealed(candidates)) return false;
    return FoundLive() || Claims(call_) || LookInCurrent();
}

}  // namespace idem
