/* attnjit's C interface, the one that libattnjit.so exports: a JSON descriptor becomes a kernel
 * that is ready on a device (attnjit_prepare, may compile), which the calls below then run (never
 * compile, allocate nothing). Nothing is thrown, and nothing ends the process: every call returns a
 * status, and attnjit_last_message says what was wrong and how to mend it.
 *
 * Threads: every function may be called from any thread at any time. Calls on one plan may run side
 * by side, but attnjit_plan_update waits for them and they for it. Destroying a handle waits for
 * the calls that use it. Callbacks must not call back into attnjit: such calls are refused, but
 * those that end a handle are taken, and carried out when the call that called back returns.
 *
 * Versions: a struct that is passed by pointer begins with its size, `attnjit_decode_call call =
 * {sizeof call};`. Fields that a caller's older header lacks count as 0, which is always the
 * default; a struct larger than the library knows, or not of whole words, is refused. Reserved
 * words must be 0.
 *
 * Memory: device memory is the caller's, but for the schedule of a plan (attnjit_runtime_options,
 * allocate). Tensors are read by the call alone; what they point to must live until the stream has
 * done the work. `stream` is a CUstream or cudaStream_t; NULL is the legacy default stream. */
/* NOLINTBEGIN(modernize-*,readability-identifier-naming): this is C */
#ifndef ATTNJIT_ATTNJIT_H
#define ATTNJIT_ATTNJIT_H

#include <stddef.h>
#include <stdint.h>

#define ATTNJIT_ABI_VERSION 1u

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Status ---------------------------------------------------------------------------------- */

typedef int32_t attnjit_status;
enum {
  ATTNJIT_OK = 0,
  ATTNJIT_INVALID_ARGUMENT = 1,   /* of this interface: null, an unknown handle, a wrong size */
  ATTNJIT_INVALID_DESCRIPTOR = 2, /* malformed, contradictory or served by no kernel */
  ATTNJIT_INVALID_CALL = 3,       /* tensors contradict the descriptor or each other */
  ATTNJIT_COLD_KERNEL = 4,        /* not ready, and the stream is being captured, which goes on */
  ATTNJIT_MISSING_KERNEL = 5,     /* not in the cache, and compiling is forbidden */
  ATTNJIT_COMPILE_FAILED = 6,
  ATTNJIT_NO_TOOLCHAIN = 7, /* no usable NVRTC, or none for this architecture */
  ATTNJIT_NO_DRIVER = 8,    /* no usable CUDA driver or device */
  ATTNJIT_CUDA_FAILED = 9,  /* one call of the driver failed */
  ATTNJIT_INVALID_TEMPLATES = 10,
  ATTNJIT_OUT_OF_MEMORY = 11,  /* on the host or the device */
  ATTNJIT_INTERNAL_ERROR = 12, /* or a callback that threw */
  ATTNJIT_NOT_STORED = 13      /* warmed, but the cache could not keep it */
};

/* "ATTNJIT_COLD_KERNEL"; of a number that is no status, "unknown status". */
const char* attnjit_status_name(attnjit_status status);

/* What this thread's last call found wrong: everything, a line each, with value, rule and fix; ""
 * after a call that succeeded. Valid until this thread's next call. */
const char* attnjit_last_message(void);

/* The same of ATTNJIT_INVALID_DESCRIPTOR and ATTNJIT_INVALID_CALL as a JSON list of
 * {"field", "value", "rule", "fix"}; "[]" after any other. Valid as long. */
const char* attnjit_last_violations(void);

/* ATTNJIT_ABI_VERSION of the library; a program that was built with another one must not go on. */
uint32_t attnjit_abi_version(void);

const char* attnjit_version(void); /* "0.1.0" */

/* ---- Runtime --------------------------------------------------------------------------------- */

/* Handles are numbers, never pointers: one that is stale, foreign or invented is refused. 0 is
 * none. */
typedef uint64_t attnjit_runtime;
typedef uint64_t attnjit_kernel;
typedef uint64_t attnjit_plan;

typedef struct attnjit_miss {
  size_t struct_size;
  const char* kernel; /* its name, "paged_decode_sm80" */
  const char* arch;   /* "sm_90a" */
  const char* key;    /* digest of the cache key */
  const char* reason; /* "absent", … */
  const char* detail; /* path and cause, for people */
} attnjit_miss;

enum { ATTNJIT_LOG_NOTICE = 0, ATTNJIT_LOG_WARNING = 1 };

/* All zero but struct_size: what the C++ library and the environment do by default. Text is UTF-8
 * and copied; NULL and "" are "not given". */
typedef struct attnjit_runtime_options {
  size_t struct_size;
  int32_t device; /* CUDA ordinal of what attnjit_prepare makes ready; not touched before */
  int32_t
      forbid_jit; /* 1: never compile: a kernel that the cache lacks is ATTNJIT_MISSING_KERNEL */
  const char* templates;           /* directory; default: $ATTNJIT_TEMPLATES, else built in */
  const char* cache_directory;     /* default: $ATTNJIT_CACHE_DIR, else the user's cache */
  const char* const* cache_layers; /* read-only directories and bundles below it */
  size_t num_cache_layers;
  int32_t cache_sharing;    /* 0: $ATTNJIT_CACHE_SHARED decides; 1: the owner's; 2: the group's */
  int32_t trusts_pointers;  /* 1: run calls do not ask the driver whether tensors are its memory */
  uint64_t cache_max_bytes; /* 0: $ATTNJIT_CACHE_MAX_BYTES decides; UINT64_MAX: unlimited */
  const char* nvrtc;        /* libnvrtc or its directory; default: $ATTNJIT_NVRTC, else searched */
  const char* miss_trace;   /* file; default: $ATTNJIT_MISS_TRACE */
  /* Called from any thread, with `user`. */
  void* user;
  void (*log)(void* user, int32_t level, const char* message); /* default: a line on stderr */
  void (*on_miss)(void* user, const attnjit_miss* miss);       /* before the compile */
  /* Device memory of plans, 256-byte aligned; both or neither; NULL means there is none. */
  void* (*allocate)(void* user, int32_t device, size_t bytes);
  void (*release)(void* user, int32_t device, void* memory, size_t bytes);
} attnjit_runtime_options;

/* Opens templates, cache and NVRTC; touches no GPU. `options` may be NULL. */
attnjit_status attnjit_runtime_create(const attnjit_runtime_options* options,
                                      attnjit_runtime* runtime);

/* Kernels and plans that were made with it stay usable. 0 does nothing. */
attnjit_status attnjit_runtime_destroy(attnjit_runtime runtime);

/* ---- Descriptors and kernels ----------------------------------------------------------------- */

/* A descriptor is a JSON object with the fields that generator/README.md lists; those that are
 * absent keep their defaults. Succeeds if some kernel serves it; needs no GPU. */
attnjit_status attnjit_validate(const char* descriptor);

/* Kernels of `descriptor` for `arch`, an architecture ("sm_90a") or a card ("h200"), into the
 * cache, without a GPU. generator/README.md lists both, and which card an architecture stands for.
 * `num_compiled` (may be NULL) is how many were not there. ATTNJIT_NOT_STORED: they compile, but
 * some could not be kept: the directory cannot be written, is not trusted, or the disk is full. */
attnjit_status attnjit_warm(attnjit_runtime runtime, const char* descriptor, const char* arch,
                            int32_t* num_compiled);

/* The generated source of those kernels, one after the other, without a GPU. Writes at most
 * `capacity` bytes, the last of them 0, and to `bytes` how many the whole has with its 0; `buffer`
 * may be NULL if `capacity` is 0. */
attnjit_status attnjit_source(attnjit_runtime runtime, const char* descriptor, const char* arch,
                              char* buffer, size_t capacity, size_t* bytes);

/* Makes the kernels of `descriptor` ready on the runtime's device: from memory, the cache, or
 * compiled now. While `stream` is being captured into a graph only what is ready already is given:
 * ATTNJIT_COLD_KERNEL otherwise, and the capture stays valid. */
attnjit_status attnjit_prepare(attnjit_runtime runtime, const char* descriptor, void* stream,
                               attnjit_kernel* kernel);

/* `is_cold`: 0 if attnjit_prepare would find the kernels in memory, 1 if it would load or compile.
 */
attnjit_status attnjit_is_cold(attnjit_runtime runtime, const char* descriptor, int32_t* is_cold);

/* The code stays loaded, and the next attnjit_prepare finds it. 0 does nothing. */
attnjit_status attnjit_kernel_release(attnjit_kernel kernel);

/* ---- Tensors --------------------------------------------------------------------------------- */

typedef int32_t attnjit_dtype;
enum {
  ATTNJIT_BF16 = 0,
  ATTNJIT_FP16 = 1,
  ATTNJIT_FP32 = 2,
  ATTNJIT_FP8_E4M3 = 3,
  ATTNJIT_FP8_E5M2 = 4,
  ATTNJIT_UINT8 = 5, /* also bool */
  ATTNJIT_INT32 = 6,
  ATTNJIT_INT64 = 7
};

#define ATTNJIT_MAX_RANK 5

/* Device memory. A tensor whose `data` is NULL is not given, but for one that has an extent of 0.
 */
typedef struct attnjit_tensor {
  void* data;
  attnjit_dtype dtype;
  int32_t rank;
  int64_t shape[ATTNJIT_MAX_RANK];
  int64_t strides[ATTNJIT_MAX_RANK]; /* in elements */
} attnjit_tensor;

/* Shapes, strides and alignment are those of the C++ headers that are named; in all of them the
 * last dimension has stride 1 and 16-bit tensors are 16-byte aligned. A softmax_scale of 0 means 1
 * / sqrt(head_dim_qk). LSEs are natural logarithms in fp32, -inf where nothing is seen. */

/* ---- Decode: paged_decode.hpp, mla_decode.hpp ------------------------------------------------ */

typedef struct attnjit_plan_options {
  size_t struct_size;
  int32_t max_batch;     /* requests */
  int32_t seqlen_q;      /* query tokens of each; 0 means 1 */
  int32_t max_seqlen_kv; /* keys of the longest request; of batch-invariant descriptors only */
} attnjit_plan_options;

/* How batches are split over the device. `kernel` is of operation decode. Allocates; outside of
 * graph captures. */
attnjit_status attnjit_plan_create(attnjit_kernel kernel, const attnjit_plan_options* options,
                                   attnjit_plan* plan);

/* Device memory of attnjit_decode, the same for all lengths. */
attnjit_status attnjit_plan_workspace_bytes(attnjit_plan plan, int64_t* bytes);

/* Once a step: splits the batch by `seq_lens`, int32 [batch], in device memory, in stream order and
 * without a copy to the host. May be captured; lengths that change later still give right results.
 */
attnjit_status attnjit_plan_update(attnjit_plan plan, const int32_t* seq_lens, int32_t batch,
                                   void* stream);

/* The same from lengths on the host; not while `stream` is captured. */
attnjit_status attnjit_plan_update_from_host(attnjit_plan plan, const int32_t* seq_lens,
                                             int32_t batch, void* stream);

/* Work that uses the plan must have ended. 0 does nothing. */
attnjit_status attnjit_plan_destroy(attnjit_plan plan);

typedef struct attnjit_decode_call {
  size_t struct_size;
  attnjit_tensor q;       /* [batch, seqlen_q, num_q_heads, head_dim_qk] */
  attnjit_tensor k_cache; /* nhd [num_pages, page_size, num_kv_heads, head_dim_qk]; hnd: dimensions
                             1 and 2 swapped; rank 5: one such pool per request */
  attnjit_tensor v_cache; /* likewise, head_dim_v; not given if v is a prefix of k */
  attnjit_tensor block_table; /* int32 [batch, max_pages] */
  attnjit_tensor seq_lens;    /* int32 [batch]: keys, those being decoded included */
  attnjit_tensor mask;  /* of a materialized mask [batch|1, num_q_heads|1, seqlen_q|1, keys] */
  attnjit_tensor sinks; /* fp32 [num_q_heads] */
  attnjit_tensor out;   /* [batch, seqlen_q, num_q_heads, head_dim_v] */
  attnjit_tensor lse;   /* fp32 [batch, num_q_heads, seqlen_q]; optional */
  float softmax_scale;
  int32_t reserved;
} attnjit_decode_call;

/* Once a layer. `workspace`: device memory, 16-byte aligned. May be captured. */
attnjit_status attnjit_decode(attnjit_plan plan, const attnjit_decode_call* call, void* workspace,
                              int64_t workspace_bytes, void* stream);

/* ---- Prefill: prefill.hpp, flare_mla_prefill.hpp --------------------------------------------- */

/* Operations prefill, prefill_kvcache and mla_prefill_rope; prefill.hpp says what each tensor is
 * and which descriptors take it. */
typedef struct attnjit_prefill_call {
  size_t struct_size;
  attnjit_tensor
      q; /* [total_q, num_q_heads, head_dim_qk] with q_offsets, or [batch, seqlen_q, …] */
  attnjit_tensor
      k; /* thd [total_kv, num_kv_heads, head_dim_qk] with kv_offsets; bshd; bhsd; paged */
  attnjit_tensor v;
  attnjit_tensor k_rope;
  attnjit_tensor q_rope;
  attnjit_tensor q_scales;
  attnjit_tensor k_scales;
  attnjit_tensor v_scales;
  attnjit_tensor rope_scales;
  attnjit_tensor out_scale;
  attnjit_tensor q_offsets;       /* int32 [batch + 1] */
  attnjit_tensor q_lens;          /* int32 [batch] */
  attnjit_tensor kv_offsets;      /* int32 [batch + 1] */
  attnjit_tensor seq_lens;        /* int32 [batch] */
  attnjit_tensor block_table;     /* int32 [batch, max_pages] */
  attnjit_tensor query_positions; /* int32 [batch] */
  attnjit_tensor key_positions;   /* int32 [batch] */
  attnjit_tensor mask;
  attnjit_tensor prefix_lens;  /* int32 [batch] */
  attnjit_tensor q_segments;   /* int32 */
  attnjit_tensor kv_segments;  /* int32 */
  attnjit_tensor alibi_slopes; /* fp32 [num_q_heads] */
  attnjit_tensor bias;
  attnjit_tensor block_mask;    /* uint8 */
  attnjit_tensor block_rows;    /* int32 */
  attnjit_tensor block_columns; /* int32 */
  attnjit_tensor sinks;         /* fp32 [num_q_heads] */
  attnjit_tensor out;           /* as q, head_dim_v */
  attnjit_tensor lse; /* fp32 [num_q_heads, total_q] or [batch, num_q_heads, seqlen_q]; optional */
  float softmax_scale;
  float softcap;
} attnjit_prefill_call;

/* How the keys of a call are shared out. It follows from shapes alone and serves all calls of the
 * shapes, and graph replays. */
typedef struct attnjit_prefill_split {
  size_t struct_size;
  int64_t workspace_bytes;
  int32_t num_splits;
  int32_t reserved;
} attnjit_prefill_split;

/* Fills `split`, whose struct_size is set. Reads no device memory. */
attnjit_status attnjit_prefill_plan(attnjit_kernel kernel, const attnjit_prefill_call* call,
                                    attnjit_prefill_split* split);

/* `split` NULL: in one part, without a workspace. May be captured. */
attnjit_status attnjit_prefill(attnjit_kernel kernel, const attnjit_prefill_call* call,
                               const attnjit_prefill_split* split, void* workspace,
                               int64_t workspace_bytes, void* stream);

/* ---- Token-sparse MLA: sparse_mla.hpp -------------------------------------------------------- */

typedef struct attnjit_sparse_mla_call {
  size_t struct_size;
  attnjit_tensor q;  /* decode [batch, seqlen_q, num_q_heads, head_dim_qk]; prefill [s_q, …] */
  attnjit_tensor kv; /* decode [num_pages, page_size, 1, width]; prefill [s_kv, 1, head_dim_qk] */
  attnjit_tensor indices;     /* int32; decode [batch, seqlen_q, topk]; prefill [s_q, 1, topk] */
  attnjit_tensor topk_length; /* int32 [batch], of a prefill [s_q]; optional */
  attnjit_tensor extra_kv;    /* of a decode; optional, with the next */
  attnjit_tensor extra_indices;
  attnjit_tensor extra_topk_length; /* optional */
  attnjit_tensor sinks;             /* fp32 [num_q_heads] */
  attnjit_tensor out;               /* as q, head_dim_v */
  attnjit_tensor lse; /* fp32; decode [batch, num_q_heads, seqlen_q]; prefill [s_q, num_q_heads];
                         optional */
  attnjit_tensor max_logits; /* as lse; optional */
  float softmax_scale;
  int32_t reserved;
} attnjit_sparse_mla_call;

attnjit_status attnjit_sparse_mla(attnjit_kernel kernel, const attnjit_sparse_mla_call* call,
                                  void* stream);

/* ---- Cache write: append_kv_cache.hpp -------------------------------------------------------- */

typedef struct attnjit_append_kv_cache_call {
  size_t struct_size;
  attnjit_tensor k_new; /* [total_new, num_kv_heads, head_dim_qk], or [batch, seqlen_new, …] */
  attnjit_tensor v_new;
  attnjit_tensor k_cache; /* as of a decode */
  attnjit_tensor v_cache;
  attnjit_tensor new_offsets;  /* int32 [batch + 1], with total_new */
  attnjit_tensor block_table;  /* int32 [batch, max_pages] */
  attnjit_tensor seq_lens;     /* int32 [batch], the new tokens included */
  attnjit_tensor slot_mapping; /* in place of the last two: int32 or int64 [tokens] */
  attnjit_tensor k_scale;
  attnjit_tensor v_scale;
} attnjit_append_kv_cache_call;

attnjit_status attnjit_append_kv_cache(attnjit_kernel kernel,
                                       const attnjit_append_kv_cache_call* call, void* stream);

/* ---- Merge: merge_states.hpp ----------------------------------------------------------------- */

typedef struct attnjit_partial_attention {
  attnjit_tensor out; /* [tokens, num_heads, head_dim] */
  attnjit_tensor lse; /* fp32 [tokens, num_heads] */
} attnjit_partial_attention;

typedef struct attnjit_merge_states_call {
  size_t struct_size;
  const attnjit_partial_attention* partials;
  size_t num_partials; /* 1 to 32 */
  attnjit_tensor out;
  attnjit_tensor lse; /* optional */
} attnjit_merge_states_call;

attnjit_status attnjit_merge_states(attnjit_kernel kernel, const attnjit_merge_states_call* call,
                                    void* stream);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ATTNJIT_ATTNJIT_H */
/* NOLINTEND(modernize-*,readability-identifier-naming) */
