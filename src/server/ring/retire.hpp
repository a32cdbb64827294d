// Retiring: the oldest generation leaves the ring once all that is in it has expired.
#pragma once

#include "server/ring/step.hpp"

namespace idem {

// Retires and empties the oldest generations as long as all that is in them has expired. Moves unsettled events to the
// current generation first.
void RetireGenerations(const Pass &pass);

// Whether it is worth locking and scanning the oldest generation: there is one, and when last counted all its settled
// events would have expired by now.
bool MayHaveExpired(const DedupTable &table);

}  // namespace idem
