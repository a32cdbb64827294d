// Signatures of webhooks: did somebody who holds a secret sign this very delivery, just now?
//
// Each sender has its own way to sign, a scheme. What came from outside, the payload and its headers, is judged and
// never a fault. What the receiver set up, its secrets, has to be in order before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/state.hpp"

namespace idem {

enum class SignatureScheme : uint8_t {
    StandardWebhooks,  // signs id.timestamp.payload, v1 by HMAC-SHA256 and v1a by Ed25519; also Svix's
    Stripe,            // signs timestamp.payload by HMAC-SHA256
    GitHub,            // signs the payload by HMAC-SHA256, and nothing that tells when or which
};

// The scheme of this name: standard-webhooks, stripe or github.
std::optional<SignatureScheme> SignatureSchemeOfName(std::string_view name);

enum class SecretFault : uint8_t { None, Empty, Malformed, PrivateKey };

// Whether a secret is one that the scheme can use. Secrets of standard-webhooks are base64, with or without whsec_, or
// whpk_ and a public key in base64; those of the others are any bytes but white space.
SecretFault CheckSecret(SignatureScheme scheme, std::string_view secret);

// What was delivered; an empty header is a missing one.
struct Delivery {
    SignatureScheme scheme;
    std::string_view payload;
    std::string_view signature;  // the header which holds signatures
    std::string_view id;         // standard-webhooks only
    std::string_view timestamp;  // standard-webhooks only: seconds since 1970
};

// The bytes which VerifySignature needs as `room`.
size_t SignedContentRoom(const Delivery &delivery);

// True if one of the secrets made one of the delivery's signatures, over exactly this payload and these headers, within
// `tolerance` before or after `now` (microseconds since 1970). The secrets have passed CheckSecret. Every secret is
// tried on every signature, whatever was found before, and compared in constant time. libsodium must be initialised.
bool VerifySignature(const Delivery &delivery, std::span<const std::string_view> secrets, Micros tolerance, Micros now,
                     char *room);

}  // namespace idem
