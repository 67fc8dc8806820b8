// What `attnjit tune` measured: for descriptors alike, which knobs beat the model of
// config_selection on one card. Tables lie in tools/tuned, one per card, and are built in;
// select_configs looks a descriptor up before it asks the model. Pure functions; thread-safe.
#pragma once

#include <compare>
#include <concepts>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "attnjit/attention_descriptor.hpp"
#include "attnjit/embedded_file.hpp"
#include "attnjit/target_device.hpp"

namespace attnjit {

enum class AttentionKernel { swapped_decode_sm90, seesaw_decode_sm90, paged_decode_sm80 };
std::string_view to_string(AttentionKernel);

// What of a descriptor decides how fast a configuration is. Batch and lengths are not in it: a
// compiled kernel does not know them.
struct TuningKey {
  DataType dtype = DataType::bf16;  // of q, k, v and out
  int head_dim_qk = 0;
  int head_dim_v = 0;
  int rows = 0;  // max_seqlen_q * q_per_kv
  int page_size = 0;
  ValueSource value_source = ValueSource::separate;
  MaskKind mask = MaskKind::none;  // causal over one query token is none
  int window_left = -1;            // keys, of what the mask comes to
  int window_right = -1;
  bool has_sinks = false;
  bool batch_invariant = false;

  friend auto operator<=>(const TuningKey&, const TuningKey&) = default;
};

TuningKey tuning_key(const AttentionDescriptor& descriptor);

// "bf16 576/512 rows 16 page 64 prefix_of_k none".
std::string describe(const TuningKey& key);

// What a configuration may differ in from the model's; not given = as the model says.
struct TuningKnobs {
  std::optional<AttentionKernel> kernel;
  std::optional<int> ring_boxes;      // of swapped_decode_sm90
  std::optional<int> block_m;         // of paged_decode_sm80, as the next three
  std::optional<int> block_n;         // keys
  std::optional<int> num_warps;       // of a thread block
  std::optional<int> num_stages;      // KV tiles in flight plus the one in use
  std::optional<int> combine_warps;   // of a thread block of combine_splits
  std::optional<int> piece_units;     // of schedule_decode, as the next
  std::optional<int> block_percent;   // of the time that a block takes from memory
  std::optional<int> chunk_blocks;    // of a batch-invariant decode, as the next
  std::optional<int> segment_pieces;  // that are merged first

  friend bool operator==(const TuningKnobs&, const TuningKnobs&) = default;
};

// "ring_boxes 11, combine_warps 8"; "the model's" if none is given.
std::string describe(const TuningKnobs& knobs);

struct TunedRow {
  TuningKey key;
  TuningKnobs knobs;
  std::string date;                 // ISO 8601
  std::string command;              // that measured it
  std::vector<std::string> points;  // "b1 s_k1024", batch and keys per request
  std::vector<double> model_us;     // medians, one per point
  std::vector<double> tuned_us;

  friend bool operator==(const TunedRow&, const TunedRow&) = default;
};

struct TuningTable {
  std::string device;          // name of a preset, e.g. "h200"
  std::string card;            // as the driver calls it, e.g. "NVIDIA H200"
  std::vector<TunedRow> rows;  // ascending by key, no two alike
  std::string problem;         // of an embedded table that cannot be read; empty if it can
};

// A table that cannot be read, or a row whose knobs are illegal; the message names row and field.
class TuningError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Reads the text of a table; `name` is for messages. Whether knobs are legal is configure_decode's
// to say. Throws TuningError.
TuningTable parse_tuning_table(std::string_view name, std::string_view text);

// The text of a table: rows sorted, one member a line. parse_tuning_table reads it back.
std::string to_json(const TuningTable& table);

// Puts `row` in the place of the one with its key; takes the one with `key` out, if there is one.
void replace_row(TuningTable& table, TunedRow row);
void remove_row(TuningTable& table, const TuningKey& key);

// Reads the tables of `files`, each called after its device, "h200.json". One that cannot be read
// is left without rows and with its problem: it concerns no card but its own.
std::vector<TuningTable> read_tuning_tables(std::span<const EmbeddedFile> files);

// The tables this binary was built with.
const std::vector<TuningTable>& embedded_tuning_tables();

// True if `table` was measured on a card like `device`: the preset, or that card as the driver
// describes it, whole. The card of one that cannot be read is any that is as large.
bool is_for(const TuningTable& table, const TargetDevice& device);

// The row of `tables` for a legal decode descriptor; null if none was measured. Throws TuningError
// if the table of `device` cannot be read.
const TunedRow* find_tuned_row(std::span<const TuningTable> tables,
                               const AttentionDescriptor& descriptor, const TargetDevice& device);

// The same of the embedded tables.
const TunedRow* find_tuned_row(const AttentionDescriptor& descriptor, const TargetDevice& device);

// Calls visit(name, member) for every field, in a fixed order.
template <typename Key, typename Visitor>
requires std::same_as<std::remove_const_t<Key>, TuningKey>
void for_each_field(Key& key, Visitor&& visit) {
  visit("dtype", key.dtype);
  visit("head_dim_qk", key.head_dim_qk);
  visit("head_dim_v", key.head_dim_v);
  visit("rows", key.rows);
  visit("page_size", key.page_size);
  visit("value_source", key.value_source);
  visit("mask", key.mask);
  visit("window_left", key.window_left);
  visit("window_right", key.window_right);
  visit("has_sinks", key.has_sinks);
  visit("batch_invariant", key.batch_invariant);
}

template <typename Knobs, typename Visitor>
requires std::same_as<std::remove_const_t<Knobs>, TuningKnobs>
void for_each_field(Knobs& knobs, Visitor&& visit) {
  visit("kernel", knobs.kernel);
  visit("ring_boxes", knobs.ring_boxes);
  visit("block_m", knobs.block_m);
  visit("block_n", knobs.block_n);
  visit("num_warps", knobs.num_warps);
  visit("num_stages", knobs.num_stages);
  visit("combine_warps", knobs.combine_warps);
  visit("piece_units", knobs.piece_units);
  visit("block_percent", knobs.block_percent);
  visit("chunk_blocks", knobs.chunk_blocks);
  visit("segment_pieces", knobs.segment_pieces);
}

}  // namespace attnjit
