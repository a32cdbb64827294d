// Fingerprints: what must not differ between two deliveries of one event, as 17 bytes.
//
// The first byte names the way it was made. Two fingerprints made in different ways say nothing about each other, so a
// later release may add a way without calling an honest redelivery a conflict.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/hash.hpp"
#include "core/state.hpp"

namespace idem {

enum class FingerprintVersion : uint8_t {
    Bytes = 1,      // the bytes as they are; text as UTF-8
    JsonPaths = 2,  // named paths of a jsonb, in canonical form
};

struct Fingerprint {
    static constexpr size_t kSize = 1 + Hash::kSize;
    uint8_t bytes[kSize];
};

Fingerprint FingerprintOfBytes(std::string_view content);

// Closes a hash which the caller fed.
Fingerprint FinishFingerprint(FingerprintVersion version, Hash &hash);

// True if the bytes are a fingerprint of a version known here.
bool IsFingerprint(std::string_view bytes);

// Empty = none was given.
FingerprintMatch CompareFingerprints(std::string_view stored, std::string_view given);

}  // namespace idem
