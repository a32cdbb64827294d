#include "core/signature.hpp"

#include <algorithm>
#include <charconv>

#include <sodium.h>

namespace idem {
namespace {

constexpr std::string_view kSecretPrefix = "whsec_";
constexpr std::string_view kPublicKeyPrefix = "whpk_";
constexpr std::string_view kPrivateKeyPrefix = "whsk_";
constexpr size_t kMostKeyBytes = 256;  // Standard Webhooks allows 64

// Senders send one a key, so two while they change it. Each costs as much as the payload is long.
constexpr size_t kMostSignatures = 16;

// Until the year 33658: more is no time in seconds.
constexpr size_t kMostTimestampDigits = 12;

// The signatures of one kind that a header offers, decoded.
template <size_t kSize>
struct Offered {
    size_t count;
    uint8_t bytes[kMostSignatures][kSize];
};

// What the headers say.
struct Claim {
    std::string_view timestamp;
    Offered<crypto_auth_hmacsha256_BYTES> macs;
    Offered<crypto_sign_BYTES> ed25519;
    bool malformed;  // as a whole; one signature that is none is passed over
};

struct SigningKey {
    bool is_public;
    size_t size;
    uint8_t bytes[kMostKeyBytes];
};

const unsigned char *Bytes(std::string_view view) { return reinterpret_cast<const unsigned char *>(view.data()); }

// Removes the prefix; false if it is not there.
bool Consume(std::string_view *text, std::string_view prefix) {
    if (!text->starts_with(prefix)) return false;
    text->remove_prefix(prefix.size());
    return true;
}

template <class F>
void ForEachPart(std::string_view list, char separator, F visit) {
    while (true) {
        size_t end = list.find(separator);
        visit(list.substr(0, end));
        if (end == std::string_view::npos) return;
        list.remove_prefix(end + 1);
    }
}

bool DecodeBase64(std::string_view text, uint8_t *out, size_t most, size_t *size) {
    // libsodium 1.0.18 takes the byte 0xaf for a slash.
    bool ascii = std::ranges::all_of(text, [](char c) { return static_cast<uint8_t>(c) < 0x80; });
    return ascii && sodium_base642bin(out, most, text.data(), text.size(), nullptr, size, nullptr,
                                      sodium_base64_VARIANT_ORIGINAL) == 0;
}

bool DecodeHex(std::string_view text, uint8_t *out, size_t most, size_t *size) {
    return sodium_hex2bin(out, most, text.data(), text.size(), nullptr, size, nullptr) == 0;
}

template <size_t kSize>
void Offer(std::string_view text, bool (*decode)(std::string_view, uint8_t *, size_t, size_t *),
           Offered<kSize> *offered, bool *too_many) {
    size_t size = 0;
    if (offered->count == kMostSignatures)
        *too_many = true;
    else if (decode(text, offered->bytes[offered->count], kSize, &size) && size == kSize)
        offered->count++;
}

// "v1,BASE64 v1a,BASE64 …"
void ReadStandardWebhooks(const Delivery &delivery, Claim *claim) {
    // Visible ASCII without a dot: so there is one way only to take the signed content apart, and nobody can move bytes
    // of a genuine delivery from its payload to its id.
    bool plain_id = std::ranges::all_of(delivery.id, [](char c) { return c > ' ' && c < '\x7f' && c != '.'; });
    claim->malformed = delivery.id.empty() || !plain_id;
    claim->timestamp = delivery.timestamp;
    ForEachPart(delivery.signature, ' ', [claim](std::string_view part) {
        if (Consume(&part, "v1,"))
            Offer(part, DecodeBase64, &claim->macs, &claim->malformed);
        else if (Consume(&part, "v1a,"))
            Offer(part, DecodeBase64, &claim->ed25519, &claim->malformed);
    });
}

// "t=SECONDS,v1=HEX,…"; v0, which Stripe adds to test events, is a fake.
void ReadStripe(const Delivery &delivery, Claim *claim) {
    ForEachPart(delivery.signature, ',', [claim](std::string_view part) {
        if (Consume(&part, "t=")) {
            claim->malformed |= !claim->timestamp.empty();
            claim->timestamp = part;
        } else if (Consume(&part, "v1=")) {
            Offer(part, DecodeHex, &claim->macs, &claim->malformed);
        }
    });
}

// "sha256=HEX"
void ReadGitHub(const Delivery &delivery, Claim *claim) {
    std::string_view signature = delivery.signature;
    if (Consume(&signature, "sha256=")) Offer(signature, DecodeHex, &claim->macs, &claim->malformed);
}

bool IsRecent(std::string_view timestamp, Micros tolerance, Micros now) {
    if (timestamp.size() > kMostTimestampDigits) return false;
    int64_t seconds = -1;
    auto [end, fault] = std::from_chars(timestamp.data(), timestamp.data() + timestamp.size(), seconds);
    if (fault != std::errc() || end != timestamp.data() + timestamp.size() || seconds < 0) return false;
    // Senders say whole seconds, and their libraries count in them.
    int64_t age = now / kSecond - seconds;
    return (age < 0 ? -age : age) * kSecond <= tolerance;
}

std::string_view ComposeSignedContent(const Delivery &delivery, std::string_view timestamp, char *room) {
    char *end = room;
    auto append = [&end](std::string_view part) { end = std::ranges::copy(part, end).out; };
    if (delivery.scheme == SignatureScheme::StandardWebhooks) {
        append(delivery.id);
        append(".");
    }
    if (delivery.scheme != SignatureScheme::GitHub) {
        append(timestamp);
        append(".");
    }
    append(delivery.payload);
    return {room, static_cast<size_t>(end - room)};
}

// The key in a secret of standard-webhooks.
SecretFault ReadKey(std::string_view secret, SigningKey *key) {
    if (secret.starts_with(kPrivateKeyPrefix)) return SecretFault::PrivateKey;
    key->is_public = Consume(&secret, kPublicKeyPrefix);
    if (!key->is_public) Consume(&secret, kSecretPrefix);
    if (secret.empty()) return SecretFault::Empty;
    if (!DecodeBase64(secret, key->bytes, sizeof(key->bytes), &key->size)) return SecretFault::Malformed;
    if (key->is_public && key->size != crypto_sign_PUBLICKEYBYTES) return SecretFault::Malformed;
    return SecretFault::None;
}

bool HasMac(std::string_view content, const uint8_t *key, size_t key_size, const Claim &claim) {
    crypto_auth_hmacsha256_state state;
    uint8_t mac[crypto_auth_hmacsha256_BYTES];
    crypto_auth_hmacsha256_init(&state, key, key_size);
    crypto_auth_hmacsha256_update(&state, Bytes(content), content.size());
    crypto_auth_hmacsha256_final(&state, mac);
    bool found = false;
    for (size_t i = 0; i < claim.macs.count; i++) found |= sodium_memcmp(mac, claim.macs.bytes[i], sizeof(mac)) == 0;
    sodium_memzero(&state, sizeof(state));
    sodium_memzero(mac, sizeof(mac));
    return found;
}

bool HasEd25519(std::string_view content, const uint8_t *public_key, const Claim &claim) {
    bool found = false;
    for (size_t i = 0; i < claim.ed25519.count; i++)
        found |= crypto_sign_verify_detached(claim.ed25519.bytes[i], Bytes(content), content.size(), public_key) == 0;
    return found;
}

bool IsSignedBy(SignatureScheme scheme, std::string_view secret, std::string_view content, const Claim &claim) {
    if (scheme != SignatureScheme::StandardWebhooks) return HasMac(content, Bytes(secret), secret.size(), claim);
    // A public key is known to everybody, so it must never be tried as the key of a MAC.
    SigningKey key;
    bool found = ReadKey(secret, &key) == SecretFault::None &&
                 (key.is_public ? HasEd25519(content, key.bytes, claim) : HasMac(content, key.bytes, key.size, claim));
    sodium_memzero(&key, sizeof(key));
    return found;
}

}  // namespace

std::optional<SignatureScheme> SignatureSchemeOfName(std::string_view name) {
    if (name == "standard-webhooks") return SignatureScheme::StandardWebhooks;
    if (name == "stripe") return SignatureScheme::Stripe;
    if (name == "github") return SignatureScheme::GitHub;
    return std::nullopt;
}

SecretFault CheckSecret(SignatureScheme scheme, std::string_view secret) {
    if (secret.find_first_not_of(" \t\r\n\f\v") == std::string_view::npos) return SecretFault::Empty;
    if (scheme != SignatureScheme::StandardWebhooks) return SecretFault::None;
    SigningKey key;
    SecretFault fault = ReadKey(secret, &key);
    sodium_memzero(&key, sizeof(key));
    return fault;
}

size_t SignedContentRoom(const Delivery &delivery) {
    // Stripe's timestamp is part of its signature header.
    return delivery.id.size() + delivery.timestamp.size() + delivery.signature.size() + delivery.payload.size() + 2;
}

bool VerifySignature(const Delivery &delivery, std::span<const std::string_view> secrets, Micros tolerance, Micros now,
                     char *room) {
    Claim claim = {};
    switch (delivery.scheme) {
        case SignatureScheme::StandardWebhooks:
            ReadStandardWebhooks(delivery, &claim);
            break;
        case SignatureScheme::Stripe:
            ReadStripe(delivery, &claim);
            break;
        case SignatureScheme::GitHub:
            ReadGitHub(delivery, &claim);
            break;
    }
    if (claim.malformed) return false;
    if (delivery.scheme != SignatureScheme::GitHub && !IsRecent(claim.timestamp, tolerance, now)) return false;

    std::string_view content = ComposeSignedContent(delivery, claim.timestamp, room);
    bool found = false;
    for (std::string_view secret : secrets) found |= IsSignedBy(delivery.scheme, secret, content, claim);
    return found;
}

}  // namespace idem
