#include "bootstrap/secret.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <sys/random.h>

#include <cerrno>
#include <memory>
#include <stdexcept>

namespace ringccl {
namespace {

// Looked up once: a fetch takes a lock in the provider store, and a process may hold hundreds of ranks.
EVP_MAC* hmac() {
    static EVP_MAC* const mac = [] {
        // One thread may call exit() while another connects: OpenSSL, if it is ours to set up, is not taken down under it.
        OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
        return EVP_MAC_fetch(nullptr, OSSL_MAC_NAME_HMAC, nullptr);
    }();
    return mac;
}

}  // namespace

// getrandom and not OpenSSL's generator, which keeps a seeded state in every thread that ever asked.
Status fill_random(std::span<uint8_t> bytes) {
    while (!bytes.empty()) {
        ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return system_failure(errno, "getrandom of {} bytes", bytes.size());
        bytes = bytes.subspan(static_cast<size_t>(got));
    }
    return {};
}

Digest keyed_digest(const Secret& secret, std::string_view message) {
    Digest digest;
    size_t bytes = 0;
    char hash[] = "SHA256";
    const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, hash, 0), OSSL_PARAM_construct_end()};
    std::unique_ptr<EVP_MAC_CTX, decltype(&EVP_MAC_CTX_free)> context(EVP_MAC_CTX_new(hmac()), EVP_MAC_CTX_free);
    bool made = context && EVP_MAC_init(context.get(), secret.data(), secret.size(), params) == 1 &&
                EVP_MAC_update(context.get(), reinterpret_cast<const uint8_t*>(message.data()), message.size()) == 1 &&
                EVP_MAC_final(context.get(), digest.data(), &bytes, digest.size()) == 1 && bytes == digest.size();
    // A digest that could not be made must never be compared or sent, so there is no value to return.
    if (!made) throw std::runtime_error("OpenSSL cannot compute HMAC-SHA256");
    return digest;
}

Secret derive(const Secret& secret, std::string_view purpose) {
    return keyed_digest(secret, "ringccl derive " + std::string(purpose));
}

bool same_digest(const Digest& a, const Digest& b) {
    return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

void end_digests() {
    OPENSSL_thread_stop();
}

}  // namespace ringccl
