// One rank of a Gloo job that works until a fault ends it: gloo_faults DIR FAULT RANK SIZE VICTIM SEED, where FAULT is kill,
// stop, count or nothing. Ranks meet in DIR and talk over TCP on the loopback interface; Gloo's own deadline of 30 s is left as
// it is.
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "events.h"

int main(int argc, char** argv) {
    if (argc != 7) return 2;
    const std::string folder = argv[1], fault = argv[2];
    const int rank = std::atoi(argv[3]), size = std::atoi(argv[4]);
    const bool victim = std::atoi(argv[5]) == rank;
    std::srand(std::atoi(argv[6]));
    const int deviant = fault == "count" ? kWarmCalls + std::rand() % 2 : -1;
    events_open(folder.c_str(), rank);
    signal(SIGPIPE, SIG_IGN);  // as Python has it, under which Gloo mostly runs; else a closed connection ends the process

    gloo::transport::tcp::attr where("127.0.0.1");
    auto device = gloo::transport::tcp::CreateDevice(where);
    auto store = std::make_shared<gloo::rendezvous::FileStore>(folder);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
    context->connectFullMesh(store, device);

    std::vector<float> send(kLarge + 1, 1.0f), recv(kLarge + 1);
    const bool bounded = deviant >= 0 || fault == "nothing";
    for (int call = 0; !bounded || call < kWarmCalls + kCallsAfterDeviation; ++call) {
        if (victim && call == kWarmCalls && !bounded)
            events_strike_in(std::rand() % 40000, fault == "kill" ? SIGKILL : SIGSTOP);
        const int count = call % 2 ? kLarge : kSmall;
        const bool deviates = victim && call == deviant;
        recv[0] = recv[count - 1] = 0;
        try {
            gloo::AllreduceOptions options(context);
            options.setInput(send.data(), count + deviates);
            options.setOutput(recv.data(), count + deviates);
            options.setReduceFunction(
                [](void* sum, const void* a, const void* b, size_t n) { gloo::sum<float>(sum, a, b, n); });
            options.setTag(call);
            if (deviates) events_say("fault", events_now(), nullptr);
            gloo::allreduce(options);
        } catch (const std::exception& error) {
            // As a program would it then ends, which closes its connections and so may tell the others.
            events_say("answer", events_now(), error.what());
            return 1;
        }
        if (recv[0] != float(size) || recv[count - 1] != float(size)) events_say("wrong", call, nullptr);
    }
    events_say("done", events_now(), nullptr);
    // Before this rank's sockets close, all others must be done too.
    sleep(1);
    return 0;
}
