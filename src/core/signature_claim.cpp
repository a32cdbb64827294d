#include "core/signature_claim.hpp"

#include <algorithm>
#include <charconv>

namespace idem {
namespace {

// Until the year 33658: more is no time in seconds.
constexpr size_t kMostTimestampDigits = 12;

// Sixty-four characters of base64 are the least that whole blocks of AES can be moved by.
constexpr size_t kMostNonceBytes = 63;
constexpr size_t kCipherBlockBytes = 16;

using Decoder = bool (*)(std::string_view, uint8_t *, size_t, size_t *);

template <class F>
void ForEachPart(std::string_view list, char separator, F visit) {
    while (true) {
        size_t end = separator == '\0' ? std::string_view::npos : list.find(separator);
        visit(list.substr(0, end));
        if (end == std::string_view::npos) return;
        list.remove_prefix(end + 1);
    }
}

bool DecodeHex(std::string_view text, uint8_t *out, size_t most, size_t *size) {
    return sodium_hex2bin(out, most, text.data(), text.size(), nullptr, size, nullptr) == 0;
}

// A MAC in hex is longer than one in base64, so neither is taken for the other.
bool DecodeEither(std::string_view text, uint8_t *out, size_t most, size_t *size) {
    return DecodeHex(text, out, most, size) || DecodeBase64(text, out, most, size);
}

Decoder DecoderOf(SignatureEncoding encoding) {
    switch (encoding) {
        case SignatureEncoding::Hex:
            return DecodeHex;
        case SignatureEncoding::Base64:
            return DecodeBase64;
        case SignatureEncoding::HexOrBase64:
            break;
    }
    return DecodeEither;
}

void Blame(SignatureClaim *claim, SignatureFault fault) {
    if (claim->fault == SignatureFault::None) claim->fault = fault;
}

template <size_t kSize>
void Offer(std::string_view text, Decoder decode, OfferedSignatures<kSize> *offered, SignatureClaim *claim) {
    size_t size = 0;
    if (offered->count == kMostSignatures)
        Blame(claim, SignatureFault::TooManySignatures);
    else if (decode(text, offered->bytes[offered->count], kSize, &size) && size == kSize)
        offered->count++;
}

void ReadPart(const SignatureScheme &scheme, std::string_view part, SignatureClaim *claim) {
    if (!scheme.timestamp_prefix.empty() && ConsumePrefix(&part, scheme.timestamp_prefix)) {
        if (!claim->timestamp.empty()) Blame(claim, SignatureFault::MalformedTimestamp);
        claim->timestamp = part;
    } else if (ConsumePrefix(&part, scheme.prefix)) {
        if (scheme.method == SignatureMethod::SortedSha1)
            Offer(part, DecoderOf(scheme.encoding), &claim->sha1, claim);
        else
            Offer(part, DecoderOf(scheme.encoding), &claim->macs, claim);
    } else if (scheme.method == SignatureMethod::HmacOrEd25519 && ConsumePrefix(&part, "v1a,")) {
        Offer(part, DecodeBase64, &claim->ed25519, claim);
    }
}

bool IsVisible(std::string_view text) {
    return std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

// Base64 of whole cipher blocks. What is longer than a nonce may be, 64 characters, is the least that can be taken away
// from such a text so that it stays one.
bool IsEncrypted(std::string_view text) {
    if (text.empty() || text.size() % 4 != 0) return false;
    size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
    bool base64 = std::ranges::all_of(text.substr(0, text.size() - padding), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '+' || c == '/';
    });
    return base64 && (text.size() / 4 * 3 - padding) % kCipherBlockBytes == 0;
}

// There has to be one way only to take signed content apart, so that nobody can move bytes of a genuine delivery from
// one piece to another.
void CheckPieces(const Delivery &delivery, SignatureClaim *claim) {
    const SignatureScheme &scheme = *delivery.scheme;
    if (scheme.id.name == nullptr) return;
    if (delivery.id.empty())
        Blame(claim, SignatureFault::NoId);
    else if (!IsVisible(delivery.id))
        Blame(claim, SignatureFault::MalformedId);
    else if (scheme.method == SignatureMethod::SortedSha1 && delivery.id.size() > kMostNonceBytes)
        Blame(claim, SignatureFault::MalformedId);
    else if (!scheme.content_separator.empty() && delivery.id.find(scheme.content_separator) != std::string_view::npos)
        Blame(claim, SignatureFault::MalformedId);
    // Nor may anybody who knows a SHA-1 but no secret lengthen what it is of, as is possible by bytes that are no text.
    if (scheme.method == SignatureMethod::SortedSha1 && !IsEncrypted(delivery.payload))
        Blame(claim, SignatureFault::MalformedPayload);
}

}  // namespace

bool ConsumePrefix(std::string_view *text, std::string_view prefix) {
    if (!text->starts_with(prefix)) return false;
    text->remove_prefix(prefix.size());
    return true;
}

bool DecodeBase64(std::string_view text, uint8_t *out, size_t most, size_t *size) {
    // libsodium 1.0.18 takes the byte 0xaf for a slash.
    bool ascii = std::ranges::all_of(text, [](char c) { return static_cast<uint8_t>(c) < 0x80; });
    return ascii && sodium_base642bin(out, most, text.data(), text.size(), nullptr, size, nullptr,
                                      sodium_base64_VARIANT_ORIGINAL) == 0;
}

bool ReadAge(std::string_view timestamp, Micros now, int64_t *age) {
    if (timestamp.size() > kMostTimestampDigits) return false;
    int64_t seconds = -1;
    auto [end, fault] = std::from_chars(timestamp.data(), timestamp.data() + timestamp.size(), seconds);
    if (fault != std::errc() || end != timestamp.data() + timestamp.size() || timestamp.front() == '-') return false;
    // Senders say whole seconds, and their libraries count in them.
    *age = now / kSecond - seconds;
    return true;
}

SignatureClaim ReadClaim(const Delivery &delivery) {
    const SignatureScheme &scheme = *delivery.scheme;
    SignatureClaim claim = {};
    if (delivery.signature.empty()) Blame(&claim, SignatureFault::NoSignature);
    CheckPieces(delivery, &claim);
    if (scheme.timestamp.name != nullptr) claim.timestamp = delivery.timestamp;
    ForEachPart(delivery.signature, scheme.separator, [&](std::string_view part) { ReadPart(scheme, part, &claim); });
    if (scheme.HasTimestamp() && claim.timestamp.empty()) Blame(&claim, SignatureFault::NoTimestamp);
    if (claim.macs.count + claim.ed25519.count + claim.sha1.count == 0)
        Blame(&claim, SignatureFault::MalformedSignature);
    return claim;
}

}  // namespace idem
