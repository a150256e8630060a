// Measures one library: rank 0 prints a line of JSON per message size. Every cell is warmed up, then timed for about so long:
// single calls, or blocks of calls where one is too short for a clock. The last result is checked.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "contender.h"

namespace contest {

std::byte* Contender::allocate(size_t bytes) {
    return static_cast<std::byte*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096));
}

void give_up(const std::string& why) {
    std::fprintf(stderr, "%s\n", why.c_str());
    std::_Exit(1);
}

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWarmCalls = 5;
constexpr double kShortestBlock = 20e-6;       // seconds; the clock costs a 500th of that
constexpr double kFewest = 11, kMost = 20000;  // blocks
constexpr double kSettling = 0.5;              // seconds
constexpr size_t kSettlingBytes = 64;

const std::map<std::string, Move> kMoves = {{"allReduce", Move::all_reduce},
                                            {"allGather", Move::all_gather},
                                            {"scatterReduce", Move::reduce_scatter},
                                            {"broadcast", Move::broadcast},
                                            {"alltoall", Move::all_to_all}};
const std::map<std::string, Type> kTypes = {{"float32", Type::float32}, {"bfloat16", Type::bfloat16}};

struct Options {
    World world;
    std::string move = "allReduce", type = "float32";
    std::vector<size_t> sizes = {4, 2048, 16384, 131072, 1048576, 8388608, 67108864};
    double seconds = 0.3;  // per size
    bool fresh = false;    // every call gets data that its rank has just written
    size_t odd = 0;        // bytes by which the pointers miss their alignment, and elements by which a count misses the size
};

double since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

double cpu_seconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    auto seconds = [](const timeval& t) { return double(t.tv_sec) + 1e-6 * double(t.tv_usec); };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Small integers, which both types and their sums hold exactly.
float value(int rank, size_t index) {
    return float(index % 13 + size_t(rank) + 1);
}

void put(Type type, std::byte* at, size_t index, float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    const auto high = static_cast<uint16_t>(bits >> 16);
    if (type == Type::float32)
        std::memcpy(at + index * 4, &bits, 4);
    else
        std::memcpy(at + index * 2, &high, 2);
}

float get(Type type, const std::byte* at, size_t index) {
    uint32_t bits = 0;
    uint16_t high = 0;
    if (type == Type::float32) {
        std::memcpy(&bits, at + index * 4, 4);
    } else {
        std::memcpy(&high, at + index * 2, 2);
        bits = uint32_t(high) << 16;
    }
    return std::bit_cast<float>(bits);
}

class Contest {
public:
    Contest(Contender& library, const Options& options)
        : library_(library), options_(options), move_(kMoves.at(options.move)), type_(kTypes.at(options.type)) {
        const size_t most = *std::max_element(options.sizes.begin(), options.sizes.end());
        send_ = library.allocate(count_for(most) * size_of(type_) + options.odd) + options.odd;
        recv_ = library.allocate(count_for(most) * size_of(type_) + options.odd) + options.odd;
        for (size_t i = 0; i < count_for(most); ++i) put(type_, send_, i, value(library.rank(), i));
        std::memset(recv_, 0, count_for(most) * size_of(type_));
        if (options.fresh) pattern_.assign(send_, send_ + count_for(most) * size_of(type_));
    }

    void run() {
        settle();
        for (size_t bytes : options_.sizes) measure(bytes);
    }

private:
    // Divided collectives move at least an element per rank.
    size_t count_for(size_t bytes) const {
        const size_t count = bytes / size_of(type_) + options_.odd;
        if (move_ == Move::all_reduce || move_ == Move::broadcast) return std::max<size_t>(1, count);
        const auto ranks = static_cast<size_t>(library_.size());
        return std::max<size_t>(1, count / ranks) * ranks;
    }

    void call(size_t count) { library_.perform(move_, type_, send_, recv_, count); }

    // Until the scheduler has spread the ranks over the CPUs, nothing takes the time that it will take.
    void settle() {
        const auto begin = Clock::now();
        for (double more = 1; more != 0;) {
            for (int i = 0; i < kWarmCalls; ++i) call(count_for(kSettlingBytes));
            more = since(begin) < kSettling ? 1 : 0;
            library_.share(&more, sizeof more);
        }
    }

    void measure(size_t bytes) {
        const size_t count = count_for(bytes);
        call(count);
        auto begin = Clock::now();
        for (int i = 0; i < kWarmCalls; ++i) call(count);
        const double once = since(begin) / kWarmCalls;
        // Rank 0 says for all how many blocks of how many calls.
        const double calls = options_.fresh ? 1 : std::max(1.0, std::ceil(kShortestBlock / once));
        double plan[2] = {std::clamp(options_.seconds / (once * calls), kFewest, kMost), calls};
        library_.share(plan, sizeof plan);
        const auto blocks = static_cast<size_t>(plan[0]), length = static_cast<size_t>(plan[1]);

        std::vector<double> took(blocks);
        const double cpu = cpu_seconds();
        for (double& block : took) {
            if (options_.fresh) renew(count);
            begin = Clock::now();
            for (size_t i = 0; i < length; ++i) call(count);
            block = since(begin) / double(length);
        }
        const double mine = (cpu_seconds() - cpu) / double(blocks * length);
        check(count);

        std::sort(took.begin(), took.end());
        auto at = [&](double share) { return took[size_t(share * double(blocks - 1) + 0.5)] * 1e6; };
        const std::vector<float> medians = on_all_ranks(at(0.5)), late = on_all_ranks(at(0.99)), used = on_all_ranks(mine);
        if (library_.rank() != 0) return;
        // Some ranks may run ahead of others; the last one tells how long it took.
        const nlohmann::json line = {{"bytes", bytes},
                                     {"moved", count * size_of(type_)},
                                     {"median_us", std::ranges::max(medians)},
                                     {"p99_us", std::ranges::max(late)},
                                     {"cpu_s_per_call", std::accumulate(used.begin(), used.end(), 0.0)},
                                     {"blocks", blocks},
                                     {"calls_per_block", length}};
        std::printf("%s\n", line.dump().c_str());
        std::fflush(stdout);
    }

    // Then all ranks begin together.
    void renew(size_t count) {
        std::memcpy(send_, pattern_.data(), count * size_of(type_));
        on_all_ranks(0);
    }

    // What each rank says, by rank.
    std::vector<float> on_all_ranks(double number) {
        std::vector<float> mine(size_t(library_.size())), all(mine.size());
        mine[size_t(library_.rank())] = float(number);
        library_.perform(Move::all_reduce, Type::float32, reinterpret_cast<const std::byte*>(mine.data()),
                         reinterpret_cast<std::byte*>(all.data()), all.size());
        return all;
    }

    void check(size_t count) const {
        const auto ranks = static_cast<size_t>(library_.size()), me = static_cast<size_t>(library_.rank());
        const size_t block = count / ranks;
        const bool scattered = move_ == Move::reduce_scatter;
        if (move_ == Move::broadcast && me == 0) return;
        for (size_t i = 0; i < (scattered ? block : count); ++i) {
            float right = 0;
            switch (move_) {
                case Move::all_reduce:
                case Move::reduce_scatter:
                    for (size_t r = 0; r < ranks; ++r) right += value(int(r), scattered ? me * block + i : i);
                    break;
                case Move::all_gather:
                    right = value(int(i / block), i % block);
                    break;
                case Move::all_to_all:
                    right = value(int(i / block), me * block + i % block);
                    break;
                case Move::broadcast:
                    right = value(0, i);
                    break;
            }
            if (get(type_, recv_, i) != right)
                give_up("element " + std::to_string(i) + " of " + std::to_string(count) + " is wrong");
        }
    }

    Contender& library_;
    const Options& options_;
    const Move move_;
    const Type type_;
    std::byte* send_;
    std::byte* recv_;
    std::vector<std::byte> pattern_;
};

// One process per rank, this one being rank 0. They end with it.
int fork_ranks(int size) {
    for (int rank = 1; rank < size; ++rank) {
        const pid_t parent = getpid(), child = fork();
        if (child < 0) give_up(std::string("fork: ") + std::strerror(errno));
        if (child > 0) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) std::_Exit(1);
        return rank;
    }
    return 0;
}

}  // namespace
}  // namespace contest

int main(int argc, char** argv) {
    using namespace contest;
    Options options;
    CLI::App app("Measures one library's collectives");
    app.add_option("--ranks", options.world.size, "processes, where the library has no launcher of its own");
    app.add_option("--folder", options.world.folder, "empty, shared by the ranks");
    app.add_option("--transport", options.world.transport, "p2p or tcp, where the program chooses it");
    app.add_flag("--library-memory", options.world.library_memory, "operands in memory of the library's own");
    app.add_option("--collective", options.move)->check(CLI::IsMember(kMoves));
    app.add_option("--type", options.type)->check(CLI::IsMember(kTypes));
    app.add_option("--sizes", options.sizes, "bytes")->delimiter(',');
    app.add_option("--seconds", options.seconds, "per size");
    app.add_flag("--fresh", options.fresh,
                 "every call gets data that its rank has just written; the time of that does not count");
    app.add_option("--odd", options.odd, "bytes beside the alignment and elements beside the size");
    CLI11_PARSE(app, argc, argv);

    if (!kHasLauncher) options.world.rank = fork_ranks(options.world.size);
    auto library = make_contender(options.world);
    if (library->can(kMoves.at(options.move), kTypes.at(options.type))) Contest(*library, options).run();
    const bool parent = !kHasLauncher && options.world.rank == 0;
    library.reset();
    int bad = 0, status = 0;
    while (parent && wait(&status) > 0) bad |= status;
    return bad != 0;
}
