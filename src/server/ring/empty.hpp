// Emptying slots that are not in the ring.
#pragma once

#include "server/ring/step.hpp"

namespace idem {

enum class Proof : uint8_t { Needed, Given };

enum class Emptied : uint8_t {
    Yes,
    InUse,    // somebody reads or locks it, or it is in the ring by now
    Doubted,  // it holds events, and the clock is not believed that they have expired
    Lives,    // it holds live events: somebody else has written them
};

// Empties the slot of a generation that is not in the ring, so nobody but a reader of the table can be in it.
Emptied EmptySlot(DedupTable &table, int64_t generation, Proof proof);

// Empties a partition, which the caller has locked against everybody, and counts its bytes as freed.
void TruncateSlot(const DedupTable &table, const Slot &slot);

// Empties slots outside the ring; those that hold live events, which somebody else has written, are taken into it.
// Gives partitions back the trigger that tells of others' writes.
void TidySlots(const Pass &pass);

// Whether some partition is to get back that trigger.
bool AnyWantsTouch(const DedupTable &table, Pace pace);

// Takes all slots into the ring, so that what somebody else has written there is kept, counted and emptied as all else.
void AdoptStrays(const Pass &pass);

}  // namespace idem
