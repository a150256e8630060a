#include "topology/topology.h"

#include <algorithm>
#include <map>

namespace ringccl {

World make_world(int rank, const std::vector<std::string>& host_ids) {
    World world;
    world.rank = rank;
    world.size = static_cast<int>(host_ids.size());
    std::map<std::string, int> number;
    for (const std::string& id : host_ids)
        world.host.push_back(number.try_emplace(id, static_cast<int>(number.size())).first->second);
    // Each host's ranks stand side by side in the ring, so that a message crosses each host's link once.
    for (int r = 0; r < world.size; ++r) world.ring.push_back(r);
    std::stable_sort(world.ring.begin(), world.ring.end(), [&](int a, int b) { return world.host[a] < world.host[b]; });
    return world;
}

int local_ranks(const World& world) {
    return static_cast<int>(std::count(world.host.begin(), world.host.end(), world.host[world.rank]));
}

std::vector<int> choose_transports(int rank, const Reached& reached) {
    const size_t size = reached.empty() ? 0 : reached[0].size();
    std::vector<int> chosen(size, -1);
    for (size_t r = 0; r < size; ++r) {
        for (size_t t = 0; t < reached.size() && chosen[r] < 0; ++t)
            if (reached[t][rank][r] && reached[t][r][rank]) chosen[r] = static_cast<int>(t);
    }
    return chosen;
}

}  // namespace ringccl
