// A decode loop with continuous batching: requests come, grow and go; each step writes one token of
// each into a paged cache and attends to all before it, in every layer. All of a step is one CUDA
// graph, captured once for each of two batch sizes and replayed: what changes from step to step
// (lengths, block tables, values) lies in device memory, and rows without a request have length 0.
// Some steps are compared with fp64 loops on the host, and with the same calls without a graph.
//
// Exit status: 0 passed; 1 failed; 77 no GPU.
#include <attnjit/append_kv_cache.hpp>
#include <attnjit/driver_error.hpp>
#include <attnjit/paged_decode.hpp>
#include <attnjit/target_device_query.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "serving_batch.hpp"
#include "token_values.hpp"

namespace attnjit_example {
namespace {

using namespace attnjit;  // NOLINT(google-build-using-namespace): this is a program of its user

constexpr int device = 0;
constexpr int num_layers = 2;
constexpr int page_size = 16;
constexpr int num_pages = 300;
constexpr int most_pages = 50;  // of a request
constexpr int most_requests = 8;
constexpr std::array<int, 2> batch_sizes = {2, most_requests};

// Arrival, prompt, tokens to decode.
std::vector<Request> requests() {
  return {{0, 0, 100, 40}, {1, 0, 5, 25},    {2, 2, 700, 60},  {3, 3, 33, 10},
          {4, 3, 16, 48},  {5, 5, 1, 30},    {6, 8, 250, 20},  {7, 8, 64, 64},
          {8, 9, 15, 50},  {9, 12, 400, 30}, {10, 20, 90, 12}, {11, 95, 31, 20}};
}

AttentionDescriptor decode_descriptor() {
  AttentionDescriptor descriptor;  // of operation decode, causal, over a paged cache
  descriptor.num_q_heads = num_q_heads;
  descriptor.num_kv_heads = num_kv_heads;
  descriptor.head_dim_qk = descriptor.head_dim_v = head_dim;
  descriptor.page_size = page_size;
  return descriptor;
}

constexpr std::size_t cache_values = std::size_t{num_pages} * page_size * num_kv_heads * head_dim;
constexpr std::size_t q_values = std::size_t{most_requests} * num_q_heads * head_dim;
constexpr std::size_t kv_values = std::size_t{most_requests} * num_kv_heads * head_dim;
constexpr std::size_t table_entries = std::size_t{most_requests} * most_pages;

template <typename Value>
DeviceBuffer make_buffer(std::size_t count) {
  return DeviceBuffer(device, count * sizeof(Value));
}

using Bf16 = std::uint16_t;

// The cache of a layer, what its token of this step brings, and what comes of it.
struct Layer {
  DeviceBuffer k_cache = make_buffer<Bf16>(cache_values);
  DeviceBuffer v_cache = make_buffer<Bf16>(cache_values);
  DeviceBuffer q = make_buffer<Bf16>(q_values);
  DeviceBuffer k_new = make_buffer<Bf16>(kv_values);
  DeviceBuffer v_new = make_buffer<Bf16>(kv_values);
  DeviceBuffer out = make_buffer<Bf16>(q_values);
  DeviceBuffer lse = make_buffer<float>(q_values / head_dim);
};

TensorView cache_view(const DeviceBuffer& cache) {
  return contiguous_view(cache.data(), DataType::bf16,
                         {num_pages, page_size, num_kv_heads, head_dim});
}

// What a step computed, of all rows of a batch.
struct StepResult {
  std::vector<Bf16> out;
  std::vector<float> lse;

  bool operator==(const StepResult&) const = default;
};

class DecodeLoop {
 public:
  DecodeLoop();

  // 0 or 1, an exit status.
  int run();

 private:
  // A plan for batches of `size` requests, and its step as a graph.
  struct BatchSize {
    int size = 0;
    std::unique_ptr<DecodePlan> plan;
    std::unique_ptr<DeviceGraph> graph;
  };

  void write_prompt(const Request& request);
  void upload_step();
  void enqueue_step(BatchSize& batch_size);
  BatchSize& batch_size_of(std::size_t num_requests);
  StepResult download(const Layer& layer, int batch) const;
  void poison_results();
  void check_step(BatchSize& batch_size);
  void compare(const StepResult& result, int layer, int batch);

  AttentionRuntime runtime_;
  DeviceStream stream_{device};
  std::shared_ptr<const PreparedAppend> append_;
  std::array<Layer, num_layers> layers_;
  DeviceBuffer block_table_ = make_buffer<int>(table_entries);
  DeviceBuffer seq_lens_ = make_buffer<int>(most_requests);
  DeviceBuffer workspace_;
  std::vector<BatchSize> batch_sizes_;
  ServingBatch batch_{requests(), most_requests, num_pages, page_size};
  double worst_excess_ = 0;
  int num_compared_ = 0;
  int num_different_ = 0;  // replays that differ from calls without a graph
};

// All that compiles, loads or allocates is done here.
DecodeLoop::DecodeLoop() {
  const AttentionDescriptor descriptor = decode_descriptor();
  append_ = runtime_.prepare_append(append_kv_cache_descriptor(descriptor), device);
  const auto kernels = runtime_.prepare_decode(descriptor, device);
  std::int64_t workspace_bytes = 0;
  for (const int size : batch_sizes) {
    batch_sizes_.push_back({size, std::make_unique<DecodePlan>(kernels, size, 1), nullptr});
    workspace_bytes = std::max(workspace_bytes, batch_sizes_.back().plan->workspace_bytes());
  }
  workspace_ = DeviceBuffer(device, static_cast<std::size_t>(workspace_bytes));
  for (BatchSize& batch_size : batch_sizes_) {
    batch_size.graph = std::make_unique<DeviceGraph>(stream_, [&] { enqueue_step(batch_size); });
  }
}

void DecodeLoop::enqueue_step(BatchSize& batch_size) {
  const std::int64_t batch = batch_size.size;
  const TensorView block_table =
      contiguous_view(block_table_.data(), DataType::int32, {batch, most_pages});
  const TensorView seq_lens = contiguous_view(seq_lens_.data(), DataType::int32, {batch});
  batch_size.plan->update(static_cast<const int*>(seq_lens_.data()), batch_size.size,
                          stream_.handle());
  for (Layer& layer : layers_) {
    AppendKvCacheCall append;
    append.k_new =
        contiguous_view(layer.k_new.data(), DataType::bf16, {batch, 1, num_kv_heads, head_dim});
    append.v_new =
        contiguous_view(layer.v_new.data(), DataType::bf16, {batch, 1, num_kv_heads, head_dim});
    append.k_cache = cache_view(layer.k_cache);
    append.v_cache = cache_view(layer.v_cache);
    append.block_table = block_table;
    append.seq_lens = seq_lens;
    append_kv_cache(*append_, append, stream_.handle());
    DecodeCall call;
    call.q = contiguous_view(layer.q.data(), DataType::bf16, {batch, 1, num_q_heads, head_dim});
    call.k_cache = append.k_cache;
    call.v_cache = append.v_cache;
    call.block_table = block_table;
    call.seq_lens = seq_lens;
    call.out = contiguous_view(layer.out.data(), DataType::bf16, {batch, 1, num_q_heads, head_dim});
    call.lse = contiguous_view(layer.lse.data(), DataType::fp32, {batch, num_q_heads, 1});
    call.softmax_scale = 1.0F / std::sqrt(static_cast<float>(head_dim));
    run_decode(*batch_size.plan, call, workspace_.data(),
               static_cast<std::int64_t>(workspace_.bytes()), stream_.handle());
  }
}

// Outside of the graph, for prompts have all lengths. A model would run a prefill here.
void DecodeLoop::write_prompt(const Request& request) {
  const std::array<int, 2> offsets = {0, request.prompt};
  std::vector<int> pages = request.pages;
  pages.resize(most_pages, -1);
  const DeviceBuffer device_offsets = make_device_buffer<int>(device, offsets, stream_.handle());
  const DeviceBuffer device_pages = make_device_buffer<int>(device, pages, stream_.handle());
  for (int i = 0; i < num_layers; ++i) {
    std::array<std::vector<Bf16>, 2> values;
    for (const Role role : {Role::k, Role::v}) {
      auto& rows = values[role == Role::k ? 0 : 1];
      const std::size_t row = count_values(role);
      rows.resize(static_cast<std::size_t>(request.prompt) * row);
      for (int position = 0; position < request.prompt; ++position) {
        write_values(role, {i, request.id, position},
                     std::span(rows).subspan(static_cast<std::size_t>(position) * row, row));
      }
    }
    const DeviceBuffer k = make_device_buffer<Bf16>(device, values[0], stream_.handle());
    const DeviceBuffer v = make_device_buffer<Bf16>(device, values[1], stream_.handle());
    const Layer& layer = layers_[static_cast<std::size_t>(i)];
    AppendKvCacheCall call;
    call.k_new =
        contiguous_view(k.data(), DataType::bf16, {request.prompt, num_kv_heads, head_dim});
    call.v_new =
        contiguous_view(v.data(), DataType::bf16, {request.prompt, num_kv_heads, head_dim});
    call.k_cache = cache_view(layer.k_cache);
    call.v_cache = cache_view(layer.v_cache);
    call.new_offsets = contiguous_view(device_offsets.data(), DataType::int32, {2});
    call.block_table = contiguous_view(device_pages.data(), DataType::int32, {1, most_pages});
    call.seq_lens =
        contiguous_view(static_cast<int*>(device_offsets.data()) + 1, DataType::int32, {1});
    append_kv_cache(*append_, call, stream_.handle());
    stream_.synchronize();  // k and v end here
  }
}

// Lengths, block tables and values of the step; rows without a request have length 0.
void DecodeLoop::upload_step() {
  std::array<int, most_requests> lengths = {};
  std::vector<int> table(table_entries, -1);
  const std::vector<Request>& active = batch_.active();
  for (std::size_t b = 0; b < active.size(); ++b) {
    lengths[b] = active[b].length;
    std::copy(active[b].pages.begin(), active[b].pages.end(),
              table.begin() + static_cast<std::ptrdiff_t>(b) * most_pages);
  }
  seq_lens_.upload(lengths.data(), sizeof lengths, stream_.handle());
  block_table_.upload(table.data(), table.size() * sizeof(int), stream_.handle());
  for (int i = 0; i < num_layers; ++i) {
    Layer& layer = layers_[static_cast<std::size_t>(i)];
    for (const auto& [role, buffer] :
         {std::pair{Role::q, &layer.q}, std::pair{Role::k, &layer.k_new},
          std::pair{Role::v, &layer.v_new}}) {
      const std::size_t row = count_values(role);
      std::vector<Bf16> values(most_requests * row, 0x7fc0);  // NaN where nobody is
      for (std::size_t b = 0; b < active.size(); ++b) {
        write_values(role, {i, active[b].id, active[b].length - 1},
                     std::span(values).subspan(b * row, row));
      }
      buffer->upload(values.data(), values.size() * sizeof(Bf16), stream_.handle());
    }
  }
}

DecodeLoop::BatchSize& DecodeLoop::batch_size_of(std::size_t num_requests) {
  return *std::find_if(batch_sizes_.begin(), batch_sizes_.end(), [&](const BatchSize& one) {
    return static_cast<std::size_t>(one.size) >= num_requests;
  });
}

StepResult DecodeLoop::download(const Layer& layer, int batch) const {
  const auto rows = static_cast<std::size_t>(batch) * num_q_heads;
  return {download_values<Bf16>(layer.out, rows * head_dim, stream_.handle()),
          download_values<float>(layer.lse, rows, stream_.handle())};
}

void DecodeLoop::poison_results() {
  for (Layer& layer : layers_) {
    layer.out.fill(0xff, stream_.handle());
    layer.lse.fill(0xff, stream_.handle());
  }
}

// A weight is rounded to bf16 before it multiplies a value of at most 1, which costs a sum of them
// divided by their sum at most 2^-9; the result is rounded once more.
constexpr double out_absolute = 1.0 / 512;
constexpr double out_relative = 1.0 / 256;

// |error| / tolerance; what is no number is infinitely wrong.
double excess(double result, double reference, double absolute, double relative) {
  const double error = result == reference ? 0 : std::abs(result - reference);
  return std::isnan(error) ? INFINITY : error / (absolute + relative * std::abs(reference));
}

void DecodeLoop::compare(const StepResult& result, int layer, int batch) {
  for (int b = 0; b < batch; ++b) {
    const auto row = static_cast<std::size_t>(b);
    const bool is_served = row < batch_.active().size();
    TokenAttention right = {std::vector<double>(q_values / most_requests, 0.0),
                            std::vector<double>(num_q_heads, -INFINITY)};
    if (is_served) {
      const Request& request = batch_.active()[row];
      right = attend({layer, request.id, request.length - 1});
    }
    for (std::size_t i = 0; i < right.out.size(); ++i) {
      const double value = from_bf16(result.out[row * right.out.size() + i]);
      worst_excess_ =
          std::max(worst_excess_, excess(value, right.out[i], out_absolute, out_relative));
    }
    for (std::size_t i = 0; i < right.lse.size(); ++i) {
      const auto value = double{result.lse[row * right.lse.size() + i]};
      worst_excess_ = std::max(worst_excess_, excess(value, right.lse[i], 1e-4, 8.01 / 65536));
    }
    ++num_compared_;
  }
}

// The step was replayed. Compares its results, and those of the same calls without a graph, which
// write the same tokens to the same places once more.
void DecodeLoop::check_step(BatchSize& batch_size) {
  std::vector<StepResult> replayed;
  for (int i = 0; i < num_layers; ++i) {
    replayed.push_back(download(layers_[static_cast<std::size_t>(i)], batch_size.size));
    compare(replayed.back(), i, batch_size.size);
  }
  poison_results();
  enqueue_step(batch_size);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    num_different_ += download(layers_[i], batch_size.size) == replayed[i] ? 0 : 1;
  }
}

int DecodeLoop::run() {
  int step = 0;
  int tokens = 0;
  std::array<int, batch_sizes.size()> replays = {};
  for (; !batch_.is_done(); ++step) {
    const std::vector<Request> admitted = batch_.admit(step);
    for (const Request& request : admitted) {
      write_prompt(request);
    }
    batch_.grow();
    if (!batch_.active().empty()) {
      BatchSize& batch_size = batch_size_of(batch_.active().size());
      upload_step();
      poison_results();
      batch_size.graph->launch(stream_);
      ++replays[static_cast<std::size_t>(&batch_size - batch_sizes_.data())];
      tokens += static_cast<int>(batch_.active().size());
      if (!admitted.empty() || step % 8 == 0) {
        check_step(batch_size);
      }
      stream_.synchronize();
    }
    batch_.retire();
  }
  const bool is_right = worst_excess_ <= 1 && num_different_ == 0 && num_compared_ > 0;
  std::printf(
      "%s decode loop: %zu requests, %d tokens in %d steps (%d replays for %d requests, %d "
      "for %d); %d rows compared, within %.2f of their tolerance; %d replays differ from "
      "calls without a graph\n",
      is_right ? "PASS" : "FAIL", requests().size(), tokens, step, replays[0], batch_sizes[0],
      replays[1], batch_sizes[1], num_compared_, worst_excess_, num_different_);
  return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}

int run_or_skip() {
  constexpr int exit_skipped = 77;
  try {
    count_devices();
  } catch (const DriverError& error) {
    std::printf("skipped: %s\n", error.what());
    return error.problem() == DriverProblem::failed ? EXIT_FAILURE : exit_skipped;
  }
  return DecodeLoop().run();
}

}  // namespace
}  // namespace attnjit_example

int main() {
  try {
    return attnjit_example::run_or_skip();
  } catch (const std::exception& error) {
    std::printf("FAIL decode loop: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
