#include "server/ring/time_limit.hpp"

namespace idem {
namespace {

bool registered = false;
TimeoutId limit;
bool running = false;
volatile sig_atomic_t is_over = 0;

// Runs in a signal handler.
void Cancel() {
    is_over = 1;
    InterruptPending = true;
    QueryCancelPending = true;
    SetLatch(MyLatch);
}

}  // namespace

void StartTimeLimit(int seconds) {
    if (!registered) limit = RegisterTimeout(USER_TIMEOUT, Cancel);
    registered = true;
    is_over = 0;
    running = seconds > 0;
    if (!running) return;
    // Again and again, as a function may catch what cancels it.
    TimestampTz end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), seconds * INT64CONST(1000));
    enable_timeout_every(limit, end, 1000);
}

bool StopTimeLimit() {
    if (!running) return false;
    disable_timeout(limit, false);
    running = false;
    if (is_over == 0) return false;
    // It may have come when there was nothing left to cancel.
    QueryCancelPending = false;
    return true;
}

}  // namespace idem
