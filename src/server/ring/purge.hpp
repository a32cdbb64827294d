// Purging: what has expired goes, table by table, without anybody having to ask.
//
// All of this is called in a transaction with a non-atomic SPI connection (SPI_connect_ext(SPI_OPT_NONATOMIC)) and no
// active snapshot; it commits after each step and leaves a new transaction open.
#pragma once

#include "server/ring/clock_watch.hpp"
#include "server/ring/step.hpp"

namespace idem {

// One pass over one dedup table: seals, retires and empties, turns, where each is due. Acts as the table's owner.
// Raises what goes wrong with this table.
//
// The caller has begun the pass by the clock (clock_watch.hpp).
void PurgeTable(Oid dedup, Patience patience, Pace pace);

// The tables that a pass over a database came to.
struct Purged {
    int tables;
    int failed;
};

// The same for every dedup table of this database that the current user owns. One that is locked is passed by; a
// table's fault is reported (a WARNING, when it is news) and does not stop the rest.
Purged PurgeDatabase(Pace pace, Whose whose);

// Retires what has expired, and turns the ring of one dedup table whether that is due or not. Raises 55000 for a table
// that a subscription writes to.
void RotateTable(Oid dedup);

}  // namespace idem
