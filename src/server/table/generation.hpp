// What is known of each generation in a dedup table's ring: idem_generation.
//
// Retiring never relies on it alone: it tells when to look, a scan proves (ring.cpp).
#pragma once

#include "core/state.hpp"
#include "server/base/postgres.hpp"

namespace idem {

// What a scan found in a generation.
struct Census {
    int64_t events;
    int64_t unsettled;                              // of these
    std::optional<Micros> newest_expiry;            // of the settled ones; nothing: there is none
    std::optional<Micros> newest_unsettled_expiry;  // of the others; not registered
};

struct Generation {
    Micros opened_at;
    std::optional<Census> census;  // nothing: not scanned yet
    Micros scanned_at;             // when the census was taken
};

// The generation as registered now; nothing if it isn't in the ring.
std::optional<Generation> ReadGeneration(Oid dedup, int64_t generation);

// Calls use() on every generation that is registered, whatever its table; they come in the order of tables and numbers.
void ReadGenerations(void (*use)(Oid dedup, int64_t generation, const Generation &, void *), void *argument);

// Each writes one row. The caller has locked the ring against others who turn it.
void RecordOpened(Oid dedup, int64_t generation);
void RecordSealed(Oid dedup, int64_t generation);
void RecordCensus(Oid dedup, int64_t generation, const Census &census);
void RecordRetired(Oid dedup, int64_t generation);

}  // namespace idem
