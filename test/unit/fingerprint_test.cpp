// Fingerprints are stored beside their events and are compared with those which later releases make: the vectors below
// freeze their format.
#include "core/fingerprint.hpp"

#include <string>

#include <gtest/gtest.h>

#include "hex.hpp"

namespace idem {
namespace {

std::string Bytes(const Fingerprint &fingerprint) {
    return {reinterpret_cast<const char *>(fingerprint.bytes), Fingerprint::kSize};
}

std::string OfBytes(std::string_view content) { return Bytes(FingerprintOfBytes(content)); }

std::string OfVersion(int version) { return static_cast<char>(version) + std::string(Fingerprint::kSize - 1, 'x'); }

// Made without libsodium, by Python: '01' + hashlib.blake2b(content, digest_size=16).hexdigest()
TEST(Fingerprint, EqualsTheFixedVectors) {
    std::string all_bytes;
    for (int i = 0; i < 256; i++) all_bytes += static_cast<char>(i);

    EXPECT_EQ(Hex(FingerprintOfBytes("").bytes), "01cae66941d9efbd404e4d88758ea67670");
    EXPECT_EQ(Hex(FingerprintOfBytes("abc").bytes), "01cf4ab791c62b8d2b2109c90275287816");
    EXPECT_EQ(Hex(FingerprintOfBytes("{\"amount\": 1000}").bytes), "01db7aea81eb6b68c11fdab6440f566aa6");
    EXPECT_EQ(Hex(FingerprintOfBytes("金额: 10 元").bytes), "01314d231e7e6561a9a4ed2510c9907be6");
    EXPECT_EQ(Hex(FingerprintOfBytes(all_bytes).bytes), "01c2472c0ac37a8dbdb25f05ada0d82643");
    EXPECT_EQ(Hex(FingerprintOfBytes(std::string(200, 'x')).bytes), "01a838c58b985551205df88cdbb16ec53d");
}

TEST(Fingerprint, BeginsWithTheWayItWasMade) {
    Hash bytes, paths;
    bytes.Add("abc");
    paths.Add("abc");
    EXPECT_EQ(Hex(FinishFingerprint(FingerprintVersion::Bytes, bytes).bytes), "01cf4ab791c62b8d2b2109c90275287816");
    EXPECT_EQ(Hex(FinishFingerprint(FingerprintVersion::JsonPaths, paths).bytes), "02cf4ab791c62b8d2b2109c90275287816");
}

// Made by Python: hashlib.blake2b(b'\x07' + b'\x00\x00\x00\x02ab' + b'\x00\x00\x00\x00' + b'c', digest_size=16)
TEST(Fingerprint, IsMadeOfBytesAndLengthPrefixedParts) {
    Hash hash;
    hash.AddByte(7);
    hash.AddPart("ab");
    hash.AddPart("");
    hash.Add("c");
    EXPECT_EQ(Hex(FinishFingerprint(FingerprintVersion::JsonPaths, hash).bytes), "02d15ecacdcc3b04ae5b9345d736f8be40");
}

TEST(Fingerprint, OfOtherBytesIsOther) {
    EXPECT_NE(OfBytes("1000"), OfBytes("1001"));
    EXPECT_NE(OfBytes(std::string_view("\0", 1)), OfBytes(std::string_view("\0\0", 2)));
    EXPECT_NE(OfBytes(""), OfBytes(std::string_view("\0", 1)));
    EXPECT_NE(OfBytes("a b"), OfBytes("a  b"));
}

TEST(Fingerprint, IsRecognisedByLengthAndVersion) {
    EXPECT_TRUE(IsFingerprint(OfBytes("abc")));
    EXPECT_TRUE(IsFingerprint(OfVersion(1)));
    EXPECT_TRUE(IsFingerprint(OfVersion(2)));
    EXPECT_FALSE(IsFingerprint(""));
    EXPECT_FALSE(IsFingerprint("\1"));
    EXPECT_FALSE(IsFingerprint(OfBytes("abc").substr(0, Fingerprint::kSize - 1)));
    EXPECT_FALSE(IsFingerprint(OfBytes("abc") + "x"));
}

TEST(Fingerprint, OfAVersionNotKnownHereIsNone) {
    for (int version = 0; version < 256; version++)
        EXPECT_EQ(IsFingerprint(OfVersion(version)), version == 1 || version == 2) << version;
}

TEST(FingerprintMatch, SameBytesAreSame) {
    EXPECT_EQ(CompareFingerprints(OfBytes("abc"), OfBytes("abc")), FingerprintMatch::Same);
    EXPECT_EQ(CompareFingerprints(OfVersion(2), OfVersion(2)), FingerprintMatch::Same);
}

TEST(FingerprintMatch, EveryBitCounts) {
    std::string stored = OfBytes("abc");
    for (size_t i = 1; i < Fingerprint::kSize; i++)
        for (int bit = 0; bit < 8; bit++) {
            std::string given = stored;
            given[i] = static_cast<char>(given[i] ^ (1 << bit));
            EXPECT_EQ(CompareFingerprints(stored, given), FingerprintMatch::Different)
                << "byte " << i << ", bit " << bit;
        }
}

TEST(FingerprintMatch, IsUnknownWhereOneIsMissing) {
    EXPECT_EQ(CompareFingerprints("", OfBytes("abc")), FingerprintMatch::Unknown);
    EXPECT_EQ(CompareFingerprints(OfBytes("abc"), ""), FingerprintMatch::Unknown);
    EXPECT_EQ(CompareFingerprints("", ""), FingerprintMatch::Unknown);

    std::string stored = OfBytes("abc");
    std::string_view none_before_the_same_bytes = std::string_view(stored).substr(0, 0);
    EXPECT_EQ(CompareFingerprints(stored, none_before_the_same_bytes), FingerprintMatch::Unknown);
    EXPECT_EQ(CompareFingerprints(none_before_the_same_bytes, stored), FingerprintMatch::Unknown);
}

TEST(FingerprintMatch, IsUnknownBetweenTwoVersionsWhateverTheBytes) {
    for (int stored = 0; stored < 256; stored++)
        for (int given = 0; given < 256; given++) {
            FingerprintMatch expected = stored == given ? FingerprintMatch::Same : FingerprintMatch::Unknown;
            ASSERT_EQ(CompareFingerprints(OfVersion(stored), OfVersion(given)), expected) << stored << " and " << given;
        }
}

}  // namespace
}  // namespace idem
