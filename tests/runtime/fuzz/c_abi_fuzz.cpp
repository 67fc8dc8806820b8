// libFuzzer on the C interface, over the mock driver and a warm cache: bytes are a sequence of
// calls with handles, structs, tensors and descriptors that are right or not. Whatever they are, no
// call crashes, writes out of bounds or answers anything but a status that its message explains,
// no launch is one that no GPU takes, and nothing stays allocated.
#include <cstddef>
#include <cstdint>

#include "call_checks.hpp"
#include "call_sequence.hpp"
#include "right_calls.hpp"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  attnjit::test::right_calls();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace attnjit::test;
  MockDriver& mock = right_calls().session->mock;
  const std::size_t allocations = mock.allocations.size();
  CallSequence(FuzzBytes({data, size})).run();
  check_launches(mock.launches);
  check_that(mock.allocations.size() == allocations || mock.context_result != CUDA_SUCCESS,
             "device memory that nobody owns");
  mock.launches.clear();
  mock.tensor_maps.clear();
  mock.is_capturing = mock.is_capturing_implicitly = false;
  mock.launch_result = mock.encode_result = mock.load_result = CUDA_SUCCESS;
  mock.allocation_result = mock.context_result = CUDA_SUCCESS;
  return 0;
}
