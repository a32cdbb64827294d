// Making and registering dedup tables.
#pragma once

#include "server/base/postgres.hpp"
#include "server/table/registry.hpp"

namespace idem {

// Creates a dedup table with its partitions as the current user, and registers it. `name` is as a user writes it:
// schema-qualified or not, quoted or not. Raises 42622 if it is too long for its partitions, and what CREATE TABLE
// raises.
Oid CreateDedupTable(text *name, const Policy &policy, int generations, bool unlogged);

// Registers a dedup table that is there already; all its slots are in the ring. The caller has checked ownership.
void AttachDedupTable(Oid dedup, const Policy &policy);

}  // namespace idem
