//! Functions that return lists.

use std::{ffi::c_uint, ptr};

use nvml_wrapper_sys::bindings::nvmlReturn_t;

use super::library::{Plain, done};
use crate::vendor::nvml::query::Code;

/// The value of `NVML_ERROR_INSUFFICIENT_SIZE`.
const INSUFFICIENT_SIZE: Code = Code(7);

/// The maximum number of attempts to read a list. The list can grow between two of them.
const TRIES: u32 = 4;

/// The maximum number of items in a list. If a driver reports more, it is faulty, and allocating
/// them would exhaust the memory.
const MOST_ITEMS: c_uint = 1 << 20;

/// Reads a list, with a larger buffer in each attempt until it is large enough.
pub(super) fn grow<T: Plain>(
    room: usize,
    mut call: impl FnMut(*mut c_uint, *mut T) -> nvmlReturn_t,
) -> Result<Vec<T>, Code> {
    let mut items = vec![T::blank(); room];
    for _ in 0..TRIES {
        let mut count = items.len() as c_uint;
        match done(call(&raw mut count, items.as_mut_ptr())) {
            Ok(()) => {
                items.truncate(count as usize);
                return Ok(items);
            }
            // The list may have grown before the next attempt, so that there is some extra room.
            Err(INSUFFICIENT_SIZE) if count <= MOST_ITEMS => {
                items.resize(
                    items.len().max(count as usize).saturating_add(room),
                    T::blank(),
                );
            }
            Err(code) => return Err(code),
        }
    }
    Err(INSUFFICIENT_SIZE)
}

/// Reads a list after its length, for functions that must not get a larger buffer.
pub(super) fn counted<T: Plain>(
    call: impl Fn(*mut c_uint, *mut T) -> nvmlReturn_t,
) -> Result<Vec<T>, Code> {
    let mut count = 0;
    done(call(&raw mut count, ptr::null_mut()))?;
    if count > MOST_ITEMS {
        return Err(INSUFFICIENT_SIZE);
    }
    let mut items = vec![T::blank(); count as usize];
    if count > 0 {
        done(call(&raw mut count, items.as_mut_ptr()))?;
        items.truncate(count as usize);
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_gets_as_much_room_as_it_needs_and_no_endless_tries() {
        let listed = |has: u32| {
            move |count: *mut c_uint, items: *mut u32| {
                // SAFETY: both pointers come from `grow`, with room for `count` items.
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
        assert_eq!(grow(2, listed(0)), Ok(vec![]));
        assert_eq!(grow(2, listed(5)), Ok(vec![0, 1, 2, 3, 4]));
        let mut tries = 0;
        let endless = grow::<u32>(1, |_, _| {
            tries += 1;
            7
        });
        assert_eq!((endless, tries), (Err(INSUFFICIENT_SIZE), TRIES));
        assert_eq!(grow::<u32>(1, |_, _| 3), Err(Code::NOT_SUPPORTED));
    }
}
