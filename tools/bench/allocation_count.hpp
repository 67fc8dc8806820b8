// Counts the allocations of the program that it is linked into, by operators new of its own.
#pragma once

namespace attnjit {

// Calls of operator new so far, in all threads.
long allocation_count();

}  // namespace attnjit
