// The SQL functions that verify signatures. Secrets are arguments here, so no message quotes any argument: not even one
// that should be something else.

#include "core/signature.hpp"
#include "core/window.hpp"
#include "server/base/arguments.hpp"
#include "server/base/http_headers.hpp"
#include "server/base/postgres.hpp"

using namespace idem;

namespace {

constexpr Micros kServerEpoch = (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * kDay;

using Secrets = std::span<std::string_view>;

SignatureScheme SchemeArgument(FunctionCallInfo fcinfo, int number) {
    RequireArgument(fcinfo, number, "scheme");
    std::optional<SignatureScheme> scheme = SignatureSchemeOfName(ViewOf(PG_GETARG_TEXT_PP(number)));
    if (!scheme)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("unknown signature scheme"),
                        errhint("The schemes are \"standard-webhooks\", \"stripe\" and \"github\".")));
    return *scheme;
}

// Senders take secrets as UTF-8. What a SQL_ASCII database holds is taken as it is: a check would quote what fails it.
std::string_view SecretOf(const text *value) {
    return GetDatabaseEncoding() == PG_SQL_ASCII ? ViewOf(value) : Utf8(ViewOf(value));
}

Secrets SecretsArgument(FunctionCallInfo fcinfo, int number) {
    RequireArgument(fcinfo, number, "secrets");
    Datum *values = nullptr;
    bool *nulls = nullptr;
    int count = 0;
    deconstruct_array(PG_GETARG_ARRAYTYPE_P(number), TEXTOID, -1, false, TYPALIGN_INT, &values, &nulls, &count);
    if (count == 0)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("at least one secret must be given"),
                        errhint("Without one nothing can be verified.")));
    auto *secrets = static_cast<std::string_view *>(palloc(count * sizeof(std::string_view)));
    for (int i = 0; i < count; i++) {
        if (nulls[i])
            ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("secret %d must not be null", i + 1)));
        secrets[i] = SecretOf(DatumGetTextPP(values[i]));
    }
    return {secrets, static_cast<size_t>(count)};
}

Secrets SecretArgument(FunctionCallInfo fcinfo, int number) {
    RequireArgument(fcinfo, number, "secret");
    auto *secret = static_cast<std::string_view *>(palloc(sizeof(std::string_view)));
    *secret = SecretOf(PG_GETARG_TEXT_PP(number));
    // Drivers that send arrays as untyped text would have it taken for one secret, which never verifies anything.
    if (secret->starts_with('{') && secret->ends_with('}'))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("secret looks like an array"),
                        errhint("Pass several secrets as an array of type text[].")));
    return {secret, 1};
}

void CheckSecrets(SignatureScheme scheme, Secrets secrets) {
    int number = 0;
    for (std::string_view secret : secrets) {
        number++;
        switch (CheckSecret(scheme, secret)) {
            case SecretFault::Empty:
                ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("secret %d must not be empty", number),
                                errhint("An empty secret is known to everybody.")));
            case SecretFault::Malformed:
                ereport(ERROR,
                        (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("secret %d is malformed", number),
                         errhint("Pass it as the sender shows it: \"whsec_\", or \"whpk_\" for a public key, and "
                                 "then base64.")));
            case SecretFault::PrivateKey:
                ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("secret %d is a private key", number),
                                errhint("Pass the public key, which begins with \"whpk_\".")));
            case SecretFault::None:
                break;
        }
    }
}

Micros ToleranceArgument(FunctionCallInfo fcinfo, int number) {
    RequireArgument(fcinfo, number, "tolerance");
    return WindowArgument(fcinfo, number, "tolerance", 0);
}

// Verifies the payload (argument 1), once its headers are read.
bool Verify(FunctionCallInfo fcinfo, Delivery delivery, Secrets secrets, Micros tolerance) {
    delivery.payload = ViewOf(PG_GETARG_BYTEA_PP(1));
    // Payload and headers together may be larger than palloc allows.
    auto *room = static_cast<char *>(MemoryContextAllocHuge(CurrentMemoryContext, SignedContentRoom(delivery)));
    bool verified = VerifySignature(delivery, secrets, tolerance, GetCurrentTimestamp() + kServerEpoch, room);
    pfree(room);
    return verified;
}

// Arguments: scheme, payload, header, …, tolerance.
bool VerifyWithHeader(FunctionCallInfo fcinfo, Secrets secrets) {
    Delivery delivery = {};
    delivery.scheme = SchemeArgument(fcinfo, 0);
    if (delivery.scheme == SignatureScheme::StandardWebhooks)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("this scheme needs more than one header"),
                        errhint("Pass all headers of the delivery as jsonb.")));
    CheckSecrets(delivery.scheme, secrets);
    Micros tolerance = ToleranceArgument(fcinfo, 4);
    if (PG_ARGISNULL(1) || PG_ARGISNULL(2)) return false;
    delivery.signature = ViewOf(PG_GETARG_TEXT_PP(2));
    return Verify(fcinfo, delivery, secrets, tolerance);
}

// Arguments: scheme, payload, headers, …, tolerance.
bool VerifyWithHeaders(FunctionCallInfo fcinfo, Secrets secrets) {
    Delivery delivery = {};
    delivery.scheme = SchemeArgument(fcinfo, 0);
    CheckSecrets(delivery.scheme, secrets);
    Micros tolerance = ToleranceArgument(fcinfo, 4);
    if (PG_ARGISNULL(1) || PG_ARGISNULL(2)) return false;
    Jsonb *headers = PG_GETARG_JSONB_P(2);
    switch (delivery.scheme) {
        case SignatureScheme::StandardWebhooks:
            delivery.id = HeaderValue(headers, "webhook-id", "svix-id");
            delivery.timestamp = HeaderValue(headers, "webhook-timestamp", "svix-timestamp");
            delivery.signature = HeaderValue(headers, "webhook-signature", "svix-signature");
            break;
        case SignatureScheme::Stripe:
            delivery.signature = HeaderValue(headers, "stripe-signature", nullptr);
            break;
        case SignatureScheme::GitHub:
            delivery.signature = HeaderValue(headers, "x-hub-signature-256", nullptr);
            break;
    }
    return Verify(fcinfo, delivery, secrets, tolerance);
}

}  // namespace

extern "C" {

PG_FUNCTION_INFO_V1(idem_verify_signature_header_secret);
PG_FUNCTION_INFO_V1(idem_verify_signature_header_secrets);
PG_FUNCTION_INFO_V1(idem_verify_signature_headers_secret);
PG_FUNCTION_INFO_V1(idem_verify_signature_headers_secrets);

Datum idem_verify_signature_header_secret(PG_FUNCTION_ARGS) {
    PG_RETURN_BOOL(VerifyWithHeader(fcinfo, SecretArgument(fcinfo, 3)));
}

Datum idem_verify_signature_header_secrets(PG_FUNCTION_ARGS) {
    PG_RETURN_BOOL(VerifyWithHeader(fcinfo, SecretsArgument(fcinfo, 3)));
}

Datum idem_verify_signature_headers_secret(PG_FUNCTION_ARGS) {
    PG_RETURN_BOOL(VerifyWithHeaders(fcinfo, SecretArgument(fcinfo, 3)));
}

Datum idem_verify_signature_headers_secrets(PG_FUNCTION_ARGS) {
    PG_RETURN_BOOL(VerifyWithHeaders(fcinfo, SecretsArgument(fcinfo, 3)));
}

}  // extern "C"
