// Fail-open: what a claim answers when the store is not available and the policy says `allow`.
//
// Not available is what is nobody's fault who calls: a read-only server or transaction, a lock that can't be had in
// time, a full disk, a read error, a corrupted index, a partition that is missing. Bad arguments, missing privileges, a
// cancelled call and a serialization failure are raised whatever the policy says.
#pragma once

#include "server/event_call.hpp"

namespace idem {

// Whether the policy of the call's handler lets it go on unprotected; claims only.
bool MayBypass(const EventCall &call);

// Carries out the call by perform(), in a subtransaction; answers `bypassed` with a WARNING if the store is not
// available. Remembers that for the transaction, so that settling the claim is no error.
EventAnswer PerformOrBypass(const EventCall &call, EventAnswer (*perform)(const EventCall &));

// Whether this transaction's claim on the event was bypassed.
bool IsBypassed(Oid dedup, const Key &key);

// Whether this transaction has any such claim.
bool HasBypassed();

// What settling it answers.
EventAnswer BypassedAnswer();

// How often claims on a dedup table were bypassed since the server started, rolled back or not; nothing if the library
// is not preloaded, or if more tables had such claims than are counted.
std::optional<int64_t> BypassCount(Oid dedup);

// Once a transaction has ended, or is prepared.
void ForgetBypasses();

// To be called once, while shared_preload_libraries are loaded.
void ReserveBypassCounts();

}  // namespace idem
