// Extents: the first gap that is large enough, or the largest there is.
#include "core/extents.hpp"

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace idem {

bool operator==(const Extent &a, const Extent &b) { return a.offset == b.offset && a.size == b.size; }

void PrintTo(const Extent &extent, std::ostream *out) { *out << extent.size << " at " << extent.offset; }

namespace {

Extent Find(std::vector<Extent> in_use, uint64_t memory, uint64_t wanted) { return FindGap(in_use, memory, wanted); }

TEST(Extents, EmptyMemoryIsOneGap) {
    EXPECT_EQ(Find({}, 100, 1), (Extent{0, 100}));
    EXPECT_EQ(Find({}, 100, 100), (Extent{0, 100}));
    EXPECT_EQ(Find({}, 100, 101), (Extent{0, 100}));
    EXPECT_EQ(Find({}, 0, 1), (Extent{0, 0}));
}

TEST(Extents, TheFirstGapThatFitsIsTaken) {
    std::vector<Extent> in_use = {{60, 10}, {10, 20}, {50, 10}};  // gaps: 10 at 0, 20 at 30, 30 at 70
    EXPECT_EQ(Find(in_use, 100, 1), (Extent{0, 10}));
    EXPECT_EQ(Find(in_use, 100, 10), (Extent{0, 10}));
    EXPECT_EQ(Find(in_use, 100, 11), (Extent{30, 20}));
    EXPECT_EQ(Find(in_use, 100, 21), (Extent{70, 30}));
}

TEST(Extents, TheLargestGapIsTakenWhereNoneFits) {
    EXPECT_EQ(Find({{0, 10}, {40, 50}}, 100, 31), (Extent{10, 30}));
    EXPECT_EQ(Find({{30, 30}}, 90, 31), (Extent{0, 30})) << "the first of two as large";
    EXPECT_EQ(Find({{20, 30}}, 100, UINT64_MAX), (Extent{50, 50}));
}

TEST(Extents, FullMemoryHasNoGap) {
    EXPECT_EQ(Find({{0, 100}}, 100, 1).size, 0u);
    EXPECT_EQ(Find({{50, 50}, {0, 50}}, 100, 1).size, 0u);
}

// Beside a map of every byte, through thousands of extents that come and go.
TEST(Extents, NeverOverlap) {
    constexpr size_t kMemory = 200;
    std::mt19937 random(7);
    std::string map(kMemory, '.');
    std::vector<Extent> in_use;
    int found = 0, not_found = 0;
    for (int round = 0; round < 20000; round++) {
        uint64_t wanted = 1 + random() % 40;
        Extent gap = FindGap(in_use, kMemory, wanted);
        size_t first = map.find(std::string(wanted, '.'));
        if (first != std::string::npos) {
            ASSERT_EQ(gap.offset, first);
            ASSERT_GE(gap.size, wanted);
            map.replace(first, wanted, wanted, '#');
            in_use.push_back({gap.offset, wanted});
            found++;
        } else {
            ASSERT_LT(gap.size, wanted);
            ASSERT_EQ(map.find(std::string(gap.size + 1, '.')), std::string::npos) << "a larger gap is left";
            not_found++;
        }
        while (in_use.size() > 12 || (first == std::string::npos && !in_use.empty() && random() % 2 == 0)) {
            size_t i = random() % in_use.size();
            map.replace(in_use[i].offset, in_use[i].size, in_use[i].size, '.');
            in_use.erase(in_use.begin() + i);
        }
    }
    EXPECT_GT(found, 1000);
    EXPECT_GT(not_found, 1000);
}

}  // namespace
}  // namespace idem
