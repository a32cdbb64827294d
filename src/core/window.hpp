// Windows are fixed spans: a day is 24 hours, and a month has no length.
#pragma once

#include "core/state.hpp"

namespace idem {

constexpr Micros kDay = 24 * 3600 * kSecond;

// Longer spans are mistakes, and would bring points in time near their limit.
constexpr Micros kLongestWindow = 3660 * kDay;

enum class WindowFault : uint8_t { None, HasMonths, NotPositive, TooLong };

// Reads an SQL interval as one span. On a fault `span` is not set.
WindowFault ReadWindow(int32_t months, int32_t days, Micros time, Micros *span);

}  // namespace idem
