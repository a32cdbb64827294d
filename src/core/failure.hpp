// Whether a failure is news, or has only been put into other numbers.
#pragma once

#include <string_view>

namespace idem {

// Whether two messages differ in nothing but their numbers: names of files, processes and sizes change from one try to
// the next, and what is wrong does not.
bool SameButForNumbers(std::string_view one, std::string_view other);

}  // namespace idem
