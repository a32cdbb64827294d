// The events of one ordering key are worked on one after another, in the order of their receipt, however many workers
// there are.
//
// Who hands one out takes a lock on its key first, without waiting, and keeps it until his transaction ends; and looks
// only then, with a snapshot taken after that, whether an earlier event is unsettled or any is being worked on. So of
// two who are at a key at the same time one goes by, and the next one sees what the one before has committed. It is an
// advisory lock of a kind that no SQL function can take.
#pragma once

#include "core/key.hpp"
#include "server/base/arguments.hpp"
#include "server/base/postgres.hpp"

namespace idem {

// An event that waits, as far as its order matters.
struct Waiter {
    text *handler;
    text *ordering;
    Key key;  // of the event
    TimestampTz first_seen_at;
};

// What one call learns about the keys which it meets, so that each is looked at once and not for each event behind it.
class Orderings {
public:
    explicit Orderings(Oid dedup) : dedup_(dedup) {}

    // Whether the event's turn has come: then nobody else is given one of its key until the transaction ends. A further
    // one of the same key in one transaction has to wait for its end. `skips_dead`: a dead event blocks nobody.
    // The caller is connected to SPI.
    bool TakeTurn(const Waiter &waiter, bool skips_dead);

private:
    bool Blocked(const Waiter &waiter, bool skips_dead);

    Oid dedup_;
    HTAB *blocked_ = nullptr;  // keys, and the earliest event of each that was found to be blocked
    SPIPlanPtr plan_ = nullptr;
};

}  // namespace idem
