// The statements that run in this session, one within another, as functions run statements of their own.
//
// A function that only claims, called in the WHERE of an UPDATE, is evaluated again with it (claim/evaluation.hpp). Its
// own statement can't see that; the one it was called from can.
#pragma once

#include "server/base/postgres.hpp"

namespace idem {

// Whether a statement that was running when this command wrote something still runs, and has evaluated rows again.
bool EvaluatedAgainSince(CommandId command);

// To be called once, when the library is loaded. The statement that loads it is not seen.
void WatchRunning();

}  // namespace idem
