// The filter must never say that a column lacks a key which was added to it: that would be an event done twice. How
// often it says "maybe" in vain decides only what it costs.
#include "core/filter.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace idem {
namespace {

// Key n of a column; no two are alike.
Key KeyOf(int column, int n) { return MakeKey("column " + std::to_string(column), std::to_string(n), {}); }

uint64_t Bit(int column) { return uint64_t{1} << column; }

// A filter with nothing in it, or everything, between bytes that are not its own.
class Filter {
public:
    explicit Filter(FilterShape filter_shape, uint8_t fill = 0) : shape(filter_shape) {
        bytes_.assign(FilterBytes(shape) + 2 * kMargin, kForeign);
        std::fill_n(bits(), FilterBytes(shape), fill);
    }

    void Add(const Key &key, int column) { AddKey(bits(), shape, key, column); }
    void Clear(int column) { ClearColumn(bits(), shape, column); }
    uint64_t MayHold(const Key &key, uint64_t asked = kAllColumns) {
        return ColumnsThatMayHold(bits(), shape, key, asked);
    }

    bool At(uint64_t row, int column) {
        return (bits()[row * ((shape.columns + 7) / 8) + column / 8] >> column % 8 & 1) != 0;
    }
    std::vector<uint64_t> RowsOf(int column) {
        std::vector<uint64_t> rows;
        for (uint64_t row = 0; row < shape.positions; row++)
            if (At(row, column)) rows.push_back(row);
        return rows;
    }
    bool LeftTheRestAlone() {
        auto foreign = [](uint8_t byte) { return byte == kForeign; };
        return std::all_of(bytes_.begin(), bytes_.begin() + kMargin, foreign) &&
               std::all_of(bytes_.end() - kMargin, bytes_.end(), foreign);
    }
    uint8_t *bits() { return bytes_.data() + kMargin; }

    const FilterShape shape;

private:
    static constexpr size_t kMargin = 16;
    static constexpr uint8_t kForeign = 0xa5;
    std::vector<uint8_t> bytes_;
};

// The share of the keys that a column doesn't hold and yet seems to, in 1/10000.
double FalsePositives(FilterShape shape, int keys_per_column) {
    Filter filter(shape);
    for (int column = 0; column < shape.columns; column++)
        for (int n = 0; n < keys_per_column; n++) filter.Add(KeyOf(column, n), column);
    constexpr int kAsked = 50000;
    int held = 0;
    for (int n = 0; n < kAsked; n++) held += __builtin_popcountll(filter.MayHold(KeyOf(-1, n)));
    return 10000.0 * held / kAsked / shape.columns;
}

TEST(Filter, FilledColumnHoldsEveryKeyGivenAsIfAddedAtOnce) {
    for (int keys : {0, 1, 7, 8, 9, 100}) {
        Filter one_by_one({1000, 13});
        Filter filled({1000, 13});
        ColumnFiller filler(filled.bits(), filled.shape, 9);
        for (int n = 0; n < keys; n++) {
            one_by_one.Add(KeyOf(9, n), 9);
            filler.Add(KeyOf(9, n));
        }
        filler.Finish();
        EXPECT_EQ(filled.RowsOf(9), one_by_one.RowsOf(9)) << keys;
        for (int column = 0; column < 13; column++) EXPECT_EQ(filled.RowsOf(column).empty(), column != 9 || keys == 0);
        EXPECT_TRUE(filled.LeftTheRestAlone());
    }
}

// Columns share bytes, so a filler that wrote late could undo what its neighbour wrote meanwhile.
TEST(Filter, FinishedFillerHasNothingLeftToWrite) {
    Filter filter({1000, 13});
    ColumnFiller filler(filter.bits(), filter.shape, 9);
    for (int n = 0; n < 100; n++) filler.Add(KeyOf(9, n));
    filler.Finish();
    filter.Clear(9);
    filler.Finish();
    EXPECT_TRUE(filter.RowsOf(9).empty());
}

TEST(Filter, NeverDeniesAKey) {
    for (uint64_t positions : {1, 2, 3, 7, 64, 1000})
        for (int columns = 1; columns <= kMostColumns; columns++) {
            Filter filter({positions, columns});
            for (int n = 0; n < 8; n++)
                for (int column = 0; column < columns; column++) filter.Add(KeyOf(column, n), column);
            for (int n = 0; n < 8; n++)
                for (int column = 0; column < columns; column++)
                    ASSERT_NE(filter.MayHold(KeyOf(column, n)) & Bit(column), 0u)
                        << positions << " positions, column " << column << " of " << columns;
            ASSERT_TRUE(filter.LeftTheRestAlone()) << positions << " positions, " << columns << " columns";
        }
}

TEST(Filter, NamesColumnsItHasAndWasAskedForOnly) {
    for (int columns = 1; columns <= kMostColumns; columns++) {
        Filter full({10, columns}, 0xff);
        uint64_t whole_bytes = kAllColumns >> (64 - (columns + 7) / 8 * 8);
        EXPECT_EQ(full.MayHold(KeyOf(0, 0)), whole_bytes);
        EXPECT_EQ(full.MayHold(KeyOf(0, 0), Bit(columns - 1)), Bit(columns - 1));
        EXPECT_EQ(full.MayHold(KeyOf(0, 0), 0), 0u);
    }
}

TEST(Filter, EmptyHoldsNothing) {
    for (int columns : {1, 8, 9, 64})
        for (int n = 0; n < 100; n++) EXPECT_EQ(Filter({1000, columns}).MayHold(KeyOf(0, n)), 0u);
}

TEST(Filter, AKeySetsAtMostSevenBitsOfItsColumnAndNoOther) {
    for (int columns : {1, 7, 8, 9, 23, 64})
        for (int column = 0; column < columns; column++) {
            Filter filter({1000, columns});
            filter.Add(KeyOf(column, 1), column);
            size_t rows = filter.RowsOf(column).size();
            EXPECT_LE(rows, 7u);
            EXPECT_GE(rows, 5u);
            for (int other = 0; other < columns; other++) {
                EXPECT_EQ(filter.RowsOf(other).empty(), other != column);
            }
        }
}

TEST(Filter, ClearingAColumnClearsAllOfItAndNothingElse) {
    for (int columns : {1, 7, 8, 9, 23, 64})
        for (int column = 0; column < columns; column++) {
            Filter filter({100, columns}, 0xff);
            filter.Clear(column);
            for (int other = 0; other < columns; other++)
                EXPECT_EQ(filter.RowsOf(other).size(), other == column ? 0u : 100u);
            EXPECT_TRUE(filter.LeftTheRestAlone());
        }
}

TEST(Filter, ClearsAPartOfTheRowsByItself) {
    Filter filter({100, 23}, 0xff);
    ClearColumn(filter.bits() + 40 * RowBytes(filter.shape), {50, 23}, 17);
    std::vector<uint64_t> left;
    for (uint64_t row = 0; row < 100; row++)
        if (row < 40 || row >= 90) left.push_back(row);
    EXPECT_EQ(filter.RowsOf(17), left);
    EXPECT_EQ(filter.RowsOf(16).size(), 100u);
}

// Made by Python, from the keys' fixed vectors:
//   at, step = struct.unpack('<QQ', key)
//   [((at + i * step) % 2**64 * positions) >> 64 for i in range(7)]
TEST(Filter, FindsTheSameRowsOnEveryMachine) {
    auto rows_of = [](const Key &key, uint64_t positions) {
        Filter filter({positions, 3});
        filter.Add(key, 2);
        return filter.RowsOf(2);
    };
    using Rows = std::vector<uint64_t>;
    Key first = MakeKey("charge-wallet", "evt_123", {}), second = MakeKey("a", "b", {});
    EXPECT_EQ(rows_of(first, 1000), (Rows{9, 221, 251, 463, 494, 736, 978}));
    EXPECT_EQ(rows_of(second, 1000), (Rows{33, 200, 368, 530, 535, 698, 865}));
    EXPECT_EQ(rows_of(first, 65536), (Rows{620, 14489, 16501, 30370, 32382, 48263, 64144}));
    EXPECT_EQ(rows_of(second, 65536), (Rows{2186, 13162, 24137, 34796, 35112, 45772, 56747}));
}

// What the theory says, (1 - e^(-7/15))^7 and (1 - e^(-7/12))^7, and a tenth more or less.
TEST(Filter, RarelyHoldsAKeyInVain) {
    constexpr int kKeys = 20000;
    FilterShape shape = FitFilter(kKeys, 8, SIZE_MAX);
    EXPECT_NEAR(FalsePositives(shape, kKeys), 10.0, 1.0) << "as many keys as expected";
    EXPECT_NEAR(FalsePositives(shape, kKeys * 5 / 4), 33.0, 3.3) << "a quarter more";
}

TEST(FittedFilter, HasRoomForTheKeysExpected) {
    for (int columns : {1, 8, 9, 64})
        for (uint64_t keys : {2000, 1000000, 2000000000}) {
            FilterShape shape = FitFilter(keys, columns, SIZE_MAX);
            EXPECT_EQ(shape.positions, keys * 15);
            EXPECT_EQ(shape.columns, columns);
            EXPECT_EQ(FilterBytes(shape), keys * 15 * ((columns + 7) / 8));
        }
}

TEST(FittedFilter, HasRoomToGrowWhereFewKeysAreExpected) {
    EXPECT_EQ(FitFilter(0, 8, SIZE_MAX).positions, 16384u);
    EXPECT_EQ(FitFilter(1, 8, SIZE_MAX).positions, 16384u);
    EXPECT_EQ(FitFilter(0, 8, 16384).positions, 16384u);
    EXPECT_EQ(FitFilter(0, 9, 2 * 16384).positions, 16384u);
}

TEST(FittedFilter, NeverNeedsMoreMemoryThanThereIs) {
    for (int columns = 1; columns <= kMostColumns; columns++)
        for (size_t memory = 1; memory < SIZE_MAX / 3; memory *= 3)
            for (uint64_t keys = 1; keys < UINT64_MAX / 3; keys *= 3)
                ASSERT_LE(FilterBytes(FitFilter(keys, columns, memory)), memory)
                    << columns << " columns, " << keys << " keys";
}

TEST(FittedFilter, TakesAllThereIsWhereItIsShort) {
    EXPECT_EQ(FitFilter(10000, 8, 149999).positions, 149999u);
    EXPECT_EQ(FitFilter(10000, 9, 149999).positions, 74999u);
    EXPECT_EQ(FitFilter(UINT64_MAX / 4, 1, SIZE_MAX).positions, SIZE_MAX);
}

TEST(FittedFilter, IsNoneWhereItWouldBeOfNoUse) {
    EXPECT_EQ(FitFilter(0, 8, 0).positions, 0u);
    EXPECT_EQ(FitFilter(0, 8, 16383).positions, 0u);
    EXPECT_EQ(FitFilter(10000, 8, 40000).positions, 40000u);
    EXPECT_EQ(FitFilter(10000, 8, 39999).positions, 0u);
    EXPECT_EQ(FitFilter(2000, 8, 16383).positions, 0u);
    EXPECT_EQ(FitFilter(UINT64_MAX, 8, SIZE_MAX).positions, 0u);
}

// A column copied to another filter of as many positions holds the same keys there, and no other column changes.
TEST(Filter, ACopiedColumnHoldsTheSameKeys) {
    Filter from(FitFilter(1000, 3, 1 << 20));
    Filter to(FilterShape{from.shape.positions, 8});
    for (int n = 0; n < 1000; n++) from.Add(KeyOf(1, n), 1);
    for (int n = 0; n < 1000; n++) to.Add(KeyOf(6, n), 6);
    to.Add(KeyOf(5, 0), 5);  // what is there is overwritten
    uint64_t set = CopyColumn({from.bits(), from.shape, 1}, {to.bits(), to.shape, 5});
    EXPECT_EQ(to.RowsOf(5), from.RowsOf(1));
    EXPECT_EQ(set, from.RowsOf(1).size());
    for (int n = 0; n < 1000; n++) {
        EXPECT_NE(to.MayHold(KeyOf(1, n)) & Bit(5), 0u);
        EXPECT_NE(to.MayHold(KeyOf(6, n)) & Bit(6), 0u);
    }
}

TEST(Filter, FalsePositivesAreToldByHowFullAColumnIs) {
    Filter filter(FitFilter(20000, 2, 1 << 20));
    for (int n = 0; n < 20000; n++) filter.Add(KeyOf(0, n), 0);
    int seem = 0;
    constexpr int kAsked = 400000;
    for (int n = 0; n < kAsked; n++) seem += (filter.MayHold(KeyOf(9, n)) & Bit(0)) != 0 ? 1 : 0;
    double told = ChanceOfFalsePositive(filter.shape.positions, filter.RowsOf(0).size());
    EXPECT_NEAR(static_cast<double>(seem) / kAsked / told, 1, 0.15);
    EXPECT_EQ(ChanceOfFalsePositive(0, 0), 0);
    EXPECT_EQ(ChanceOfFalsePositive(1000, 0), 0);
    EXPECT_EQ(ChanceOfFalsePositive(1000, 1000), 1);
}

}  // namespace
}  // namespace idem
