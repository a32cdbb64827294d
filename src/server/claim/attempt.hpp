// One try at a call, in the generations as they are while the gate is held. It waits for nothing; it says what to wait
// for.
#pragma once

#include "server/claim/call.hpp"
#include "server/claim/finding.hpp"
#include "server/table/dedup_table.hpp"

namespace idem {

struct Try {
    std::optional<EventAnswer> answer;
    Obstacle obstacle;  // where there is no answer
};

// The caller holds the gate, and found the table current under it. Raises what Perform does. `patient`: a settling
// whose row is in another transaction's hands ends at that obstacle, instead of raising ID001.
Try TryCall(DedupTable *table, const Policy &policy, const EventCall &call, bool patient);

// The same for one of several calls on a table under one hold of the gate. They share the current partition, which the
// first that needs it opens, and the caller closes; `wrote` is set where one has written there.
Try TryCallIn(DedupTable *table, const Policy &policy, const EventCall &call, bool patient,
              std::optional<OpenedSlot> *current, bool *wrote);

}  // namespace idem
