#include "random_tokens.hpp"

#include <cstddef>

#include "attnjit/kernel_launch.hpp"

namespace attnjit::check {

DeviceBuffer poisoned_buffer(const DeviceStream& stream, std::int64_t bytes) {
  DeviceBuffer buffer(stream.device(), static_cast<std::size_t>(bytes));
  buffer.fill(0xff, stream.handle());
  return buffer;
}

void fill_tokens(const CheckKernels& kernels, const FillTokensArguments& arguments, int batch,
                 const DeviceStream& stream) {
  const auto blocks = static_cast<unsigned>(std::int64_t{batch} * arguments.max_tokens);
  launch(kernels.fill_tokens, {blocks, 1, 1}, stream.handle(), &arguments);
}

}  // namespace attnjit::check
