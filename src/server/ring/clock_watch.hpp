// By which time a pass judges what has expired: by the wall clock's, if it may be believed (core/clock.hpp).
//
// What the clock was at the last pass is on disk, a row of idem_clock in each database.
#pragma once

#include "core/clock.hpp"
#include "server/base/postgres.hpp"

namespace idem {

enum class Whose : uint8_t {
    Automatic,  // by the worker or a scheduler: waits while the clock is doubted
    ByHand,     // somebody who knows what time it is has asked for it
};

// To be called as a pass begins, in a transaction with a non-atomic SPI connection and no active snapshot: compares the
// clock with what it was, notes that and commits. Warns when it has jumped.
void BeginPassByClock(Whose whose);

// The time, by which may be judged what has expired; nothing while the clock is doubted, or since it jumped in the
// middle of the pass.
std::optional<Micros> PurgeTime();

}  // namespace idem
