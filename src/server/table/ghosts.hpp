// Ghosts: the filters of generations that were emptied, kept for a while to count what came too late.
//
// A new event that a ghost knows was probably done and forgotten: its cold window is too short. Nothing is ever
// answered by a ghost, so it may err, and it may go: where memory is short, where the table's filter changes its size,
// at a restart. How often it errs by chance is told with what it counts.
//
// Whoever asks takes no lock (core/shared_filter.hpp); all else takes the lock "idem ghosts" for microseconds.
#pragma once

#include "core/key.hpp"
#include "server/base/postgres.hpp"
#include "server/base/shared_memory.hpp"

namespace idem {

// Keeps the filter of a generation that is about to be retired, if it has one. The caller keeps other builders out, as
// for the filter. Raises an error if it is interrupted.
void KeepGhost(Oid dedup, int slot, int64_t generation);

// What a ghost says of a new event.
struct GhostAnswer {
    bool knows;
    double by_chance;  // how likely it says so of an event that it doesn't know
};
GhostAnswer AskGhosts(Oid dedup, const Key &key);

// Forgets the ghosts of dropped dedup tables of this database, and of dropped databases.
void DropGhosts(bool (*table_exists)(Oid dedup), bool (*database_exists)(Oid database));

// Where they are: idem.ghost_memory, and what describes them.
extern const SharedPart kGhostMemory;

}  // namespace idem
