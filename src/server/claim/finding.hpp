// Finding the row of an event, in the generations as they are while the gate is held.
//
// Nothing here waits: what is in the way ends the try, and is waited for outside the gate.
#pragma once

#include "server/claim/call.hpp"
#include "server/table/slot_access.hpp"

namespace idem {

// Where the event's row was found.
struct Place {
    int64_t generation;
    Found found;
};

// Why a try ended before its answer; what to wait for before the next one.
struct Obstacle {
    enum { Change, Insertion, Lock, Holder } kind;  // Change: of the table, or of the row; the next try may begin
    TransactionId inserter;                         // Insertion: until it has inserted, or not
    uint32 token;
    Oid locked;  // Lock: this lock on this relation
    LOCKMODE lock;
};

Obstacle ChangeInTheWay();
Obstacle LockInTheWay(Oid relation, LOCKMODE lock);

// One search for a call's event. Each step returns false when `obstacle` says why it could not be taken.
class Finding {
public:
    // `current`: the current partition, if it is open already; who closes it is the caller.
    Finding(DedupTable *table, const EventCall &call, std::optional<OpenedSlot> current)
        : table_(*table), call_(call), current_(current), obstacle_(ChangeInTheWay()) {}

    // Finds the event where it lives, or else where it expired, or nowhere.
    bool FindRow();

    bool Open(int64_t generation, LOCKMODE lock, OpenedSlot *opened);
    bool OpenCurrent();

    const std::optional<Place> &place() const { return place_; }

    // An expired row in the current generation, where the place is elsewhere.
    const std::optional<Found> &leftover() const { return leftover_; }

    const Place *WhereFound() const { return place_ ? &*place_ : nullptr; }
    bool InCurrent() const;

    // Of OpenCurrent() and after it.
    std::optional<OpenedSlot> &current() { return current_; }
    const Obstacle &obstacle() const { return obstacle_; }

private:
    bool Expired(const Found &found) const;
    bool FoundLive() const { return place_ && !Expired(place_->found); }
    bool LookIn(const OpenedSlot &opened, int64_t generation);
    bool LookInCurrent() { return OpenCurrent() && LookIn(*current_, table_.current_generation); }
    bool FindOwn();
    bool LookInSealed(uint64_t slots);
    uint64_t Candidates() const;

    DedupTable &table_;
    const EventCall &call_;
    std::optional<OpenedSlot> current_;
    std::optional<Place> place_;
    std::optional<Found> leftover_;
    Obstacle obstacle_;
};
static_assert(std::is_trivially_destructible_v<Finding>, "an error jumps over destructors");

}  // namespace idem
