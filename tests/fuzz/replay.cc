// Where there is no libFuzzer: runs the target on every file of a corpus, then on mutated copies of them, which depend on
// nothing but the seed and their number.
//
//     fuzz_message CORPUS [RUNS [SEED]]
#include <signal.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz/fuzz.h"

namespace {

using Input = std::vector<uint8_t>;

char current[256];  // which input runs, for the handler

void say_which(int signal) {
    size_t bytes = 0;
    while (current[bytes] != 0) ++bytes;
    [[maybe_unused]] ssize_t written = write(STDERR_FILENO, current, bytes);
    raise(signal);  // the handler is gone by now (SA_RESETHAND)
}

void mutate(Input& input, const std::vector<Input>& corpus, std::mt19937_64& random) {
    auto below = [&](size_t n) { return n == 0 ? 0 : random() % n; };
    for (size_t changes = 1 + below(6); changes > 0; --changes) {
        size_t at = below(input.size());
        switch (below(7)) {
            case 0:  // a bit
                if (!input.empty()) input[at] ^= static_cast<uint8_t>(1 << below(8));
                break;
            case 1:  // a byte, often an extreme one
                if (!input.empty()) input[at] = std::to_array<uint8_t>({0, 1, 0x7f, 0x80, 0xff, uint8_t(random())})[below(6)];
                break;
            case 2:  // a small step, for lengths and counts
                if (!input.empty()) input[at] = static_cast<uint8_t>(input[at] + below(9) - 4);
                break;
            case 3:
                input.insert(input.begin() + static_cast<ptrdiff_t>(at), 1 + below(8), static_cast<uint8_t>(random()));
                break;
            case 4:
                input.erase(input.begin() + static_cast<ptrdiff_t>(at),
                            input.begin() + static_cast<ptrdiff_t>(std::min(input.size(), at + 1 + below(8))));
                break;
            case 5:
                input.resize(at);
                break;
            default: {  // a piece of another
                const Input& other = corpus[below(corpus.size())];
                size_t from = below(other.size()), bytes = below(other.size() - std::min(from, other.size()) + 1);
                input.insert(input.begin() + static_cast<ptrdiff_t>(at), other.begin() + static_cast<ptrdiff_t>(from),
                             other.begin() + static_cast<ptrdiff_t>(from + bytes));
                if (input.size() > 4096) input.resize(4096);
            }
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) return std::fprintf(stderr, "usage: %s CORPUS [RUNS [SEED]]\n", argv[0]), 2;
    const long runs = argc > 2 ? std::atol(argv[2]) : 0;
    const unsigned long seed = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 1;
    struct sigaction action {};
    action.sa_handler = say_which;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
    for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(signal, &action, nullptr);

    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(argv[1])) files.push_back(entry.path());
    std::sort(files.begin(), files.end());  // directories have no order of their own
    std::vector<Input> corpus;
    for (const auto& file : files) {
        std::ifstream from(file, std::ios::binary);
        corpus.emplace_back(std::istreambuf_iterator<char>(from), std::istreambuf_iterator<char>());
        std::snprintf(current, sizeof current, "while running %s\n", file.c_str());
        LLVMFuzzerTestOneInput(corpus.back().data(), corpus.back().size());
    }
    if (corpus.empty()) return std::fprintf(stderr, "%s has no inputs\n", argv[1]), 2;
    for (long run = 0; run < runs; ++run) {
        std::mt19937_64 random(seed * 1000003 + static_cast<unsigned long>(run));
        Input input = corpus[random() % corpus.size()];
        mutate(input, corpus, random);
        std::snprintf(current, sizeof current, "while running mutation %ld of seed %lu\n", run, seed);
        // A copy of exact size, so that a sanitizer sees what reads past it.
        Input exact(input.begin(), input.end());
        exact.shrink_to_fit();
        LLVMFuzzerTestOneInput(exact.data(), exact.size());
    }
    std::printf("%zu inputs and %ld mutations of them\n", corpus.size(), runs);
    return 0;
}
