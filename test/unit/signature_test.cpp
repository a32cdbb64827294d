// Signatures: what the senders' own documents and libraries sign is verified, and nothing that differs from it in a
// bit.
//
// The vectors were not made by the code under test. Standard Webhooks: the value its libraries test themselves with,
// and others by the npm package standardwebhooks 1.1.1 (new Webhook(secret).sign(id, date, payload)); v1a: the value of
// its Go library, and another by crypto.sign(null, content, key) of Node.js 20. Stripe: npm package stripe 23.1.0
// (webhooks.generateTestHeaderString). GitHub: the value in its documentation, others by the npm package
// @octokit/webhooks-methods 6.0.0 (sign(secret, payload)).
#include "core/signature.hpp"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sodium.h>

#include "hex.hpp"

namespace idem {
namespace {

constexpr Micros kMinute = 60 * kSecond;
constexpr int64_t kSignedAt = 1614265330;  // seconds

struct Signed {
    SignatureScheme scheme;
    std::string payload;
    std::string signature;
    std::string id;
    std::string timestamp;
};

bool Verify(const Signed &given, const std::vector<std::string> &secrets, Micros now = kSignedAt * kSecond,
            Micros tolerance = 5 * kMinute) {
    Delivery delivery = {given.scheme, given.payload, given.signature, given.id, given.timestamp};
    std::vector<std::string_view> views(secrets.begin(), secrets.end());
    std::vector<char> room(SignedContentRoom(delivery));
    return VerifySignature(delivery, views, tolerance, now, room.data());
}

// Every piece of a delivery, for tests that change them one by one.
std::vector<std::string *> Pieces(Signed *delivery) {
    return {&delivery->payload, &delivery->signature, &delivery->id, &delivery->timestamp};
}

const std::string kFirstSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const std::string kSecondSecret = "whsec_dGhlIHNlY29uZCBrZXksIGFmdGVyIGEgcm90YXRpb24=";
const std::string kFirstMac = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
const std::string kSecondMac = "v1,WN2YRWSb407i5XEqR5TB42yLubUHjrnSw5OOoPUn30U=";
const std::string kFirstPublicKey = "whpk_ZlN4eg7dSSqi0moX9hQUk3orrOouK3QVQSlJa248c/g=";
const std::string kSecondPublicKey = "whpk_ToqTkMfvgzlpxyFqj6NJzbWmBuT12ZNHylO2HCT1t80=";
const std::string kFirstEd25519 =
    "v1a,tQ9V2XOqn7jL/DQenEFpqIugdBVtiMmER5mhSkXBNwM0mkATuDe6KYYUuxqtaiHeYGb7KaaBRdM5WqyeFiL8Ag==";
const std::string kSecondEd25519 =
    "v1a,KfsNu8TAsub6YReizuJG5vtxWnx/hYdtPHs7dLpNoI5pOOxB9p62BPGtbc9qLEz8KTNmbQYUMPObk/Em4VtiDQ==";
const std::string kOtherMac = "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc=";

Signed Standard(std::string signature, std::string payload = R"({"test": 2432232314})") {
    return {SignatureScheme::StandardWebhooks, std::move(payload), std::move(signature), "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "1614265330"};
}

Signed Stripe(std::string signature, std::string payload = R"({"id":"evt_123","amount":1000})") {
    return {SignatureScheme::Stripe, std::move(payload), std::move(signature), "", ""};
}

Signed GitHub(std::string signature, std::string payload = "Hello, World!") {
    return {SignatureScheme::GitHub, std::move(payload), std::move(signature), "", ""};
}

const std::string kStripeMac = "v1=da65b7e016ce2f1f06386c346180886839f74dd75bf7d34e452794992d87ea8d";
const std::string kStripeSecondMac = "v1=7f7791a2b193b2c21450d6ce0b1ab9eeb69b69160da6f4974560ce9a29f97311";
const std::string kStripeHeader = "t=1614265330," + kStripeMac;
const std::string kGitHubSecret = "It's a Secret to Everybody";
const std::string kGitHubHeader = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

// A MAC of contents which no vector has, made straight by libsodium.
std::string Mac(const std::string &key, const std::string &content) {
    crypto_auth_hmacsha256_state state;
    uint8_t mac[crypto_auth_hmacsha256_BYTES];
    crypto_auth_hmacsha256_init(&state, reinterpret_cast<const uint8_t *>(key.data()), key.size());
    crypto_auth_hmacsha256_update(&state, reinterpret_cast<const uint8_t *>(content.data()), content.size());
    crypto_auth_hmacsha256_final(&state, mac);
    return {reinterpret_cast<const char *>(mac), sizeof(mac)};
}

std::string Base64(const std::string &bytes) {
    std::string text(sodium_base64_encoded_len(bytes.size(), sodium_base64_VARIANT_ORIGINAL), '\0');
    sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size(),
                      sodium_base64_VARIANT_ORIGINAL);
    text.pop_back();
    return text;
}

std::string HexOf(const std::string &bytes) {
    return Hex({reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()});
}

// Signs what the delivery says with a key, as an honest sender does.
Signed SignStandard(Signed delivery, const std::string &key) {
    delivery.signature = "v1," + Base64(Mac(key, delivery.id + "." + delivery.timestamp + "." + delivery.payload));
    return delivery;
}

Signed SignStripe(const std::string &timestamp, const std::string &secret) {
    Signed delivery = Stripe("");
    delivery.signature = "t=" + timestamp + ",v1=" + HexOf(Mac(secret, timestamp + "." + delivery.payload));
    return delivery;
}

TEST(Signature, SchemesHaveTheirNames) {
    EXPECT_EQ(SignatureSchemeOfName("standard-webhooks"), SignatureScheme::StandardWebhooks);
    EXPECT_EQ(SignatureSchemeOfName("stripe"), SignatureScheme::Stripe);
    EXPECT_EQ(SignatureSchemeOfName("github"), SignatureScheme::GitHub);
    for (std::string_view name : {"", "Stripe", "stripe ", "standard_webhooks", "svix", "git"})
        EXPECT_EQ(SignatureSchemeOfName(name), std::nullopt) << name;
}

// ----- what is genuine

TEST(Signature, StandardWebhooksEqualsTheVectors) {
    EXPECT_TRUE(Verify(Standard(kFirstMac), {kFirstSecret}));
    EXPECT_TRUE(Verify(Standard(kSecondMac), {kSecondSecret}));
    EXPECT_TRUE(Verify(Standard("v1,v48jdbgvh29KJz2Qc+ghw8G6vG3nAKnujWBg8oM/62A=", ""), {kFirstSecret}));
    EXPECT_TRUE(Verify(Standard("v1,RhSCaFd1By5UT/uukapnb2HYf6UK0b9fh3/MUPhl2t0=", R"({"name":"金额 é","emoji":"🎲"})"),
                       {kFirstSecret}));
    EXPECT_TRUE(Verify(Standard(kFirstEd25519), {kFirstPublicKey}));
    EXPECT_TRUE(Verify(Standard(kSecondEd25519), {kSecondPublicKey}));
}

TEST(Signature, StandardWebhooksTakesSecretsWithoutPrefix) {
    EXPECT_TRUE(Verify(Standard(kFirstMac), {kFirstSecret.substr(6)}));
}

TEST(Signature, StripeEqualsTheVectors) {
    EXPECT_TRUE(Verify(Stripe(kStripeHeader), {"whsec_first"}));
    EXPECT_TRUE(Verify(Stripe("t=1614265330," + kStripeSecondMac), {"whsec_second"}));
    EXPECT_TRUE(Verify(Stripe("t=1614265330,v1=c8adec21ee08ab920f9029754160352aa34951067a3327e4804e7017cb5d2ed0", ""),
                       {"whsec_first"}));
    EXPECT_TRUE(Verify(Stripe("t=1614265330,v1=eb2dd65ec4a8d8e4af22132043348f963bcc2a488edd92e8d7d2d246afb12c2d",
                              R"({"name":"金额 é","emoji":"🎲"})"),
                       {"whsec_first"}));
    EXPECT_TRUE(Verify(Stripe("t=12345678901,v1=95e241b8dc3e965d0025c3d3c73bab48fa603d96f0676b3b2ee8cb280c6a879d",
                              "{\n  \"id\": \"evt_test_webhook\",\n  \"object\": \"event\"\n}"),
                       {"whsec_test_secret"}, 12345678901 * kSecond));
}

TEST(Signature, GitHubEqualsTheVectors) {
    EXPECT_TRUE(Verify(GitHub(kGitHubHeader), {kGitHubSecret}));
    EXPECT_TRUE(Verify(GitHub("sha256=5637d80186c122f130e93bd6fd9f4d5c03a5020e274f24a4cee3f55133dce157"), {"second"}));
    EXPECT_TRUE(
        Verify(GitHub("sha256=1decf6c0e2d8f4b54f571866e4af0da90ac62a28c45044a9b2e86df4873e9980", R"({"name":"金额"})"),
               {"geheim é"}));
}

TEST(Signature, PayloadIsAnyBytes) {
    std::string bytes;
    for (int i = 0; i < 256; i++) bytes += static_cast<char>(i);
    EXPECT_TRUE(Verify(GitHub("sha256=" + HexOf(Mac("key", bytes)), bytes), {"key"}));
    EXPECT_TRUE(Verify(SignStandard(Standard("", bytes), "key"), {Base64("key")}));
}

TEST(Signature, KeysHaveAnyLengthUpToALimit) {
    for (size_t length : {1, 31, 32, 63, 64, 65, 255, 256}) {
        std::string key(length, 'k');
        EXPECT_EQ(CheckSecret(SignatureScheme::StandardWebhooks, Base64(key)), SecretFault::None) << length;
        EXPECT_TRUE(Verify(SignStandard(Standard(""), key), {Base64(key)})) << length;
    }
    EXPECT_EQ(CheckSecret(SignatureScheme::StandardWebhooks, Base64(std::string(257, 'k'))), SecretFault::Malformed);
    EXPECT_TRUE(Verify(GitHub("sha256=" + HexOf(Mac(std::string(9999, 'k'), "x")), "x"), {std::string(9999, 'k')}));
}

// ----- rotation: any of the secrets, any of the signatures

TEST(Signature, AnyOfSeveralSecretsWillDo) {
    EXPECT_TRUE(Verify(Standard(kFirstMac), {kSecondSecret, kFirstPublicKey, kFirstSecret}));
    EXPECT_TRUE(Verify(Standard(kFirstMac), {kFirstSecret, kSecondSecret}));
    EXPECT_TRUE(Verify(Standard(kSecondEd25519), {kFirstSecret, kFirstPublicKey, kSecondPublicKey}));
    EXPECT_TRUE(Verify(Stripe(kStripeHeader), {"whsec_second", "whsec_first"}));
    EXPECT_TRUE(Verify(GitHub(kGitHubHeader), {"second", kGitHubSecret, "third"}));
    EXPECT_FALSE(Verify(Standard(kFirstMac), {kSecondSecret, kFirstPublicKey, kSecondPublicKey}));
    EXPECT_FALSE(Verify(Standard(kFirstMac), {}));
}

TEST(Signature, AnyOfSeveralSignaturesWillDo) {
    for (const std::string &header : {kOtherMac + " " + kFirstMac, kFirstMac + " " + kOtherMac,
                                      kOtherMac + " v2,Ceo5qEr0 " + kFirstEd25519 + " " + kFirstMac + " " + kOtherMac,
                                      "v1,nonsense v1 v1a, , " + kFirstMac, " " + kFirstMac + " "})
        EXPECT_TRUE(Verify(Standard(header), {kFirstSecret})) << header;
    for (const std::string &header : {kSecondEd25519 + " " + kFirstEd25519, kFirstEd25519 + " " + kSecondEd25519})
        EXPECT_TRUE(Verify(Standard(kOtherMac + " " + header), {kFirstPublicKey})) << header;
    EXPECT_TRUE(Verify(Stripe(kStripeHeader + "," + kStripeSecondMac), {"whsec_second"}));
    EXPECT_TRUE(Verify(Stripe("v0=00,v1=zz,scheme," + kStripeMac + ",t=1614265330"), {"whsec_first"}));
}

TEST(Signature, TooManySignaturesAreNone) {
    std::string fifteen;
    std::string fifteen_ed25519;
    std::string fifteen_stripe = "t=1614265330";
    for (int i = 0; i < 15; i++) {
        fifteen += kOtherMac + " ";
        fifteen_ed25519 += kSecondEd25519 + " ";
        fifteen_stripe += "," + kStripeSecondMac;
    }
    EXPECT_TRUE(Verify(Standard(fifteen + kFirstMac), {kFirstSecret}));
    EXPECT_FALSE(Verify(Standard(fifteen + kFirstMac + " " + kOtherMac), {kFirstSecret}));
    EXPECT_TRUE(Verify(Standard(fifteen_ed25519 + kFirstEd25519), {kFirstPublicKey}));
    EXPECT_FALSE(Verify(Standard(fifteen_ed25519 + kFirstEd25519 + " " + kFirstEd25519), {kFirstPublicKey}));
    EXPECT_TRUE(Verify(Stripe(fifteen_stripe + "," + kStripeMac), {"whsec_first"}));
    EXPECT_FALSE(Verify(Stripe(fifteen_stripe + "," + kStripeMac + "," + kStripeMac), {"whsec_first"}));
}

// ----- what is not

// One of each kind, and its secret.
const std::vector<std::pair<Signed, std::string>> kGenuine = {{Standard(kFirstMac), kFirstSecret},
                                                              {Standard(kFirstEd25519), kFirstPublicKey},
                                                              {Stripe(kStripeHeader), "whsec_first"},
                                                              {GitHub(kGitHubHeader), kGitHubSecret}};

TEST(Signature, EveryBitOfADeliveryCounts) {
    for (auto [delivery, secret] : kGenuine) {
        for (std::string *piece : Pieces(&delivery))
            for (char &c : *piece)
                for (int bit = 0; bit < 8; bit++) {
                    char original = c;
                    c = static_cast<char>(c ^ (1 << bit));
                    bool same_hex_digit = delivery.scheme != SignatureScheme::StandardWebhooks &&
                                          piece == &delivery.signature && c >= 'A' && c <= 'F';
                    if (!same_hex_digit) {
                        EXPECT_FALSE(Verify(delivery, {secret})) << *piece << ", bit " << bit;
                    }
                    c = original;
                }
        EXPECT_TRUE(Verify(delivery, {secret}));
    }
}

TEST(Signature, EveryByteOfADeliveryCounts) {
    for (auto [delivery, secret] : kGenuine) {
        for (std::string *piece : Pieces(&delivery)) {
            std::string original = *piece;
            if (original.empty()) continue;  // the scheme has none
            for (size_t length = 0; length < original.size(); length++) {
                *piece = original.substr(0, length);
                EXPECT_FALSE(Verify(delivery, {secret})) << *piece;
            }
            for (const char *more : {"0", "=", "/", "\n"}) {
                *piece = original + more;
                EXPECT_FALSE(Verify(delivery, {secret})) << *piece;
            }
            *piece = original;
        }
        EXPECT_TRUE(Verify(delivery, {secret}));
    }
}

TEST(Signature, OtherSecretsDoNot) {
    for (const std::string &secret : {kSecondSecret, std::string("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSx")})
        EXPECT_FALSE(Verify(Standard(kFirstMac), {secret}));
    EXPECT_FALSE(Verify(Standard(kFirstEd25519), {kSecondPublicKey}));
    for (const char *secret : {"whsec_second", "first", "whsec_first\n", "whsec_firs", "Whsec_first"})
        EXPECT_FALSE(Verify(Stripe(kStripeHeader), {secret})) << secret;
    EXPECT_FALSE(Verify(GitHub(kGitHubHeader), {kGitHubSecret + " "}));
}

TEST(Signature, APublicKeyIsNeverTheKeyOfAMac) {
    std::string key(32, '\0');
    size_t size = 0;
    std::string encoded = kFirstPublicKey.substr(5);
    ASSERT_EQ(sodium_base642bin(reinterpret_cast<uint8_t *>(key.data()), key.size(), encoded.data(), encoded.size(),
                                nullptr, &size, nullptr, sodium_base64_VARIANT_ORIGINAL),
              0);
    Signed forged = SignStandard(Standard(""), key);
    EXPECT_TRUE(Verify(forged, {encoded})) << "signed with these bytes";
    EXPECT_FALSE(Verify(forged, {kFirstPublicKey}));
    EXPECT_FALSE(Verify(SignStandard(Standard(""), kFirstPublicKey), {kFirstPublicKey}));
}

TEST(Signature, AKindIsNotTakenForAnother) {
    EXPECT_FALSE(Verify(Standard("v1a," + kFirstMac.substr(3)), {kFirstSecret}));
    EXPECT_FALSE(Verify(Standard("v1," + kFirstEd25519.substr(4)), {kFirstPublicKey}));
    EXPECT_FALSE(Verify(Stripe("t=1614265330,v0=" + kStripeMac.substr(3)), {"whsec_first"}));
    EXPECT_FALSE(Verify(GitHub("sha1=" + kGitHubHeader.substr(7)), {kGitHubSecret}));
}

TEST(Signature, NoPublicKeyOfSmallOrderVerifiesAnything) {
    std::string zeros = "whpk_" + Base64(std::string(32, '\0'));
    std::string one = "whpk_" + Base64("\1" + std::string(31, '\0'));
    EXPECT_FALSE(Verify(Standard("v1a," + Base64(std::string(64, '\0'))), {zeros, one}));
    EXPECT_FALSE(Verify(Standard("v1a," + Base64("\1" + std::string(63, '\0'))), {zeros, one}));
}

TEST(Signature, ATruncatedSignatureIsNone) {
    std::string payload;
    std::string mac;
    for (int i = 0; mac.empty() || mac.back() != '\0'; i++) {
        payload = std::to_string(i);
        mac = Mac("key", payload);
    }
    EXPECT_TRUE(Verify(GitHub("sha256=" + HexOf(mac), payload), {"key"}));
    mac.pop_back();
    EXPECT_FALSE(Verify(GitHub("sha256=" + HexOf(mac), payload), {"key"})) << "although a zero byte is missing";
}

TEST(Signature, MalformedHeadersVerifyNothing) {
    for (const char *header :
         {"", " ", ",", "v1", "v1,", "v1,,", "v1a,", "v1,=", "v1,====", "v1,\xff\xfe", "v1 ,a", "=g0hM9SsE",
          "v1=g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE",
          "V1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", "v1,g0hM9SsE-OTPJTGt_tmIKtSyZlE3uFJELVlNIOLJ1OE=",
          "v1, g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=\t"})
        EXPECT_FALSE(Verify(Standard(header), {kFirstSecret})) << header;
    for (const std::string &header : {std::string(),
                                      std::string(","),
                                      std::string("t"),
                                      std::string("t="),
                                      std::string("t=1614265330"),
                                      std::string("t=1614265330,v1"),
                                      std::string("t=1614265330,v1="),
                                      kStripeMac,
                                      "t=," + kStripeMac,
                                      "t=1614265330 " + kStripeMac,
                                      "t=1614265330, " + kStripeMac,
                                      "T=1614265330," + kStripeMac,
                                      "t=+1614265330," + kStripeMac,
                                      "t= 1614265330," + kStripeMac,
                                      "t=1614265330.0," + kStripeMac,
                                      "t=0x6037BB32," + kStripeMac,
                                      "t=-1614265330," + kStripeMac,
                                      "t=1614265330,t=1614265330," + kStripeMac,
                                      "t=1614265331,t=1614265330," + kStripeMac,
                                      "t=99999999999999999999999999," + kStripeMac})
        EXPECT_FALSE(Verify(Stripe(header), {"whsec_first"})) << header;
    for (const std::string &header :
         {std::string(), std::string("sha256"), std::string("sha256="), std::string("sha256=0"),
          std::string("sha256=zz"), "SHA256=" + kGitHubHeader.substr(7), kGitHubHeader.substr(7), kGitHubHeader + "00",
          kGitHubHeader + "," + kGitHubHeader, " " + kGitHubHeader})
        EXPECT_FALSE(Verify(GitHub(header), {kGitHubSecret})) << header;
}

TEST(Signature, IdIsOfVisibleAsciiWithoutDots) {
    auto with_id = [](std::string id) {
        Signed delivery = Standard("");
        delivery.id = std::move(id);
        return SignStandard(delivery, "key");
    };
    for (const char *id : {"m", "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W", "0c9a2d1e-7d5f-4e1c-9f27-3b8c1f0f5a11", "!~"})
        EXPECT_TRUE(Verify(with_id(id), {Base64("key")})) << id;
    for (const char *id : {"", "msg.1", ".", "msg 1", "msg\n", "\x1f", "\x7f", "\xc3\xa9"})
        EXPECT_FALSE(Verify(with_id(id), {Base64("key")})) << id;
}

// What was signed as the id "a", a time and a payload must not come as another id with the same bytes.
TEST(Signature, BytesDoNotMoveBetweenIdTimestampAndPayload) {
    Signed genuine = SignStandard({SignatureScheme::StandardWebhooks, "1614265331.x", "", "a", "1614265330"}, "key");
    ASSERT_TRUE(Verify(genuine, {Base64("key")}));
    Signed moved = genuine;
    moved.id = "a.1614265330";
    moved.timestamp = "1614265331";
    moved.payload = "x";
    EXPECT_FALSE(Verify(moved, {Base64("key")}));
    EXPECT_FALSE(Verify(SignStandard(moved, "key"), {Base64("key")})) << "not even where the sender signed it so";
}

// ----- when

TEST(Signature, TimestampIsWithinTheToleranceOfNow) {
    Signed standard = Standard(kFirstMac);
    Signed stripe = Stripe(kStripeHeader);
    for (int64_t offset : {-300, -299, -1, 0, 1, 299, 300}) {
        EXPECT_TRUE(Verify(standard, {kFirstSecret}, (kSignedAt + offset) * kSecond)) << offset;
        EXPECT_TRUE(Verify(stripe, {"whsec_first"}, (kSignedAt + offset) * kSecond)) << offset;
    }
    for (int64_t offset : {-1000000, -301, 301, 1000000}) {
        EXPECT_FALSE(Verify(standard, {kFirstSecret}, (kSignedAt + offset) * kSecond)) << offset;
        EXPECT_FALSE(Verify(stripe, {"whsec_first"}, (kSignedAt + offset) * kSecond)) << offset;
    }
    EXPECT_TRUE(Verify(standard, {kFirstSecret}, (kSignedAt + 300) * kSecond + 999999)) << "in whole seconds";
    EXPECT_TRUE(Verify(standard, {kFirstSecret}, (kSignedAt + 7200) * kSecond, 120 * kMinute));
    EXPECT_FALSE(Verify(standard, {kFirstSecret}, (kSignedAt + 7201) * kSecond, 120 * kMinute));
    EXPECT_TRUE(Verify(standard, {kFirstSecret}, kSignedAt * kSecond + 999999, 1));
    EXPECT_FALSE(Verify(standard, {kFirstSecret}, (kSignedAt + 1) * kSecond, 1));
}

TEST(Signature, TimestampIsANumberOfSecondsAndNothingElse) {
    for (const char *timestamp :
         {"", " ", "now", "1614265330x", " 1614265330", "1614265330 ", "+1614265330", "-1", "-0", "1614265330.0",
          "1.614265330e9", "0x6037BB32", "2021-02-25", "1614265330000", "1614265330\n", "9223372036854775807",
          "-9223372036854775808", "99999999999999999999999999999999"}) {
        Signed delivery = Standard("");
        delivery.timestamp = timestamp;
        EXPECT_FALSE(Verify(SignStandard(delivery, "key"), {Base64("key")})) << timestamp;
        EXPECT_FALSE(Verify(SignStripe(timestamp, "key"), {"key"})) << timestamp;
    }
    EXPECT_FALSE(Verify(SignStripe("999999999999", "key"), {"key"}, 0, std::numeric_limits<Micros>::max() / 100));
    EXPECT_TRUE(Verify(SignStripe("999999999999", "key"), {"key"}, 999999999999 * kSecond, 1));
}

TEST(Signature, OfGitHubHasNoTime) {
    for (Micros now : {Micros{0}, kSignedAt * kSecond, 999999999999 * kSecond})
        EXPECT_TRUE(Verify(GitHub(kGitHubHeader), {kGitHubSecret}, now, 1));
}

// ----- secrets

TEST(Secret, OfStandardWebhooksIsBase64) {
    auto check = [](std::string_view secret) { return CheckSecret(SignatureScheme::StandardWebhooks, secret); };
    for (const std::string &secret : {kFirstSecret, kFirstSecret.substr(6), kSecondSecret, kFirstPublicKey})
        EXPECT_EQ(check(secret), SecretFault::None) << secret;
    for (const char *secret : {"", " ", "\n", "\t \r\n\f\v", "whsec_", "whpk_"})
        EXPECT_EQ(check(secret), SecretFault::Empty) << secret;
    for (const char *secret :
         {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n", " whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_a", "whsec_ab",
          "whsec_!!!!", "whsec_MfKQ9r8-KYqrTwjUPD8ILPZIo2LaLaSw", "whsec_whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
          "WHSEC_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "{whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw}", "whsec_MfKQ\xafr8G",
          "whpk_MfKQ9r8G", "whpk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"})
        EXPECT_EQ(check(secret), SecretFault::Malformed) << secret;
    EXPECT_EQ(check("whsk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), SecretFault::PrivateKey);
}

TEST(Secret, OfTheOthersIsWhatIsNotEmpty) {
    for (SignatureScheme scheme : {SignatureScheme::Stripe, SignatureScheme::GitHub}) {
        for (const char *secret : {"x", "whsec_!", "whsk_x", "two words", " x\n"})
            EXPECT_EQ(CheckSecret(scheme, secret), SecretFault::None) << secret;
        for (const char *secret : {"", " ", "\n", "\t \r\n\f\v"})
            EXPECT_EQ(CheckSecret(scheme, secret), SecretFault::Empty);
    }
}

TEST(Secret, ThatIsMalformedVerifiesNothing) {
    EXPECT_FALSE(Verify(Standard(kFirstMac), {"whsec_!!!!", "", "whsk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}));
    EXPECT_TRUE(Verify(Standard(kFirstMac), {"whsec_!!!!", kFirstSecret}));
}

}  // namespace
}  // namespace idem
