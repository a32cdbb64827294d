// The stored key of an event, and ids composed of business fields.
//
// Both are identities that outlive every release: their format is frozen by fixed vectors (test/unit/key_test.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace idem {

struct Key {
    uint8_t bytes[16];
};

// BLAKE2b-128 over handler, event_id and, where there is one, batch (empty = none), each behind its length as four
// bytes, big-endian. The parts are UTF-8; libsodium must be initialised.
Key MakeKey(std::string_view handler, std::string_view event_id, std::string_view batch);

// Bytes which ComposeBusinessKey writes for these parts.
size_t BusinessKeySize(std::span<const std::string_view> parts);

// Writes the parts to `out`, with ":" between them, and "\" before each ":" or "\" within one. Different lists
// of parts never give the same bytes, as long as there is a part and the first is not empty; an empty one stands for a
// part that is absent.
void ComposeBusinessKey(std::span<const std::string_view> parts, char *out);

}  // namespace idem
