// The extension's own SQLSTATEs, class ID.
#pragma once

#include "server/base/postgres.hpp"

namespace idem {

constexpr int kLeaseLost = MAKE_SQLSTATE('I', 'D', '0', '0', '1');
constexpr int kNoSuchClaim = MAKE_SQLSTATE('I', 'D', '0', '0', '2');
constexpr int kClaimUnsettled = MAKE_SQLSTATE('I', 'D', '0', '0', '3');
constexpr int kNotFinal = MAKE_SQLSTATE('I', 'D', '0', '0', '4');
constexpr int kStepNotAllowed = MAKE_SQLSTATE('I', 'D', '0', '0', '5');

}  // namespace idem
