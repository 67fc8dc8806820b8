// The slots of a template or header, where a user's code may stand:
//   // slot mask_predicate
//   __device__ bool mask_predicate(int b, …) {   the head of a function, kept as it is
//     return true;                               its body, which an expression replaces
//   }
//   // end slot
// at namespace scope, so that the file compiles as it stands. Private; pure, thread-safe.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace attnjit {

// Expressions by the name of the slot whose function returns them. Every slot that templates may
// have is in it, with "" where its default code stays.
using SlotExpressions = std::map<std::string, std::string, std::less<>>;

// `text`, of the file called `path`, with the expressions in its slots, each behind
// #line 1 "<slot name>" and before a #line back to `path`. Takes those that it used out of
// `unused`, and adds no slot twice. Throws TemplateError with path:line for a slot that
// `expressions` does not have, that does not end, that lies in another, that is filled already or
// that holds no function.
std::string fill_slots(std::string_view path, std::string_view text,
                       const SlotExpressions& expressions, SlotExpressions& unused);

}  // namespace attnjit
