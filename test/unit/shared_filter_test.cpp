// A published column never denies one of its keys, whatever happens to the filter while it is read.
#include "core/shared_filter.hpp"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace idem {
namespace {

constexpr FilterOwner kInbox = {5, 16400};

Key KeyOf(int n) { return MakeKey("book", std::to_string(n), {}); }
uint64_t Bit(int column) { return uint64_t{1} << column; }

// An arena of its own with one filter of 8 columns, where key n is in column n, as generation 100 + n, for n < 3.
class SharedFilterTest : public testing::Test {
protected:
    SharedFilterTest() : arena_(4096) {
        filter_.Assign(kInbox, {64, {200, 8}});
        for (int n = 0; n < 3; n++) {
            Add(KeyOf(n), n);
            filter_.Publish(n, 100 + n);
        }
    }

    uint8_t *Bits() { return arena_.data() + filter_.Place().offset; }
    void Add(const Key &key, int column) { AddKey(Bits(), filter_.Place().shape, key, column); }
    uint64_t MayHold(const Key &key, FilterOwner owner = kInbox, int64_t oldest = 100) {
        return filter_.ColumnsThatMayHold(arena_.data(), owner, oldest, key);
    }

    SharedFilter filter_{};
    std::vector<uint8_t> arena_;
};

TEST_F(SharedFilterTest, AnswersForPublishedColumnsOnly) {
    uint64_t unknown = kAllColumns << 3;
    EXPECT_EQ(MayHold(KeyOf(0)), unknown | Bit(0));
    EXPECT_EQ(MayHold(KeyOf(2)), unknown | Bit(2));
    EXPECT_EQ(MayHold(KeyOf(9)), unknown);
    filter_.Unpublish(1);
    EXPECT_EQ(MayHold(KeyOf(9)), unknown | Bit(1));
    filter_.Publish(1, 101);
    EXPECT_EQ(MayHold(KeyOf(9)), unknown);
}

TEST_F(SharedFilterTest, TellsWhichPublishedColumnsSeemToHoldAKey) {
    auto seem = [&](const Key &key, FilterOwner owner = kInbox) {
        return filter_.ColumnsThatSeemToHold(arena_.data(), owner, key);
    };
    EXPECT_EQ(seem(KeyOf(0)), Bit(0));
    EXPECT_EQ(seem(KeyOf(9)), 0u);
    EXPECT_EQ(seem(KeyOf(0), {6, 16400}), 0u);
    filter_.Unpublish(0);
    EXPECT_EQ(seem(KeyOf(0)), 0u);
}

TEST_F(SharedFilterTest, AnswersItsOwnerOnly) {
    EXPECT_EQ(MayHold(KeyOf(0), {5, 16401}), kAllColumns);
    EXPECT_EQ(MayHold(KeyOf(0), {6, 16400}), kAllColumns);
    filter_.Assign({}, {});
    EXPECT_EQ(MayHold(KeyOf(0)), kAllColumns);
    EXPECT_EQ(MayHold(KeyOf(0), {5, 16400}), kAllColumns);
}

TEST_F(SharedFilterTest, OfAllZerosAnswersNobody) {
    SharedFilter nobodys{};
    EXPECT_EQ(nobodys.ColumnsThatMayHold(arena_.data(), kInbox, 0, KeyOf(0)), kAllColumns);
    EXPECT_EQ(nobodys.Owner(), FilterOwner{});
}

// The slot of a retired generation gets the next generation's keys. Whoever was to take the column back may be dead.
TEST_F(SharedFilterTest, IsNotTrustedWhileAColumnIsOfARetiredGeneration) {
    EXPECT_EQ(MayHold(KeyOf(9), kInbox, 101), kAllColumns);
    filter_.Unpublish(0);
    EXPECT_EQ(MayHold(KeyOf(9), kInbox, 101), kAllColumns << 3 | Bit(0));
    EXPECT_EQ(MayHold(KeyOf(9), kInbox, 102), kAllColumns);
    filter_.Publish(0, 108);
    filter_.Unpublish(1);
    EXPECT_EQ(MayHold(KeyOf(9), kInbox, 102), kAllColumns << 3 | Bit(1));
}

TEST_F(SharedFilterTest, KnowsWhichGenerationIsPublished) {
    EXPECT_TRUE(filter_.IsPublished(1, 101));
    EXPECT_FALSE(filter_.IsPublished(1, 109));
    filter_.Unpublish(1);
    EXPECT_FALSE(filter_.IsPublished(1, 101));
    filter_.Publish(1, 109);
    EXPECT_TRUE(filter_.IsPublished(1, 109));
    EXPECT_FALSE(filter_.IsPublished(7, 0));
}

TEST_F(SharedFilterTest, HasNothingPublishedInItsNextPlace) {
    filter_.Assign(kInbox, {1024, {300, 16}});
    EXPECT_EQ(filter_.Published(), 0u);
    EXPECT_EQ(MayHold(KeyOf(0)), kAllColumns);
    EXPECT_EQ(filter_.Place().offset, 1024u);
    EXPECT_EQ(filter_.Place().shape.positions, 300u);
    EXPECT_EQ(filter_.Place().shape.columns, 16);
}

// Column 0 stays as it is; 1 is built anew time and again. Readers must find the key in both at any moment.
TEST_F(SharedFilterTest, NeverDeniesAKeyWhileColumnsAreBuilt) {
    Key key = KeyOf(0);
    std::atomic<bool> done = false;
    std::atomic<int> denied = 0;
    auto read = [&] {
        while (!done)
            if ((MayHold(key) & 3) != 3) denied++;
    };
    filter_.Unpublish(1);
    std::thread reader(read), another(read);
    for (int round = 0; round < 20000; round++) {
        ClearColumn(Bits(), filter_.Place().shape, 1);
        for (int n = 0; n < 10; n++) Add(KeyOf(n), 1);
        filter_.Publish(1, 101);
        MayHold(key);
        filter_.Unpublish(1);
    }
    done = true;
    reader.join();
    another.join();
    EXPECT_EQ(denied, 0);
}

// The filter moves to and fro, with another shape in each place, and its former place is cleared at once for others.
TEST_F(SharedFilterTest, NeverDeniesAKeyWhileItMoves) {
    Key key = KeyOf(0);
    std::atomic<bool> done = false;
    std::atomic<int> denied = 0;
    auto read = [&] {
        while (!done)
            if ((MayHold(key) & 1) == 0) denied++;
    };
    std::thread reader(read), another(read);
    FilterPlace places[2] = {{64, {200, 8}}, {1024, {300, 64}}};
    for (int round = 0; round < 20000; round++) {
        FilterPlace left = filter_.Place();
        filter_.Assign(kInbox, places[round % 2]);
        ClearColumn(arena_.data() + left.offset, left.shape, 0);
        Add(key, 0);
        filter_.Publish(0, 100);
        MayHold(key);
    }
    done = true;
    reader.join();
    another.join();
    EXPECT_EQ(denied, 0);
}

}  // namespace
}  // namespace idem
