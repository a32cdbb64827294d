// Turning the ring of a dedup table: open the next generation, retire and empty the oldest.
#pragma once

#include "server/postgres.hpp"

namespace idem {

// Retires and empties the oldest generations which have expired as a whole, then opens the next one. Where all slots
// are taken by generations that can't be retired, warns and leaves the current one open. Commits after each step, so it
// must be called from a procedure outside a transaction block, with SPI connected. The caller has checked ownership.
// Raises 42501 if the user does not own a partition, 55P03 if the gate can't be had in time.
void RotateRing(Oid dedup);

}  // namespace idem
