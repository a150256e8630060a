// standin_scenarios NAME: exit status 0 if the scenario went as it should, 1 if not, 2 if there is none of that name.
#include "scenario.h"

int main(int argument_count, char** arguments) {
    auto scenario = selftest::scenarios().find(argument_count == 2 ? arguments[1] : "");
    if (scenario == selftest::scenarios().end()) return 2;
    return scenario->second() ? 0 : 1;
}
