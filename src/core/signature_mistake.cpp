#include "core/signature_mistake.hpp"

#include <algorithm>

#include <sodium.h>

namespace idem {
namespace {

std::string_view DoubleBackslashes(std::string_view payload, char *room) {
    size_t size = 0;
    for (char c : payload) {
        room[size++] = c;
        if (c == '\\') room[size++] = c;
    }
    return {room, size};
}

std::string_view FromHex(std::string_view payload, char *room) {
    size_t size = 0;
    if (!ConsumePrefix(&payload, "\\x") || sodium_hex2bin(reinterpret_cast<unsigned char *>(room), payload.size(),
                                                          payload.data(), payload.size(), nullptr, &size, nullptr) != 0)
        return {};
    return {room, size};
}

std::string_view FromBase64(std::string_view payload, char *room) {
    size_t size = 0;
    if (!DecodeBase64(payload, reinterpret_cast<uint8_t *>(room), payload.size(), &size)) return {};
    return {room, size};
}

std::string_view WithNewline(std::string_view payload, char *room) {
    std::ranges::copy(payload, room);
    room[payload.size()] = '\n';
    return {room, payload.size() + 1};
}

std::string_view WithoutNewline(std::string_view payload, char *) {
    while (payload.ends_with('\n') || payload.ends_with('\r')) payload.remove_suffix(1);
    return payload;
}

struct Undoing {
    SignatureMistake mistake;
    std::string_view (*undo)(std::string_view payload, char *room);
};

constexpr Undoing kUndoings[] = {
    {SignatureMistake::LostBackslashes, DoubleBackslashes}, {SignatureMistake::HexPayload, FromHex},
    {SignatureMistake::Base64Payload, FromBase64},          {SignatureMistake::MissingNewline, WithNewline},
    {SignatureMistake::AddedNewline, WithoutNewline},
};

std::string_view WithoutBlanks(std::string_view text) {
    constexpr std::string_view kBlanks = " \t\r\n\f\v";
    size_t first = text.find_first_not_of(kBlanks);
    return first == std::string_view::npos ? std::string_view()
                                           : text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

bool IsGenuine(const Delivery &delivery, const SignatureTerms &terms, char *room) {
    return JudgeSignature(delivery, terms, room).fault == SignatureFault::None;
}

}  // namespace

MistakeRoom RoomForMistakes(const Delivery &delivery, std::span<const std::string_view> secrets) {
    size_t payload = 2 * delivery.payload.size() + 1;
    return {payload, SignedContentRoom(delivery, secrets) + payload};
}

SignatureMistake FindMistake(const Delivery &delivery, const SignatureTerms &terms, char *payload_room,
                             char *content_room) {
    for (const Undoing &undoing : kUndoings) {
        Delivery undone = delivery;
        undone.payload = undoing.undo(delivery.payload, payload_room);
        if (undone.payload != delivery.payload && IsGenuine(undone, terms, content_room)) return undoing.mistake;
    }
    for (const std::string_view &secret : terms.secrets) {
        std::string_view trimmed = WithoutBlanks(secret);
        SignatureTerms undone = terms;
        undone.secrets = {&trimmed, 1};
        if (trimmed != secret && IsGenuine(delivery, undone, content_room)) return SignatureMistake::BlanksAroundSecret;
    }
    return SignatureMistake::None;
}

}  // namespace idem
