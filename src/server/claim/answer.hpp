// The SQL type idem_claim: what is answered to a claim or a release.
#pragma once

#include "server/claim/call.hpp"

namespace idem {

// acquired, outcome, attempt, first_seen_at, retry_after, result, error.
constexpr int kClaimColumns = 7;
void SetClaim(const EventAnswer &answer, Datum *values, bool *nulls);

// The same as a row of the type.
Datum ClaimOf(const EventAnswer &answer);

}  // namespace idem
