// SHA-1 by the words of FIPS 180-4, for tests: the core leaves it to the server, which these tests do not have.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace idem {

inline void Sha1(std::string_view content, uint8_t *digest) {
    std::string message(content);
    message += '\x80';
    while (message.size() % 64 != 56) message += '\0';
    for (int shift = 56; shift >= 0; shift -= 8) message += static_cast<char>(content.size() * 8 >> shift);

    uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    for (size_t block = 0; block < message.size(); block += 64) {
        uint32_t w[80];
        for (int t = 0; t < 16; t++) {
            w[t] = 0;
            for (int i = 0; i < 4; i++) w[t] = w[t] << 8 | static_cast<uint8_t>(message[block + 4 * t + i]);
        }
        for (int t = 16; t < 80; t++) w[t] = std::rotl(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
        uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
        for (int t = 0; t < 80; t++) {
            uint32_t f = t < 20              ? ((b & c) | (~b & d))
                         : t < 40 || t >= 60 ? (b ^ c ^ d)
                                             : ((b & c) | (b & d) | (c & d));
            uint32_t k = t < 20 ? 0x5a827999 : t < 40 ? 0x6ed9eba1 : t < 60 ? 0x8f1bbcdc : 0xca62c1d6;
            uint32_t next = std::rotl(a, 5) + f + e + k + w[t];
            e = d;
            d = c;
            c = std::rotl(b, 30);
            b = a;
            a = next;
        }
        h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e;
    }
    for (int i = 0; i < 20; i++) digest[i] = static_cast<uint8_t>(h[i / 4] >> (24 - 8 * (i % 4)));
}

}  // namespace idem
