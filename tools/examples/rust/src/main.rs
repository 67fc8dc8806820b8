//! MLA decode through attnjit's C interface: what needs no GPU (validate, warm, source), then a
//! decode that is compared with plain loops in f64.
//!
//! Exit status: 0 passed; 1 failed; 77 no GPU: the kernels were compiled into the cache instead.

mod attnjit;
mod cuda;

use std::mem::size_of;
use std::process::ExitCode;

use attnjit::{DecodeCall, Runtime, Tensor, BF16, FP32, INT32};
use cuda::Cuda;

const DESCRIPTOR: &str = r#"{"operation": "decode", "head_dim_qk": 576, "head_dim_v": 512,
    "num_q_heads": 16, "num_kv_heads": 1, "value_source": "prefix_of_k", "page_size": 64}"#;
const HEADS: usize = 16;
const COLUMNS: usize = 576;
const V_COLUMNS: usize = 512;
const PAGE_SIZE: usize = 64;
const MOST_PAGES: usize = 20;
const LENGTHS: [i32; 3] = [1, 100, 1280];
const BATCH: usize = LENGTHS.len();
const NUM_PAGES: usize = BATCH * MOST_PAGES;

fn to_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16) as u16
}

fn from_bf16(value: u16) -> f64 {
    f64::from(f32::from_bits(u32::from(value) << 16))
}

/// Values of -1 to 1, the same in every run.
fn make_values(count: usize, mut seed: u64) -> Vec<u16> {
    let mut next = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        to_bf16((seed >> 40) as f32 / (1 << 23) as f32 - 1.0)
    };
    (0..count).map(|_| next()).collect()
}

/// Pages lie scattered: 7 has no factor in common with NUM_PAGES.
fn page_of(request: usize, page: usize) -> usize {
    (request * MOST_PAGES + page) * 7 % NUM_PAGES
}

/// Output and LSE of one row of q over the keys at `rows`, whose first columns are the values.
fn attend(q: &[u16], rows: &[&[u16]]) -> (Vec<f64>, f64) {
    let dot =
        |row: &[u16]| q.iter().zip(row).map(|(a, b)| from_bf16(*a) * from_bf16(*b)).sum::<f64>();
    let scores: Vec<f64> = rows.iter().map(|row| dot(row) / (COLUMNS as f64).sqrt()).collect();
    let maximum = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scores.iter().map(|score| (score - maximum).exp()).collect();
    let sum: f64 = weights.iter().sum();
    let column = |i: usize| {
        weights.iter().zip(rows).map(|(w, row)| w * from_bf16(row[i])).sum::<f64>() / sum
    };
    ((0..V_COLUMNS).map(column).collect(), maximum + sum.ln())
}

// A weight is rounded to bf16 before it multiplies a value of at most 1, which costs a sum of them
// divided by their sum at most 2^-9; the result is rounded once more.
const OUT_ABSOLUTE: f64 = 1.0 / 512.0;
const OUT_RELATIVE: f64 = 1.0 / 256.0;

/// |error| / tolerance; what is no number is infinitely wrong.
fn excess(result: f64, reference: f64, absolute: f64, relative: f64) -> f64 {
    let error = (result - reference).abs();
    if error.is_nan() {
        return f64::INFINITY;
    }
    error / (absolute + relative * reference.abs())
}

/// Runs a decode; the largest excess.
fn decode(runtime: &Runtime, cuda: &Cuda) -> Result<f64, String> {
    let q = make_values(BATCH * HEADS * COLUMNS, 1);
    let cache = make_values(NUM_PAGES * PAGE_SIZE * COLUMNS, 2);
    let table: Vec<i32> =
        (0..NUM_PAGES).map(|i| page_of(i / MOST_PAGES, i % MOST_PAGES) as i32).collect();
    let device_q = cuda.upload(&q)?;
    let device_cache = cuda.upload(&cache)?;
    let device_table = cuda.upload(&table)?;
    let device_lengths = cuda.upload(&LENGTHS)?;
    let out = cuda.allocate(BATCH * HEADS * V_COLUMNS * size_of::<u16>())?;
    let lse = cuda.allocate(BATCH * HEADS * size_of::<f32>())?;
    let (batch, heads) = (BATCH as i64, HEADS as i64);
    let mut call = DecodeCall::new();
    call.q = Tensor::new(device_q.data(), BF16, &[batch, 1, heads, COLUMNS as i64]);
    call.k_cache = Tensor::new(
        device_cache.data(),
        BF16,
        &[NUM_PAGES as i64, PAGE_SIZE as i64, 1, COLUMNS as i64],
    );
    call.block_table = Tensor::new(device_table.data(), INT32, &[batch, MOST_PAGES as i64]);
    call.seq_lens = Tensor::new(device_lengths.data(), INT32, &[batch]);
    call.out = Tensor::new(out.data(), BF16, &[batch, 1, heads, V_COLUMNS as i64]);
    call.lse = Tensor::new(lse.data(), FP32, &[batch, heads, 1]);

    let plan = runtime.plan(DESCRIPTOR, BATCH as i32)?;
    let bytes = plan.workspace_bytes()?;
    let workspace = cuda.allocate(bytes)?;
    plan.update(device_lengths.data(), BATCH as i32, cuda.stream)?; // once a step
    plan.decode(&call, workspace.data(), bytes, cuda.stream)?; // once a layer
    cuda.synchronize()?;
    compare(&q, &cache, &out.download(BATCH * HEADS * V_COLUMNS)?, &lse.download(BATCH * HEADS)?)
}

fn compare(q: &[u16], cache: &[u16], out: &[u16], lse: &[f32]) -> Result<f64, String> {
    let mut worst = 0.0f64;
    for (b, length) in LENGTHS.iter().enumerate() {
        let row_of = |token: usize| {
            let row = page_of(b, token / PAGE_SIZE) * PAGE_SIZE + token % PAGE_SIZE;
            &cache[row * COLUMNS..(row + 1) * COLUMNS]
        };
        let rows: Vec<&[u16]> = (0..*length as usize).map(row_of).collect();
        for row in b * HEADS..(b + 1) * HEADS {
            let (right_out, right_lse) = attend(&q[row * COLUMNS..(row + 1) * COLUMNS], &rows);
            for (value, right) in out[row * V_COLUMNS..].iter().zip(&right_out) {
                worst = worst.max(excess(from_bf16(*value), *right, OUT_ABSOLUTE, OUT_RELATIVE));
            }
            worst = worst.max(excess(f64::from(lse[row]), right_lse, 1e-4, 8.01 / 65536.0));
        }
    }
    Ok(worst)
}

/// The exit status.
fn run() -> Result<u8, String> {
    const SKIPPED: u8 = 77;
    attnjit::validate(DESCRIPTOR)?;
    match attnjit::validate(r#"{"head_dim_qk": 100}"#) {
        Ok(()) => return Err("a head_dim_qk of 100 was taken".to_string()),
        Err(reason) => println!("refused, as it should be: {reason}"),
    }
    let runtime = Runtime::new()?;
    println!("source: {} bytes", runtime.source(DESCRIPTOR, "h100")?.len());
    let cuda = match Cuda::open() {
        Ok(cuda) => cuda,
        Err(reason) => {
            println!("warm for h100: {} compiled", runtime.warm(DESCRIPTOR, "h100")?);
            println!("skipped: {reason}");
            return Ok(SKIPPED);
        }
    };
    let worst = decode(&runtime, &cuda)?;
    let is_right = worst <= 1.0;
    println!(
        "{} MLA decode: within {worst:.2} of its tolerance",
        if is_right { "PASS" } else { "FAIL" }
    );
    Ok(u8::from(!is_right))
}

fn main() -> ExitCode {
    match run() {
        Ok(status) => ExitCode::from(status),
        Err(reason) => {
            println!("FAIL {reason}");
            ExitCode::FAILURE
        }
    }
}
