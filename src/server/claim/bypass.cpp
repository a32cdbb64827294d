#include "server/claim/bypass.hpp"

#include "server/claim/judging.hpp"
#include "server/table/dedup_table.hpp"

namespace idem {
namespace {

constexpr int kMostTables = 256;

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

// What became of a claim of this transaction. The newest on an event counts.
struct Claimed {
    Oid dedup;
    Key key;
    SubTransactionId in;
    bool bypassed;  // false: the store has taken it after all
    Claimed *earlier;
};

// In TopTransactionContext; nullptr between transactions, and as long as none was bypassed.
Claimed *latest = nullptr;

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
    LWLockAcquire(lock, LW_EXCLUSIVE);
    if (Count *count = CountOf(dedup)) {
        count->database = MyDatabaseId;
        count->dedup = dedup;
        count->bypassed++;
    }
    LWLockRelease(lock);
}

void Remember(const EventCall &call, bool bypassed) {
    auto *claimed = static_cast<Claimed *>(MemoryContextAlloc(TopTransactionContext, sizeof(Claimed)));
    *claimed = {call.dedup, call.event.key, GetCurrentSubTransactionId(), bypassed, latest};
    latest = claimed;
}

// While a savepoint is open, all younger ids are its own and those of savepoints in it.
void OnSavepoint(SubXactEvent event, SubTransactionId savepoint, SubTransactionId, void *) {
    if (event != SUBXACT_EVENT_ABORT_SUB) return;
    while (latest != nullptr && latest->in >= savepoint) latest = latest->earlier;
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
    CountOne(call.dedup);
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
    for (const Claimed *claimed = latest; claimed != nullptr; claimed = claimed->earlier)
        if (claimed->dedup == call.dedup && memcmp(&claimed->key, &call.event.key, sizeof(Key)) == 0)
            return claimed->bypassed;
    return false;
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

void ForgetBypasses() { latest = nullptr; }

void WatchBypasses() { RegisterSubXactCallback(OnSavepoint, nullptr); }

}  // namespace idem
