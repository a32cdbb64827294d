// The senders of webhooks that are known, and how each signs: a table, of which one more sender is one more row.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace idem {

enum class SignatureMethod : uint8_t {
    Hmac,           // HMAC-SHA256; the secret's bytes are the key
    HmacOrEd25519,  // a secret is a key in base64: of HMAC-SHA256, or an Ed25519 public key
    SortedSha1,     // SHA-1 of secret, timestamp, id and payload, sorted as texts and put together
};

enum class SignatureEncoding : uint8_t { Hex, Base64, HexOrBase64 };

// In whatever case; other = a second name that the sender uses, or null.
struct HeaderName {
    const char *name = nullptr;
    const char *other = nullptr;
};

struct SignatureScheme {
    const char *name;
    HeaderName signature = {};  // null: its sender says which
    // Signed headers; a scheme that has one can't be verified by its signature header alone.
    HeaderName timestamp = {};
    HeaderName id = {};
    // What the signature header holds: one signature, or parts with a separator between them. A part which begins with
    // the prefix is a signature; one that begins with timestamp_prefix is the time.
    char separator = '\0';
    std::string_view prefix = {};
    std::string_view timestamp_prefix = {};
    SignatureEncoding encoding = SignatureEncoding::Hex;
    SignatureMethod method = SignatureMethod::Hmac;
    // Unless sorted, what is signed is: content_start, id, timestamp, payload; those that there are, with this after id
    // and timestamp.
    std::string_view content_start = {};
    std::string_view content_separator = {};

    bool HasTimestamp() const { return timestamp.name != nullptr || !timestamp_prefix.empty(); }
    bool NeedsMoreHeaders() const { return timestamp.name != nullptr || id.name != nullptr; }
};

std::span<const SignatureScheme> SignatureSchemes();

// The scheme of this name, or null.
const SignatureScheme *SignatureSchemeOfName(std::string_view name);

}  // namespace idem
