#include "server/base/json_fingerprint.hpp"

#include "server/base/arguments.hpp"

namespace idem {
namespace {

// Up to so many digits of base 10,000 before or after the point a number is hashed as it is written out.
constexpr int kWrittenOut = 16;

// Equal numbers alike, however they are written. A few bytes such as 1e131071 may mean very many digits, so a number
// far from 1 is hashed by its exponent, sign and digits, as its binary form (numeric_send) has them.
void AddNumber(Hash *hash, Numeric number) {
    bytea *sent = DatumGetByteaPP(DirectFunctionCall1(numeric_send, NumericGetDatum(number)));
    std::string_view binary = ViewOf(sent);  // count of digits, weight, sign, scale: two bytes each; then the digits
    auto weight = static_cast<int16>(static_cast<uint8>(binary[2]) << 8 | static_cast<uint8>(binary[3]));
    if (weight >= -kWrittenOut && weight <= kWrittenOut) {
        char *written = numeric_normalize(number);
        hash->AddByte('0');
        hash->AddPart(written);
        pfree(written);
    } else {
        hash->AddByte('e');
        hash->AddPart(binary.substr(2, 4));
        hash->AddPart(binary.substr(8));
    }
    pfree(sent);
}

void AddScalar(Hash *hash, const JsonbValue &value) {
    switch (value.type) {
        case jbvNull:
            hash->AddByte('n');
            return;
        case jbvBool:
            hash->AddByte(value.val.boolean ? 't' : 'f');
            return;
        case jbvNumeric:
            AddNumber(hash, value.val.numeric);
            return;
        case jbvString:
            hash->AddByte('"');
            hash->AddPart(Utf8({value.val.string.val, static_cast<size_t>(value.val.string.len)}));
            return;
        default:
            elog(ERROR, "unexpected type %d of a jsonb scalar", static_cast<int>(value.type));
    }
}

// The tokens of the value in the order in which jsonb keeps them, which depends on the keys only.
void AddValue(Hash *hash, Jsonb *value) {
    bool lone_scalar = JB_ROOT_IS_SCALAR(value);  // kept in an array of its own, which is not part of it
    JsonbIterator *iterator = JsonbIteratorInit(&value->root);
    JsonbValue token;
    JsonbIteratorToken kind;
    while ((kind = JsonbIteratorNext(&iterator, &token, false)) != WJB_DONE) {
        CHECK_FOR_INTERRUPTS();
        bool holds_scalar = kind == WJB_KEY || kind == WJB_VALUE || kind == WJB_ELEM;
        if (holds_scalar)
            AddScalar(hash, token);
        else if (!lone_scalar)
            hash->AddByte(kind == WJB_BEGIN_OBJECT  ? '{'
                          : kind == WJB_END_OBJECT  ? '}'
                          : kind == WJB_BEGIN_ARRAY ? '['
                                                    : ']');
    }
}

// A path as the server's operator #> takes it.
Datum KeysOf(Datum path) {
    char *written = TextDatumGetCString(path);
    if (written[0] == '{') {
        Datum keys = OidInputFunctionCall(F_ARRAY_IN, written, TEXTOID, -1);
        if (array_contains_nulls(DatumGetArrayTypeP(keys)))
            ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("a key in a path must not be null")));
        return keys;
    }
    return PointerGetDatum(construct_array(&path, 1, TEXTOID, -1, false, TYPALIGN_INT));
}

// content #> path; nullptr if there is no such path.
Jsonb *ValueAt(Jsonb *content, Datum path) {
    LOCAL_FCINFO(fcinfo, 2);
    InitFunctionCallInfoData(*fcinfo, nullptr, 2, InvalidOid, nullptr, nullptr);
    fcinfo->args[0] = {JsonbPGetDatum(content), false};
    fcinfo->args[1] = {KeysOf(path), false};
    Datum value = jsonb_extract_path(fcinfo);
    return fcinfo->isnull ? nullptr : DatumGetJsonbP(value);
}

// Of a document in which there is nothing to compare, all would have one fingerprint.
[[noreturn]] void RaiseNothingThere(Jsonb *content) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("the document has none of the paths"),
                    JB_ROOT_IS_SCALAR(content)
                        ? errhint("It is a scalar, such as JSON which was written into a string; parse it first: "
                                  "(content #>> '{}')::jsonb.")
                        : errhint("A path begins at the root of the document: '{data,object,amount}', not 'amount'.")));
}

}  // namespace

Fingerprint FingerprintOfPaths(Jsonb *content, ArrayType *paths) {
    Datum *values = nullptr;
    bool *nulls = nullptr;
    int count = 0;
    deconstruct_array(paths, TEXTOID, -1, false, TYPALIGN_INT, &values, &nulls, &count);
    if (count == 0)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("at least one path must be given")));

    Hash hash;
    bool any = false;
    for (int i = 0; i < count; i++) {
        if (nulls[i])
            ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("path %d must not be null", i + 1)));
        Jsonb *value = ValueAt(content, values[i]);
        hash.AddByte(value != nullptr ? '+' : '-');
        if (value == nullptr) continue;
        AddValue(&hash, value);
        any = true;
        if (value != content) pfree(value);
    }
    if (!any) RaiseNothingThere(content);
    return FinishFingerprint(FingerprintVersion::JsonPaths, hash);
}

}  // namespace idem
