#include "server/claim/bypass.hpp"

#include "server/claim/judging.hpp"
#include "server/claim/tally.hpp"
#include "server/table/dedup_table.hpp"

namespace idem {
namespace {

constexpr int kMostTables = 1024;

struct Count {
    Oid database;
    Oid dedup;
    int64_t bypassed;
};

struct Counts {
    Count tables[kMostTables];
};

Counts *counts = nullptr;
LWLock *lock = nullptr;

struct Identified {
    Oid dedup;
    Key key;
};
static_assert(sizeof(Identified) == 20, "hashed as bytes, so it must have no padding");

// What became of a claim of this transaction. The newest on an event counts.
struct Claimed {
    Identified event;
    SubTransactionId in;
    bool bypassed;  // false: the store has taken it after all
    Claimed *earlier;
    Claimed *earlier_on_event;
};

struct Entry {
    Identified event;
    Claimed *latest;  // nullptr: it was rolled back
};

// In TopTransactionContext; nullptr between transactions, and as long as none was bypassed.
Claimed *latest = nullptr;
HTAB *events = nullptr;

// The table's count, or else a free one; nullptr if there is none.
Count *CountOf(Oid dedup) {
    Count *free = nullptr;
    for (Count &count : counts->tables) {
        if (count.database == MyDatabaseId && count.dedup == dedup) return &count;
        if (free == nullptr && count.database == InvalidOid) free = &count;
    }
    return free;
}

bool CountedOne(Oid dedup) {
    LWLockAcquire(lock, LW_EXCLUSIVE);
    Count *count = CountOf(dedup);
    if (count != nullptr) *count = {MyDatabaseId, dedup, count->bypassed + 1};
    LWLockRelease(lock);
    return count != nullptr;
}

// Frees the counts of what is gone; gone() is asked with no lock held.
template <class F>
void FreeCounts(F gone) {
    if (counts == nullptr) return;
    for (Count &count : counts->tables) {
        LWLockAcquire(lock, LW_SHARED);
        Count seen = count;
        LWLockRelease(lock);
        if (seen.database == InvalidOid || !gone(seen)) continue;
        LWLockAcquire(lock, LW_EXCLUSIVE);
        if (count.database == seen.database && count.dedup == seen.dedup) count = {};
        LWLockRelease(lock);
    }
}

void CountBypass(Oid dedup) {
    if (counts == nullptr || CountedOne(dedup)) return;
    ForgetBypassCounts([](Oid table) { return SearchSysCacheExists1(RELOID, ObjectIdGetDatum(table)); });
    (void)CountedOne(dedup);
}

Entry *EntryOf(const EventCall &call, HASHACTION action, bool *found) {
    Identified event = {call.dedup, call.event.key};
    return static_cast<Entry *>(hash_search(events, &event, action, found));
}

void Remember(const EventCall &call, bool bypassed) {
    if (events == nullptr) {
        HASHCTL control = {};
        control.keysize = sizeof(Identified);
        control.entrysize = sizeof(Entry);
        control.hcxt = TopTransactionContext;
        events = hash_create("idem bypassed events", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
    }
    auto *claimed = static_cast<Claimed *>(MemoryContextAlloc(TopTransactionContext, sizeof(Claimed)));
    bool found = false;
    Entry *entry = EntryOf(call, HASH_ENTER, &found);
    *claimed = {entry->event, GetCurrentSubTransactionId(), bypassed, latest, found ? entry->latest : nullptr};
    latest = claimed;
    entry->latest = claimed;
}

// While a savepoint is open, all younger ids are its own and those of savepoints in it.
void OnSavepoint(SubXactEvent event, SubTransactionId savepoint, SubTransactionId, void *) {
    if (event != SUBXACT_EVENT_ABORT_SUB) return;
    while (latest != nullptr && latest->in >= savepoint) {
        auto *entry = static_cast<Entry *>(hash_search(events, &latest->event, HASH_FIND, nullptr));
        entry->latest = latest->earlier_on_event;
        latest = latest->earlier;
    }
}

// The server reports a file that may not be opened, or not be written any more, as if the user lacked a privilege.
bool IsFileError(const ErrorData &error) {
    return error.saved_errno == EACCES || error.saved_errno == EPERM || error.saved_errno == EROFS;
}

}  // namespace

bool MayBypass(const EventCall &call) {
    if (!Claims(call)) return false;
    std::string_view handler = ViewOf(call.event.handler);
    // The table may be what is not available; its policy is elsewhere.
    const DedupTable *table = LoadedDedupTable(call.dedup);
    std::optional<Policy> policy = table != nullptr ? table->PolicyOf(handler) : ReadPolicyOf(call.dedup, handler);
    if (!policy || !policy->allows_unavailable) return false;
    CheckWindows(*policy, call);
    return true;
}

bool IsUnavailable(const ErrorData &error) {
    switch (error.sqlerrcode) {
        case ERRCODE_READ_ONLY_SQL_TRANSACTION:
        case ERRCODE_LOCK_NOT_AVAILABLE:
        case ERRCODE_WRONG_OBJECT_TYPE:                 // registered, but not in order
        case ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE:  // without replica identity
        case ERRCODE_DATA_CORRUPTED:
        case ERRCODE_INDEX_CORRUPTED:
        case ERRCODE_INTERNAL_ERROR:  // what can't happen in an intact store, and system errors without a code
            return true;
        case ERRCODE_INSUFFICIENT_PRIVILEGE:
            return IsFileError(error);
    }
    int category = ERRCODE_TO_CATEGORY(error.sqlerrcode);
    return category == ERRCODE_INSUFFICIENT_RESOURCES || category == ERRCODE_SYSTEM_ERROR;
}

EventAnswer Bypass(const EventCall &call) {
    CountBypass(call.dedup);
    CountOne(call.dedup, ViewOf(call.event.handler), Counter::Bypassed);
    Remember(call, true);
    EventAnswer answer = {};
    answer.decision.outcome = Outcome::Bypassed;
    answer.decision.retry_after = kForever;
    answer.ours = true;
    return answer;
}

void WarnBypassed(const EventCall &first, int events, const char *why) {
    char *event = text_to_cstring(first.event.event_id);
    char *handler = text_to_cstring(first.event.handler);
    ereport(WARNING,
            (errcode(ERRCODE_WARNING),
             events == 1 ? errmsg("event \"%s\" of handler \"%s\" is not protected against duplicates", event, handler)
                         : errmsg("%d events of handler \"%s\" are not protected against duplicates", events, handler),
             errdetail("The store is not available: %s.", why)));
}

void ForgetBypass(const EventCall &call, const EventAnswer &answer) {
    if (answer.decision.outcome == Outcome::Acquired && IsBypassed(call)) Remember(call, false);
}

bool IsBypassed(const EventCall &call) {
    if (events == nullptr) return false;
    const Entry *entry = EntryOf(call, HASH_FIND, nullptr);
    return entry != nullptr && entry->latest != nullptr && entry->latest->bypassed;
}

bool HasBypassed() { return latest != nullptr; }

EventAnswer SettleBypassed(const EventCall &call) {
    EventAnswer answer = {};
    answer.ours = true;
    answer.error = call.error;
    bool released = call.action == Action::Fail || call.action == Action::GiveBack;
    answer.decision.outcome = released ? Outcome::Backoff : Outcome::Bypassed;
    answer.decision.retry_after = released ? call.retry_after.value_or(0) : kForever;
    return answer;
}

std::optional<int64_t> BypassCount(Oid dedup) {
    if (counts == nullptr) return std::nullopt;
    std::optional<int64_t> bypassed;
    LWLockAcquire(lock, LW_SHARED);
    if (const Count *count = CountOf(dedup)) bypassed = count->database == InvalidOid ? 0 : count->bypassed;
    LWLockRelease(lock);
    return bypassed;
}

const SharedPart kBypassCounts = {"idem bypass counts", [] { return sizeof(Counts); },
                                  [](void *memory, LWLock *its_lock) {
                                      counts = static_cast<Counts *>(memory);
                                      lock = its_lock;
                                  }};

void ForgetBypasses() {
    latest = nullptr;
    events = nullptr;
}

void ForgetBypassCounts(bool (*exists)(Oid dedup)) {
    FreeCounts([&](const Count &count) { return count.database == MyDatabaseId && !exists(count.dedup); });
}

void ForgetBypassCountsOfDatabases(bool (*exists)(Oid database)) {
    FreeCounts([&](const Count &count) { return !exists(count.database); });
}

void WatchBypasses() { RegisterSubXactCallback(OnSavepoint, nullptr); }

}  // namespace idem
