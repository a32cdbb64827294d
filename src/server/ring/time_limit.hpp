// How long a pass may stay with one table, so that no table keeps the others from being purged.
#pragma once

#include "server/base/postgres.hpp"

namespace idem {

// From now on this process is cancelled, as by pg_cancel_backend, once that time is over; 0 = never.
void StartTimeLimit(int seconds);

// No longer; tells whether the time was over. May be called again, and where none was started.
bool StopTimeLimit();

}  // namespace idem
