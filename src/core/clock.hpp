// Whether the wall clock may be believed, and what lies in the future by more than it can explain.
//
// What is old is told by the wall clock, and what is old is destroyed; a clock that is wrong for seconds must not
// destroy all memory. A second clock which nobody sets tells how much time has passed, as long as the machine runs.
// Over its restart there is only the wall clock's last reading: one that was off for a month looks as one whose clock
// has jumped. So after a jump one waits until the clock has held steady for a while, and then believes it again.
#pragma once

#include <optional>

#include "core/state.hpp"

namespace idem {

// So much may a clock be off by for no reason worth a word; and so may it be corrected at once.
constexpr Micros kClockSlack = 60 * kSecond;

struct ClockReading {
    Micros wall;    // as everybody reads it
    Micros steady;  // since some moment, never set; goes on while the machine sleeps
    int64_t run;    // of the machine: within one, `steady` of two readings may be compared
};

// What is remembered between two looks.
struct ClockMemory {
    ClockReading last;                    // its wall time follows the clock, but no faster than a clock is slewed
    Micros calm;                          // for how long it has held steady, since the latest jump
    std::optional<Micros> doubted_since;  // by its own wall time; nothing: it is believed
};

enum class ClockNews : uint8_t {
    None,
    Jumped,   // within a run of the machine
    Gap,      // between two runs: it has jumped, or the machine was off
    Settled,  // it is believed again
};

struct ClockLook {
    ClockMemory memory;  // to be remembered
    ClockNews news;
    Micros off;  // Jumped, Gap: by how much it is ahead of what was to be expected; negative = behind
};

// Whether the wall clock's progress fits that of the steady one: all but a minute, or one per cent, is explained.
bool ClockFits(Micros wall_progress, Micros steady_progress);

// Looks at the clock; nothing remembered = believed. It is doubted after a jump until it has held steady for
// `patience`; 0 = never.
ClockLook LookAtClock(const std::optional<ClockMemory> &before, const ClockReading &now, Micros patience);

// Whether a moment that should be past lies in the future: the clock was ahead when it was noted.
constexpr bool IsToCome(Micros moment, Micros now) { return moment > now + kClockSlack; }

// Whether what should happen at `next`, at most `interval` away when that was noted, is to happen now.
constexpr bool IsUp(Micros next, Micros interval, Micros now) { return next <= now || next > now + interval; }

}  // namespace idem
