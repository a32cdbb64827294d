// Who owns a relation, and what the current user may do with it.
#pragma once

#include "server/base/postgres.hpp"

namespace idem {

// The owner of a relation; raises XX000 if there is none such.
Oid RelationOwner(Oid relation);

// Raises 42501 unless the current user owns the table.
void CheckOwner(Oid relation);

// Raises 42501 unless the current user has all these privileges on the table.
void CheckPrivileges(Oid relation, AclMode privileges);

}  // namespace idem
