#include "core/signature_scheme.hpp"

namespace idem {
namespace {

constexpr SignatureScheme kSchemes[] = {
    // v1a, by Ed25519, beside v1 is a matter of the method.
    {.name = "standard-webhooks",
     .signature = {"webhook-signature", "svix-signature"},
     .timestamp = {"webhook-timestamp", "svix-timestamp"},
     .id = {"webhook-id", "svix-id"},
     .separator = ' ',
     .prefix = "v1,",
     .encoding = SignatureEncoding::Base64,
     .method = SignatureMethod::HmacOrEd25519,
     .content_separator = "."},
    // v0, which Stripe adds to test events, is a fake.
    {.name = "stripe",
     .signature = {"stripe-signature"},
     .separator = ',',
     .prefix = "v1=",
     .timestamp_prefix = "t=",
     .content_separator = "."},
    {.name = "github", .signature = {"x-hub-signature-256"}, .prefix = "sha256="},
    {.name = "shopify", .signature = {"x-shopify-hmac-sha256"}, .encoding = SignatureEncoding::Base64},
    {.name = "slack",
     .signature = {"x-slack-signature"},
     .timestamp = {"x-slack-request-timestamp"},
     .prefix = "v0=",
     .content_start = "v0:",
     .content_separator = ":"},
    // These are parameters of the URL; the id is no id of the message, which is inside what is encrypted.
    {.name = "wecom",
     .signature = {"msg_signature"},
     .timestamp = {"timestamp"},
     .id = {"nonce"},
     .method = SignatureMethod::SortedSha1},
    {.name = "line", .signature = {"x-line-signature"}, .encoding = SignatureEncoding::Base64},
    {.name = "meta", .signature = {"x-hub-signature-256"}, .prefix = "sha256="},
    {.name = "hmac-sha256", .encoding = SignatureEncoding::HexOrBase64},
};

}  // namespace

std::span<const SignatureScheme> SignatureSchemes() { return kSchemes; }

const SignatureScheme *SignatureSchemeOfName(std::string_view name) {
    for (const SignatureScheme &scheme : kSchemes)
        if (name == scheme.name) return &scheme;
    return nullptr;
}

}  // namespace idem
