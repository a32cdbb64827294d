#include "core/filter.hpp"

#include <algorithm>
#include <cmath>

namespace idem {
namespace {

// With 12 positions a key and 7 of them set, 0.33 % of the keys that a column does not hold seem to be there. One more
// set bit would be the optimum at that load, but costs another cache miss, and a look-up that finds nothing is spared
// most of them anyway.
constexpr uint64_t kPositionsPerKey = 12;
constexpr int kBitsPerKey = 7;

// Room for a quarter more keys than expected: with as many as expected, 0.10 %.
constexpr uint64_t kWantedPositionsPerKey = kPositionsPerKey * 5 / 4;

// With these a quarter of the keys seem to be there; fewer are not worth their memory.
constexpr uint64_t kLeastPositionsPerKey = 4;

// A young table grows; it should not need another filter at once.
constexpr uint64_t kFewestPositions = 16384;

// The rows of a key, by double hashing. The key is a hash already, so its halves serve as the two hash values; they are
// put together byte by byte, so that every machine finds the same rows.
class Rows {
public:
    Rows(const Key &key, uint64_t positions)
        : at_(Half(key.bytes)), step_(Half(key.bytes + 8)), positions_(positions) {}

    // Scales 64 random bits down to a row without a division, by their upper part.
    uint64_t Next() {
        auto row = static_cast<uint64_t>((static_cast<unsigned __int128>(at_) * positions_) >> 64);
        at_ += step_;
        return row;
    }

private:
    static uint64_t Half(const uint8_t *bytes) {
        uint64_t half = 0;
        for (int i = 7; i >= 0; i--) half = half << 8 | bytes[i];
        return half;
    }

    uint64_t at_;
    uint64_t step_;
    uint64_t positions_;
};

// std::atomic_ref is not to be had with every compiler's library.
uint8_t Load(const uint8_t *byte) { return __atomic_load_n(byte, __ATOMIC_RELAXED); }
void Store(uint8_t *byte, uint8_t value) { __atomic_store_n(byte, value, __ATOMIC_RELAXED); }

uint8_t BitOf(int column) { return static_cast<uint8_t>(1 << column % 8); }

}  // namespace

size_t FilterBytes(FilterShape shape) { return shape.positions * RowBytes(shape); }

FilterShape FitFilter(uint64_t keys_per_column, int columns, size_t most_bytes) {
    uint64_t most = most_bytes / RowBytes({1, columns});
    // Compared by division, since the product may not fit.
    bool all_fit = keys_per_column <= most / kWantedPositionsPerKey;
    uint64_t positions = all_fit ? std::max(keys_per_column * kWantedPositionsPerKey, kFewestPositions) : most;
    bool of_use =
        positions <= most && positions >= kFewestPositions && positions / kLeastPositionsPerKey >= keys_per_column;
    return {of_use ? positions : 0, columns};
}

void AddKey(uint8_t *bits, FilterShape shape, const Key &key, int column) {
    Rows rows(key, shape.positions);
    for (int i = 0; i < kBitsPerKey; i++) {
        uint8_t *byte = bits + rows.Next() * RowBytes(shape) + column / 8;
        Store(byte, Load(byte) | BitOf(column));
    }
}

void ColumnFiller::Add(const Key &key) {
    Key &place = waiting_[given_ % kDelay];
    if (given_ >= kDelay) AddKey(bits_, shape_, place, column_);
    place = key;
    given_++;
    Rows rows(key, shape_.positions);
    for (int i = 0; i < kBitsPerKey; i++) __builtin_prefetch(bits_ + rows.Next() * RowBytes(shape_) + column_ / 8, 1);
}

void ColumnFiller::Finish() {
    uint64_t waiting = std::min(given_, kDelay);
    for (uint64_t i = 0; i < waiting; i++) AddKey(bits_, shape_, waiting_[i], column_);
    given_ = 0;
}

uint64_t ColumnsThatMayHold(const uint8_t *bits, FilterShape shape, const Key &key, uint64_t asked) {
    Rows rows(key, shape.positions);
    uint64_t may_hold = asked;
    for (int i = 0; i < kBitsPerKey && may_hold != 0; i++) {
        const uint8_t *row = bits + rows.Next() * RowBytes(shape);
        uint64_t columns = 0;
        for (size_t b = 0; b < RowBytes(shape); b++) columns |= static_cast<uint64_t>(Load(row + b)) << 8 * b;
        may_hold &= columns;
    }
    return may_hold;
}

void ClearColumn(uint8_t *bits, FilterShape shape, int column) {
    uint8_t *byte = bits + column / 8;
    for (uint64_t row = 0; row < shape.positions; row++, byte += RowBytes(shape)) {
        uint8_t value = Load(byte);
        if ((value & BitOf(column)) != 0) Store(byte, value & ~BitOf(column));
    }
}

uint64_t CopyColumn(const FilterColumn &from, const FilterColumn &to) {
    const uint8_t *source = from.bits + from.column / 8;
    uint8_t *target = to.bits + to.column / 8;
    uint64_t set = 0;
    for (uint64_t row = 0; row < from.shape.positions; row++) {
        bool bit = (Load(source) & BitOf(from.column)) != 0;
        uint8_t value = Load(target);
        uint8_t wanted = bit ? value | BitOf(to.column) : value & ~BitOf(to.column);
        if (wanted != value) Store(target, wanted);
        set += bit ? 1 : 0;
        source += RowBytes(from.shape);
        target += RowBytes(to.shape);
    }
    return set;
}

double ChanceOfFalsePositive(uint64_t positions, uint64_t bits_set) {
    if (positions == 0) return 0;
    return std::pow(static_cast<double>(bits_set) / static_cast<double>(positions), kBitsPerKey);
}

}  // namespace idem
