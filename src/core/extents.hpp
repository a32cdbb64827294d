// Where in a piece of memory there is room for one more extent.
#pragma once

#include <cstdint>
#include <span>

namespace idem {

struct Extent {
    uint64_t offset;
    uint64_t size;
};

// The first gap between the extents in use that has at least the wanted size; where there is none, the largest gap, of
// size 0 if all is in use. The extents do not overlap, and end at `memory` at the latest; they get sorted.
Extent FindGap(std::span<Extent> in_use, uint64_t memory, uint64_t wanted);

}  // namespace idem
