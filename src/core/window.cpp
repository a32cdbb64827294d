#include "core/window.hpp"

namespace idem {

WindowFault ReadWindow(int32_t months, int32_t days, Micros time, Micros *span) {
    Micros day_part = 0;
    Micros sum = 0;
    if (months != 0) return WindowFault::HasMonths;
    if (__builtin_mul_overflow(static_cast<Micros>(days), kDay, &day_part) ||
        __builtin_add_overflow(day_part, time, &sum) || sum > kLongestWindow)
        return days < 0 || time < 0 ? WindowFault::NotPositive : WindowFault::TooLong;
    if (sum <= 0) return WindowFault::NotPositive;
    *span = sum;
    return WindowFault::None;
}

}  // namespace idem
