// The SQL functions that verify signatures, and tell why one is not verified.

#include "core/signature_mistake.hpp"
#include "server/base/postgres.hpp"
#include "server/base/signature_arguments.hpp"

using namespace idem;

namespace {

// Payload and headers together may be larger than palloc allows.
char *Room(size_t bytes) { return static_cast<char *>(MemoryContextAllocHuge(CurrentMemoryContext, bytes)); }

SignatureVerdict Judge(const SignatureQuestion &question) {
    char *room = Room(SignedContentRoom(question.delivery, question.terms.secrets));
    SignatureVerdict verdict = JudgeSignature(question.delivery, question.terms, room);
    pfree(room);
    return verdict;
}

bool IsGenuine(const SignatureQuestion &question) {
    return question.unreadable == nullptr && Judge(question).fault == SignatureFault::None;
}

const char *FormOf(const SignatureScheme &scheme) {
    switch (scheme.encoding) {
        case SignatureEncoding::Hex:
            return psprintf("%.*s… in hex", static_cast<int>(scheme.prefix.size()), scheme.prefix.data());
        case SignatureEncoding::Base64:
            return psprintf("%.*s… in base64", static_cast<int>(scheme.prefix.size()), scheme.prefix.data());
        case SignatureEncoding::HexOrBase64:
            break;
    }
    return "… in hex or base64";
}

const char *WhyNotSigned(const SignatureQuestion &question) {
    MistakeRoom room = RoomForMistakes(question.delivery, question.terms.secrets);
    switch (FindMistake(question.delivery, question.terms, Room(room.payload), Room(room.content))) {
        case SignatureMistake::LostBackslashes:
            return "payload has lost backslashes: pass it as bytea, not as text";
        case SignatureMistake::HexPayload:
            return "payload is the text of a bytea (\\x…), not its bytes";
        case SignatureMistake::Base64Payload:
            return "payload is still in base64";
        case SignatureMistake::MissingNewline:
            return "payload has lost the line feed at its end";
        case SignatureMistake::AddedNewline:
            return "payload has a line feed at its end which was not signed";
        case SignatureMistake::BlanksAroundSecret:
            return "a secret has white space around it which its sender does not know of";
        case SignatureMistake::None:
            break;
    }
    return "no signature matches: it was made with another secret, or the payload is not byte for byte what was signed";
}

// Null = none. Quotes nothing that was passed, and tells nothing which would help to forge a signature.
const char *FaultOf(const SignatureQuestion &question) {
    if (question.unreadable != nullptr) return question.unreadable;
    const SignatureScheme &scheme = *question.delivery.scheme;
    const char *timestamp = NameOfHeader(scheme.timestamp.name != nullptr ? scheme.timestamp : scheme.signature);
    SignatureVerdict verdict = Judge(question);
    switch (verdict.fault) {
        case SignatureFault::None:
            break;
        case SignatureFault::NoSignature:
            return psprintf("no %s", NameOfHeader(scheme.signature));
        case SignatureFault::NoId:
            return psprintf("no %s", NameOfHeader(scheme.id));
        case SignatureFault::NoTimestamp:
            return scheme.timestamp.name != nullptr ? psprintf("no %s", timestamp)
                                                    : psprintf("%s holds no time", timestamp);
        case SignatureFault::MalformedSignature:
            return psprintf("%s holds no signature (%s)", NameOfHeader(scheme.signature), FormOf(scheme));
        case SignatureFault::MalformedId:
            return psprintf("%s is too long, or not of visible ASCII without dots", NameOfHeader(scheme.id));
        case SignatureFault::MalformedTimestamp:
            return psprintf("%s does not hold one time in seconds since 1970", timestamp);
        case SignatureFault::MalformedPayload:
            return "payload is not the text in the Encrypt element (echostr), which is base64";
        case SignatureFault::TooManySignatures:
            return psprintf("%s holds too many signatures", NameOfHeader(scheme.signature));
        case SignatureFault::TooOld:
            return psprintf("timestamp is " INT64_FORMAT " s old, which is more than the tolerance", verdict.age);
        case SignatureFault::TooNew:
            return psprintf("timestamp is " INT64_FORMAT
                            " s ahead of the server's clock, which is more than the tolerance",
                            -verdict.age);
        case SignatureFault::NotSigned:
            return WhyNotSigned(question);
    }
    return nullptr;
}

Datum TellFault(FunctionCallInfo fcinfo, const SignatureQuestion &question) {
    const char *fault = FaultOf(question);
    if (fault == nullptr) PG_RETURN_NULL();
    PG_RETURN_TEXT_P(cstring_to_text(fault));
}

}  // namespace

extern "C" {

PG_FUNCTION_INFO_V1(idem_verify_signature_header_secret);
PG_FUNCTION_INFO_V1(idem_verify_signature_header_secrets);
PG_FUNCTION_INFO_V1(idem_verify_signature_headers_secret);
PG_FUNCTION_INFO_V1(idem_verify_signature_headers_secrets);
PG_FUNCTION_INFO_V1(idem_signature_fault_header_secret);
PG_FUNCTION_INFO_V1(idem_signature_fault_header_secrets);
PG_FUNCTION_INFO_V1(idem_signature_fault_headers_secret);
PG_FUNCTION_INFO_V1(idem_signature_fault_headers_secrets);

Datum idem_verify_signature_header_secret(PG_FUNCTION_ARGS) {
    PG_RETURN_BOOL(IsGenuine(AskWithHeader(fcinfo, SecretArgument(fcinfo, 3))));
}

Datum idem_verify_signature_header_secrets(PG_FUNCTION_ARGS) {
    PG_RETURN_BOOL(IsGenuine(AskWithHeader(fcinfo, SecretsArgument(fcinfo, 3))));
}

Datum idem_verify_signature_headers_secret(PG_FUNCTION_ARGS) {
    PG_RETURN_BOOL(IsGenuine(AskWithHeaders(fcinfo, SecretArgument(fcinfo, 3))));
}

Datum idem_verify_signature_headers_secrets(PG_FUNCTION_ARGS) {
    PG_RETURN_BOOL(IsGenuine(AskWithHeaders(fcinfo, SecretsArgument(fcinfo, 3))));
}

Datum idem_signature_fault_header_secret(PG_FUNCTION_ARGS) {
    return TellFault(fcinfo, AskWithHeader(fcinfo, SecretArgument(fcinfo, 3)));
}

Datum idem_signature_fault_header_secrets(PG_FUNCTION_ARGS) {
    return TellFault(fcinfo, AskWithHeader(fcinfo, SecretsArgument(fcinfo, 3)));
}

Datum idem_signature_fault_headers_secret(PG_FUNCTION_ARGS) {
    return TellFault(fcinfo, AskWithHeaders(fcinfo, SecretArgument(fcinfo, 3)));
}

Datum idem_signature_fault_headers_secrets(PG_FUNCTION_ARGS) {
    return TellFault(fcinfo, AskWithHeaders(fcinfo, SecretsArgument(fcinfo, 3)));
}

}  // extern "C"
