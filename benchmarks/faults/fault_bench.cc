// Hurts one rank of a working world, again and again, and tells what the others answered and when: one line of JSON per run.
// benchmarks/reliability makes tables of them.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "faults/board.h"
#include "faults/run.h"

namespace ringccl::faults {
namespace {

struct Options {
    std::vector<std::string> faults, transports{"p2p", "tcp"};
    std::vector<int> ranks{4, 8};
    int runs = 20, limit_s = 15;
    unsigned seed = 1;
    bool list = false;
};

void print_list() {
    nlohmann::json list;
    for (const Fault& fault : all_faults()) list.push_back({{"fault", fault.name}, {"text", fault.text}});
    std::puts(list.dump().c_str());
}

void bench(const Fault& fault, int ranks, const std::string& transport, const Options& options) {
    std::mt19937 random(options.seed);
    for (int i = 0; i < options.runs; ++i) {
        // Every rank is the victim in its turn, rank 0, which has the meeting point and the hub, too.
        nlohmann::json told = run({fault, ranks, transport.c_str(), i % ranks, options.limit_s}, random);
        told["run"] = i;
        told["expected"] = fault.others;
        std::puts(told.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
        std::fflush(stdout);
    }
}

}  // namespace
}  // namespace ringccl::faults

int main(int argc, char** argv) {
    using namespace ringccl::faults;
    Options options;
    CLI::App app{"Hurts one rank of a working world and tells what the others answered and when; a line of JSON per run"};
    app.add_option("--fault", options.faults, "which ones, all unless given; --list shows them")->delimiter(',');
    app.add_option("--transport", options.transports, "p2p, tcp")->delimiter(',')->capture_default_str();
    app.add_option("--ranks", options.ranks, "world sizes, even numbers")
        ->delimiter(',')
        ->check(CLI::Range(2, kMostRanks))
        ->capture_default_str();
    app.add_option("--runs", options.runs, "of each fault")->capture_default_str();
    app.add_option("--limit", options.limit_s, "seconds after which a rank that has not answered is ended")
        ->capture_default_str();
    app.add_option("--seed", options.seed, "of the moments at which the faults happen")->capture_default_str();
    app.add_flag("--list", options.list, "print the faults as JSON and end");
    CLI11_PARSE(app, argc, argv);
    if (options.list) {
        print_list();
        return 0;
    }

    std::vector<const Fault*> wanted;
    for (const std::string& name : options.faults) {
        const Fault* fault = find_fault(name);
        if (!fault) {
            std::fprintf(stderr, "There is no fault called %s; --list shows those that there are\n", name.c_str());
            return 2;
        }
        wanted.push_back(fault);
    }
    if (wanted.empty())
        for (const Fault& fault : all_faults()) wanted.push_back(&fault);
    for (const Fault* fault : wanted)
        for (const std::string& transport : options.transports)
            for (int ranks : options.ranks) {
                std::fprintf(stderr, "%-12s %s, %d ranks\n", fault->name, transport.c_str(), ranks);
                bench(*fault, ranks, transport, options);
            }
}
