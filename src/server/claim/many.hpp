// Many events of one handler in one call.
#pragma once

#include "server/claim/call.hpp"

namespace idem {

// Carries out the calls, which are of one table, handler, batch and action, and sets an answer for each. The same as
// Perform for each in the order of their keys, but for what they share: the gate and the current partition are taken
// once for some of them. Where an event is claimed twice, the second claim is answered `duplicate` of the first.
// Where the store is not available and the policy says `allow`, all claims are answered `bypassed`.
void PerformMany(const EventCall *calls, int count, EventAnswer *answers);

}  // namespace idem
