// Settings of a communicator, and the one table of every environment variable that can change them: the table parses the
// environment, prints itself in ringccl-info, and generates docs/tuning.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

namespace ringccl {

struct Settings {
    std::string transport;   // "auto" or a list: "p2p", "tcp", "p2p,tcp"
    std::string algorithm;   // "auto", "ring", "direct", "oneshot", "twoshot", "doubling", "tree", "star", "hierarchical"
    std::string interface;   // which network interfaces may be used; "" all
    std::string host_id;     // "" the kernel's boot id; else a made-up host, to simulate several on one machine
    std::string log;         // "off", "error", "warn", "info", "debug"
    int64_t timeout_ms = 0;  // an operation fails when no byte moved for this long
    int64_t init_timeout_ms = 0;
    int64_t heartbeat_ms = 0;   // a rank that says nothing for this long counts as stopped; 0: silence is no sign of anything
    std::string record;         // directory for the flight records of failed communicators; "": none are written
    std::string timeline;       // file for a trace of every operation and slice; "": none
    int64_t slice_bytes = 0;    // largest slice
    int64_t channels = 0;       // rings side by side in one operation; 0: chosen by the cost model
    int64_t stage_bytes = 0;    // library memory per lane that results wait in for a peer to take them
    int64_t sockets = 0;        // sockets per TCP link
    int64_t socket_buffer = 0;  // bytes, SO_SNDBUF and SO_RCVBUF; 0: the kernel's own choice
    int64_t spin_us = 0;        // how long to poll before giving up the CPU; -1: chosen from CPUs and local ranks
    int64_t cma = 0;            // 0/1: may read a peer process's memory by process_vm_readv
    int64_t cma_min_bytes = 0;  // smallest slice for which that beats a copy through shared memory
    int64_t stream_bytes = 0;   // smallest result that is written past the caches; 0: chosen from them
    int64_t pointer = 0;        // 0/1: ranks in one process may read each other's memory directly
    std::string cuda_module;    // file of the module for CUDA devices; "": it is looked for

    int cuda_device = -1;  // not from the environment: the device that the communicator is made on; -1: the host
};

struct Knob {
    const char* name;                     // "RINGCCL_TIMEOUT_MS"
    int64_t Settings::*number = nullptr;  // exactly one of number and text is set
    std::string Settings::*text = nullptr;
    const char* fallback;           // the default, as it would be written in the environment
    int64_t least = 0, most = 0;    // range of a number
    const char* choices = nullptr;  // for text: allowed words, separated by '|'; NULL: free
    bool bytes = false;             // for a number: a size, so that K, M and G (powers of 1024) may follow it
    bool list = false;              // for text with choices: several words separated by ','
    bool shared = false;            // rank 0's value counts for all ranks
    const char* help;
};

std::span<const Knob> knobs();

// A knob's value as it would be written in the environment, and what it may be: "1 to 8", "0 or 1", "auto, p2p or tcp".
std::string knob_value(const Settings& settings, const Knob& knob);
std::string knob_range(const Knob& knob);

// Reads every knob from the environment; an empty variable counts as not set. ringInvalidUsage: a value is not a number, out of
// range or not among the choices; the text names the variable, the value and what would be right.
Result<Settings> settings_from_environment();

// Sets one knob from text, with the same checks.
Status set_knob(Settings& settings, const Knob& knob, const std::string& value);

// The knobs with `shared`, as text for the join message, and back.
std::string shared_settings(const Settings& settings);
Status adopt_shared_settings(Settings& settings, const std::string& text);

}  // namespace ringccl
