#include "core/ring.hpp"

#include <algorithm>

#include "core/window.hpp"

namespace idem {

Micros TurnsAt(Micros opened_at, Micros span, int open_slots, std::span<const Micros> expiries, Micros now) {
    Micros opened = std::min(opened_at, now);
    if (open_slots <= 0) return opened + span;
    Micros longest = span;
    int64_t generations = open_slots + 1;
    for (Micros expiry : expiries) {
        if (expiry > now + kLongestWindow) break;
        longest = std::max(longest, (expiry - opened) / generations);
        generations++;
    }
    return opened + longest;
}

}  // namespace idem
