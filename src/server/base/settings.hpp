// The extension's settings (GUCs).
#pragma once

#include "server/base/postgres.hpp"

namespace idem {

// idem.backoff_jitter: which part (0 … 1) of its longest pause a failed event waits; below zero = by chance.
extern double backoff_jitter;

// idem.clock_patience, in s: for how long the clock must hold steady after a jump before it is believed again.
extern int clock_patience_s;

// The names in idem.databases, as a list of char * in the current memory context; nullptr = all databases.
List *DatabaseNames();

// Whether purging in a database of that name is wanted: idem.databases names it, or none.
bool IsListed(const char *database);

// idem.max_result_size, in kB: the largest result that idem_commit and idem_accept store.
extern int max_result_size_kb;

// idem.filter_memory, in kB: shared memory for the filters of sealed generations. Without preloading there is none.
extern int filter_memory_kb;

// idem.ghost_memory, in kB: shared memory for the ghosts of emptied generations. Without preloading there is none.
extern int ghost_memory_kb;

// idem.purge: whether the worker purges.
extern bool purge_enabled;

// idem.purge_lock_timeout, in ms: how long purging waits for a lock.
extern int purge_lock_timeout_ms;

// idem.purge_naptime, in s: how long the worker rests between two passes.
extern int purge_naptime_s;

// idem.purge_table_timeout, in s: how long a pass over all tables stays with one; 0 = as long as it takes.
extern int purge_table_timeout_s;

// idem.stat_handlers: of so many handlers is counted what they are answered. Without preloading there is none.
extern int stat_handlers;

// idem.verify_purge: whether a generation is scanned for live events before it is emptied.
extern bool verify_purge;

// To be called once, when the library is loaded.
void DefineSettings();

}  // namespace idem
