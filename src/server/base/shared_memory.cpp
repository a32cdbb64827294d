#include "server/base/shared_memory.hpp"

namespace idem {
namespace {

std::span<const SharedPart *const> reserved;
bool attached = false;
shmem_request_hook_type earlier_request_hook = nullptr;
shmem_startup_hook_type earlier_startup_hook = nullptr;

void RequestMemory() {
    if (earlier_request_hook != nullptr) earlier_request_hook();
    for (const SharedPart *part : reserved) {
        if (part->size() == 0) continue;
        RequestAddinShmemSpace(MAXALIGN(part->size()));
        RequestNamedLWLockTranche(part->name, 1);
    }
}

void AttachMemory() {
    if (earlier_startup_hook != nullptr) earlier_startup_hook();
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    for (const SharedPart *part : reserved) {
        if (part->size() == 0) continue;
        bool found = false;
        void *memory = ShmemInitStruct(part->name, part->size(), &found);
        if (!found) memset(memory, 0, part->size());
        part->attach(memory, &GetNamedLWLockTranche(part->name)->lock);
    }
    LWLockRelease(AddinShmemInitLock);
    attached = true;
}

}  // namespace

void ReserveSharedMemory(std::span<const SharedPart *const> parts) {
    reserved = parts;
    earlier_request_hook = shmem_request_hook;
    shmem_request_hook = RequestMemory;
    earlier_startup_hook = shmem_startup_hook;
    shmem_startup_hook = AttachMemory;
}

bool IsPreloaded() { return attached; }

}  // namespace idem
