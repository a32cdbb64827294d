// A bit-sliced Bloom filter: many filters of one size side by side, one a column, asked all at once.
//
// Each position of the filter is a row with one bit for every column, so one look at a few rows tells which columns may
// hold a key, and costs the same for 64 of them as for one. A filter may say that a column holds a key which it
// doesn't, and never the other way round.
//
// It may be asked while one writer adds to it or clears columns: every byte is read and written as a whole. What is
// asked then of a column that is being written means nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/key.hpp"

namespace idem {

constexpr int kMostColumns = 64;
constexpr uint64_t kAllColumns = UINT64_MAX;

// Rows of a bit for each column: row after row, each of as many whole bytes as its columns need; column c is bit c % 8
// of byte c / 8. So a part of the rows has a shape too, and can be cleared by itself.
struct FilterShape {
    uint64_t positions;  // rows; 0 = no filter
    int columns;         // 1 … kMostColumns
};

constexpr size_t RowBytes(FilterShape shape) { return (shape.columns + 7) / 8; }
size_t FilterBytes(FilterShape shape);

// The shape for so many keys in every column, with some room for more, of at most most_bytes; a smaller one with more
// false positives where the memory does not suffice; no positions where not even that would be of use.
FilterShape FitFilter(uint64_t keys_per_column, int columns, size_t most_bytes);

void AddKey(uint8_t *bits, FilterShape shape, const Key &key, int column);

// Adds many keys to one column, each a few keys later than it was given: meanwhile the processor fetches its rows,
// which lie all over a large filter. What was given last is there only after Finish().
class ColumnFiller {
public:
    ColumnFiller() = default;
    ColumnFiller(uint8_t *bits, FilterShape shape, int column) : bits_(bits), shape_(shape), column_(column) {}
    void Add(const Key &key);
    void Finish();

private:
    static constexpr uint64_t kDelay = 8;

    uint8_t *bits_ = nullptr;
    FilterShape shape_ = {};
    int column_ = 0;
    uint64_t given_ = 0;
    Key waiting_[kDelay] = {};  // the last ones given
};

// Which of the columns `asked` (bit c = column c) may hold the key.
uint64_t ColumnsThatMayHold(const uint8_t *bits, FilterShape shape, const Key &key, uint64_t asked);

void ClearColumn(uint8_t *bits, FilterShape shape, int column);

// A column of a filter; in each part of the rows, too.
struct FilterColumn {
    uint8_t *bits;
    FilterShape shape;
    int column;
};

// Makes one column like another of as many positions; returns how many of its bits are set.
uint64_t CopyColumn(const FilterColumn &from, const FilterColumn &to);

// How likely it is that a column seems to hold a key which it doesn't, where so many of its bits are set.
double ChanceOfFalsePositive(uint64_t positions, uint64_t bits_set);

}  // namespace idem
