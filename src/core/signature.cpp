#include "core/signature.hpp"

#include <algorithm>

#include <sodium.h>

namespace idem {
namespace {

constexpr std::string_view kSecretPrefix = "whsec_";
constexpr std::string_view kPublicKeyPrefix = "whpk_";
constexpr std::string_view kPrivateKeyPrefix = "whsk_";
constexpr size_t kMostKeyBytes = 256;  // Standard Webhooks allows 64

struct SigningKey {
    bool is_public;
    size_t size;
    uint8_t bytes[kMostKeyBytes];
};

const unsigned char *Bytes(std::string_view view) { return reinterpret_cast<const unsigned char *>(view.data()); }

std::string_view Append(std::string_view part, char *room, size_t *used) {
    std::ranges::copy(part, room + *used);
    *used += part.size();
    return {room, *used};
}

// What is signed, unless it is sorted.
std::string_view ComposeContent(const Delivery &delivery, std::string_view timestamp, char *room) {
    const SignatureScheme &scheme = *delivery.scheme;
    size_t used = 0;
    Append(scheme.content_start, room, &used);
    if (scheme.id.name != nullptr) {
        Append(delivery.id, room, &used);
        Append(scheme.content_separator, room, &used);
    }
    if (scheme.HasTimestamp()) {
        Append(timestamp, room, &used);
        Append(scheme.content_separator, room, &used);
    }
    return Append(delivery.payload, room, &used);
}

std::string_view ComposeSorted(const Delivery &delivery, std::string_view secret, char *room) {
    std::string_view pieces[] = {secret, delivery.timestamp, delivery.id, delivery.payload};
    std::ranges::sort(pieces);
    size_t used = 0;
    for (std::string_view piece : pieces) Append(piece, room, &used);
    return {room, used};
}

// The key in a secret of standard-webhooks.
SecretFault ReadKey(std::string_view secret, SigningKey *key) {
    if (secret.starts_with(kPrivateKeyPrefix)) return SecretFault::PrivateKey;
    key->is_public = ConsumePrefix(&secret, kPublicKeyPrefix);
    if (!key->is_public) ConsumePrefix(&secret, kSecretPrefix);
    if (secret.empty()) return SecretFault::Empty;
    if (!DecodeBase64(secret, key->bytes, sizeof(key->bytes), &key->size)) return SecretFault::Malformed;
    if (key->is_public && key->size != crypto_sign_PUBLICKEYBYTES) return SecretFault::Malformed;
    return SecretFault::None;
}

// Whether a digest is among those offered; all are looked at.
template <size_t kSize>
bool IsOffered(const uint8_t *digest, const OfferedSignatures<kSize> &offered) {
    bool found = false;
    for (size_t i = 0; i < offered.count; i++) found |= sodium_memcmp(digest, offered.bytes[i], kSize) == 0;
    return found;
}

bool HasMac(std::string_view content, const uint8_t *key, size_t key_size, const SignatureClaim &claim) {
    crypto_auth_hmacsha256_state state;
    uint8_t mac[crypto_auth_hmacsha256_BYTES];
    crypto_auth_hmacsha256_init(&state, key, key_size);
    crypto_auth_hmacsha256_update(&state, Bytes(content), content.size());
    crypto_auth_hmacsha256_final(&state, mac);
    bool found = IsOffered(mac, claim.macs);
    sodium_memzero(&state, sizeof(state));
    sodium_memzero(mac, sizeof(mac));
    return found;
}

bool HasEd25519(std::string_view content, const uint8_t *public_key, const SignatureClaim &claim) {
    bool found = false;
    for (size_t i = 0; i < claim.ed25519.count; i++)
        found |= crypto_sign_verify_detached(claim.ed25519.bytes[i], Bytes(content), content.size(), public_key) == 0;
    return found;
}

bool HasMacOrEd25519(std::string_view content, std::string_view secret, const SignatureClaim &claim) {
    // A public key is known to everybody, so it must never be tried as the key of a MAC.
    SigningKey key;
    bool found = ReadKey(secret, &key) == SecretFault::None &&
                 (key.is_public ? HasEd25519(content, key.bytes, claim) : HasMac(content, key.bytes, key.size, claim));
    sodium_memzero(&key, sizeof(key));
    return found;
}

bool HasSha1(const Delivery &delivery, const SignatureTerms &terms, std::string_view secret,
             const SignatureClaim &claim, char *room) {
    uint8_t digest[kSha1Bytes];
    std::string_view content = ComposeSorted(delivery, secret, room);
    terms.sha1(content, digest);
    bool found = IsOffered(digest, claim.sha1);
    sodium_memzero(room, content.size());
    sodium_memzero(digest, sizeof(digest));
    return found;
}

bool IsSigned(const Delivery &delivery, const SignatureTerms &terms, const SignatureClaim &claim, char *room) {
    SignatureMethod method = delivery.scheme->method;
    std::string_view content;
    if (method != SignatureMethod::SortedSha1) content = ComposeContent(delivery, claim.timestamp, room);
    bool found = false;
    for (std::string_view secret : terms.secrets) {
        switch (method) {
            case SignatureMethod::Hmac:
                found |= HasMac(content, Bytes(secret), secret.size(), claim);
                break;
            case SignatureMethod::HmacOrEd25519:
                found |= HasMacOrEd25519(content, secret, claim);
                break;
            case SignatureMethod::SortedSha1:
                found |= HasSha1(delivery, terms, secret, claim, room);
                break;
        }
    }
    return found;
}

}  // namespace

SecretFault CheckSecret(const SignatureScheme &scheme, std::string_view secret) {
    if (secret.find_first_not_of(" \t\r\n\f\v") == std::string_view::npos) return SecretFault::Empty;
    if (scheme.method != SignatureMethod::HmacOrEd25519) return SecretFault::None;
    SigningKey key;
    SecretFault fault = ReadKey(secret, &key);
    sodium_memzero(&key, sizeof(key));
    return fault;
}

size_t SignedContentRoom(const Delivery &delivery, std::span<const std::string_view> secrets) {
    const SignatureScheme &scheme = *delivery.scheme;
    size_t longest_secret = 0;
    if (scheme.method == SignatureMethod::SortedSha1)
        for (std::string_view secret : secrets) longest_secret = std::max(longest_secret, secret.size());
    // The timestamp may be a part of the signature header.
    return scheme.content_start.size() + 2 * scheme.content_separator.size() + delivery.id.size() +
           delivery.timestamp.size() + delivery.signature.size() + delivery.payload.size() + longest_secret;
}

SignatureVerdict JudgeSignature(const Delivery &delivery, const SignatureTerms &terms, char *room) {
    SignatureClaim claim = ReadClaim(delivery);
    if (claim.fault != SignatureFault::None) return {claim.fault, 0};
    if (delivery.scheme->HasTimestamp()) {
        int64_t age = 0;
        if (!ReadAge(claim.timestamp, terms.now, &age)) return {SignatureFault::MalformedTimestamp, 0};
        if ((age < 0 ? -age : age) * kSecond > terms.tolerance)
            return {age < 0 ? SignatureFault::TooNew : SignatureFault::TooOld, age};
    }
    return {IsSigned(delivery, terms, claim, room) ? SignatureFault::None : SignatureFault::NotSigned, 0};
}

}  // namespace idem
