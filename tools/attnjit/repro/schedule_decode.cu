// schedule_decode: cuts a batch of equal requests into a part for each multiprocessor.
#include <algorithm>

#include "kernel.cu"
#include "repro_support.h"

int main() {
  const int num_parts = repro::num_sms();
  ScheduleArguments arguments = {};
  arguments.seq_lens = repro::upload(std::vector<int>(repro_case::batch, repro_case::seqlen_kv));
  arguments.parts = static_cast<SchedulePart*>(repro::zeros(num_parts * sizeof(SchedulePart)));
  arguments.piece_offsets = static_cast<int*>(repro::zeros((repro_case::batch + 1) * 4));
  arguments.unit_offsets = static_cast<long long*>(repro::zeros((repro_case::batch + 1) * 8));
  arguments.batch = repro_case::batch;
  arguments.num_parts = num_parts;
  arguments.seqlen_q = repro_case::seqlen_q;
  if (config::chunk_blocks > 0) {
    const int blocks = num_kv_blocks(repro_case::seqlen_kv, config::block_n);
    arguments.most_chunks = (blocks - 1) / std::max(1, config::chunk_blocks) + 1;
  }
  repro::launch(schedule_decode, dim3(1), arguments);
  repro::print_checksum("parts", arguments.parts, num_parts * sizeof(SchedulePart));
  repro::print_checksum("piece_offsets", arguments.piece_offsets, (repro_case::batch + 1) * 4);
  repro::print_checksum("unit_offsets", arguments.unit_offsets, (repro_case::batch + 1) * 8);
}
