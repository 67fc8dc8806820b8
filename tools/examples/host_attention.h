/* Values in bf16, attention over them as plain loops in fp64, and the comparison of a GPU's result
 * with it. Used by one thread. */
#ifndef ATTNJIT_EXAMPLES_HOST_ATTENTION_H
#define ATTNJIT_EXAMPLES_HOST_ATTENTION_H

#include <stddef.h>
#include <stdint.h>

/* Zeros; ends the program where there is no memory. */
void* allocate_host(size_t count, size_t size);

/* `count` values of -1 to 1 in bf16, the same in every run. */
uint16_t* make_values(size_t count, uint64_t seed);

/* Attention of one query row over `num_keys` keys, of which key j lies at k_rows[j] and its value
 * at v_rows[j]; scores times 1 / sqrt(head_dim_qk). */
void attend(const uint16_t* q, const uint16_t* const* k_rows, const uint16_t* const* v_rows,
            int num_keys, int head_dim_qk, int head_dim_v, double* out, double* lse);

/* Compares `rows` rows of out, bf16, and their LSEs, fp32, with the reference's. Prints a line that
 * begins with PASS or FAIL; 1 if all are right. */
int judge(const char* name, const uint16_t* out, const float* lse, size_t rows, size_t head_dim_v,
          const double* reference_out, const double* reference_lse);

#endif
