//! What this program uses of <attnjit/attnjit.h>, and handles that end by themselves.

use std::ffi::{c_char, c_void, CStr, CString};
use std::mem::size_of;
use std::ptr::{null, null_mut};

pub const BF16: i32 = 0;
pub const FP32: i32 = 2;
pub const INT32: i32 = 6;

const ABI_VERSION: u32 = 1;
const MAX_RANK: usize = 5;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Tensor {
    data: *mut c_void,
    dtype: i32,
    rank: i32,
    shape: [i64; MAX_RANK],
    strides: [i64; MAX_RANK],
}

impl Tensor {
    /// Contiguous.
    pub fn new(data: *mut c_void, dtype: i32, extents: &[i64]) -> Self {
        let mut tensor = Self { data, dtype, rank: extents.len() as i32, ..Self::absent() };
        let mut stride = 1;
        for (i, extent) in extents.iter().enumerate().rev() {
            tensor.shape[i] = *extent;
            tensor.strides[i] = stride;
            stride *= extent;
        }
        tensor
    }

    pub fn absent() -> Self {
        Self { data: null_mut(), dtype: 0, rank: 0, shape: [0; MAX_RANK], strides: [0; MAX_RANK] }
    }
}

#[repr(C)]
struct PlanOptions {
    struct_size: usize,
    max_batch: i32,
    seqlen_q: i32,
    max_seqlen_kv: i32,
}

#[repr(C)]
pub struct DecodeCall {
    struct_size: usize,
    pub q: Tensor,
    pub k_cache: Tensor,
    pub v_cache: Tensor,
    pub block_table: Tensor,
    pub seq_lens: Tensor,
    pub mask: Tensor,
    pub sinks: Tensor,
    pub out: Tensor,
    pub lse: Tensor,
    pub softmax_scale: f32,
    reserved: i32,
}

impl DecodeCall {
    /// Without any tensor; a scale of 0 is 1 / sqrt(head_dim_qk).
    pub fn new() -> Self {
        let none = Tensor::absent();
        Self {
            struct_size: size_of::<Self>(),
            q: none,
            k_cache: none,
            v_cache: none,
            block_table: none,
            seq_lens: none,
            mask: none,
            sinks: none,
            out: none,
            lse: none,
            softmax_scale: 0.0,
            reserved: 0,
        }
    }
}

#[link(name = "attnjit")]
extern "C" {
    fn attnjit_abi_version() -> u32;
    fn attnjit_status_name(status: i32) -> *const c_char;
    fn attnjit_last_message() -> *const c_char;
    fn attnjit_runtime_create(options: *const c_void, runtime: *mut u64) -> i32;
    fn attnjit_runtime_destroy(runtime: u64) -> i32;
    fn attnjit_validate(descriptor: *const c_char) -> i32;
    fn attnjit_warm(
        runtime: u64,
        descriptor: *const c_char,
        arch: *const c_char,
        num_compiled: *mut i32,
    ) -> i32;
    fn attnjit_source(
        runtime: u64,
        descriptor: *const c_char,
        arch: *const c_char,
        buffer: *mut c_char,
        capacity: usize,
        bytes: *mut usize,
    ) -> i32;
    fn attnjit_prepare(
        runtime: u64,
        descriptor: *const c_char,
        stream: *mut c_void,
        kernel: *mut u64,
    ) -> i32;
    fn attnjit_kernel_release(kernel: u64) -> i32;
    fn attnjit_plan_create(kernel: u64, options: *const PlanOptions, plan: *mut u64) -> i32;
    fn attnjit_plan_workspace_bytes(plan: u64, bytes: *mut i64) -> i32;
    fn attnjit_plan_update(plan: u64, seq_lens: *const i32, batch: i32, stream: *mut c_void)
        -> i32;
    fn attnjit_plan_destroy(plan: u64) -> i32;
    fn attnjit_decode(
        plan: u64,
        call: *const DecodeCall,
        workspace: *mut c_void,
        workspace_bytes: i64,
        stream: *mut c_void,
    ) -> i32;
}

pub type Result<T> = std::result::Result<T, String>;

/// The status, and what attnjit says of it in this thread.
fn check(status: i32) -> Result<()> {
    if status == 0 {
        return Ok(());
    }
    let text = |pointer| unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned();
    Err(format!(
        "{}: {}",
        text(unsafe { attnjit_status_name(status) }),
        text(unsafe { attnjit_last_message() })
    ))
}

fn c_string(text: &str) -> Result<CString> {
    CString::new(text).map_err(|error| error.to_string())
}

pub fn validate(descriptor: &str) -> Result<()> {
    check(unsafe { attnjit_validate(c_string(descriptor)?.as_ptr()) })
}

pub struct Runtime(u64);

impl Runtime {
    pub fn new() -> Result<Self> {
        let version = unsafe { attnjit_abi_version() };
        if version != ABI_VERSION {
            return Err(format!(
                "libattnjit.so has version {version} of the interface, this program {ABI_VERSION}"
            ));
        }
        let mut runtime = 0;
        check(unsafe { attnjit_runtime_create(null(), &mut runtime) })?;
        Ok(Self(runtime))
    }

    /// How many kernels the cache lacked.
    pub fn warm(&self, descriptor: &str, arch: &str) -> Result<i32> {
        let mut num_compiled = 0;
        let (descriptor, arch) = (c_string(descriptor)?, c_string(arch)?);
        check(unsafe {
            attnjit_warm(self.0, descriptor.as_ptr(), arch.as_ptr(), &mut num_compiled)
        })?;
        Ok(num_compiled)
    }

    pub fn source(&self, descriptor: &str, arch: &str) -> Result<String> {
        let (descriptor, arch) = (c_string(descriptor)?, c_string(arch)?);
        let mut bytes = 0;
        let mut fill = |buffer: *mut c_char, capacity| {
            check(unsafe {
                attnjit_source(
                    self.0,
                    descriptor.as_ptr(),
                    arch.as_ptr(),
                    buffer,
                    capacity,
                    &mut bytes,
                )
            })?;
            Ok::<usize, String>(bytes)
        };
        let mut text = vec![0u8; fill(null_mut(), 0)?];
        fill(text.as_mut_ptr().cast(), text.len())?;
        text.pop(); // the 0 at its end
        String::from_utf8(text).map_err(|error| error.to_string())
    }

    /// Ready on the first device. Not while a graph is captured.
    pub fn plan(&self, descriptor: &str, max_batch: i32) -> Result<Plan> {
        let mut kernel = 0;
        let descriptor = c_string(descriptor)?;
        check(unsafe { attnjit_prepare(self.0, descriptor.as_ptr(), null_mut(), &mut kernel) })?;
        let options = PlanOptions {
            struct_size: size_of::<PlanOptions>(),
            max_batch,
            seqlen_q: 1,
            max_seqlen_kv: 0,
        };
        let mut plan = 0;
        let made = check(unsafe { attnjit_plan_create(kernel, &options, &mut plan) });
        check(unsafe { attnjit_kernel_release(kernel) })?;
        made.map(|()| Plan(plan))
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        unsafe { attnjit_runtime_destroy(self.0) };
    }
}

pub struct Plan(u64);

impl Plan {
    pub fn workspace_bytes(&self) -> Result<usize> {
        let mut bytes = 0;
        check(unsafe { attnjit_plan_workspace_bytes(self.0, &mut bytes) })?;
        usize::try_from(bytes).map_err(|error| error.to_string())
    }

    /// From lengths in device memory.
    pub fn update(&self, seq_lens: *mut c_void, batch: i32, stream: *mut c_void) -> Result<()> {
        check(unsafe { attnjit_plan_update(self.0, seq_lens.cast(), batch, stream) })
    }

    /// `workspace` is device memory of at least workspace_bytes().
    pub fn decode(
        &self,
        call: &DecodeCall,
        workspace: *mut c_void,
        bytes: usize,
        stream: *mut c_void,
    ) -> Result<()> {
        check(unsafe { attnjit_decode(self.0, call, workspace, bytes as i64, stream) })
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        unsafe { attnjit_plan_destroy(self.0) };
    }
}
