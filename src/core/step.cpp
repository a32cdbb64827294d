#include "core/step.hpp"

namespace idem {
namespace {

constexpr std::string_view kBlanks = " \t\r\n\f\v";

void SkipBlanks(std::string_view *text) {
    size_t first = text->find_first_not_of(kBlanks);
    text->remove_prefix(first == std::string_view::npos ? text->size() : first);
}

// Takes a state in quotes from the front.
std::optional<WrittenState> TakeQuoted(std::string_view *text) {
    for (size_t i = 1; i < text->size(); i++) {
        if ((*text)[i] != '"') continue;
        if (i + 1 < text->size() && (*text)[i + 1] == '"') {
            i++;
            continue;
        }
        WrittenState state = {text->substr(1, i - 1), true};
        text->remove_prefix(i + 1);
        return state;
    }
    return std::nullopt;
}

// Takes a state from the front, and the blanks around it.
std::optional<WrittenState> TakeState(std::string_view *text) {
    SkipBlanks(text);
    std::optional<WrittenState> state;
    if (text->starts_with('"')) {
        state = TakeQuoted(text);
    } else {
        std::string_view word = text->substr(0, text->find_first_of(">\""));
        text->remove_prefix(word.size());
        size_t last = word.find_last_not_of(kBlanks);
        if (last != std::string_view::npos) state = {word.substr(0, last + 1), false};
    }
    SkipBlanks(text);
    return state;
}

bool IsNull(std::string_view word) {
    constexpr std::string_view kNull = "null";
    if (word.size() != kNull.size()) return false;
    for (size_t i = 0; i < kNull.size(); i++)
        if ((word[i] | 0x20) != kNull[i]) return false;
    return true;
}

// Whether `written`, with "" for a quote inside, says `text`.
bool UnquotesTo(std::string_view written, std::string_view text) {
    size_t at = 0;
    for (char c : text) {
        if (at == written.size() || written[at] != c) return false;
        at += c == '"' ? 2 : 1;
    }
    return at == written.size();
}

bool Names(const WrittenState &written, StateText state) {
    if (!written.quoted && IsNull(written.text)) return !state;
    if (!state) return false;
    return written.quoted ? UnquotesTo(written.text, *state) : written.text == *state;
}

}  // namespace

std::optional<Step> ReadStep(std::string_view written) {
    std::optional<WrittenState> from = TakeState(&written);
    if (!from || !written.starts_with('>')) return std::nullopt;
    written.remove_prefix(1);
    std::optional<WrittenState> to = TakeState(&written);
    if (!to || !written.empty()) return std::nullopt;
    return Step{*from, *to};
}

bool IsStep(const Step &step, StateText from, StateText to) { return Names(step.from, from) && Names(step.to, to); }

}  // namespace idem
