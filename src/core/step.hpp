// The steps of a state machine, as somebody wrote them down: "new > paid".
//
// A state is written as it is, without blanks around it, or in double quotes, "" for a quote inside: so a state may
// hold what has a meaning here. The word null, without quotes and in any case, is the state of who has none.
#pragma once

#include <optional>
#include <string_view>

namespace idem {

// A state, null = none.
using StateText = std::optional<std::string_view>;

struct WrittenState {
    std::string_view text;  // without the quotes around it
    bool quoted;
};

struct Step {
    WrittenState from;
    WrittenState to;
};

// None if this is not two states with one > between them.
std::optional<Step> ReadStep(std::string_view written);

bool IsStep(const Step &step, StateText from, StateText to);

}  // namespace idem
