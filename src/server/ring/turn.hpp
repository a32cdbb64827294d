// Turning the ring: the next generation is opened, and takes new events from then on.
#pragma once

#include "server/ring/step.hpp"

namespace idem {

// Opens the next generation. Where there is no slot for it, warns if that is news; events go on into the current one.
void TurnRing(const Pass &pass);

}  // namespace idem
