// A ring of generations: how many slots it may have, and when it turns.
#pragma once

#include <span>

#include "core/clock.hpp"
#include "core/state.hpp"

namespace idem {

constexpr int kFewestSlots = 2;
constexpr int kMostSlots = 64;

// For how long a generation of a ring with so many slots takes new events.
//
// An event lives for a cold window after its generation is sealed, so slots - 2 sealed generations and the current one
// hold what lives, and one more slot has the time of a generation to be emptied. With two slots there is no such time:
// the ring then turns once a cold window, as soon as the other slot has expired.
constexpr Micros GenerationSpan(Micros cold_window, int slots) {
    return slots > 2 ? cold_window / (slots - 2) : cold_window;
}

// When a generation has taken new events for long enough: after its span, but for as long as the slots must last.
//
// Where the cold window was shortened, sealed generations live on for longer than a turn of the ring takes. The slots
// that are left, and those which the sealed ones free as they expire, are spread over the time until then, so that the
// ring is never full and no generation lasts much longer than the others. `expiries` are those of the sealed
// generations, oldest first; `open_slots` how often the ring can turn before the oldest is emptied. What lies further
// away than any window is not waited for.
Micros TurnsAt(Micros opened_at, Micros span, int open_slots, std::span<const Micros> expiries, Micros now);

// Whether it is time to turn. A generation that was opened in the future has had its time: the clock was wrong then,
// and who knows for how long.
inline bool IsTimeToTurn(Micros opened_at, Micros turns_at, Micros now) {
    return turns_at <= now || IsToCome(opened_at, now);
}

}  // namespace idem
