// The launcher: a process of the server's own which has every database purged in turn.
//
// It is connected to no database, and the worker that it starts for one is gone when the pass is over; so nobody who
// drops, renames or copies a database ever finds idem in the way, and however many databases there are, two slots of
// max_worker_processes are enough.
#pragma once

namespace idem {

// Has the server start the launcher. To be called while shared_preload_libraries are loaded.
void RegisterLauncher();

}  // namespace idem
