// Bytes as the vectors write them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace idem {

inline std::string Hex(std::span<const uint8_t> bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string hex;
    for (uint8_t byte : bytes) {
        hex += kDigits[byte >> 4];
        hex += kDigits[byte & 15];
    }
    return hex;
}

}  // namespace idem
