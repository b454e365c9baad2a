// Variables that libraries read when the program starts, before main: to choose them the program
// has to start a second time.
#pragma once

#include <string>
#include <vector>

namespace sol::app {

// This process' own arguments, the program's name first.
std::vector<std::string> process_arguments();

// Starts this program again in the same process with a variable of the environment set; returns
// when that is not possible. To be called before anything that a second start would do twice.
void restart_with(const char* name, const char* value);

// OpenMP's threads spin while they wait for each other, by default so long (tens of milliseconds)
// that on a machine which is busy with other work a token takes a hundred times as long: who spins
// keeps those off the processor who are waited for. Makes it a tenth of a millisecond, longer than
// any gap within a step, unless OMP_WAIT_POLICY or GOMP_SPINCOUNT says otherwise.
void choose_short_spin();

// With OMP_DYNAMIC=true OpenMP may start fewer threads than a library planned for, and oneDNN then
// leaves their share of a product out without an error.
void keep_planned_threads();

}  // namespace sol::app
