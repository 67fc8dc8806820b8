/* A GPU and its memory, through the CUDA driver, which is opened when the program runs: neither
 * CUDA's headers nor its libraries are needed to build. What fails prints a line and ends the
 * program. Used by one thread. */
#ifndef ATTNJIT_EXAMPLES_CUDA_MEMORY_H
#define ATTNJIT_EXAMPLES_CUDA_MEMORY_H

#include <stddef.h>

/* Makes the first device current. Why there is none; NULL if there is one. */
const char* open_cuda(void);

void* create_stream(void);
void synchronize(void* stream);

void* allocate_device(size_t bytes);
void release_device(void* memory);

/* Device memory with a copy of `values`. */
void* upload(const void* values, size_t bytes);

/* Waits for nothing but the copy. */
void download(void* values, const void* memory, size_t bytes);

#endif
