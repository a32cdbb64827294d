#include "core/window.hpp"

namespace idem {

WindowFault ReadWindow(int32_t months, int32_t days, Micros time, Micros *span) {
    if (months != 0) return WindowFault::HasMonths;
    __int128 sum = static_cast<__int128>(days) * kDay + time;
    if (sum <= 0) return WindowFault::NotPositive;
    if (sum > kLongestWindow) return WindowFault::TooLong;
    *span = static_cast<Micros>(sum);
    return WindowFault::None;
}

}  // namespace idem
