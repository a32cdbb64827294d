// What a receiver may have done to a delivery before it was verified: the usual mistakes, each of which can be proved,
// since the signature is right once it is undone. For who debugs.
#pragma once

#include "core/signature.hpp"

namespace idem {

enum class SignatureMistake : uint8_t {
    None,             // none of those below
    LostBackslashes,  // the payload was passed as text where bytea was meant, which takes a backslash for the first of
                      // two
    HexPayload,       // the payload is the text of a bytea, \x…
    Base64Payload,    // the payload is still in base64
    MissingNewline,   // a line feed at the end of the payload was cut off
    AddedNewline,     // or added
    BlanksAroundSecret,
};

struct MistakeRoom {
    size_t payload;
    size_t content;
};

// The bytes which FindMistake needs.
MistakeRoom RoomForMistakes(const Delivery &delivery, std::span<const std::string_view> secrets);

// Tries them one after another on a delivery which is NotSigned.
SignatureMistake FindMistake(const Delivery &delivery, const SignatureTerms &terms, char *payload_room,
                             char *content_room);

}  // namespace idem
