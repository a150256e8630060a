#include "knob_pages.h"

#include <cstdlib>
#include <sstream>

#include "bootstrap/launcher.h"

namespace ringccl {
namespace {

constexpr size_t kWidth = 100;

// Breaks text at blanks so that each line, with its indent, fits the terminal.
std::string wrapped(const std::string& text, const std::string& indent) {
    std::istringstream words(text);
    std::string page, line = indent;
    for (std::string word; words >> word;) {
        if (line.size() > indent.size() && line.size() + 1 + word.size() > kWidth) {
            page += line + '\n';
            line = indent;
        }
        if (line.size() > indent.size()) line += ' ';
        line += word;
    }
    return page + line + '\n';
}

// The default in the form in which values are shown: 128K, not 131072.
std::string default_text(const Knob& knob) {
    Settings settings;
    return set_knob(settings, knob, knob.fallback).ok() ? knob_value(settings, knob) : knob.fallback;
}

// '|' ends a cell, '*' and '<' mean something to Markdown; no text of the table has the latter two.
std::string cell(std::string text) {
    for (size_t at = 0; (at = text.find('|', at)) != text.npos; at += 2) text.insert(at, 1, '\\');
    return text;
}

}  // namespace

std::string knob_list(const Settings& settings) {
    std::string page;
    for (const Knob& knob : knobs()) {
        std::string value = knob_value(settings, knob), fallback = default_text(knob);
        page += fmt::format("  {} {}={}\n", value == fallback ? " " : "*", knob.name, value);
        page += wrapped(fmt::format("default \"{}\"; {}{}", fallback, knob_range(knob),
                                    knob.shared ? "; rank 0's value counts for all" : ""),
                        "      ");
        page += wrapped(knob.help, "      ");
    }
    for (const PlaceVariable& variable : place_variables()) {
        const char* value = std::getenv(variable.name);
        page += fmt::format("  {} {}={}\n", value ? "*" : " ", variable.name,
                            !value ? "" : variable.confidential ? "(set, not shown)" : value);
        page += wrapped(fmt::format("ringCommInitEnv only. {}", variable.help), "      ");
    }
    return page;
}

std::string knob_markdown() {
    std::string page = "| variable | default | range | what it does |\n|---|---|---|---|\n";
    for (const Knob& knob : knobs()) {
        std::string fallback = default_text(knob);
        page += fmt::format("| `{}`{} | {} | {} | {} |\n", knob.name, knob.shared ? " (rank 0's)" : "",
                            fallback.empty() ? "empty" : '`' + fallback + '`', cell(knob_range(knob)), cell(knob.help));
    }
    page += "\n| variable, for `ringCommInitEnv` only | what it does |\n|---|---|\n";
    for (const PlaceVariable& variable : place_variables())
        page += fmt::format("| `{}` | {} |\n", variable.name, cell(variable.help));
    return page;
}

}  // namespace ringccl
