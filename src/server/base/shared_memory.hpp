// Shared memory of idem's own, which the server reserves as it starts: only where the library is preloaded.
//
// Several things live in it. They share one place in the server's chains of hooks, so that each says only what it is.
#pragma once

#include "server/base/postgres.hpp"

namespace idem {

// One thing in shared memory. It is all zeros when the server starts, at the same address in every process, and has an
// LWLock of its own.
struct SharedPart {
    const char *name;                            // of the memory and of its lock's tranche
    Size (*size)();                              // asked after the settings are defined; 0 = it is not wanted
    void (*attach)(void *memory, LWLock *lock);  // tells the process where it is
};

// Has the server reserve the parts. To be called once, while shared_preload_libraries are loaded.
void ReserveSharedMemory(std::span<const SharedPart *const> parts);

// Whether the server has preloaded the library.
bool IsPreloaded();

}  // namespace idem
