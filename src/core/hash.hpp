// BLAKE2b-128: the one way in which idem hashes.
#pragma once

#include <cstdint>
#include <string_view>

#include <sodium.h>

namespace idem {

class Hash {
public:
    Hash() { crypto_generichash_init(&state_, nullptr, 0, kSize); }

    void Add(std::string_view bytes) {
        crypto_generichash_update(&state_, reinterpret_cast<const unsigned char *>(bytes.data()), bytes.size());
    }

    void AddByte(uint8_t byte) { crypto_generichash_update(&state_, &byte, 1); }

    // The length as four bytes, big-endian, then the part: no two lists of parts run together.
    void AddPart(std::string_view part) {
        auto size = static_cast<uint32_t>(part.size());
        uint8_t prefix[4] = {static_cast<uint8_t>(size >> 24), static_cast<uint8_t>(size >> 16),
                             static_cast<uint8_t>(size >> 8), static_cast<uint8_t>(size)};
        crypto_generichash_update(&state_, prefix, sizeof(prefix));
        Add(part);
    }

    // Writes kSize bytes.
    void Finish(uint8_t *out) { crypto_generichash_final(&state_, out, kSize); }

    static constexpr size_t kSize = 16;

private:
    crypto_generichash_state state_;
};

}  // namespace idem
