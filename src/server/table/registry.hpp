// Which dedup tables there are, and the position of each one's ring: idem_control.
#pragma once

#include "server/base/postgres.hpp"
#include "server/table/policy.hpp"

namespace idem {

// Generation n lives in slot n modulo the number of slots; oldest … current may hold live events.
struct RingPosition {
    int slots;
    int64_t oldest;
    int64_t current;
};

// As it is now, whatever the isolation level. Returns false if the table is not registered.
bool ReadRingPosition(Oid dedup, RingPosition *position);

// Registers a dedup table, and forgets the tables that were dropped. The caller has checked ownership: the registry is
// written whatever privileges the user has on it. Raises 42710 if the table is registered already.
void Register(Oid dedup, const Policy &policy, RingPosition position);

// Writes the ring's position and tells all sessions when the transaction commits. The caller closes the
// gate before it commits.
void WriteRingPosition(Oid dedup, RingPosition position);

// The registered tables, as a list of OIDs; dropped ones among them.
List *RegisteredTables();

// Calls use() on every registered table, dropped ones among them, in the order of their OIDs.
void ReadRingPositions(void (*use)(Oid dedup, const RingPosition &, void *), void *argument);

}  // namespace idem
