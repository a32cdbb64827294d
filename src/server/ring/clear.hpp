// Clearing a generation in the middle of the ring: it has expired before older ones, as the cold window was shortened
// or the clock was wrong.
#pragma once

#include "server/ring/step.hpp"

namespace idem {

// Whether all settled events of a sealed generation but the oldest would have expired by now, when last counted.
bool ExpiredBeforeOlder(const DedupTable &table);

// Empties such generations. They stay in the ring, where slots are freed in the order of their opening, but hold
// nothing. Moves their unsettled events to the current generation first.
void ClearGenerations(const Pass &pass);

}  // namespace idem
