#include "core/key.hpp"

#include "core/hash.hpp"

namespace idem {
namespace {

bool NeedsEscape(char c) { return c == ':' || c == '\\'; }

}  // namespace

Key MakeKey(std::string_view handler, std::string_view event_id, std::string_view batch) {
    Key key;
    Hash hash;
    hash.AddPart(handler);
    hash.AddPart(event_id);
    if (!batch.empty()) hash.AddPart(batch);
    hash.Finish(key.bytes);
    return key;
}

size_t BusinessKeySize(std::span<const std::string_view> parts) {
    size_t size = parts.empty() ? 0 : parts.size() - 1;
    for (std::string_view part : parts)
        for (char c : part) size += NeedsEscape(c) ? 2 : 1;
    return size;
}

void ComposeBusinessKey(std::span<const std::string_view> parts, char *out) {
    bool first = true;
    for (std::string_view part : parts) {
        if (!first) *out++ = ':';
        first = false;
        for (char c : part) {
            if (NeedsEscape(c)) *out++ = '\\';
            *out++ = c;
        }
    }
}

}  // namespace idem
