// Keys and business keys are stored for years: the vectors below freeze their format. A change of one would let every
// stored event happen again.
#include "core/key.hpp"

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hex.hpp"

namespace idem {
namespace {

std::string KeyHex(std::string_view handler, std::string_view event_id, std::string_view batch = {}) {
    return Hex(MakeKey(handler, event_id, batch).bytes);
}

std::string BusinessKey(const std::vector<std::string_view> &parts) {
    std::string key(BusinessKeySize(parts), '\0');
    ComposeBusinessKey(parts, key.data());
    return key;
}

// Made without libsodium, by Python:
//   def key(*parts):
//       h = hashlib.blake2b(digest_size=16)
//       for part in (p.encode() for p in parts): h.update(struct.pack('>I', len(part)) + part)
//       return h.hexdigest()
TEST(Key, EqualsTheFixedVectors) {
    EXPECT_EQ(KeyHex("charge-wallet", "evt_123"), "75bb4a483fbe6c0268bfddb33e09093e");
    EXPECT_EQ(KeyHex("charge-wallet", "evt_123", "2026-11"), "690929608cb6b0f86d5f339707e4a755");
    EXPECT_EQ(KeyHex("a", "b"), "51f0df627eafec87293cace2af5bdf2a");
    EXPECT_EQ(KeyHex("a:b", "c\\d"), "95e0121460c6c59ae54a84737536ddb0");
}

TEST(Key, EqualsTheFixedVectorsForUtf8) {
    EXPECT_EQ(KeyHex("入账", "订单-42"), "f7d3bfe6802b61fdbab5547fa503e0db");
    EXPECT_EQ(KeyHex("入账", "订单-42", "重发"), "3220a03d5b42a87b9a494f4f875c3d6c");
    EXPECT_EQ(KeyHex("käse", "\U0001F9C0"), "8581ddb3cd7f1aa681fb8eec2298d45f");
}

TEST(Key, EqualsTheFixedVectorsForLongParts) {
    std::string e1024(1024, 'e'), h255(255, 'h'), b255(255, 'b'), x127(127, 'x'), x128(128, 'x');
    EXPECT_EQ(KeyHex("h", e1024), "d1c4b492edb5b936e706a31c609c05f1");
    EXPECT_EQ(KeyHex(h255, "e", b255), "ce745eb0aca591c81bdfb50bfdd36df8");
    EXPECT_EQ(KeyHex(x127, "y"), "5a267a7532b2a7bec3d699d96eeeccd4");
    EXPECT_EQ(KeyHex(x128, "y"), "9a41560932509c6c8c7d9a14c80191a1");
}

TEST(Key, DependsOnWhereOnePartEndsAndTheNextBegins) {
    std::set<std::string> keys = {KeyHex("ab", "c"),    KeyHex("a", "bc"), KeyHex("a", "b", "c"),
                                  KeyHex("abc", "abc"), KeyHex("c", "ab"), KeyHex("bc", "a")};
    EXPECT_EQ(keys.size(), 6u);
}

TEST(Key, NoBatchAndAnyBatchAreDifferentEvents) {
    EXPECT_NE(KeyHex("h", "e"), KeyHex("h", "e", "1"));
    EXPECT_NE(KeyHex("h", "e", "1"), KeyHex("h", "e", "2"));
    // The bytes which the batch adds, put at the end of the event's id.
    EXPECT_NE(KeyHex("h", std::string_view("e\0\0\0\1b", 6)), KeyHex("h", "e", "b"));
}

TEST(Key, IsNeverSharedByTwoOfManyShortEvents) {
    std::vector<std::string> words = {""};
    for (size_t i = 0; words[i].size() < 3; i++)
        for (char c : {'\0', '\1', 'a'}) words.push_back(words[i] + c);

    std::set<std::string> keys;
    size_t events = 0;
    for (const std::string &handler : words)
        for (const std::string &event_id : words)
            for (const std::string &batch : words) {
                keys.insert(KeyHex(handler, event_id, batch));
                events++;
            }
    EXPECT_EQ(words.size(), 1u + 3 + 9 + 27);
    EXPECT_EQ(keys.size(), events);
}

TEST(BusinessKey, JoinsPartsByColons) {
    EXPECT_EQ(BusinessKey({"order"}), "order");
    EXPECT_EQ(BusinessKey({"shop7", "order", "42"}), "shop7:order:42");
    EXPECT_EQ(BusinessKey({"店", "订单"}), "店:订单");
}

TEST(BusinessKey, EscapesColonsAndBackslashesWithinAPart) {
    EXPECT_EQ(BusinessKey({"a:b", "c"}), "a\\:b:c");
    EXPECT_EQ(BusinessKey({"a", "b:c"}), "a:b\\:c");
    EXPECT_EQ(BusinessKey({"a\\", "b"}), "a\\\\:b");
    EXPECT_EQ(BusinessKey({"a\\:b"}), "a\\\\\\:b");
    EXPECT_EQ(BusinessKey({"::", "\\"}), "\\:\\::\\\\");
}

TEST(BusinessKey, LeavesThePlaceOfAnAbsentPartEmpty) {
    EXPECT_EQ(BusinessKey({"sys", "event", ""}), "sys:event:");
    EXPECT_EQ(BusinessKey({"sys", "", "id"}), "sys::id");
    EXPECT_EQ(BusinessKey({"a\\", "", ":"}), "a\\\\::\\:");
}

TEST(BusinessKey, WritesNoByteBeyondItsSize) {
    std::vector<std::string_view> parts = {"a:", "\\b", "c"};
    size_t size = BusinessKeySize(parts);
    std::string buffer(size + 8, '#');
    ComposeBusinessKey(parts, buffer.data());
    EXPECT_EQ(buffer, "a\\::\\\\b:c########");
}

// All lists of one to three parts, each of one to four of the bytes that could run together.
TEST(BusinessKey, NeverGivesTwoListsOfPartsOneKey) {
    std::vector<std::string> parts = {"a", ":", "\\"};
    for (size_t i = 0; parts[i].size() < 4; i++)
        for (char c : {'a', ':', '\\'}) parts.push_back(parts[i] + c);
    ASSERT_EQ(parts.size(), 3u + 9 + 27 + 81);

    std::set<std::string> keys;
    size_t lists = 0;
    auto add = [&](const std::vector<std::string_view> &list) {
        lists++;
        keys.insert(BusinessKey(list));
    };
    for (const std::string &first : parts) {
        add({first});
        for (const std::string &second : parts) {
            add({first, second});
            if (first.size() > 2 || second.size() > 3) continue;
            for (const std::string &third : parts)
                if (third.size() <= 3) add({first, second, third});
        }
    }
    EXPECT_EQ(keys.size(), lists);
}

}  // namespace
}  // namespace idem
