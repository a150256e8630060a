// What can be said of plans without carrying them out.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "plan_simulator.h"

namespace ringccl {

Buffers buffers_of(const Shape& shape, int size, int rank) {
    const size_t one = shape.count, all = shape.count * static_cast<size_t>(size), mine = one * static_cast<size_t>(rank);
    const bool root = rank == shape.root;
    Buffers b{.send_size = one, .recv_size = one};
    size_t in_place = 0;  // of the smaller buffer within the larger
    switch (shape.kind) {
        case Kind::scatter_reduce:
            b.send_size = all, in_place = mine;
            break;
        case Kind::all_gather:
            b.recv_size = all, in_place = mine;
            break;
        case Kind::broadcast:
            b.send_size = root ? one : 0;
            break;
        case Kind::reduce:
            b.recv_size = root ? one : 0;
            break;
        case Kind::gather:
            b.recv_size = root ? all : 0, in_place = root ? mine : 0;
            break;
        case Kind::scatter:
            b.send_size = root ? all : 0, in_place = root ? mine : 0;
            break;
        case Kind::all_to_all:
            b.send_size = b.recv_size = all;
            break;
        default:
            break;
    }
    if (!shape.in_place) {
        b.recv_at = b.send_size;
    } else {
        (b.send_size > b.recv_size ? b.recv_at : b.send_at) = in_place;
    }
    return b;
}

std::string broken_law(const Scene& scene) {
    using Stream = std::vector<std::pair<size_t, int>>;       // count and phase of each message
    std::map<std::tuple<int, int, int>, Stream> sent, taken;  // lane, from, to
    for (int rank = 0; rank < scene.world.size; ++rank) {
        const Buffers buffers = buffers_of(scene.shape, scene.world.size, rank);
        std::set<std::tuple<int, int, bool>> used;  // lane, peer, direction, by earlier channels
        for (const Channel& channel : scene.plans[rank].channels) {
            if (channel.lane < 0 || channel.lane >= kLanes) return "no such lane";
            std::set<std::tuple<int, int, bool>> uses;
            std::map<int, std::set<std::pair<size_t, size_t>>> ranges;  // phase -> [begin, end) of local memory
            int phase = 0;
            for (const Step& step : channel.steps) {
                if (step.phase < phase) return "phases go backwards";
                phase = step.phase;
                for (const Region& region : {step.local, step.dest}) {
                    if (!region.exists()) continue;
                    const size_t size = region.buffer == Buffer::send ? buffers.send_size : buffers.recv_size;
                    if (region.offset > size || step.count > size - region.offset) return "a region beyond its buffer";
                    const size_t begin = buffers.at(region);
                    if (step.count > 0) ranges[phase].insert({begin, begin + step.count});
                }
                for (const std::vector<int>* peers : {&step.sources, &step.sinks}) {
                    for (size_t i = 0; i < peers->size(); ++i) {
                        const int peer = (*peers)[i];
                        if (peer < 0 || peer >= scene.world.size || peer == rank) return "no such peer";
                        if (i > 0 && peer <= (*peers)[i - 1]) return "peers are not in ascending order";
                        uses.insert({channel.lane, peer, peers == &step.sinks});
                    }
                }
                for (int from : step.sources) taken[{channel.lane, from, rank}].push_back({step.count, phase});
                for (int to : step.sinks) sent[{channel.lane, rank, to}].push_back({step.count, phase});
            }
            for (const auto& use : uses) {
                if (!used.insert(use).second) return "two channels share a link";
            }
            for (const auto& [number, sorted] : ranges) {
                size_t end = 0;
                for (const auto& range : sorted) {
                    if (range.first < end) return fmt::format("law 1: ranges overlap in phase {} of rank {}", number, rank);
                    end = range.second;
                }
            }
        }
    }
    return sent == taken ? "" : "law 2: what is sent is not what is taken";
}

Scene shrunk(const Scene& scene) {
    const size_t count = scene.shape.count;
    if (count == 0) return scene;
    std::set<size_t> cuts{0};  // within a block of `count` elements
    Scene result = scene;
    auto for_each_region = [&](auto&& visit) {
        for (Plan& plan : result.plans) {
            for (Channel& channel : plan.channels) {
                for (Step& step : channel.steps) visit(step);
            }
        }
    };
    for_each_region([&](const Step& step) {
        for (const Region& region : {step.local, step.dest}) {
            if (region.exists()) cuts.insert({region.offset % count, (region.offset + step.count) % count});
        }
    });
    const std::vector<size_t> sorted(cuts.begin(), cuts.end());
    auto shrink = [&](size_t at) {
        const auto cut = std::lower_bound(sorted.begin(), sorted.end(), at % count);
        return at / count * sorted.size() + static_cast<size_t>(cut - sorted.begin());
    };
    for_each_region([&](Step& step) {
        const Region& region = step.local.exists() ? step.local : step.dest;
        step.count = shrink(region.offset + step.count) - shrink(region.offset);
        if (step.local.exists()) step.local.offset = shrink(step.local.offset);
        if (step.dest.exists()) step.dest.offset = shrink(step.dest.offset);
    });
    result.shape.count = sorted.size();
    return result;
}

}  // namespace ringccl
