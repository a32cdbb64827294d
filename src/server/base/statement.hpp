// SQL statements of idem's own: those for which the server has no better function.
#pragma once

#include "server/base/postgres.hpp"

namespace idem {

// Executes a statement; every name in it is qualified and quoted. The caller is connected to SPI.
void Execute(const char *statement);

// The name of a relation, as a statement needs it.
char *QualifiedNameOf(Oid relation);

}  // namespace idem
