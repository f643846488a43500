//! Reading of lists from NVML functions, with buffers of sufficient size.

use std::{ffi::c_uint, ptr};

use nvml_wrapper_sys::bindings::nvmlReturn_t;

use super::library::{Plain, check_code};
use crate::vendor::nvml::query::Code;

/// The value of `NVML_ERROR_INSUFFICIENT_SIZE`.
const INSUFFICIENT_SIZE: Code = Code(7);

/// The maximum number of attempts to read a list, which can grow between two attempts.
const MAX_ATTEMPTS: u32 = 4;

/// The maximum number of items in a list. A driver that reports more is faulty, and the buffer
/// would exhaust the memory.
const MAX_ITEMS: c_uint = 1 << 20;

/// Reads a list. If the buffer is too small, tries again with a larger buffer.
pub(super) fn read_with_growing_buffer<T: Plain>(
    room: usize,
    mut call: impl FnMut(*mut c_uint, *mut T) -> nvmlReturn_t,
) -> Result<Vec<T>, Code> {
    let mut items = vec![T::make_blank(); room];
    for _ in 0..MAX_ATTEMPTS {
        let mut count = items.len() as c_uint;
        match check_code(call(&raw mut count, items.as_mut_ptr())) {
            Ok(()) => {
                items.truncate(count as usize);
                return Ok(items);
            }
            // The list may grow before the next attempt, so the new buffer has some extra room.
            Err(INSUFFICIENT_SIZE) if count <= MAX_ITEMS => {
                items.resize(
                    items.len().max(count as usize).saturating_add(room),
                    T::make_blank(),
                );
            }
            Err(code) => return Err(code),
        }
    }
    Err(INSUFFICIENT_SIZE)
}

/// Queries the length of a list, then reads the list into a buffer of exactly that size. This is
/// for functions that do not accept larger buffers.
pub(super) fn read_counted<T: Plain>(
    call: impl Fn(*mut c_uint, *mut T) -> nvmlReturn_t,
) -> Result<Vec<T>, Code> {
    let mut count = 0;
    check_code(call(&raw mut count, ptr::null_mut()))?;
    if count > MAX_ITEMS {
        return Err(INSUFFICIENT_SIZE);
    }
    let mut items = vec![T::make_blank(); count as usize];
    if count > 0 {
        check_code(call(&raw mut count, items.as_mut_ptr()))?;
        items.truncate(count as usize);
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_buffer_grows_within_attempt_limit() {
        let listed = |has: u32| {
            move |count: *mut c_uint, items: *mut u32| {
                // SAFETY: both pointers were passed in by the caller of this closure, with room for
                // `count` items.
                unsafe {
                    let room = count.replace(has);
                    if room < has {
                        return INSUFFICIENT_SIZE.0;
                    }
                    (0..has).for_each(|at| items.add(at as usize).write(at));
                }
                0
            }
        };
        assert_eq!(read_with_growing_buffer(2, listed(0)), Ok(vec![]));
        assert_eq!(
            read_with_growing_buffer(2, listed(5)),
            Ok(vec![0, 1, 2, 3, 4])
        );
        let mut tries = 0;
        let endless = read_with_growing_buffer::<u32>(1, |_, _| {
            tries += 1;
            7
        });
        assert_eq!((endless, tries), (Err(INSUFFICIENT_SIZE), MAX_ATTEMPTS));
        assert_eq!(
            read_with_growing_buffer::<u32>(1, |_, _| 3),
            Err(Code::NOT_SUPPORTED)
        );
    }
}
