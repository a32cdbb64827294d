#include "server/base/signature_arguments.hpp"

#include "core/window.hpp"
#include "server/base/arguments.hpp"
#include "server/base/http_headers.hpp"

namespace idem {
namespace {

constexpr Micros kServerEpoch = (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * kDay;

const char *SchemeNames() {
    StringInfoData names;
    initStringInfo(&names);
    std::span<const SignatureScheme> schemes = SignatureSchemes();
    for (size_t i = 0; i < schemes.size(); i++)
        appendStringInfo(&names, "%s\"%s\"", i == 0 ? "" : i + 1 == schemes.size() ? " and " : ", ", schemes[i].name);
    return names.data;
}

const SignatureScheme *SchemeArgument(FunctionCallInfo fcinfo, int number) {
    RequireArgument(fcinfo, number, "scheme");
    const SignatureScheme *scheme = SignatureSchemeOfName(ViewOf(PG_GETARG_TEXT_PP(number)));
    if (scheme == nullptr)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("unknown signature scheme"),
                        errhint("The schemes are %s.", SchemeNames())));
    return scheme;
}

// Senders take secrets as UTF-8. What a SQL_ASCII database holds is taken as it is: a check would quote what fails it.
std::string_view SecretOf(const text *value) {
    return GetDatabaseEncoding() == PG_SQL_ASCII ? ViewOf(value) : Utf8(ViewOf(value));
}

void CheckSecrets(const SignatureScheme &scheme, SignatureSecrets secrets) {
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

// The server's own; what it can't compute, such as by a setting of its library for cryptography, is an error.
void Sha1(std::string_view content, uint8_t *digest) {
    pg_cryptohash_ctx *context = pg_cryptohash_create(PG_SHA1);
    if (context == nullptr) ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
    if (pg_cryptohash_init(context) < 0 ||
        pg_cryptohash_update(context, reinterpret_cast<const uint8 *>(content.data()), content.size()) < 0 ||
        pg_cryptohash_final(context, digest, kSha1Bytes) < 0)
        ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
                        errmsg("could not compute a SHA-1: %s", pg_cryptohash_error(context))));
    pg_cryptohash_free(context);
}

// What both forms begin with, all but the headers. Arguments: scheme, payload, …, …, tolerance.
SignatureQuestion QuestionArguments(FunctionCallInfo fcinfo, const SignatureScheme *scheme, SignatureSecrets secrets) {
    CheckSecrets(*scheme, secrets);
    SignatureQuestion question = {};
    question.delivery.scheme = scheme;
    question.terms = {secrets, ToleranceArgument(fcinfo, 4), GetCurrentTimestamp() + kServerEpoch, Sha1};
    if (PG_ARGISNULL(1))
        question.unreadable = "payload is null";
    else
        question.delivery.payload = ViewOf(PG_GETARG_BYTEA_PP(1));
    return question;
}

std::string_view ReadHeader(Jsonb *headers, const HeaderName &header, SignatureQuestion *question) {
    if (header.name == nullptr) return {};
    HeaderText text = HeaderValue(headers, header.name, header.other);
    if (text.unusable) question->unreadable = psprintf("%s is not a text, or has several values", NameOfHeader(header));
    return text.value;
}

}  // namespace

SignatureSecrets SecretsArgument(FunctionCallInfo fcinfo, int number) {
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

SignatureSecrets SecretArgument(FunctionCallInfo fcinfo, int number) {
    RequireArgument(fcinfo, number, "secret");
    auto *secret = static_cast<std::string_view *>(palloc(sizeof(std::string_view)));
    *secret = SecretOf(PG_GETARG_TEXT_PP(number));
    // Drivers that send arrays as untyped text would have it taken for one secret, which never verifies anything.
    if (secret->starts_with('{') && secret->ends_with('}'))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("secret looks like an array"),
                        errhint("Pass several secrets as an array of type text[].")));
    return {secret, 1};
}

SignatureQuestion AskWithHeader(FunctionCallInfo fcinfo, SignatureSecrets secrets) {
    const SignatureScheme *scheme = SchemeArgument(fcinfo, 0);
    if (scheme->NeedsMoreHeaders())
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("this scheme needs more than one header"),
                        errhint("Pass all headers of the delivery as jsonb.")));
    SignatureQuestion question = QuestionArguments(fcinfo, scheme, secrets);
    if (question.unreadable != nullptr) return question;
    if (PG_ARGISNULL(2)) {
        question.unreadable = "header is null";
        return question;
    }
    question.delivery.signature = ViewOf(PG_GETARG_TEXT_PP(2));
    if (question.delivery.signature.starts_with('{'))
        question.unreadable = "header is JSON, passed as text: cast it to jsonb";
    return question;
}

const char *NameOfHeader(const HeaderName &header) {
    if (header.name == nullptr) return "header";
    return header.other == nullptr ? psprintf("header \"%s\"", header.name)
                                   : psprintf("header \"%s\" or \"%s\"", header.name, header.other);
}

SignatureQuestion AskWithHeaders(FunctionCallInfo fcinfo, SignatureSecrets secrets) {
    const SignatureScheme *scheme = SchemeArgument(fcinfo, 0);
    if (scheme->signature.name == nullptr)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("this scheme does not say which header it is"),
                        errhint("Pass the signature as text.")));
    SignatureQuestion question = QuestionArguments(fcinfo, scheme, secrets);
    if (question.unreadable != nullptr) return question;
    if (PG_ARGISNULL(2)) {
        question.unreadable = "headers is null";
        return question;
    }
    Jsonb *headers = PG_GETARG_JSONB_P(2);
    if (!JB_ROOT_IS_OBJECT(headers)) {
        question.unreadable = JB_ROOT_IS_SCALAR(headers) ? "headers is not an object: JSON which is passed as a string "
                                                           "has to be cast from text to jsonb"
                                                         : "headers is not an object, but an array";
        return question;
    }
    question.delivery.id = ReadHeader(headers, scheme->id, &question);
    question.delivery.timestamp = ReadHeader(headers, scheme->timestamp, &question);
    question.delivery.signature = ReadHeader(headers, scheme->signature, &question);
    return question;
}

}  // namespace idem
