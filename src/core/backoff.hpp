// How long a failed event waits for its next try: exponential backoff with full jitter, so that events which failed
// together are not tried again together (Brooker, "Exponential Backoff and Jitter", AWS Architecture Blog, 2015).
#pragma once

#include <cstdint>

#include "core/state.hpp"

namespace idem {

// The pause after so many failures (from 1): the part `fraction` (0 … 1) of base * 2^(failures - 1), or of the cap
// where that is more.
Micros PauseAfter(const Backoff &backoff, int32_t failures);

}  // namespace idem
