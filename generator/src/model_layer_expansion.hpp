// ModelLayer -> AttentionDescriptor: what one rank launches for a layer in a phase, with the reason
// of each axis. Private; pure functions, thread-safe.
#pragma once

#include <vector>

#include "attnjit/model_plan.hpp"
#include "model_layer.hpp"

namespace attnjit {

// Throws ModelError, naming the legal values, if tensor_parallel cannot share the heads of a layer.
void check_tensor_parallel(const std::vector<ModelLayer>& layers, int tensor_parallel);

// The descriptor of a layer that has attention; `layers` of the result is left empty.
PlannedDescriptor expand_layer(const ModelLayer& layer, Phase phase, const PlanOptions& options);

}  // namespace attnjit
