#include "base/knobs.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace ringccl {
namespace {

constexpr int64_t kKiB = 1024;
constexpr int64_t kMiB = 1024 * kKiB;

constexpr auto kKnobs = std::to_array<Knob>({
    {.name = "RINGCCL_TRANSPORT",
     .text = &Settings::transport,
     .fallback = "auto",
     .choices = "auto|p2p|tcp",
     .list = true,
     .help = "Transports that may be used, e.g. \"tcp\" or \"p2p,tcp\". With auto each pair of ranks gets the best one that "
             "both ends can prove. A pair that none of the listed ones can join is an error that says why."},
    {.name = "RINGCCL_ALGORITHM",
     .text = &Settings::algorithm,
     .fallback = "auto",
     .choices = "auto|ring|direct|oneshot|twoshot|doubling|tree|star|hierarchical",
     .shared = true,
     .help = "The algorithm of every collective that has one of this name; the others, and auto, take the one that the cost "
             "model predicts to be fastest. direct means oneshot or twoshot, whichever is cheaper."},
    {.name = "RINGCCL_INTERFACE",
     .text = &Settings::interface,
     .fallback = "",
     .help = "Network interfaces that may be used: name prefixes (\"eth,ib\"), exact names (\"=eth0\"), all but some "
             "(\"^docker,veth\") or networks (\"10.0.0.0/8\"). Empty: all."},
    {.name = "RINGCCL_HOST_ID",
     .text = &Settings::host_id,
     .fallback = "",
     .help = "A made-up host identity. Ranks with different ones treat each other as being on different hosts, which "
             "simulates several hosts on one. Empty: the kernel's boot id."},
    {.name = "RINGCCL_LOG",
     .text = &Settings::log,
     .fallback = "warn",
     .choices = "off|error|warn|info|debug",
     .help = "What is written to stderr: this level and the graver ones. info tells which links and algorithms were chosen."},
    {.name = "RINGCCL_TIMEOUT_MS",
     .number = &Settings::timeout_ms,
     .fallback = "300000",
     .least = 1,
     .most = INT32_MAX,
     .help = "An operation fails when no byte of it has moved for this many milliseconds."},
    {.name = "RINGCCL_INIT_TIMEOUT_MS",
     .number = &Settings::init_timeout_ms,
     .fallback = "60000",
     .least = 1,
     .most = INT32_MAX,
     .help = "Making a communicator fails after this many milliseconds; the error lists the ranks that did not come."},
    {.name = "RINGCCL_HEARTBEAT_MS",
     .number = &Settings::heartbeat_ms,
     .fallback = "30000",
     .least = 0,
     .most = INT32_MAX,
     .shared = true,
     .help = "A rank whose process or host has said nothing for this many milliseconds counts as lost (stopped, or its network "
             "cut), and all others fail. 0: never. A rank that dies is noticed at once, whatever this says."},
    {.name = "RINGCCL_RECORD",
     .text = &Settings::record,
     .fallback = "",
     .help = "A directory. When a communicator fails, each rank writes its flight record there, as "
             "ringccl-<communicator>-rank<rank>.json, for ringccl-doctor. Empty: nothing is written."},
    {.name = "RINGCCL_TIMELINE",
     .text = &Settings::timeline,
     .fallback = "",
     .help = "A file that all ranks of a host append a trace of every operation and slice to, for ui.perfetto.dev; %r in it "
             "becomes the rank. Slows small operations down. Empty: no trace."},
    {.name = "RINGCCL_SLICE_BYTES",
     .number = &Settings::slice_bytes,
     .fallback = "0",
     .least = 0,
     .most = 4 * kMiB,
     .bytes = true,
     .shared = true,
     .help = "Largest slice, the unit in which chunks travel. Small slices fill the pipeline sooner, large ones cost less "
             "each; a window of four should fit what holds them, a second-level cache or a socket's buffer. 0: as was best "
             "for the links in use, 256 KiB for shared memory and 96 KiB for TCP."},
    {.name = "RINGCCL_CHANNELS",
     .number = &Settings::channels,
     .fallback = "0",
     .least = 0,
     .most = 4,
     .shared = true,
     .help = "Rings that work side by side in one operation. 0: chosen by the cost model."},
    {.name = "RINGCCL_STAGE_BYTES",
     .number = &Settings::stage_bytes,
     .fallback = "2M",
     .least = 64 * kKiB,
     .most = 64 * kMiB,
     .bytes = true,
     .shared = true,
     .help = "Library memory per lane in which results wait for a peer to take them, where they cannot be read in place."},
    {.name = "RINGCCL_SOCKETS",
     .number = &Settings::sockets,
     .fallback = "1",
     .least = 1,
     .most = 8,
     .shared = true,
     .help = "Sockets per TCP link. More than one helps where a single connection cannot fill the network."},
    {.name = "RINGCCL_SOCKET_BUFFER",
     .number = &Settings::socket_buffer,
     .fallback = "0",
     .least = 0,
     .most = 64 * kMiB,
     .bytes = true,
     .help = "Bytes of SO_SNDBUF and SO_RCVBUF. 0: the kernel sizes the buffers itself, as tcp_wmem and tcp_rmem allow."},
    {.name = "RINGCCL_SPIN_US",
     .number = &Settings::spin_us,
     .fallback = "-1",
     .least = -1,
     .most = 1000000,
     .help =
         "Microseconds that a waiting rank polls before it gives up its CPU. -1: none when the ranks of this host outnumber "
         "the CPUs, else 200."},
    {.name = "RINGCCL_CMA",
     .number = &Settings::cma,
     .fallback = "1",
     .least = 0,
     .most = 1,
     .help =
         "Whether ordinary memory of a peer process may be read by process_vm_readv (cross-memory attach), if a probe shows "
         "that the kernel permits it. Used for what one peer only copies, where it saves a copy through shared memory; a "
         "process permits it by PR_SET_PTRACER_ANY. 0: all goes through shared memory."},
    {.name = "RINGCCL_CMA_MIN_BYTES",
     .number = &Settings::cma_min_bytes,
     .fallback = "32K",
     .least = 0,
     .most = 64 * kMiB,
     .bytes = true,
     .help = "Smallest slice that is read that way; a smaller one is cheaper to copy through shared memory."},
    {.name = "RINGCCL_STREAM_BYTES",
     .number = &Settings::stream_bytes,
     .fallback = "0",
     .least = 0,
     .most = INT64_MAX,
     .bytes = true,
     .help = "Results of this size and more that no peer reads next are written past the caches, which saves reading what is "
             "overwritten; smaller ones are left there for who uses them next. 0: when the buffers of this host's ranks exceed "
             "half of the last-level cache."},
    {.name = "RINGCCL_POINTER",
     .number = &Settings::pointer,
     .fallback = "1",
     .least = 0,
     .most = 1,
     .help = "Whether ranks that are threads of one process may read each other's buffers directly."},
    {.name = "RINGCCL_CUDA_MODULE",
     .text = &Settings::cuda_module,
     .fallback = "",
     .help =
         "The file of the module that CUDA devices need, libringccl_cuda.so. Empty: beside the library, then where the system "
         "looks for libraries."},
});

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    for (size_t begin = 0;;) {
        size_t end = text.find(separator, begin);
        parts.push_back(text.substr(begin, end - begin));
        if (end == text.npos) return parts;
        begin = end + 1;
    }
}

// "131072" -> "128K"; what has no round form stays as it is.
std::string size_text(int64_t bytes) {
    if (bytes != 0 && bytes % kMiB == 0) return fmt::format("{}M", bytes / kMiB);
    if (bytes != 0 && bytes % kKiB == 0) return fmt::format("{}K", bytes / kKiB);
    return fmt::to_string(bytes);
}

std::string number_text(const Knob& knob, int64_t number) {
    return knob.bytes ? size_text(number) : fmt::to_string(number);
}

enum class Parsed { number, too_large, junk };

// The whole of `text` as a decimal number. A number beyond int64_t is too large, not junk, so that the error can speak of the
// range.
Parsed parse_number(std::string_view text, bool bytes, int64_t& number) {
    int shift = 0;
    if (bytes && !text.empty()) {
        constexpr std::string_view kSuffixes = "KkMmGg";
        if (size_t at = kSuffixes.find(text.back()); at != kSuffixes.npos) {
            shift = 10 * (static_cast<int>(at) / 2 + 1);
            text.remove_suffix(1);
        }
    }
    int64_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error == std::errc::invalid_argument || end != text.data() + text.size()) return Parsed::junk;
    if (error == std::errc::result_out_of_range || __builtin_mul_overflow(value, int64_t{1} << shift, &number)) {
        return Parsed::too_large;
    }
    return Parsed::number;
}

Status set_number(Settings& settings, const Knob& knob, const std::string& value) {
    int64_t number = 0;
    Parsed parsed = parse_number(value, knob.bytes, number);
    if (parsed == Parsed::junk) {
        return failure(ringInvalidUsage, "{}={} is not a whole number{}; use {} (the default is {})", knob.name, value,
                       knob.bytes ? " of bytes" : "", knob_range(knob), knob.fallback);
    }
    if (parsed == Parsed::too_large) number = value.front() == '-' ? INT64_MIN : INT64_MAX;
    if (number < knob.least || number > knob.most) {
        return failure(ringInvalidUsage, "{}={} is out of range, which is {}; the nearest is {}", knob.name, value,
                       knob_range(knob), number_text(knob, number < knob.least ? knob.least : knob.most));
    }
    settings.*knob.number = number;
    return {};
}

Status set_text(Settings& settings, const Knob& knob, const std::string& value) {
    if (knob.choices) {
        auto choices = split(knob.choices, '|');
        auto words = knob.list ? split(value, ',') : std::vector<std::string_view>{value};
        for (std::string_view word : words) {
            if (std::find(choices.begin(), choices.end(), word) == choices.end()) {
                return failure(ringInvalidUsage, "{}={}: \"{}\" is not known; use {}", knob.name, value, word,
                               knob_range(knob));
            }
            if (word == "auto" && words.size() > 1) {
                return failure(ringInvalidUsage,
                               "{}={}: auto cannot be combined with other words; use auto alone or a list "
                               "without it",
                               knob.name, value);
            }
        }
    }
    settings.*knob.text = value;
    return {};
}

}  // namespace

std::span<const Knob> knobs() {
    return kKnobs;
}

std::string knob_value(const Settings& settings, const Knob& knob) {
    return knob.number ? number_text(knob, settings.*knob.number) : settings.*knob.text;
}

std::string knob_range(const Knob& knob) {
    if (knob.number) {
        return fmt::format("{} {} {}", number_text(knob, knob.least), knob.most == knob.least + 1 ? "or" : "to",
                           number_text(knob, knob.most));
    }
    if (!knob.choices) return "any text";
    auto choices = split(knob.choices, '|');
    std::string_view last = choices.back();
    choices.pop_back();
    return fmt::format("{} or {}{}", fmt::join(choices, ", "), last, knob.list ? ", or a list" : "");
}

Status set_knob(Settings& settings, const Knob& knob, const std::string& value) {
    return knob.number ? set_number(settings, knob, value) : set_text(settings, knob, value);
}

Result<Settings> settings_from_environment() {
    Settings settings;
    for (const Knob& knob : kKnobs) {
        const char* value = std::getenv(knob.name);
        RINGCCL_TRY(set_knob(settings, knob, value && *value ? value : knob.fallback));
    }
    return settings;
}

std::string shared_settings(const Settings& settings) {
    std::string text;
    for (const Knob& knob : kKnobs) {
        if (knob.shared) text += fmt::format("{}={}\n", knob.name, knob_value(settings, knob));
    }
    return text;
}

Status adopt_shared_settings(Settings& settings, const std::string& text) {
    Settings adopted = settings;
    size_t lines = 0;
    for (std::string_view line : split(text, '\n')) {
        if (line.empty()) continue;
        size_t equals = line.find('=');
        auto knob = std::find_if(kKnobs.begin(), kKnobs.end(),
                                 [&](const Knob& k) { return k.shared && k.name == line.substr(0, equals); });
        if (equals == line.npos || knob == kKnobs.end()) {
            return failure(ringInvalidUsage,
                           "rank 0 sent the setting \"{}\", which this rank does not have; use one version of "
                           "ringccl on all ranks",
                           line);
        }
        RINGCCL_TRY(set_knob(adopted, *knob, std::string(line.substr(equals + 1))));
        ++lines;
    }
    auto expected = std::count_if(kKnobs.begin(), kKnobs.end(), [](const Knob& k) { return k.shared; });
    if (lines != static_cast<size_t>(expected)) {
        return failure(ringInvalidUsage,
                       "rank 0 sent {} settings where this rank expects {}; use one version of ringccl on all "
                       "ranks",
                       lines, expected);
    }
    settings = adopted;
    return {};
}

}  // namespace ringccl
