// What is not settled in a dedup table, by handler and state: for who looks after it.
#pragma once

#include "core/state.hpp"
#include "server/base/postgres.hpp"

namespace idem {

// Of one handler, or of a whole table where it could not be read.
struct Unsettled {
    text *handler;  // nullptr: a partition is locked
    Oid state;      // a label of idem_state
    int64_t events;
    TimestampTz oldest;  // when the first of them was first seen
    TimestampTz due;     // when the next of them is due; infinity = never by itself
};

// Calls use(Unsettled) for each handler and state of the dedup table, in the order of their names. Reads the index on
// what is due, which settled events are not in, as the table's owner; the caller has seen to it that the user may know.
// Waits for no lock: where somebody has locked a partition, it calls use once with nothing. Must be connected to SPI.
void ReadUnsettled(Oid dedup, void (*use)(const Unsettled &unsettled, void *argument), void *argument);

}  // namespace idem
