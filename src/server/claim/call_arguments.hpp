// The arguments that functions on events share: read, checked, made a call.
#pragma once

#include "server/claim/call.hpp"

namespace idem {

constexpr int kMostOwnerBytes = 255;
// What is kept of an error, and how long a note may be.
constexpr int kMostErrorBytes = 64 * 1024;

// An error of whatever length, cut at a character's end: a failure counts however much its handler has to say.
text *ErrorText(const char *bytes, int size);
text *ErrorText(const text *error);

// A call on an event: arguments 0 to 3 are dedup, handler, event_id, batch. Raises 22004 and 22023 for those, 42501
// without the privileges on the table. The second is for what writes: it needs INSERT and UPDATE.
EventCall CallOnEvent(FunctionCallInfo fcinfo, Action action, AclMode privileges);
EventCall WritingCall(FunctionCallInfo fcinfo, Action action);

// Null stays null. Raises 22023 for what idem_fingerprint did not make.
bytea *FingerprintArgument(FunctionCallInfo fcinfo, int number);
bytea *CheckFingerprint(bytea *fingerprint);

Jsonb *JsonbArgument(FunctionCallInfo fcinfo, int number);

// Raises 22023 for a result larger than idem.max_result_size.
Jsonb *ResultArgument(FunctionCallInfo fcinfo, int number);
Jsonb *CheckResult(Jsonb *result);

// A pause from zero up; null = nothing. Raises 22023.
std::optional<Micros> PauseArgument(FunctionCallInfo fcinfo, int number, const char *name);

// Raises 22023 for a release that says there is to be no retry, and no error or when the retry is due.
void CheckGivesUp(const EventCall &release);

}  // namespace idem
