#include "server/claim/ordering.hpp"

namespace idem {
namespace {

struct BlockedKey {
    Key ordering;
    TimestampTz since;  // events received then or later are blocked
};

}  // namespace

bool Orderings::TakeTurn(const Waiter &waiter, bool skips_dead) {
    if (blocked_ == nullptr) {
        HASHCTL control = {};
        control.keysize = sizeof(Key);
        control.entrysize = sizeof(BlockedKey);
        control.hcxt = CurrentMemoryContext;
        blocked_ = hash_create("idem ordering keys", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
    }
    Key ordering = MakeKey(ViewOf(waiter.of.handler), ViewOf(waiter.of.ordering), std::string_view());
    bool known = false;
    auto *entry = static_cast<BlockedKey *>(hash_search(blocked_, &ordering, HASH_ENTER, &known));
    if (known && waiter.first_seen_at >= entry->since) return false;
    entry->since = waiter.first_seen_at;

    LockAcquireResult taken = TryLockKey(waiter.of, LockFor::Turn, ExclusiveLock);
    if (taken == LOCKACQUIRE_OK) {
        bool blocked = LookAtKey(LookFor::Blocker, waiter, skips_dead);
        SPI_freetuptable(SPI_tuptable);
        if (!blocked) return true;
    }
    // Held before: this transaction was given an event of the key, and may still roll back to a savepoint.
    if (taken != LOCKACQUIRE_NOT_AVAIL) UnlockKey(waiter.of, LockFor::Turn, ExclusiveLock);
    return false;
}

}  // namespace idem
