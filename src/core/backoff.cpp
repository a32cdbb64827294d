#include "core/backoff.hpp"

#include <algorithm>

namespace idem {

Micros PauseAfter(const Backoff &backoff, int32_t failures) {
    Micros longest = std::min(backoff.base, backoff.cap);
    for (int32_t i = 1; i < failures && longest > 0 && longest < backoff.cap; i++)
        longest = longest > backoff.cap / 2 ? backoff.cap : 2 * longest;
    if (backoff.fraction >= 1) return longest;  // as a double it may be rounded up, beyond what fits
    return static_cast<Micros>(static_cast<double>(longest) * backoff.fraction);
}

}  // namespace idem
