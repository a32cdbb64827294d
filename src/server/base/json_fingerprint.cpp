#include "server/base/json_fingerprint.hpp"

#include "server/base/arguments.hpp"

namespace idem {
namespace {

void AddScalar(Hash *hash, const JsonbValue &value) {
    switch (value.type) {
        case jbvNull:
            hash->AddByte('n');
            return;
        case jbvBool:
            hash->AddByte(value.val.boolean ? 't' : 'f');
            return;
        case jbvNumeric:
            hash->AddByte('0');
            hash->AddPart(numeric_normalize(value.val.numeric));
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

}  // namespace

Fingerprint FingerprintOfPaths(Jsonb *content, ArrayType *paths) {
    Datum *values = nullptr;
    bool *nulls = nullptr;
    int count = 0;
    deconstruct_array(paths, TEXTOID, -1, false, TYPALIGN_INT, &values, &nulls, &count);
    if (count == 0)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("at least one path must be given")));

    Hash hash;
    for (int i = 0; i < count; i++) {
        if (nulls[i]) ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("a path must not be null")));
        Jsonb *value = ValueAt(content, values[i]);
        hash.AddByte(value != nullptr ? '+' : '-');
        if (value != nullptr) AddValue(&hash, value);
    }
    return FinishFingerprint(FingerprintVersion::JsonPaths, hash);
}

}  // namespace idem
