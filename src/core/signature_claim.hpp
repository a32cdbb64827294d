// What the headers of a delivery claim: when it was signed, and the signatures that are offered for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <sodium.h>

#include "core/signature_scheme.hpp"
#include "core/state.hpp"

namespace idem {

// What was delivered; an empty header is a missing one.
struct Delivery {
    const SignatureScheme *scheme;
    std::string_view payload;
    std::string_view signature;  // the header which holds signatures
    std::string_view id;         // where the scheme has this header
    std::string_view timestamp;  // likewise: seconds since 1970
};

constexpr size_t kSha1Bytes = 20;

enum class SignatureFault : uint8_t {
    None,
    NoSignature,         // no such header
    NoId,                // likewise
    NoTimestamp,         // likewise, or not in the signature header
    MalformedSignature,  // nothing in the header that could be one
    MalformedId,
    MalformedTimestamp,
    MalformedPayload,  // which this sender can't have sent
    TooManySignatures,
    TooOld,
    TooNew,
    NotSigned,  // not this content, or not by one of the secrets
};

// Senders send one a key, so two while they change it. Each costs as much as the payload is long.
constexpr size_t kMostSignatures = 16;

// The signatures of one kind that a header offers, decoded.
template <size_t kSize>
struct OfferedSignatures {
    size_t count;
    uint8_t bytes[kMostSignatures][kSize];
};

struct SignatureClaim {
    std::string_view timestamp;
    OfferedSignatures<crypto_auth_hmacsha256_BYTES> macs;
    OfferedSignatures<crypto_sign_BYTES> ed25519;
    OfferedSignatures<kSha1Bytes> sha1;
    SignatureFault fault;  // of the headers as a whole; one signature that is none is passed over
};

SignatureClaim ReadClaim(const Delivery &delivery);

// How old a time is, in seconds; false if the text is none.
bool ReadAge(std::string_view timestamp, Micros now, int64_t *age);

bool DecodeBase64(std::string_view text, uint8_t *out, size_t most, size_t *size);

// Removes the prefix; false if it is not there.
bool ConsumePrefix(std::string_view *text, std::string_view prefix);

}  // namespace idem
