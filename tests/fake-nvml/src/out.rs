//! Answers into the caller's memory.

use std::{
    ffi::{CStr, c_char, c_uint},
    ptr, slice,
};

use crate::code::{Code, Outcome};

/// Writes one value.
///
/// # Safety
/// `to` is null or points at memory for a `T` that the caller may write, as NVML's contract
/// demands.
pub(crate) unsafe fn put<T>(to: *mut T, value: T) -> Outcome {
    if to.is_null() {
        return Err(Code::INVALID_ARGUMENT);
    }
    // SAFETY: it is not null, so that by this function's own condition it may be written.
    unsafe { to.write(value) };
    Ok(())
}

/// Writes a text with its closing NUL into a buffer of `length` bytes.
///
/// # Safety
/// `to` is null or points at `length` bytes that the caller may write.
pub(crate) unsafe fn put_text(to: *mut c_char, length: c_uint, text: &str) -> Outcome {
    if to.is_null() {
        return Err(Code::INVALID_ARGUMENT);
    }
    if text.len() >= length as usize {
        return Err(Code::INSUFFICIENT_SIZE);
    }
    // SAFETY: `to` has room for `length` bytes, which is more than the text has, and nobody else's
    // memory overlaps this function's own.
    unsafe {
        ptr::copy_nonoverlapping(text.as_ptr().cast(), to, text.len());
        to.add(text.len()).write(0);
    }
    Ok(())
}

/// Writes a list as NVML does: into room for `count` items, where there is enough, and the number
/// of items in any case.
///
/// # Safety
/// `count` is null or may be read and written, and `to` is null or points at `*count` items that
/// may be written.
pub(crate) unsafe fn put_list<T>(to: *mut T, count: *mut c_uint, items: Vec<T>) -> Outcome {
    if count.is_null() {
        return Err(Code::INVALID_ARGUMENT);
    }
    // SAFETY: it is not null, so that it may be read and written.
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
        // SAFETY: there is room for at least as many items as there are.
        unsafe { to.add(at).write(item) };
    }
    Ok(())
}

/// Reads the caller's text.
///
/// # Safety
/// `text` is null or points at a text that ends with a NUL and outlives the call.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Result<&'a str, Code> {
    if text.is_null() {
        return Err(Code::INVALID_ARGUMENT);
    }
    // SAFETY: it is not null, so that by this function's own condition it ends with a NUL.
    unsafe { CStr::from_ptr(text) }
        .to_str()
        .map_err(|_| Code::INVALID_ARGUMENT)
}

/// The caller's list of `count` items, to be filled in.
///
/// # Safety
/// `items` is null or points at `count` items that nobody else touches during the call.
pub(crate) unsafe fn items<'a, T>(items: *mut T, count: usize) -> Result<&'a mut [T], Code> {
    if items.is_null() || count == 0 {
        return Err(Code::INVALID_ARGUMENT);
    }
    // SAFETY: it is not null, so that by this function's own condition there are `count` items.
    Ok(unsafe { slice::from_raw_parts_mut(items, count) })
}
