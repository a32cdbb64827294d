// Fail-open: what a claim answers when the store is not available and the policy says `allow`.
//
// Not available is what is nobody's fault who calls: a read-only server or transaction, a lock that can't be had in
// time, a full disk, a read error, a corrupted index, a partition that is missing. Bad arguments, missing privileges, a
// cancelled call and a serialization failure are raised whatever the policy says.
#pragma once

#include "server/base/shared_memory.hpp"
#include "server/base/subtransaction.hpp"
#include "server/claim/call.hpp"

namespace idem {

// Whether the policy of the call's handler lets it go on unprotected; claims only. If so, raises 22023 for windows
// longer than the policy's, as there may be no store to do so.
bool MayBypass(const EventCall &call);

// Whether an error says that the store is not available.
bool IsUnavailable(const ErrorData &error);

// Calls perform() in a subtransaction. Returns nullptr, or, with nothing done, why the store is not available.
template <class F>
const char *WhyUnavailable(F perform) {
    if (RecoveryInProgress()) return "the server is a standby";
    if (XactReadOnly) return "the transaction is read-only";
    errno = 0;  // IsUnavailable() looks at what became of it
    const ErrorData *error = InSubtransaction(IsUnavailable, perform);
    return error == nullptr ? nullptr : error->message;
}

// Answers a claim `bypassed` and counts it; the transaction remembers it, so that settling it is no error.
EventAnswer Bypass(const EventCall &call);

// Tells the client, and the server's log, of so many events of a handler that were bypassed; the first is named.
void WarnBypassed(const EventCall &first, int events, const char *why);

// The store has answered a claim. If that is acquired, an earlier one that was bypassed doesn't matter any more.
void ForgetBypass(const EventCall &call, const EventAnswer &answer);

// Whether this transaction's claim on the event was bypassed; whether any was.
bool IsBypassed(const EventCall &call);
bool HasBypassed();

// What settling or extending it answers.
EventAnswer SettleBypassed(const EventCall &call);

// How often claims on a dedup table were bypassed since the server started, rolled back or not; nothing if the library
// is not preloaded, or if more tables had such claims than are counted.
std::optional<int64_t> BypassCount(Oid dedup);

// Free the counts of the current database's tables, or of the databases, which are gone; exists() is asked with no lock
// held.
void ForgetBypassCounts(bool (*exists)(Oid dedup));
void ForgetBypassCountsOfDatabases(bool (*exists)(Oid database));

// Once a transaction has ended, or is prepared.
void ForgetBypasses();

// Where they are counted.
extern const SharedPart kBypassCounts;

// To be called once, when the library is loaded.
void WatchBypasses();

}  // namespace idem
