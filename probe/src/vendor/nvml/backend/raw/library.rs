//! The library, and its functions by the names and types that `nvml.h` gives them.

use std::{
    ffi::{c_char, c_uint},
    marker::PhantomData,
    mem::{MaybeUninit, transmute_copy},
    sync::OnceLock,
};

use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlReturn_t};

use crate::vendor::nvml::query::Code;

/// Some function, whatever it takes.
type Address = unsafe extern "C" fn();

/// A library that is open for as long as the process lives. A function is looked up when it is
/// first asked for, so that opening costs no more than the loader's work, and once: the loader
/// compares names, which at each call of each sample was a twentieth of what the sampler costs.
pub(crate) struct Library {
    opened: libloading::Library,
    /// `None` for what the library lacks.
    addresses: Box<[OnceLock<Option<Address>>]>,
}

/// The type of a function.
pub(crate) trait Signature {
    type Call: Copy;
}

/// A function of NVML: its name, and the type that it has in `nvml.h`.
pub(crate) struct Function<S> {
    /// The name, with a NUL at its end.
    name: &'static str,
    place: usize,
    kind: PhantomData<S>,
}

impl<S: Signature> Function<S> {
    /// # Safety
    /// NVML's function of this name is of the type `S::Call`, and no other has this `place`.
    pub(super) const unsafe fn new(name: &'static str, place: usize) -> Self {
        assert!(size_of::<S::Call>() == size_of::<Address>());
        Self {
            name,
            place,
            kind: PhantomData,
        }
    }
}

/// A GPU or a MIG device, as the driver knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Device(pub(super) nvmlDevice_t);

// SAFETY: NVML's handles may be used by any thread; the pointer is an address that only NVML looks
// behind.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

/// What a call fills in.
///
/// # Safety
/// All zeros are a value of the type, and where there is a version the type begins with it.
pub(crate) unsafe trait Plain: Copy {
    /// The version of its layout, which the caller fills in; `None` for what has none.
    const VERSION: Option<u32> = None;
    /// The number of an older version that is a beginning of this one, for drivers that do not know
    /// the newer.
    const OLDER: Option<u32> = None;

    /// Zeros, and the version.
    fn blank() -> Self {
        match Self::VERSION {
            Some(version) => Self::blank_of_version(version_of::<Self>(version)),
            // SAFETY: by the trait's condition zeros are a value.
            None => unsafe { MaybeUninit::<Self>::zeroed().assume_init() },
        }
    }

    /// Zeros, and this version. The type has a version.
    fn blank_of_version(version: u32) -> Self {
        assert!(Self::VERSION.is_some());
        let mut value = MaybeUninit::<Self>::zeroed();
        // SAFETY: by the trait's condition the type begins with its version, and zeros are a value.
        unsafe {
            value.as_mut_ptr().cast::<c_uint>().write(version);
            value.assume_init()
        }
    }
}

/// `NVML_STRUCT_VERSION`: the size of a structure and the version of its layout.
pub(crate) const fn version_of<T>(version: u32) -> u32 {
    size_of::<T>() as u32 | (version << 24)
}

impl Library {
    /// Returns the library with this number of functions.
    pub(super) fn with_functions(opened: libloading::Library, count: usize) -> Self {
        let addresses = (0..count).map(|_| OnceLock::new()).collect();
        Self { opened, addresses }
    }

    pub(crate) fn find<S: Signature>(&self, function: &Function<S>) -> Result<S::Call, Code> {
        let address = self.addresses[function.place].get_or_init(|| {
            // SAFETY: it is not called as what it is taken for here.
            let symbol = unsafe { self.opened.get::<Address>(function.name.as_bytes()) };
            symbol.ok().map(|symbol| *symbol)
        });
        let address = address.ok_or(Code::FUNCTION_NOT_FOUND)?;
        // SAFETY: whoever named the function said that it is of this type, a pointer as this is.
        Ok(unsafe { transmute_copy::<Address, S::Call>(&address) })
    }

    pub(super) fn fill_with<S: Signature, T: Plain>(
        &self,
        function: &Function<S>,
        call: impl FnOnce(S::Call, &mut T) -> nvmlReturn_t,
    ) -> Result<T, Code> {
        let mut value = T::blank();
        done(call(self.find(function)?, &mut value))?;
        Ok(value)
    }
}

pub(super) fn done(code: nvmlReturn_t) -> Result<(), Code> {
    if code == 0 { Ok(()) } else { Err(Code(code)) }
}

/// The text in a C array: up to its first NUL.
pub(crate) fn text(bytes: &[c_char]) -> String {
    let bytes: Vec<u8> = bytes
        .iter()
        .take_while(|byte| **byte != 0)
        .map(|byte| *byte as u8)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use nvml_wrapper_sys::bindings::nvmlMarginTemperature_v1_t;

    use super::*;

    #[test]
    fn a_blank_structure_says_its_version_and_nothing_else() {
        let blank = nvmlMarginTemperature_v1_t::blank();
        assert_eq!((blank.version, blank.marginTemperature), (0x0100_0008, 0));
        assert_eq!(u64::blank(), 0);
    }

    #[test]
    fn a_text_ends_with_its_nul_or_with_its_array() {
        let letters = |text: &[u8]| {
            text.iter()
                .map(|byte| c_char::try_from(*byte).unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(text(&letters(b"N/A\0rest")), "N/A");
        assert_eq!(text(&letters(b"full")), "full");
    }
}
