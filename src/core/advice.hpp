// Which windows the measured traffic asks for.
//
// A window has a lower bound that can be measured: hot, how long work takes; cold, when the latest duplicate may still
// come. What people replay by hand can't be measured, so a cold window is never advised to be shorter than it is.
#pragma once

#include "core/numbers.hpp"

namespace idem {

// Below so many, nothing is advised: the slowest percent would be less than one of them.
constexpr uint64_t kFewestForAdvice = 100;

// A window is advised as a multiple of what was measured, as the next percent is not known.
constexpr double kMargin = 2.5;

struct Spans {
    uint64_t count;
    Micros p50;
    Micros p90;
    Micros p99;
    Micros p99_low;  // between these by two standard errors of the sample
    Micros p99_high;
    Micros longest;
};

struct Advice {
    uint64_t events;          // seen for the first time
    Spans redelivered;        // from first to last delivery, of events that were redelivered
    Spans all;                // the same of all events: those that were not have a span of zero
    Spans work;               // from claim to settling
    Micros hot;               // 0 = too little was seen
    Micros retry_span;        // how long the sender goes on redelivering by itself; 0 = too little was seen
    Micros cold;              // at least; 0 = too little was seen
    bool redelivery_is_busy;  // a lease of this length outlives the sender's last redelivery
};

// Whether so many are more than chance explains, which alone would have made `by_chance` of them: by three standard
// deviations (a Poisson distribution's is the root of its mean).
bool MoreThanChance(double seen, double by_chance);

// `hot_window`: the one that holds now.
Advice AdviseWindows(const Numbers &numbers, Micros hot_window);

}  // namespace idem
