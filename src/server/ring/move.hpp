// Unsettled events outlive their generation: before it is emptied, they are moved to the current one.
#pragma once

#include "server/ring/step.hpp"

namespace idem {

// Moves the live unsettled events of a sealed generation, in steps of a few. Those that somebody is at stay, and with
// them the generation. Each is moved under the gate, so a claim's holder meets it in one place or the other.
void MoveUnsettled(const Pass &pass, int64_t generation);

}  // namespace idem
