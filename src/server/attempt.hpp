// One try at a call, in the generations as they are while the gate is held. It waits for nothing; it says what to wait
// for.
#pragma once

#include "server/event_call.hpp"

namespace idem {

struct Try {
    enum { Answered, Again, WaitForInsertion, WaitForLock, WaitForHolder } end;
    TransactionId inserter;  // WaitForInsertion: until it has inserted, or not
    uint32 token;
    Oid locked;  // WaitForLock: this lock on this relation
    LOCKMODE lock;
    EventAnswer answer;  // Answered
};

// The caller holds the gate, and found the table current under it. Raises what Perform does. `patient`: a settling
// whose row is in another transaction's hands ends as WaitForHolder, instead of raising ID001.
Try TryCall(DedupTable *table, const EventCall &call, bool patient);

}  // namespace idem
