// Purging: what has expired goes, table by table, without anybody having to ask.
#pragma once

#include "server/postgres.hpp"

namespace idem {

// One pass over one dedup table: turns the ring where it is due, retires and empties what has expired, seals. Acts as
// the table's owner. Called in a transaction with a non-atomic SPI connection (SPI_connect_ext(SPI_OPT_NONATOMIC)) and
// no active snapshot; commits after each step and leaves a new transaction open. A table that somebody has locked is
// skipped. Raises what goes wrong with this table.
void PurgeTable(Oid dedup);

// The same for every dedup table of this database that the current user may purge; a table's fault is reported
// (WARNING, with context) and does not stop the rest. Returns the number of tables that failed.
int PurgeDatabase();

}  // namespace idem
