#include "server/bypass.hpp"

#include "server/dedup_table.hpp"

namespace idem {
namespace {

constexpr const char *kName = "idem bypass counts";
constexpr int kMostTables = 256;

struct Count {
    Oid database;
    Oid dedup;
    int64_t bypassed;
};

struct Counts {
    LWLock *lock;
    Count tables[kMostTables];
};

Counts *counts = nullptr;
shmem_request_hook_type earlier_request_hook = nullptr;
shmem_startup_hook_type earlier_startup_hook = nullptr;

struct Bypassed {
    Oid dedup;
    Key key;
    Bypassed *next;
};

// Claims of this transaction, in TopTransactionContext; nullptr between transactions.
Bypassed *bypassed = nullptr;

void RequestMemory() {
    if (earlier_request_hook != nullptr) earlier_request_hook();
    RequestAddinShmemSpace(MAXALIGN(sizeof(Counts)));
    RequestNamedLWLockTranche(kName, 1);
}

void AttachMemory() {
    if (earlier_startup_hook != nullptr) earlier_startup_hook();
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    bool found = false;
    counts = static_cast<Counts *>(ShmemInitStruct(kName, sizeof(Counts), &found));
    if (!found) {
        memset(counts, 0, sizeof(Counts));
        counts->lock = &GetNamedLWLockTranche(kName)->lock;
    }
    LWLockRelease(AddinShmemInitLock);
}

// The table's count, or a free one; nullptr if there is none.
Count *CountOf(Oid dedup) {
    for (Count &count : counts->tables) {
        if (count.database == MyDatabaseId && count.dedup == dedup) return &count;
        if (count.database == InvalidOid) return &count;
    }
    return nullptr;
}

void CountOne(Oid dedup) {
    if (counts == nullptr) return;
    LWLockAcquire(counts->lock, LW_EXCLUSIVE);
    if (Count *count = CountOf(dedup)) {
        count->database = MyDatabaseId;
        count->dedup = dedup;
        count->bypassed++;
    }
    LWLockRelease(counts->lock);
}

void Remember(const EventCall &call) {
    auto *claim = static_cast<Bypassed *>(MemoryContextAlloc(TopTransactionContext, sizeof(Bypassed)));
    *claim = {call.dedup, call.event.key, bypassed};
    bypassed = claim;
}

bool IsUnavailable(int sqlstate) {
    switch (sqlstate) {
        case ERRCODE_READ_ONLY_SQL_TRANSACTION:
        case ERRCODE_LOCK_NOT_AVAILABLE:
        case ERRCODE_WRONG_OBJECT_TYPE:                 // registered, but not in order
        case ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE:  // without replica identity
        case ERRCODE_DATA_CORRUPTED:
        case ERRCODE_INDEX_CORRUPTED:
        case ERRCODE_INTERNAL_ERROR:
            return true;
    }
    int category = ERRCODE_TO_CATEGORY(sqlstate);
    return category == ERRCODE_INSUFFICIENT_RESOURCES || category == ERRCODE_SYSTEM_ERROR;
}

EventAnswer Bypass(const EventCall &call, const char *why) {
    CountOne(call.dedup);
    Remember(call);
    ereport(WARNING, (errcode(ERRCODE_WARNING),
                      errmsg("event \"%s\" of handler \"%s\" is not protected against duplicates",
                             text_to_cstring(call.event.event_id), text_to_cstring(call.event.handler)),
                      errdetail("The store is not available: %s.", why)));
    return BypassedAnswer();
}

}  // namespace

bool MayBypass(const EventCall &call) {
    if (call.action != Action::Acquire && call.action != Action::Accept) return false;
    std::string_view handler = ViewOf(call.event.handler);
    if (const DedupTable *table = LoadedDedupTable(call.dedup)) return table->PolicyOf(handler).allows_unavailable;
    // The table may be what is not available; its policy is elsewhere.
    std::optional<Policy> policy = ReadPolicyOf(call.dedup, handler);
    return policy && policy->allows_unavailable;
}

EventAnswer PerformOrBypass(const EventCall &call, EventAnswer (*perform)(const EventCall &)) {
    if (XactReadOnly || RecoveryInProgress()) return Bypass(call, "the transaction is read-only");

    MemoryContext context = CurrentMemoryContext;
    ResourceOwner owner = CurrentResourceOwner;
    EventAnswer answer = {};
    ErrorData *volatile error = nullptr;
    BeginInternalSubTransaction(nullptr);
    MemoryContextSwitchTo(context);
    PG_TRY();
    {
        answer = perform(call);
        ReleaseCurrentSubTransaction();
    }
    PG_CATCH();
    {
        MemoryContextSwitchTo(context);
        error = CopyErrorData();
        FlushErrorState();
        // Also before it goes up: who catches it there rolls back the subtransaction that is current, as its own.
        RollbackAndReleaseCurrentSubTransaction();
        MemoryContextSwitchTo(context);
        CurrentResourceOwner = owner;
        if (!IsUnavailable(error->sqlerrcode)) ReThrowError(error);
    }
    PG_END_TRY();
    MemoryContextSwitchTo(context);
    CurrentResourceOwner = owner;
    return error == nullptr ? answer : Bypass(call, error->message);
}

bool IsBypassed(Oid dedup, const Key &key) {
    for (const Bypassed *claim = bypassed; claim != nullptr; claim = claim->next)
        if (claim->dedup == dedup && memcmp(&claim->key, &key, sizeof(Key)) == 0) return true;
    return false;
}

bool HasBypassed() { return bypassed != nullptr; }

EventAnswer BypassedAnswer() {
    EventAnswer answer = {};
    answer.decision.outcome = Outcome::Bypassed;
    answer.decision.retry_after = kForever;
    answer.ours = true;
    return answer;
}

std::optional<int64_t> BypassCount(Oid dedup) {
    if (counts == nullptr) return std::nullopt;
    std::optional<int64_t> bypassed;
    LWLockAcquire(counts->lock, LW_SHARED);
    if (const Count *count = CountOf(dedup)) bypassed = count->database == InvalidOid ? 0 : count->bypassed;
    LWLockRelease(counts->lock);
    return bypassed;
}

void ReserveBypassCounts() {
    earlier_request_hook = shmem_request_hook;
    shmem_request_hook = RequestMemory;
    earlier_startup_hook = shmem_startup_hook;
    shmem_startup_hook = AttachMemory;
}

void ForgetBypasses() { bypassed = nullptr; }

}  // namespace idem
