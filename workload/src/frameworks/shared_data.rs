//! The data of an operation that is shared with other frameworks: its inputs, and the verification
//! of the result.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::AsRawFd,
};

use rustix::fs::{MemfdFlags, memfd_create};
use serde::Serialize;

use crate::{
    numbers::{Real, SEED_A, SEED_B},
    protocol::{Dtype, Verification},
};

/// An operation that other frameworks also have.
pub(crate) struct SharedOperation {
    pub(crate) operation: Operation,
    /// A function that generates the data, which can be gigabytes.
    pub(crate) data: Box<dyn FnOnce() -> OperationData>,
}

pub(crate) struct OperationData {
    /// The elements of each input, as little-endian bytes.
    pub(crate) inputs: Vec<Vec<u8>>,
    /// A function that verifies the bytes of a result.
    pub(crate) check: CheckFunction,
}

type CheckFunction = Box<dyn Fn(&[u8]) -> Verification>;

/// An operation and its parameters.
#[derive(Debug, Serialize)]
pub(crate) struct Operation {
    /// The operation's name in `frameworks.py`.
    #[serde(rename = "operation")]
    pub(crate) name: &'static str,
    pub(crate) dtype: Dtype,
    /// The shape of each array.
    pub(crate) shape: Vec<u64>,
    /// Whether inputs are copied from the host, and the result is copied back.
    pub(crate) copies: bool,
    pub(crate) one_thread: bool,
    /// Whether a compiler may fuse the operation into one kernel.
    pub(crate) fused: bool,
}

/// Returns the little-endian bytes of the elements.
pub(crate) fn to_bytes<T: Real>(elements: &[T]) -> Vec<u8> {
    let width = T::DTYPE.bytes() as usize;
    elements
        .iter()
        .flat_map(|element| element.to_bits_u64().to_le_bytes().into_iter().take(width))
        .collect()
}

/// Converts little-endian bytes to the expected number of elements. Missing elements become poison.
pub(crate) fn from_bytes<T: Real>(bytes: &[u8], elements: u64) -> Vec<T> {
    let width = T::DTYPE.bytes() as usize;
    let mut numbers: Vec<T> = bytes.chunks_exact(width).map(T::from_le_bytes).collect();
    numbers.resize(elements as usize, T::POISON);
    numbers
}

/// An operation whose data other processes can read.
pub(super) struct SharedData {
    pub(super) operation: Operation,
    pub(super) inputs: Vec<SharedMemory>,
    pub(super) check: CheckFunction,
}

impl SharedOperation {
    /// Returns an operation on up to two arrays of random numbers. `check` receives some elements
    /// of the result, and the index of the first of them.
    pub(crate) fn from_arrays<T: Real>(
        operation: Operation,
        inputs: u64,
        check: fn(&[T], u64) -> Verification,
    ) -> Self {
        let elements = operation.shape.iter().product();
        let data = move || OperationData {
            inputs: [SEED_A, SEED_B]
                .into_iter()
                .take(inputs as usize)
                .map(|seed| to_bytes(&T::random_array(elements, seed)))
                .collect(),
            check: Box::new(move |bytes| check(&from_bytes(bytes, elements), 0)),
        };
        Self {
            operation,
            data: Box::new(data),
        }
    }

    pub(super) fn store_in_shared_memory(self) -> io::Result<SharedData> {
        let OperationData { inputs, check } = (self.data)();
        let inputs = inputs
            .into_iter()
            .map(|input| SharedMemory::new(&input))
            .collect::<Result<_, _>>()?;
        Ok(SharedData {
            operation: self.operation,
            inputs,
            check,
        })
    }
}

/// Memory that another process can open as a file. It is released when dropped.
pub(super) struct SharedMemory(File);

impl SharedMemory {
    pub(super) fn new(bytes: &[u8]) -> io::Result<Self> {
        let mut file = File::from(memfd_create("gpumon", MemfdFlags::CLOEXEC)?);
        file.write_all(bytes)?;
        Ok(Self(file))
    }

    pub(super) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    pub(super) fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(self.path())?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_numbers_round_trip_and_missing_become_nan() {
        let bytes = to_bytes(&[1.5_f32, -2.0]);
        assert_eq!(
            bytes,
            [1.5_f32.to_le_bytes(), (-2.0_f32).to_le_bytes()].concat()
        );
        let numbers = from_bytes::<f32>(&bytes, 3);
        assert!(
            numbers[..2] == [1.5, -2.0] && numbers[2].is_nan(),
            "{numbers:?}"
        );
        let memory = SharedMemory::new(&bytes).unwrap();
        assert_eq!(std::fs::read(memory.path()).unwrap(), bytes);
        std::fs::write(memory.path(), [7]).unwrap();
        assert_eq!(memory.read().unwrap(), [7]);
    }
}
