// How a batch's KV blocks are cut into parts, on the host: the same cut as
// kernels/schedule_decode.cu makes on the device (both use templates/interface/decode_schedule.h).
// Pure; thread-safe.
#pragma once

#include <cstdint>

#include "attnjit/kernel_config.hpp"
#include "attnjit/target_device.hpp"

namespace attnjit {

struct DecodeGrid {
  int row_tiles = 0;  // tiles of block_m query rows per kv head
  int num_kv_heads = 0;
  int num_rows = 0;   // query rows per kv head: seqlen_q * q_per_kv
  int num_parts = 0;  // of the schedule
  // Pieces that belong to split requests at most, whatever the lengths: each part cuts at most the
  // request it begins in and the one it ends in; or all requests' chunks.
  std::int64_t max_pieces = 0;
  int most_chunks = 0;  // of a request, where requests are cut into chunks
};

// The grid for `seqlen_q` query tokens per request: the fewest parts that keep all multiprocessors
// evenly busy. Throws ArgumentError for sizes that no tile, device or call has.
DecodeGrid make_decode_grid(const DecodeTile& tile, const TargetDevice& device, int num_kv_heads,
                            int seqlen_q);

// `grid` for requests that are cut into the chunks of `config`: `max_batch` of them with at most
// `max_seqlen_kv` keys. Longer ones get no more chunks, but a longer last one.
DecodeGrid with_chunks(DecodeGrid grid, const ScheduleConfig& config, int max_batch,
                       int max_seqlen_kv);

// How the partial results of one piece are stored: templates/device/partial_results.cuh.
struct PartialTiles {
  int tiles = 0;   // of the query rows of a kv head
  int rows = 0;    // of a tile
  int lines = 0;   // of a tile
  int values = 0;  // of all lines of a tile
};

// Of the attention kernel that `config` merges the results of.
PartialTiles partial_tiles(const DecodeGrid& grid, const CombineConfig& config);

// Lines that the results of a request fill, of all its kv heads.
std::int64_t lines_per_request(const DecodeGrid& grid, const CombineConfig& config);

// Bytes of workspace for the partial results of `grid`.
std::int64_t workspace_bytes(const DecodeGrid& grid, const CombineConfig& config);

}  // namespace attnjit
