// Reads and checks the arguments of SQL functions; each raises a clear error and never returns a bad value.
#pragma once

#include "core/key.hpp"
#include "core/state.hpp"
#include "server/base/postgres.hpp"

namespace idem {

constexpr int kMostHandlerBytes = 255;
constexpr int kMostEventIdBytes = 1024;
constexpr int kMostBatchBytes = 255;

// Identity of an event. The texts live as long as the call.
struct Identity {
    text *handler;
    text *event_id;
    text *batch;  // null = none
    Key key;
};

Identity MakeIdentity(text *handler, text *event_id, text *batch);

std::string_view ViewOf(const text *value);

// Server text as UTF-8, of which keys and fingerprints are made, so that an event keeps them in a database of another
// encoding. Raises 22021 or 22P05 for what has no such form.
std::string_view Utf8(std::string_view bytes);

// Raises 22004 with the argument's name if it is null.
void RequireArgument(FunctionCallInfo fcinfo, int number, const char *name);

// Arguments number, number+1 and number+2: handler, event_id, batch.
// Raises 22004 (null), 22023 (empty or too long), 22021 (not valid in the server's encoding).
Identity IdentityArgument(FunctionCallInfo fcinfo, int number);

// A window out of an interval; raises 22023 (months or years, with a hint; not positive; too long).
Micros WindowOfInterval(const Interval *interval, const char *name);

// The same, but it may be zero.
Micros PauseOfInterval(const Interval *interval, const char *name);

// The same for an argument; null = `otherwise`.
Micros WindowArgument(FunctionCallInfo fcinfo, int number, const char *name, Micros otherwise);

Interval *IntervalOfSpan(Micros span);

// 0 = not given. Both raise 22023 unless positive.
int32_t AttemptArgument(FunctionCallInfo fcinfo, int number);
int32_t CheckAttempt(int32_t attempt);

// Null stays null (returns nullptr). Raises 22023 if the text is empty or too long.
text *NonEmptyTextArgument(FunctionCallInfo fcinfo, int number, const char *name, int most_bytes);

// Raise 22023 if the text is too long; the second also if it is empty.
void CheckLength(const text *value, const char *name, int most_bytes);
text *CheckText(text *value, const char *name, int most_bytes);

// Words of a policy: "transaction" or "lease"; "allow" or "reject". Raise 22023 for any other.
bool TransactionModeOf(std::string_view mode);
bool AllowsUnavailable(std::string_view word);

}  // namespace idem
