// Signatures of webhooks: did somebody who holds a secret sign this very delivery, just now?
//
// What came from outside, the payload and its headers, is judged and never a fault. What the receiver set up, its
// secrets, has to be in order before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/signature_claim.hpp"
#include "core/signature_scheme.hpp"
#include "core/state.hpp"

namespace idem {

enum class SecretFault : uint8_t { None, Empty, Malformed, PrivateKey };

// Whether a secret is one that the scheme can use. Secrets of standard-webhooks are base64, with or without whsec_, or
// whpk_ and a public key in base64; those of the others are any bytes but white space.
SecretFault CheckSecret(const SignatureScheme &scheme, std::string_view secret);

// By what a delivery is judged.
struct SignatureTerms {
    std::span<const std::string_view> secrets;  // each has passed CheckSecret
    Micros tolerance;
    Micros now;                                               // since 1970
    void (*sha1)(std::string_view content, uint8_t *digest);  // which libsodium does not have
};

struct SignatureVerdict {
    SignatureFault fault;
    int64_t age;  // in seconds, where it is TooOld or TooNew (negative)
};

// The bytes which JudgeSignature needs as `room`.
size_t SignedContentRoom(const Delivery &delivery, std::span<const std::string_view> secrets);

// No fault if one of the secrets made one of the delivery's signatures, over exactly this payload and these headers,
// within the tolerance before or after now. Every secret is tried on every signature, whatever was found before, and
// compared in constant time. libsodium must be initialised.
SignatureVerdict JudgeSignature(const Delivery &delivery, const SignatureTerms &terms, char *room);

}  // namespace idem
