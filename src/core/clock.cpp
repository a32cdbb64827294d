#include "core/clock.hpp"

#include <algorithm>
#include <cstdlib>

namespace idem {
namespace {

// Nobody slews a clock faster.
Micros Slew(Micros elapsed) { return elapsed / 100; }

}  // namespace

bool ClockFits(Micros wall_progress, Micros steady_progress) {
    return std::abs(wall_progress - steady_progress) <= std::max(kClockSlack, Slew(steady_progress));
}

ClockLook LookAtClock(const std::optional<ClockMemory> &before, const ClockReading &now, Micros patience) {
    if (!before) return {{now, 0, std::nullopt}, ClockNews::None, 0};
    const ClockReading &last = before->last;
    Micros progress = now.wall - last.wall;
    bool same_run = now.run == last.run;
    Micros elapsed = std::max<Micros>(same_run ? now.steady - last.steady : 0, 0);
    ClockLook look = {{now, before->calm, before->doubted_since}, ClockNews::None, progress - elapsed};

    if (!ClockFits(progress, elapsed)) {
        look.memory.calm = 0;
        look.memory.doubted_since = now.wall;
        look.news = same_run ? ClockNews::Jumped : ClockNews::Gap;
    } else {
        if (!same_run) elapsed = std::max<Micros>(progress, 0);
        // Many small steps would otherwise make a large one that nobody has noticed.
        Micros most = same_run ? Slew(elapsed) : kClockSlack;
        look.memory.last.wall = last.wall + elapsed + std::clamp(progress - elapsed, -most, most);
        look.memory.calm += elapsed;
    }
    if (look.memory.calm >= patience) {
        if (look.memory.doubted_since && patience > 0) look.news = ClockNews::Settled;
        if (patience == 0) look.news = ClockNews::None;
        look.memory.doubted_since.reset();
    }
    return look;
}

}  // namespace idem
