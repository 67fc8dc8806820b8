// Times prefill on the GPU on random data. One thread at a time.
#pragma once

#include "attnjit/attention_runtime.hpp"
#include "call_timing.hpp"
#include "prefill_case.hpp"

namespace attnjit::check {

// Only pairs of a query and a key that it may see by its position count: exact for masks that read
// positions alone. Keys that no query reaches need not be read.
CallWork count_work(const PrefillCase& prefill_case);

// Times `repetitions` replays. Throws what preparing and running throw.
CallTiming time_prefill(AttentionRuntime& runtime, const PrefillCase& prefill_case, int device,
                        int repetitions);

}  // namespace attnjit::check
