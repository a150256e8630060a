// From what a launcher says to a meeting point that all its processes know.
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <asio/ip/tcp.hpp>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "bootstrap/bootstrap.h"
#include "bootstrap/launcher.h"
#include "bootstrap/listening.h"
#include "bootstrap/meeting.h"
#include "bootstrap/unique_id.h"

namespace ringccl {
namespace {

using std::chrono::milliseconds;

// Below the range from which kernels give ports to whoever dials (32768 and up), above what services use.
constexpr uint16_t kFirstPort = 20000, kPortRange = 12000;
constexpr uint8_t kPortsTried = 8;

// The name service may learn of a host later than the job starts (containers), so it is asked again for a while.
Result<std::vector<std::string>> resolve(const std::string& host, Deadline deadline) {
    if (host == "localhost") return std::vector<std::string>{"127.0.0.1", "::1"};
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    for (;;) {
        addrinfo* found = nullptr;
        int error = ::getaddrinfo(host.c_str(), nullptr, &wanted, &found);
        if (error == 0) {
            std::vector<std::string> addresses;
            for (addrinfo* at = found; at; at = at->ai_next) {
                asio::ip::tcp::endpoint endpoint;
                std::copy_n(reinterpret_cast<const char*>(at->ai_addr), std::min<size_t>(at->ai_addrlen, endpoint.capacity()),
                            reinterpret_cast<char*>(endpoint.data()));
                addresses.push_back(endpoint.address().to_string());
            }
            ::freeaddrinfo(found);
            return addresses;
        }
        if (deadline.passed())
            return failure(ringInvalidUsage, "rank 0's host '{}' cannot be resolved: {}; set RINGCCL_ROOT=address:port", host,
                           ::gai_strerror(error));
        std::this_thread::sleep_for(std::min(milliseconds(200), deadline.left()));
    }
}

// The number of this call in the process; every process makes the calls of a job in the same order.
uint8_t next_call() {
    static std::atomic<uint8_t> calls{0};
    return calls.fetch_add(1);
}

Secret secret_of_job(const Job& job) {
    const char* passphrase = std::getenv("RINGCCL_SECRET");
    Secret key = keyed_digest(Secret{}, passphrase ? passphrase : "");
    return keyed_digest(key, job.identity);
}

}  // namespace

Result<ringUniqueId> open_meeting(const Place& place, const Settings& settings) {
    auto deadline = Deadline::after(milliseconds(settings.init_timeout_ms));
    for (;;) {
        Status last;
        for (int i = 0; i < place.ports; ++i) {
            auto listening = Listening::open(settings, static_cast<uint16_t>(place.port + i));
            last = listening.status();
            if (!last.ok()) continue;
            Invitation invitation{place.secret, static_cast<uint16_t>(place.port + i), 1, place.call, {}};
            for (const Endpoint& endpoint : listening.value().endpoints()) invitation.addresses.push_back(endpoint.address);
            RINGCCL_TRY(start_meeting(listening.take(), place.secret, place.call));
            return pack(invitation);
        }
        // The ports may be held by our own meeting of the call before, until the last rank has left it.
        if (last.code() != ringSystemError || deadline.passed())
            return failure(last.code(), "rank 0 cannot listen on port {} to {}: {}", place.port, place.port + place.ports - 1,
                           last.text());
        std::this_thread::sleep_for(milliseconds(20));
    }
}

Result<ringUniqueId> id_of(const Place& place, const Settings& settings) {
    auto patience = std::min<milliseconds>(milliseconds(settings.init_timeout_ms), std::chrono::seconds(10));
    RINGCCL_ASSIGN(auto addresses, resolve(place.host, Deadline::after(patience)));
    return pack({place.secret, place.port, place.ports, place.call, addresses});
}

Result<Placement> place_in_launcher() {
    RINGCCL_ASSIGN(Job job, job_in_environment());
    return Placement{job.rank, job.size, job.launcher, {}};
}

Result<Placement> placement_from_environment(const Settings& settings) {
    RINGCCL_ASSIGN(Job job, job_in_environment());
    if (job.host.empty() && job.port == 0)
        return failure(
            ringInvalidUsage,
            "{} does not say on which host rank 0 runs; set RINGCCL_ROOT=host:port, the host of rank 0 and any free port, "
            "in every process{}",
            job.launcher, job.launcher == "Open MPI" ? " (mpirun -x RINGCCL_ROOT=host:port)" : "");
    Place place{secret_of_job(job), job.host, job.port, 1, next_call()};
    if (job.port == 0) {
        Digest digest = keyed_digest(Secret{}, "port " + job.identity);
        place.port = static_cast<uint16_t>(kFirstPort + (digest[0] << 8 | digest[1]) % kPortRange);
        place.ports = kPortsTried;
    }
    Placement placement{job.rank, job.size, job.launcher, {}};
    RINGCCL_ASSIGN(placement.id, job.rank == 0 ? open_meeting(place, settings) : id_of(place, settings));
    return placement;
}

}  // namespace ringccl
