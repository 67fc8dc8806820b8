/* Decode and prefill of DeepSeek's MLA through attnjit's C interface, compared with plain loops in
 * fp64. Pure C11.
 *
 * Exit status: 0 passed; 1 failed; 77 no GPU: the kernels were compiled into the cache instead, for
 * the card that the first argument names (by default h100). */
#include <attnjit/attnjit.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda_memory.h"
#include "host_attention.h"

static void check(attnjit_status status, const char* what) {
  if (status != ATTNJIT_OK) {
    printf("FAIL %s: %s\n%s\n", what, attnjit_status_name(status), attnjit_last_message());
    exit(EXIT_FAILURE);
  }
}

static attnjit_tensor tensor(void* data, attnjit_dtype dtype, int rank, const int64_t* shape) {
  attnjit_tensor result = {.data = data, .dtype = dtype, .rank = rank};
  int64_t stride = 1;
  for (int i = rank; i-- > 0;) {
    result.shape[i] = shape[i];
    result.strides[i] = stride;
    stride *= shape[i];
  }
  return result;
}

static void release_all(void* const* memory, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    release_device(memory[i]);
  }
}

#define SHAPE(...) ((const int64_t[]){__VA_ARGS__})

/* ---- Decode over a paged cache of latents ---------------------------------------------------- */

static const char decode_descriptor[] =
    "{\"operation\": \"decode\", \"head_dim_qk\": 576, \"head_dim_v\": 512, \"num_q_heads\": 16,"
    " \"num_kv_heads\": 1, \"value_source\": \"prefix_of_k\", \"page_size\": 64}";

enum {
  decode_batch = 5,
  decode_heads = 16,
  page_size = 64,
  most_pages = 50,
  num_pages = decode_batch * most_pages,
  latent_columns = 576,
  latent_v_columns = 512
};
static const int32_t decode_lengths[decode_batch] = {1, 64, 700, 0, 3001};

/* Pages lie scattered: 7 has no factor in common with num_pages. */
static int32_t page_of(int request, int page) {
  return (request * most_pages + page) * 7 % num_pages;
}

static void reference_decode(const uint16_t* q, const uint16_t* cache, double* out, double* lse) {
  const uint16_t* rows[most_pages * page_size];
  for (int b = 0; b < decode_batch; ++b) {
    for (int j = 0; j < decode_lengths[b]; ++j) {
      const int row = page_of(b, j / page_size) * page_size + j % page_size;
      rows[j] = cache + (size_t)row * latent_columns;
    }
    for (int h = b * decode_heads; h < (b + 1) * decode_heads; ++h) {
      attend(q + (size_t)h * latent_columns, rows, rows, decode_lengths[b], latent_columns,
             latent_v_columns, out + (size_t)h * latent_v_columns, lse + h);
    }
  }
}

static void run_decode(attnjit_kernel kernel, const attnjit_decode_call* call, void* stream) {
  attnjit_plan plan = 0;
  int64_t bytes = 0;
  const attnjit_plan_options options = {.struct_size = sizeof options, .max_batch = decode_batch};
  check(attnjit_plan_create(kernel, &options, &plan), "attnjit_plan_create");
  check(attnjit_plan_workspace_bytes(plan, &bytes), "attnjit_plan_workspace_bytes");
  void* const workspace = allocate_device((size_t)bytes);
  /* Once a step; then once a layer. */
  check(attnjit_plan_update(plan, call->seq_lens.data, decode_batch, stream),
        "attnjit_plan_update");
  check(attnjit_decode(plan, call, workspace, bytes, stream), "attnjit_decode");
  synchronize(stream);
  check(attnjit_plan_destroy(plan), "attnjit_plan_destroy");
  release_device(workspace);
}

static int decode(attnjit_runtime runtime, void* stream) {
  enum { rows = decode_batch * decode_heads, values = rows * latent_v_columns };
  const size_t cache_values = (size_t)num_pages * page_size * latent_columns;
  static uint16_t out[values];
  static float lse[rows];
  static double right_out[values];
  static double right_lse[rows];
  static int32_t table[decode_batch][most_pages];
  uint16_t* const q = make_values(rows * latent_columns, 1);
  uint16_t* const cache = make_values(cache_values, 2);
  for (int b = 0; b < decode_batch; ++b) {
    for (int page = 0; page < most_pages; ++page) {
      table[b][page] = page_of(b, page);
    }
  }
  void* const memory[] = {upload(q, rows * latent_columns * sizeof *q),
                          upload(cache, cache_values * sizeof *cache),
                          upload(table, sizeof table),
                          upload(decode_lengths, sizeof decode_lengths),
                          allocate_device(sizeof out),
                          allocate_device(sizeof lse)};
  const attnjit_decode_call call = {
      .struct_size = sizeof call,
      .q = tensor(memory[0], ATTNJIT_BF16, 4, SHAPE(decode_batch, 1, decode_heads, 576)),
      .k_cache = tensor(memory[1], ATTNJIT_BF16, 4, SHAPE(num_pages, page_size, 1, 576)),
      .block_table = tensor(memory[2], ATTNJIT_INT32, 2, SHAPE(decode_batch, most_pages)),
      .seq_lens = tensor(memory[3], ATTNJIT_INT32, 1, SHAPE(decode_batch)),
      .out = tensor(memory[4], ATTNJIT_BF16, 4, SHAPE(decode_batch, 1, decode_heads, 512)),
      .lse = tensor(memory[5], ATTNJIT_FP32, 3, SHAPE(decode_batch, decode_heads, 1))};
  attnjit_kernel kernel = 0;
  check(attnjit_prepare(runtime, decode_descriptor, stream, &kernel), "attnjit_prepare");
  run_decode(kernel, &call, stream);
  check(attnjit_kernel_release(kernel), "attnjit_kernel_release");
  download(out, memory[4], sizeof out);
  download(lse, memory[5], sizeof lse);
  release_all(memory, sizeof memory / sizeof *memory);
  reference_decode(q, cache, right_out, right_lse);
  free(q);
  free(cache);
  return judge("MLA decode", out, lse, rows, latent_v_columns, right_out, right_lse);
}

/* ---- Prefill over keys that are projected up from the latents ----------------------------------
 */

static const char prefill_descriptor[] =
    "{\"operation\": \"prefill\", \"head_dim_qk\": 192, \"head_dim_v\": 128, \"num_q_heads\": 16,"
    " \"num_kv_heads\": 16, \"max_seqlen_q\": 0, \"kv_layout\": \"ragged\","
    " \"kv_layout_tag\": \"thd\", \"page_size\": 0}";

/* Two requests: a whole prompt, and the rest of one of which 300 tokens were computed before. */
enum { heads = 16, columns = 192, v_columns = 128, total_q = 137, total_kv = 437 };
static const int32_t q_offsets[] = {0, 100, total_q};
static const int32_t kv_offsets[] = {0, 100, total_kv};

static void reference_prefill(const uint16_t* q, const uint16_t* k, const uint16_t* v, double* out,
                              double* lse) {
  const uint16_t* k_rows[total_kv];
  const uint16_t* v_rows[total_kv];
  for (int row = 0; row < total_q; ++row) {
    const int b = row < q_offsets[1] ? 0 : 1;
    /* Causal: the last query sees the last key. */
    const int num_keys = kv_offsets[b + 1] - kv_offsets[b] - (q_offsets[b + 1] - 1 - row);
    for (int h = 0; h < heads; ++h) {
      for (int j = 0; j < num_keys; ++j) {
        const int key = (kv_offsets[b] + j) * heads + h;
        k_rows[j] = k + (size_t)key * columns;
        v_rows[j] = v + (size_t)key * v_columns;
      }
      const int q_row = row * heads + h;
      attend(q + (size_t)q_row * columns, k_rows, v_rows, num_keys, columns, v_columns,
             out + (size_t)q_row * v_columns, lse + q_row);
    }
  }
}

static void run_prefill(attnjit_kernel kernel, const attnjit_prefill_call* call, void* stream) {
  attnjit_prefill_split split = {.struct_size = sizeof split};
  check(attnjit_prefill_plan(kernel, call, &split), "attnjit_prefill_plan");
  void* const workspace = allocate_device((size_t)split.workspace_bytes);
  check(attnjit_prefill(kernel, call, &split, workspace, split.workspace_bytes, stream),
        "attnjit_prefill");
  synchronize(stream);
  release_device(workspace);
}

static int prefill(attnjit_runtime runtime, void* stream) {
  enum { rows = total_q * heads, values = rows * v_columns };
  static uint16_t out[values];
  static float lse[rows];
  static double right_out[values];
  static double right_lse[rows];
  uint16_t* const q = make_values(rows * columns, 3);
  uint16_t* const k = make_values(total_kv * heads * columns, 4);
  uint16_t* const v = make_values(total_kv * heads * v_columns, 5);
  void* const memory[] = {upload(q, rows * columns * sizeof *q),
                          upload(k, total_kv * heads * columns * sizeof *k),
                          upload(v, total_kv * heads * v_columns * sizeof *v),
                          upload(q_offsets, sizeof q_offsets),
                          upload(kv_offsets, sizeof kv_offsets),
                          allocate_device(sizeof out),
                          allocate_device(sizeof lse)};
  attnjit_prefill_call call = {
      .struct_size = sizeof call,
      .q = tensor(memory[0], ATTNJIT_BF16, 3, SHAPE(total_q, heads, columns)),
      .k = tensor(memory[1], ATTNJIT_BF16, 3, SHAPE(total_kv, heads, columns)),
      .v = tensor(memory[2], ATTNJIT_BF16, 3, SHAPE(total_kv, heads, v_columns)),
      .q_offsets = tensor(memory[3], ATTNJIT_INT32, 1, SHAPE(3)),
      .kv_offsets = tensor(memory[4], ATTNJIT_INT32, 1, SHAPE(3)),
      .out = tensor(memory[5], ATTNJIT_BF16, 3, SHAPE(total_q, heads, v_columns)),
      .lse = tensor(memory[6], ATTNJIT_FP32, 2, SHAPE(heads, total_q))};
  /* The memory is [total_q, heads], as the reference has it: an LSE may have any strides. */
  call.lse.strides[0] = 1;
  call.lse.strides[1] = heads;
  attnjit_kernel kernel = 0;
  check(attnjit_prepare(runtime, prefill_descriptor, stream, &kernel), "attnjit_prepare");
  run_prefill(kernel, &call, stream);
  check(attnjit_kernel_release(kernel), "attnjit_kernel_release");
  download(out, memory[5], sizeof out);
  download(lse, memory[6], sizeof lse);
  release_all(memory, sizeof memory / sizeof *memory);
  reference_prefill(q, k, v, right_out, right_lse);
  free(q);
  free(k);
  free(v);
  return judge("MLA prefill", out, lse, rows, v_columns, right_out, right_lse);
}

/* ---------------------------------------------------------------------------------------------- */

static int warm(attnjit_runtime runtime, const char* arch) {
  const char* const descriptors[] = {decode_descriptor, prefill_descriptor};
  for (int i = 0; i < 2; ++i) {
    int32_t num_compiled = 0;
    check(attnjit_warm(runtime, descriptors[i], arch, &num_compiled), "attnjit_warm");
    printf("warm for %s, %d compiled: %s\n", arch, (int)num_compiled, descriptors[i]);
  }
  return 77;
}

int main(int argument_count, char** arguments) {
  if (attnjit_abi_version() != ATTNJIT_ABI_VERSION) {
    printf("FAIL libattnjit.so has version %u of the interface, the header %u\n",
           attnjit_abi_version(), ATTNJIT_ABI_VERSION);
    return EXIT_FAILURE;
  }
  attnjit_runtime runtime = 0;
  check(attnjit_runtime_create(NULL, &runtime), "attnjit_runtime_create");
  const char* const no_gpu = open_cuda();
  if (no_gpu != NULL) {
    printf("skipped: %s\n", no_gpu);
    return warm(runtime, argument_count > 1 ? arguments[1] : "h100");
  }
  void* const stream = create_stream();
  const int is_right = decode(runtime, stream) & prefill(runtime, stream);
  check(attnjit_runtime_destroy(runtime), "attnjit_runtime_destroy");
  return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
