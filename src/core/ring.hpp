// A ring of generations: how many slots it may have, and when it turns.
#pragma once

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

}  // namespace idem
