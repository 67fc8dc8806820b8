#include "host_attention.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void* allocate_host(size_t count, size_t size) {
  void* const memory = calloc(count, size);
  if (memory == NULL) {
    printf("FAIL the host has no memory left\n");
    exit(EXIT_FAILURE);
  }
  return memory;
}

static uint16_t to_bf16(float value) {
  uint32_t bits = 0;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static double from_bf16(uint16_t value) {
  const uint32_t bits = (uint32_t)value << 16;
  float result = 0;
  memcpy(&result, &bits, sizeof result);
  return result;
}

uint16_t* make_values(size_t count, uint64_t seed) {
  uint16_t* const values = allocate_host(count, sizeof *values);
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    values[i] = to_bf16((float)(seed >> 40) / (float)(1 << 23) - 1.0f);
  }
  return values;
}

void attend(const uint16_t* q, const uint16_t* const* k_rows, const uint16_t* const* v_rows,
            int num_keys, int head_dim_qk, int head_dim_v, double* out, double* lse) {
  double* const scores = allocate_host((size_t)num_keys + 1, sizeof *scores);
  double maximum = -INFINITY;
  double sum = 0;
  for (int j = 0; j < num_keys; ++j) {
    for (int i = 0; i < head_dim_qk; ++i) {
      scores[j] += from_bf16(q[i]) * from_bf16(k_rows[j][i]);
    }
    scores[j] /= sqrt(head_dim_qk);
    maximum = fmax(maximum, scores[j]);
  }
  memset(out, 0, (size_t)head_dim_v * sizeof *out);
  for (int j = 0; j < num_keys; ++j) {
    const double weight = exp(scores[j] - maximum);
    sum += weight;
    for (int i = 0; i < head_dim_v; ++i) {
      out[i] += weight * from_bf16(v_rows[j][i]);
    }
  }
  for (int i = 0; i < head_dim_v && sum > 0; ++i) {
    out[i] /= sum;
  }
  *lse = sum > 0 ? maximum + log(sum) : -INFINITY;
  free(scores);
}

/* A weight is rounded to bf16 before it multiplies a value of at most 1, which costs a sum of them
 * divided by their sum at most 2^-9; the result is rounded once more. */
static const double out_absolute = 1.0 / 512;
static const double out_relative = 1.0 / 256;

/* |error| / tolerance; more than 1 is wrong, and so is what is no number. */
static double excess(double result, double reference, double absolute, double relative) {
  const double error = result == reference ? 0 : fabs(result - reference);
  return isnan(error) ? INFINITY : error / (absolute + relative * fabs(reference));
}

int judge(const char* name, const uint16_t* out, const float* lse, size_t rows, size_t head_dim_v,
          const double* reference_out, const double* reference_lse) {
  double of_out = 0;
  double of_lse = 0;
  for (size_t i = 0; i < rows * head_dim_v; ++i) {
    of_out = fmax(of_out, excess(from_bf16(out[i]), reference_out[i], out_absolute, out_relative));
  }
  for (size_t i = 0; i < rows; ++i) {
    of_lse = fmax(of_lse, excess(lse[i], reference_lse[i], 1e-4, 8.01 / 65536));
  }
  const int is_right = of_out <= 1 && of_lse <= 1;
  printf("%s %s: %zu values within %.2f of their tolerance, %zu LSEs within %.2f\n",
         is_right ? "PASS" : "FAIL", name, rows * head_dim_v, of_out, rows, of_lse);
  return is_right;
}
