#include "server/claim/ordering.hpp"

#include "server/base/statement.hpp"

namespace idem {
namespace {

// So many locks at most does a transaction take, whatever the number of keys. Two keys that share one wait for each
// other now and then.
constexpr uint32 kLocks = 4096;

// The server's own advisory locks are of kinds 1 and 2.
constexpr uint16 kKindOfLock = 3;

LOCKTAG LockOf(Oid dedup, const Key &ordering) {
    uint32 number = 0;
    memcpy(&number, &ordering, sizeof(number));
    LOCKTAG tag;
    SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, dedup, number % kLocks, kKindOfLock);
    return tag;
}

struct BlockedKey {
    Key ordering;
    TimestampTz since;  // events received then or later are blocked
};

}  // namespace

bool Orderings::Blocked(const Waiter &waiter, bool skips_dead) {
    if (plan_ == nullptr) {
        // Written so that each half is a descent of the index, however many events wait behind.
        const char *query = psprintf(
            "SELECT FROM %1$s WHERE handler OPERATOR(pg_catalog.=) $1 AND ordering OPERATOR(pg_catalog.=) $2 "
            "AND claimable_at IS NOT NULL AND expires_at OPERATOR(pg_catalog.>) $3 "
            "AND (state OPERATOR(pg_catalog.=) 'processing') AND claimable_at OPERATOR(pg_catalog.>) $3 "
            "UNION ALL "
            "SELECT FROM %1$s WHERE handler OPERATOR(pg_catalog.=) $1 AND ordering OPERATOR(pg_catalog.=) $2 "
            "AND claimable_at IS NOT NULL AND expires_at OPERATOR(pg_catalog.>) $3 "
            "AND (state OPERATOR(pg_catalog.=) 'processing') OPERATOR(pg_catalog.=) ANY (ARRAY[false, true]) "
            "AND first_seen_at OPERATOR(pg_catalog.<=) $4 "
            "AND (first_seen_at OPERATOR(pg_catalog.<) $4 OR key OPERATOR(pg_catalog.<) $5) "
            "AND NOT ($6 AND state OPERATOR(pg_catalog.=) 'dead')",
            QualifiedNameOf(dedup_));
        Oid types[] = {TEXTOID, TEXTOID, TIMESTAMPTZOID, TIMESTAMPTZOID, UUIDOID, BOOLOID};
        plan_ = SPI_prepare(query, 6, types);
        if (plan_ == nullptr) elog(ERROR, "could not prepare: %s", SPI_result_code_string(SPI_result));
    }
    Datum values[] = {PointerGetDatum(waiter.handler),
                      PointerGetDatum(waiter.ordering),
                      TimestampTzGetDatum(GetCurrentTimestamp()),
                      TimestampTzGetDatum(waiter.first_seen_at),
                      PointerGetDatum(&waiter.key),
                      BoolGetDatum(skips_dead)};
    // Whatever the isolation level: what counts is what is committed now.
    PushActiveSnapshot(GetLatestSnapshot());
    int done = SPI_execute_plan(plan_, values, nullptr, true, 1);
    PopActiveSnapshot();
    if (done != SPI_OK_SELECT) elog(ERROR, "could not look for earlier events: %s", SPI_result_code_string(done));
    bool blocked = SPI_processed > 0;
    SPI_freetuptable(SPI_tuptable);
    return blocked;
}

bool Orderings::TakeTurn(const Waiter &waiter, bool skips_dead) {
    if (blocked_ == nullptr) {
        HASHCTL control = {};
        control.keysize = sizeof(Key);
        control.entrysize = sizeof(BlockedKey);
        control.hcxt = CurrentMemoryContext;
        blocked_ = hash_create("idem ordering keys", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
    }
    Key ordering = MakeKey(ViewOf(waiter.handler), ViewOf(waiter.ordering), std::string_view());
    bool known = false;
    auto *entry = static_cast<BlockedKey *>(hash_search(blocked_, &ordering, HASH_ENTER, &known));
    if (known && waiter.first_seen_at >= entry->since) return false;
    entry->since = waiter.first_seen_at;

    LOCKTAG tag = LockOf(dedup_, ordering);
    LockAcquireResult taken = LockAcquire(&tag, ExclusiveLock, false, true);
    if (taken == LOCKACQUIRE_OK && !Blocked(waiter, skips_dead)) return true;
    // Held before: this transaction was given an event of the key, and may still roll back to a savepoint.
    if (taken != LOCKACQUIRE_NOT_AVAIL) LockRelease(&tag, ExclusiveLock, false);
    return false;
}

}  // namespace idem
