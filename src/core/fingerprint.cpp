#include "core/fingerprint.hpp"

namespace idem {

Fingerprint FinishFingerprint(FingerprintVersion version, Hash &hash) {
    Fingerprint fingerprint;
    fingerprint.bytes[0] = static_cast<uint8_t>(version);
    hash.Finish(fingerprint.bytes + 1);
    return fingerprint;
}

Fingerprint FingerprintOfBytes(std::string_view content) {
    Hash hash;
    hash.Add(content);
    return FinishFingerprint(FingerprintVersion::Bytes, hash);
}

bool IsFingerprint(std::string_view bytes) {
    if (bytes.size() != Fingerprint::kSize) return false;
    auto version = static_cast<FingerprintVersion>(bytes[0]);
    return version == FingerprintVersion::Bytes || version == FingerprintVersion::JsonPaths;
}

FingerprintMatch CompareFingerprints(std::string_view stored, std::string_view given) {
    if (stored.empty() || given.empty() || stored[0] != given[0]) return FingerprintMatch::Unknown;
    return stored == given ? FingerprintMatch::Same : FingerprintMatch::Different;
}

}  // namespace idem
