//! Output into the caller's memory.

use std::{
    ffi::{CStr, c_char, c_uint},
    ptr, slice,
};

use crate::code::{Code, Outcome};

/// Writes one value.
///
/// # Safety
/// `to` is null or points to memory for a `T` that the caller may write.
pub(crate) unsafe fn write_output_value<T>(to: *mut T, value: T) -> Outcome {
    if to.is_null() {
        return Err(Code::INVALID_ARGUMENT);
    }
    // SAFETY: by this function's contract, `to`, which is not null, may be written.
    unsafe { to.write(value) };
    Ok(())
}

/// Writes a text and its closing NUL into a buffer of `length` bytes.
///
/// # Safety
/// `to` is null or points to `length` bytes that the caller may write.
pub(crate) unsafe fn put_text(to: *mut c_char, length: c_uint, text: &str) -> Outcome {
    if to.is_null() {
        return Err(Code::INVALID_ARGUMENT);
    }
    if text.len() >= length as usize {
        return Err(Code::INSUFFICIENT_SIZE);
    }
    // SAFETY: `to` has room for `length` bytes, and the text is shorter than that. The buffer
    // belongs to the caller, so it does not overlap the text.
    unsafe {
        ptr::copy_nonoverlapping(text.as_ptr().cast(), to, text.len());
        to.add(text.len()).write(0);
    }
    Ok(())
}

/// Writes a list to `to` if there is room for all of its items. In any case, sets `count` to the
/// number of items in the list.
///
/// # Safety
/// `count` is null or may be read and written, and `to` is null or points to `*count` items that
/// may be written.
pub(crate) unsafe fn put_list<T>(to: *mut T, count: *mut c_uint, items: Vec<T>) -> Outcome {
    if count.is_null() {
        return Err(Code::INVALID_ARGUMENT);
    }
    // SAFETY: by this function's contract, `count`, which is not null, may be read and
    // written.
    let room = unsafe { count.replace(items.len() as c_uint) } as usize;
    if items.is_empty() {
        return Ok(());
    }
    if room < items.len() {
        return Err(Code::INSUFFICIENT_SIZE);
    }
    if to.is_null() {
        return Err(Code::INVALID_ARGUMENT);
    }
    for (at, item) in items.into_iter().enumerate() {
        // SAFETY: `to` has room for all items.
        unsafe { to.add(at).write(item) };
    }
    Ok(())
}

/// Reads the caller's text.
///
/// # Safety
/// `text` is null or points to a text that ends with a NUL and outlives the call.
pub(crate) unsafe fn read_text<'a>(text: *const c_char) -> Result<&'a str, Code> {
    if text.is_null() {
        return Err(Code::INVALID_ARGUMENT);
    }
    // SAFETY: by this function's contract, `text`, which is not null, ends with a NUL.
    unsafe { CStr::from_ptr(text) }
        .to_str()
        .map_err(|_| Code::INVALID_ARGUMENT)
}

/// Returns the caller's list of `count` items, to be filled in.
///
/// # Safety
/// `items` is null or points to `count` items that nothing else accesses during the call.
pub(crate) unsafe fn output_items_mut<'a, T>(
    items: *mut T,
    count: usize,
) -> Result<&'a mut [T], Code> {
    if items.is_null() || count == 0 {
        return Err(Code::INVALID_ARGUMENT);
    }
    // SAFETY: by this function's contract, `items`, which is not null, points to `count`
    // items.
    Ok(unsafe { slice::from_raw_parts_mut(items, count) })
}
