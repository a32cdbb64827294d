// The events of one ordering key are worked on one after another, in the order of their receipt, however many workers
// there are.
//
// Who hands one out takes a lock on its key first, without waiting, and keeps it until his transaction ends; and looks
// only then, with a snapshot taken after that, whether an earlier event is unsettled or any is being worked on. So of
// two who are at a key at the same time one goes by, and the next one sees what the one before has committed.
#pragma once

#include "server/claim/ordering_key.hpp"

namespace idem {

// What one call learns about the keys which it meets, so that each is looked at once and not for each event behind it.
class Orderings {
public:
    // Whether the event's turn has come: then nobody else is given one of its key until the transaction ends. A further
    // one of the same key in one transaction has to wait for its end. `skips_dead`: a dead event blocks nobody.
    // The caller is connected to SPI.
    bool TakeTurn(const Waiter &waiter, bool skips_dead);

private:
    HTAB *blocked_ = nullptr;  // keys, and the earliest event of each that was found to be blocked
};

}  // namespace idem
