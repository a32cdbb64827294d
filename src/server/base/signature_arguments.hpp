// Reads what the functions on signatures are asked. Secrets are arguments here, so no message quotes any argument: not
// even one that should be something else.
#pragma once

#include "core/signature.hpp"
#include "server/base/postgres.hpp"

namespace idem {

using SignatureSecrets = std::span<std::string_view>;

// To judge this delivery; or why it can't be judged (null = it can), without quoting it.
struct SignatureQuestion {
    Delivery delivery;
    SignatureTerms terms;
    const char *unreadable;
};

// An argument as secrets: text, or an array of it. Raise 22004 or 22023.
SignatureSecrets SecretArgument(FunctionCallInfo fcinfo, int number);
SignatureSecrets SecretsArgument(FunctionCallInfo fcinfo, int number);

// Arguments 0, 1, 2 and 4: scheme, payload, one header or all headers, tolerance. Raise 22004 or 22023 for what the
// receiver got wrong, never for what came from outside.
SignatureQuestion AskWithHeader(FunctionCallInfo fcinfo, SignatureSecrets secrets);
SignatureQuestion AskWithHeaders(FunctionCallInfo fcinfo, SignatureSecrets secrets);

// For messages.
const char *NameOfHeader(const HeaderName &header);

}  // namespace idem
