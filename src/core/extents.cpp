#include "core/extents.hpp"

#include <algorithm>

namespace idem {

Extent FindGap(std::span<Extent> in_use, uint64_t memory, uint64_t wanted) {
    std::sort(in_use.begin(), in_use.end(), [](const Extent &a, const Extent &b) { return a.offset < b.offset; });
    Extent largest = {};
    uint64_t start = 0;
    for (size_t i = 0; i <= in_use.size(); i++) {
        uint64_t end = i < in_use.size() ? in_use[i].offset : memory;
        Extent gap = {start, end - start};
        if (gap.size >= wanted) return gap;
        if (gap.size > largest.size) largest = gap;
        if (i < in_use.size()) start = in_use[i].offset + in_use[i].size;
    }
    return largest;
}

}  // namespace idem
