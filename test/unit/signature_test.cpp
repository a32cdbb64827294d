// Signatures: what the senders' own documents and libraries sign is verified, and nothing that differs from it in a
// bit.
//
// The vectors were not made by the code under test. Standard Webhooks: the value its libraries test themselves with,
// and others by the npm package standardwebhooks 1.1.1 (new Webhook(secret).sign(id, date, payload)); v1a: the value of
// its Go library, and another by crypto.sign(null, content, key) of Node.js 20. Stripe: npm package stripe 23.1.0
// (webhooks.generateTestHeaderString). GitHub: the value in its documentation, others by the npm package
// @octokit/webhooks-methods 6.0.0 (sign(secret, payload)), which also made those of Meta. Shopify: @shopify/shopify-api
// 13.1.0 (createSHA256HMAC, and webhooks.validate takes them). Slack: the value in its documentation, others by
// crypto.createHmac of Node.js 20; verifySlackRequest of @slack/bolt 5.1.0 takes all of them. LINE: crypto.createHmac;
// validateSignature of @line/bot-sdk 11.0.0 takes them. WeCom: @wecom/crypto 1.0.1 (encrypt, getSignature), and the
// value in WeCom's documentation.
#include "core/signature.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sodium.h>

#include "core/signature_mistake.hpp"
#include "hex.hpp"
#include "sha1.hpp"

namespace idem {
namespace {

constexpr Micros kMinute = 60 * kSecond;
constexpr int64_t kSignedAt = 1614265330;  // seconds

const SignatureScheme *const kStandardWebhooks = SignatureSchemeOfName("standard-webhooks");
const SignatureScheme *const kStripe = SignatureSchemeOfName("stripe");
const SignatureScheme *const kGitHub = SignatureSchemeOfName("github");

struct Signed {
    const SignatureScheme *scheme;
    std::string payload;
    std::string signature;
    std::string id;
    std::string timestamp;
};

SignatureVerdict Judge(const Signed &given, const std::vector<std::string> &secrets, Micros now = kSignedAt * kSecond,
                       Micros tolerance = 5 * kMinute) {
    Delivery delivery = {given.scheme, given.payload, given.signature, given.id, given.timestamp};
    std::vector<std::string_view> views(secrets.begin(), secrets.end());
    std::vector<char> room(SignedContentRoom(delivery, views));
    return JudgeSignature(delivery, {views, tolerance, now, Sha1}, room.data());
}

bool Verify(const Signed &given, const std::vector<std::string> &secrets, Micros now = kSignedAt * kSecond,
            Micros tolerance = 5 * kMinute) {
    return Judge(given, secrets, now, tolerance).fault == SignatureFault::None;
}

SignatureMistake Mistake(const Signed &given, const std::vector<std::string> &secrets) {
    Delivery delivery = {given.scheme, given.payload, given.signature, given.id, given.timestamp};
    std::vector<std::string_view> views(secrets.begin(), secrets.end());
    MistakeRoom room = RoomForMistakes(delivery, views);
    std::vector<char> payload_room(room.payload);
    std::vector<char> content_room(room.content);
    return FindMistake(delivery, {views, 5 * kMinute, kSignedAt * kSecond, Sha1}, payload_room.data(),
                       content_room.data());
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
    return {kStandardWebhooks, std::move(payload), std::move(signature), "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330"};
}

Signed Stripe(std::string signature, std::string payload = R"({"id":"evt_123","amount":1000})") {
    return {kStripe, std::move(payload), std::move(signature), "", ""};
}

Signed GitHub(std::string signature, std::string payload = "Hello, World!") {
    return {kGitHub, std::move(payload), std::move(signature), "", ""};
}

const std::string kStripeMac = "v1=da65b7e016ce2f1f06386c346180886839f74dd75bf7d34e452794992d87ea8d";
const std::string kStripeSecondMac = "v1=7f7791a2b193b2c21450d6ce0b1ab9eeb69b69160da6f4974560ce9a29f97311";
const std::string kStripeHeader = "t=1614265330," + kStripeMac;
const std::string kGitHubSecret = "It's a Secret to Everybody";
const std::string kGitHubHeader = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

// Of "hush" over kOrder: Shopify's, LINE's and Meta's.
const std::string kOrder = R"({"id":820982911946154508,"total":"10.00"})";
const std::string kHushBase64 = "a2IFOXLUd1FMUk1F3N/Hlt9H5JEAOrhZtlQl59eSB5c=";
const std::string kHushHex = "6b62053972d477514c524d45dcdfc796df47e491003ab859b65425e7d7920797";
const std::string kUnicode = R"({"name":"金额 é","emoji":"🎲"})";
const std::string kSlackMac = "v0=3755ec10ff6cf41327498753883e667763dc87b2128014bfe1cba9b265d76766";
const std::string kEncrypted =
    "sKqRbbiSUnDhFHOvPjtUMfbLRMcTBjnd1r6Ij2q1mbddksxa8fVFSIrTDImvmHBfX0tukkixdIcy+e4vBrbNiqYCIa4aLXha/"
    "Vpf2bmwBrYe4XVDXVHi"
    "DxaV2HVpGqnquUbaq8WqXHXmxpvgglBNxMIqpVhMV2TudAC/6U+KVHE=";
const std::string kWeComSha1 = "be574b770ed308da11793df105992363b28e4c44";

// A scheme that has no other header.
Signed Of(const char *scheme, std::string signature, std::string payload = kOrder) {
    return {SignatureSchemeOfName(scheme), std::move(payload), std::move(signature), "", ""};
}

Signed Slack(std::string signature, std::string payload = kOrder, std::string timestamp = "1614265330") {
    return {SignatureSchemeOfName("slack"), std::move(payload), std::move(signature), "", std::move(timestamp)};
}

Signed WeCom(std::string signature, std::string nonce = "1372623149", std::string payload = kEncrypted,
             std::string timestamp = "1614265330") {
    return {SignatureSchemeOfName("wecom"), std::move(payload), std::move(signature), std::move(nonce),
            std::move(timestamp)};
}

bool IsHex(const Signed &delivery) {
    return delivery.scheme->encoding == SignatureEncoding::Hex || delivery.signature.size() == kHushHex.size();
}

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
    std::vector<std::string_view> names;
    for (const SignatureScheme &scheme : SignatureSchemes()) {
        EXPECT_EQ(SignatureSchemeOfName(scheme.name), &scheme);
        names.push_back(scheme.name);
    }
    EXPECT_EQ(names, (std::vector<std::string_view>{"standard-webhooks", "stripe", "github", "shopify", "slack",
                                                    "wecom", "line", "meta", "hmac-sha256"}));
    for (std::string_view name : {"", "Stripe", "stripe ", "standard_webhooks", "svix", "git"})
        EXPECT_EQ(SignatureSchemeOfName(name), nullptr) << name;
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

TEST(Signature, ShopifyEqualsTheVectors) {
    EXPECT_TRUE(Verify(Of("shopify", kHushBase64), {"hush"}));
    EXPECT_TRUE(Verify(Of("shopify", "cu3yhG05kT99+IdLQgoOE6aOIWeZpYpEInziyp8UQUQ=", kUnicode), {"hush"}));
    EXPECT_FALSE(Verify(Of("shopify", kHushHex), {"hush"})) << "in hex";
}

TEST(Signature, LineEqualsTheVectors) {
    EXPECT_TRUE(Verify(Of("line", kHushBase64), {"hush"}));
    EXPECT_TRUE(Verify(Of("line", "cu3yhG05kT99+IdLQgoOE6aOIWeZpYpEInziyp8UQUQ=", kUnicode), {"hush"}));
}

TEST(Signature, MetaEqualsTheVectors) {
    EXPECT_TRUE(Verify(
        Of("meta", "sha256=f86a31d6019ea600addfb628e4de5d618cc0a44509a81b3544e49a3732345789", R"({"object":"page"})"),
        {"app secret"}));
    EXPECT_TRUE(Verify(Of("meta", "sha256=" + kHushHex), {"hush"}));
    EXPECT_FALSE(Verify(Of("meta", kHushHex), {"hush"})) << "without its prefix";
}

TEST(Signature, HmacSha256IsInHexOrBase64) {
    for (const std::string &signature : {kHushHex, kHushBase64})
        EXPECT_TRUE(Verify(Of("hmac-sha256", signature), {"hush"})) << signature;
    EXPECT_TRUE(
        Verify(Of("hmac-sha256", "6B62053972D477514C524D45DCDFC796DF47E491003AB859B65425E7D7920797"), {"hush"}));
    for (const std::string &signature : {"sha256=" + kHushHex, kHushHex + "," + kHushHex, Base64(kHushHex)})
        EXPECT_FALSE(Verify(Of("hmac-sha256", signature), {"hush"})) << signature;
}

TEST(Signature, SlackEqualsTheVectors) {
    EXPECT_TRUE(Verify(Slack(kSlackMac), {"hush"}));
    EXPECT_TRUE(
        Verify(Slack("v0=9ad7def795e2b640ab92306c9a3229258907c5b99f8b0b5e43a6a87310a30536", kUnicode), {"hush"}));
    EXPECT_TRUE(
        Verify(Slack("v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
                     "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&"
                     "channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&"
                     "response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%"
                     "2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c",
                     "1531420618"),
               {"8f742231b10e8888abcd99yyyzzz85a5"}, 1531420618 * kSecond));
}

// The secret is sorted to the front, to the end, and in between.
TEST(Signature, WeComEqualsTheVectors) {
    EXPECT_TRUE(Verify(WeCom(kWeComSha1), {"QDG6eK"}));
    EXPECT_TRUE(Verify(WeCom("c87469a021abe220539ba3da60d117b8a5e37dcb"), {"00token"}));
    EXPECT_TRUE(Verify(WeCom("cf436b93c75d548206a59ac46e1a4304f8911eb0", "a9Bc"), {"zToken"}));
    EXPECT_TRUE(Verify(WeCom("477715d11cdb4164915debcba66cb864d751f3e6", "1372623149",
                             "RypEvHKD8QQKFhvQ6QleEB4J58tiPdvo+rtK1I9qca6aM/wvqnLSV5zEPeusUiX5L5X/"
                             "0lWfrf0QADHHhGd3QczcdCUpj911L3vg3W/sYYvu"
                             "JTs3TUUkSUXxaccAS0qhxchrRYt66wiSpGLYL42aM6A8dTT+"
                             "6k4aSknmPj48kzJs8qLjvd4Xgpue06DOdnLxAUHzM6+kDZ+HMZfJYuR+LtwG"
                             "c2hgf5gsijff0ekUNXZiqATP7PF5mZxZ3Izoun1s4zG4LUMnvw2r+KqCKIw+3IQH03v+"
                             "BCA9nMELNqbSf6tiWSrXJB3LAVGUcallcrw8V2t9"
                             "EL4EhzJWrQUax5wLVMNS0+rUPA3k22Ncx4XXZS9o0MBH27Bo6BpNelZpS+/"
                             "uh9KsNlY6bHCmJU9p8g7m3fVKn28H3KDYA5Pl/T8Z1ptDAVe0"
                             "lXdQ2YoyyH2uyPIGHBZZIs2pDBS8R07+qN+E7Q==",
                             "1409659813"),
                       {"QDG6eK"}, 1409659813 * kSecond));
    EXPECT_FALSE(Verify(WeCom(kWeComSha1), {"QDG6eL", "00token"}));
    EXPECT_TRUE(Verify(WeCom(kWeComSha1), {"00token", "QDG6eK"}));
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
        EXPECT_EQ(CheckSecret(*kStandardWebhooks, Base64(key)), SecretFault::None) << length;
        EXPECT_TRUE(Verify(SignStandard(Standard(""), key), {Base64(key)})) << length;
    }
    EXPECT_EQ(CheckSecret(*kStandardWebhooks, Base64(std::string(257, 'k'))), SecretFault::Malformed);
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
                                                              {GitHub(kGitHubHeader), kGitHubSecret},
                                                              {Of("shopify", kHushBase64), "hush"},
                                                              {Slack(kSlackMac), "hush"},
                                                              {WeCom(kWeComSha1), "QDG6eK"},
                                                              {Of("line", kHushBase64), "hush"},
                                                              {Of("meta", "sha256=" + kHushHex), "hush"},
                                                              {Of("hmac-sha256", kHushHex), "hush"},
                                                              {Of("hmac-sha256", kHushBase64), "hush"}};

TEST(Signature, EveryBitOfADeliveryCounts) {
    for (auto [delivery, secret] : kGenuine) {
        for (std::string *piece : Pieces(&delivery))
            for (char &c : *piece)
                for (int bit = 0; bit < 8; bit++) {
                    char original = c;
                    c = static_cast<char>(c ^ (1 << bit));
                    bool same_hex_digit = piece == &delivery.signature && IsHex(delivery) && c >= 'A' && c <= 'F';
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
    Signed genuine = SignStandard({kStandardWebhooks, "1614265331.x", "", "a", "1614265330"}, "key");
    ASSERT_TRUE(Verify(genuine, {Base64("key")}));
    Signed moved = genuine;
    moved.id = "a.1614265330";
    moved.timestamp = "1614265331";
    moved.payload = "x";
    EXPECT_FALSE(Verify(moved, {Base64("key")}));
    EXPECT_FALSE(Verify(SignStandard(moved, "key"), {Base64("key")})) << "not even where the sender signed it so";
}

// An honest sender's signature, whatever the pieces are.
Signed SignWeCom(Signed delivery, const std::string &secret) {
    std::vector<std::string> pieces = {secret, delivery.timestamp, delivery.id, delivery.payload};
    std::sort(pieces.begin(), pieces.end());
    std::string digest(kSha1Bytes, '\0');
    Sha1(pieces[0] + pieces[1] + pieces[2] + pieces[3], reinterpret_cast<uint8_t *>(digest.data()));
    delivery.signature = HexOf(digest);
    return delivery;
}

// What is sorted and put together has no marks between its pieces: bytes which go from one to the other leave the SHA-1
// as it is. They must not be found to be signed.
TEST(Signature, BytesDoNotMoveBetweenNonceAndWhatIsEncrypted) {
    Signed genuine = SignWeCom(WeCom("", "2000000000", std::string(192, 'A') + kEncrypted), "QDG6eK");
    ASSERT_TRUE(Verify(genuine, {"QDG6eK"}));
    for (size_t moved : {1, 4, 16, 53, 54, 64, 128}) {
        Signed delivery = genuine;
        delivery.id = genuine.id + genuine.payload.substr(0, moved);
        delivery.payload = genuine.payload.substr(moved);
        ASSERT_EQ(SignWeCom(delivery, "QDG6eK").signature, genuine.signature) << moved;
        EXPECT_FALSE(Verify(delivery, {"QDG6eK"})) << moved;
    }
}

// What is sorted can't tell the time from a nonce that looks like one, so docs/signatures.md says that a tolerance does
// not keep every replay from WeCom out.
TEST(Signature, TimeAndNonceOfWeComCanBeExchanged) {
    Signed exchanged = WeCom(kWeComSha1, "1614265330", kEncrypted, "1372623149");
    EXPECT_FALSE(Verify(exchanged, {"QDG6eK"}));
    EXPECT_TRUE(Verify(exchanged, {"QDG6eK"}, 1372623149 * kSecond));
}

// Who knows the SHA-1 of a text, and how long it is, knows that of the text, its padding and anything more. The padding
// begins with a byte that is no text.
TEST(Signature, WhatIsSortedLastCanNotBeLengthened) {
    for (const char *more : {"\x80", "\x80more", "=", "A", "\n"}) {
        EXPECT_FALSE(Verify(SignWeCom(WeCom("", "1372623149", kEncrypted + more), "QDG6eK"), {"QDG6eK"})) << more;
    }
    EXPECT_FALSE(Verify(SignWeCom(WeCom("", "z\x80zz"), "QDG6eK"), {"QDG6eK"}));
    EXPECT_TRUE(Verify(SignWeCom(WeCom("", "zzz"), "QDG6eK"), {"QDG6eK"}));
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

TEST(Signature, OfSlackAndWeComIsWithinTheToleranceToo) {
    for (int64_t offset : {-301, -300, 0, 300, 301}) {
        bool recent = offset >= -300 && offset <= 300;
        EXPECT_EQ(Verify(Slack(kSlackMac), {"hush"}, (kSignedAt + offset) * kSecond), recent) << offset;
        EXPECT_EQ(Verify(WeCom(kWeComSha1), {"QDG6eK"}, (kSignedAt + offset) * kSecond), recent) << offset;
    }
}

TEST(Signature, OfTheOthersHasNoTime) {
    for (const char *scheme : {"shopify", "line", "hmac-sha256"})
        EXPECT_TRUE(Verify(Of(scheme, kHushBase64), {"hush"}, 0, 1)) << scheme;
    EXPECT_TRUE(Verify(Of("meta", "sha256=" + kHushHex), {"hush"}, 0, 1));
}

TEST(Signature, OfGitHubHasNoTime) {
    for (Micros now : {Micros{0}, kSignedAt * kSecond, 999999999999 * kSecond})
        EXPECT_TRUE(Verify(GitHub(kGitHubHeader), {kGitHubSecret}, now, 1));
}

// ----- why not

TEST(Signature, FaultTellsWhatIsWrong) {
    auto fault = [](const Signed &delivery) { return Judge(delivery, {kFirstSecret}).fault; };
    auto with = [](std::string Signed::*piece, std::string value) {
        Signed delivery = Standard(kFirstMac);
        delivery.*piece = std::move(value);
        return delivery;
    };
    EXPECT_EQ(fault(Standard(kFirstMac)), SignatureFault::None);
    EXPECT_EQ(fault(with(&Signed::signature, "")), SignatureFault::NoSignature);
    EXPECT_EQ(fault(with(&Signed::id, "")), SignatureFault::NoId);
    EXPECT_EQ(fault(with(&Signed::timestamp, "")), SignatureFault::NoTimestamp);
    EXPECT_EQ(fault(Stripe(kStripeMac)), SignatureFault::NoTimestamp);
    EXPECT_EQ(fault(with(&Signed::signature, "v2,x")), SignatureFault::MalformedSignature);
    EXPECT_EQ(fault(with(&Signed::id, "a.b")), SignatureFault::MalformedId);
    EXPECT_EQ(fault(with(&Signed::timestamp, "now")), SignatureFault::MalformedTimestamp);
    EXPECT_EQ(fault(Stripe("t=1614265330," + kStripeHeader)), SignatureFault::MalformedTimestamp);
    EXPECT_EQ(fault(WeCom(kWeComSha1, std::string(64, '1'))), SignatureFault::MalformedId);
    EXPECT_EQ(fault(WeCom(kWeComSha1, "1", "<xml/>")), SignatureFault::MalformedPayload);
    EXPECT_EQ(fault(with(&Signed::payload, "{}")), SignatureFault::NotSigned);
    std::string many;
    for (int i = 0; i < 17; i++) many += kFirstMac + " ";
    EXPECT_EQ(fault(with(&Signed::signature, many)), SignatureFault::TooManySignatures);
}

TEST(Signature, FaultTellsHowOldItIs) {
    SignatureVerdict old = Judge(Stripe(kStripeHeader), {"whsec_first"}, (kSignedAt + 400) * kSecond);
    EXPECT_EQ(old.fault, SignatureFault::TooOld);
    EXPECT_EQ(old.age, 400);
    SignatureVerdict young = Judge(Stripe(kStripeHeader), {"whsec_first"}, (kSignedAt - 400) * kSecond);
    EXPECT_EQ(young.fault, SignatureFault::TooNew);
    EXPECT_EQ(young.age, -400);
}

TEST(Mistake, IsFoundWhereUndoingItHelps) {
    const std::string sent = "{\"path\": \"C:\\\\new\"}\n";
    auto received = [&sent](std::string payload) {
        return Of("hmac-sha256", HexOf(Mac("hush", sent)), std::move(payload));
    };
    EXPECT_EQ(Mistake(received("{\"path\": \"C:\\new\"}\n"), {"hush"}), SignatureMistake::LostBackslashes);
    EXPECT_EQ(Mistake(received("\\x" + HexOf(sent)), {"hush"}), SignatureMistake::HexPayload);
    EXPECT_EQ(Mistake(received(Base64(sent)), {"hush"}), SignatureMistake::Base64Payload);
    EXPECT_EQ(Mistake(received(sent.substr(0, sent.size() - 1)), {"hush"}), SignatureMistake::MissingNewline);
    EXPECT_EQ(Mistake(received(sent), {"other", " hush\n"}), SignatureMistake::BlanksAroundSecret);
    EXPECT_EQ(Mistake(Of("hmac-sha256", kHushHex, kOrder + "\r\n"), {"hush"}), SignatureMistake::AddedNewline);
    EXPECT_EQ(Mistake(Of("hmac-sha256", kHushHex, kOrder + " "), {"hush"}), SignatureMistake::None);
    EXPECT_EQ(Mistake(received(sent), {"other", " another "}), SignatureMistake::None);
    EXPECT_EQ(Mistake(received(""), {"hush"}), SignatureMistake::None);
}

// ----- secrets

TEST(Secret, OfStandardWebhooksIsBase64) {
    auto check = [](std::string_view secret) { return CheckSecret(*kStandardWebhooks, secret); };
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
    for (const char *name : {"stripe", "github", "shopify", "slack", "wecom", "line", "meta", "hmac-sha256"}) {
        const SignatureScheme &scheme = *SignatureSchemeOfName(name);
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
