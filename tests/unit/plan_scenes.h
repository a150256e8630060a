// Every plan that there is for a world size: each kind with each of its algorithms, roots, ring orders and hosts.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <vector>

#include "plan_simulator.h"

namespace ringccl {

inline Scene make_scene(const Shape& shape, const World& world, const std::string& algorithm, int channels = 1) {
    Scene scene{shape, world, {}};
    for (int rank = 0; rank < world.size; ++rank) {
        World own = world;
        own.rank = rank;
        scene.plans.push_back(choose_plan(shape, own, CostModel{}, algorithm, channels));
    }
    return scene;
}

// Ranks dealt to `hosts` hosts in turn (0, 1, 0, 1), and a ring that follows the hosts.
inline World world_of(int size, int hosts = 1) {
    World world{.rank = 0, .size = size, .host = {}, .ring = {}};
    for (int rank = 0; rank < size && hosts > 1; ++rank) world.host.push_back(rank % hosts);
    for (int host = 0; host < hosts; ++host) {
        for (int rank = size - 1; rank >= 0; --rank) {
            if (rank % hosts == host) world.ring.push_back(rank);
        }
    }
    return world;
}

inline std::string describe(const Scene& scene) {
    const Shape& s = scene.shape;
    return fmt::format("{} {} of {} {}, {} ranks, root {}, {} channels{}", scene.plans[0].algorithm, kind_name(s.kind), s.count,
                       op_name(s.op), scene.world.size, s.root, scene.plans[0].channels.size(), s.in_place ? ", in place" : "");
}

// Calls visit(scene) for every collective plan of the world.
inline void for_each_scene(const World& world, size_t count, bool in_place, const std::function<void(const Scene&)>& visit) {
    for (int k = 0; k <= static_cast<int>(Kind::barrier); ++k) {
        const Kind kind = static_cast<Kind>(k);
        const bool rooted = kind == Kind::broadcast || kind == Kind::reduce || kind == Kind::gather || kind == Kind::scatter;
        const bool reduction = kind == Kind::all_reduce || kind == Kind::scatter_reduce || kind == Kind::reduce;
        if (kind == Kind::all_to_all && in_place) continue;
        std::vector<int> roots{0};
        if (rooted && world.size > 1) roots.push_back(world.size - 1);
        if (rooted && world.size > 4) roots.push_back(world.size / 2);
        for (int root : roots) {
            // The integer average is a sum that may not be split.
            for (ringDataType_t type : {ringFloat32, ringInt8}) {
                if (type == ringInt8 && !reduction) continue;
                const Op op = reduction ? Op::avg : Op::none;
                const Shape shape{kind, type, op, kind == Kind::barrier ? 0 : count, root, in_place};
                for (const Candidate& candidate : candidates(shape, world, CostModel{})) {
                    visit(make_scene(shape, world, candidate.algorithm));
                    if (std::string(candidate.algorithm) == "ring") visit(make_scene(shape, world, "ring", 3));
                }
            }
        }
    }
}

}  // namespace ringccl
