#include "core/failure.hpp"

namespace idem {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The text with the number at its beginning taken off, if there is one.
std::string_view WithoutNumber(std::string_view text) {
    while (!text.empty() && IsDigit(text.front())) text.remove_prefix(1);
    return text;
}

}  // namespace

bool SameButForNumbers(std::string_view one, std::string_view other) {
    while (!one.empty() && !other.empty()) {
        if (IsDigit(one.front()) != IsDigit(other.front())) return false;
        if (IsDigit(one.front())) {
            one = WithoutNumber(one);
            other = WithoutNumber(other);
        } else {
            if (one.front() != other.front()) return false;
            one.remove_prefix(1);
            other.remove_prefix(1);
        }
    }
    return one.empty() && other.empty();
}

}  // namespace idem
