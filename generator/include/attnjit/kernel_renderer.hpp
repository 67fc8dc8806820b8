// KernelConfig -> render -> RenderedKernel: the template's text, its headers and the rendered
// kernel_config.cuh. Pure; thread-safe.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "attnjit/kernel_config.hpp"
#include "attnjit/rendered_kernel.hpp"
#include "attnjit/target_device.hpp"
#include "attnjit/template_library.hpp"

namespace attnjit {

// Renders the kernel of `config` for `device` from the templates in `library`. Throws TemplateError
// if a template or a header it includes is missing, or has a slot that is unknown, not closed or
// lies in another; std::invalid_argument for an arch that is not of the letters a-z, digits and
// underscores, a field of `config` that holds no enumerator, or an expression that could reach
// beyond its slot.
RenderedKernel render(const KernelConfig& config, const TargetDevice& device,
                      const TemplateLibrary& library);

// A kernel that is no template, e.g. a test's: `source` may include what `library` holds. `config`
// is left "{}", num_threads and shared memory to the caller. Throws as render does.
RenderedKernel render_source(std::string_view entry, std::string_view source,
                             const TargetDevice& device, const TemplateLibrary& library);

// The kernel_config.cuh of `config`: a namespace `config` of commented constants; expressions are
// none of these, they go into the template's slots. Throws
// std::invalid_argument as render does.
std::string render_config_header(const KernelConfig& config);

// The source and all headers as one text, for reading and for `attnjit src`.
std::string flatten(const RenderedKernel& kernel);

}  // namespace attnjit
