//! A GPU and its memory through libcuda, which is opened when the program runs.

use std::ffi::{c_char, c_int, c_void};
use std::mem::{size_of_val, transmute_copy};
use std::ptr::null_mut;

#[link(name = "dl")]
extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

const RTLD_NOW: c_int = 2;

pub struct Cuda {
    synchronize: unsafe extern "C" fn(*mut c_void) -> c_int,
    allocate: unsafe extern "C" fn(*mut u64, usize) -> c_int,
    release: unsafe extern "C" fn(u64) -> c_int,
    to_device: unsafe extern "C" fn(u64, *const c_void, usize) -> c_int,
    to_host: unsafe extern "C" fn(*mut c_void, u64, usize) -> c_int,
    pub stream: *mut c_void,
}

fn check(result: c_int, call: &str) -> Result<(), String> {
    if result == 0 {
        return Ok(());
    }
    Err(format!("{call} failed with CUDA error {result}"))
}

/// The function `name`, which must be of the type that the caller takes it for, and ends with a 0.
fn find<Function: Copy>(library: *mut c_void, name: &str) -> Result<Function, String> {
    let address = unsafe { dlsym(library, name.as_ptr().cast()) };
    if address.is_null() {
        return Err(format!("libcuda.so.1 lacks {}", name.trim_end_matches('\0')));
    }
    Ok(unsafe { transmute_copy(&address) })
}

impl Cuda {
    /// The first device, current in this thread, with a stream; why there is none.
    pub fn open() -> Result<Self, String> {
        let library = unsafe { dlopen("libcuda.so.1\0".as_ptr().cast(), RTLD_NOW) };
        if library.is_null() {
            return Err("libcuda.so.1 cannot be opened".to_string());
        }
        let init: unsafe extern "C" fn(u32) -> c_int = find(library, "cuInit\0")?;
        let device: unsafe extern "C" fn(*mut c_int, c_int) -> c_int =
            find(library, "cuDeviceGet\0")?;
        let retain: unsafe extern "C" fn(*mut *mut c_void, c_int) -> c_int =
            find(library, "cuDevicePrimaryCtxRetain\0")?;
        let set_current: unsafe extern "C" fn(*mut c_void) -> c_int =
            find(library, "cuCtxSetCurrent\0")?;
        let create_stream: unsafe extern "C" fn(*mut *mut c_void, u32) -> c_int =
            find(library, "cuStreamCreate\0")?;
        let (mut ordinal, mut context, mut stream) = (0, null_mut(), null_mut());
        unsafe {
            check(init(0), "cuInit")?;
            check(device(&mut ordinal, 0), "cuDeviceGet")?;
            check(retain(&mut context, ordinal), "cuDevicePrimaryCtxRetain")?;
            check(set_current(context), "cuCtxSetCurrent")?;
            check(create_stream(&mut stream, 1), "cuStreamCreate")?;
        }
        Ok(Self {
            synchronize: find(library, "cuStreamSynchronize\0")?,
            allocate: find(library, "cuMemAlloc_v2\0")?,
            release: find(library, "cuMemFree_v2\0")?,
            to_device: find(library, "cuMemcpyHtoD_v2\0")?,
            to_host: find(library, "cuMemcpyDtoH_v2\0")?,
            stream,
        })
    }

    pub fn allocate(&self, bytes: usize) -> Result<Buffer<'_>, String> {
        let mut pointer = 0;
        check(unsafe { (self.allocate)(&mut pointer, bytes.max(1)) }, "cuMemAlloc")?;
        Ok(Buffer { cuda: self, pointer })
    }

    pub fn upload<T: Copy>(&self, values: &[T]) -> Result<Buffer<'_>, String> {
        let buffer = self.allocate(size_of_val(values))?;
        let copied = unsafe {
            (self.to_device)(buffer.pointer, values.as_ptr().cast(), size_of_val(values))
        };
        check(copied, "cuMemcpyHtoD")?;
        Ok(buffer)
    }

    pub fn synchronize(&self) -> Result<(), String> {
        check(unsafe { (self.synchronize)(self.stream) }, "cuStreamSynchronize")
    }
}

/// Device memory.
pub struct Buffer<'a> {
    cuda: &'a Cuda,
    pointer: u64,
}

impl Buffer<'_> {
    pub fn data(&self) -> *mut c_void {
        self.pointer as *mut c_void
    }

    pub fn download<T: Copy + Default>(&self, count: usize) -> Result<Vec<T>, String> {
        let mut values = vec![T::default(); count];
        let bytes = size_of_val(values.as_slice());
        check(
            unsafe { (self.cuda.to_host)(values.as_mut_ptr().cast(), self.pointer, bytes) },
            "cuMemcpyDtoH",
        )?;
        Ok(values)
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        unsafe { (self.cuda.release)(self.pointer) };
    }
}
