//! The library, and looking up its functions by their names and types in `nvml.h`.

use std::{
    ffi::{c_char, c_uint},
    marker::PhantomData,
    mem::{MaybeUninit, transmute_copy},
    sync::OnceLock,
};

use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlReturn_t};

use crate::vendor::nvml::query::Code;

/// A function of unknown type.
type Address = unsafe extern "C" fn();

/// A loaded library, which stays open while the process runs. Each function is looked up once, when
/// it is first used, so that loading is fast. Looking up names at each call accounted for 5% of the
/// sampler's time.
pub(crate) struct Library {
    opened: libloading::Library,
    /// The addresses of functions. `None` means that the library lacks the function.
    addresses: Box<[OnceLock<Option<Address>>]>,
}

/// The type of a function.
pub(crate) trait Signature {
    type Call: Copy;
}

/// A function of NVML: its name, and its type in `nvml.h`.
pub(crate) struct Function<S> {
    /// The name, terminated by a NUL character.
    name: &'static str,
    place: usize,
    kind: PhantomData<S>,
}

impl<S: Signature> Function<S> {
    /// Creates the description of a function.
    ///
    /// # Safety
    /// NVML's function of this name must have the type `S::Call`, and no other function may have
    /// this `place`.
    pub(super) const unsafe fn new(name: &'static str, place: usize) -> Self {
        assert!(size_of::<S::Call>() == size_of::<Address>());
        Self {
            name,
            place,
            kind: PhantomData,
        }
    }
}

/// The driver's handle of a GPU or a MIG device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Device(pub(super) nvmlDevice_t);

// SAFETY: NVML's handles can be used by any thread. Only NVML dereferences the pointer.
unsafe impl Send for Device {}
// SAFETY: NVML's handles can be used by any thread. Only NVML dereferences the pointer.
unsafe impl Sync for Device {}

/// A type that a call fills in.
///
/// # Safety
/// All zeros must be a valid value of the type. If the type has a version, it must begin with the
/// version.
pub(crate) unsafe trait Plain: Copy {
    /// The version of the type's layout, which the caller fills in. `None` if the type has no
    /// version.
    const VERSION: Option<u32> = None;
    /// An older version whose layout is the beginning of this one, for drivers that do not know the
    /// newer version.
    const OLDER: Option<u32> = None;

    /// Returns a value of zeros with the version.
    fn blank() -> Self {
        match Self::VERSION {
            Some(version) => Self::blank_of_version(version_of::<Self>(version)),
            // SAFETY: the trait requires that all zeros are a valid value.
            None => unsafe { MaybeUninit::<Self>::zeroed().assume_init() },
        }
    }

    /// Returns a value of zeros with this version. The type must have a version.
    fn blank_of_version(version: u32) -> Self {
        assert!(Self::VERSION.is_some());
        let mut value = MaybeUninit::<Self>::zeroed();
        // SAFETY: the trait requires that the type begins with its version, and that all zeros are
        // a valid value.
        unsafe {
            value.as_mut_ptr().cast::<c_uint>().write(version);
            value.assume_init()
        }
    }
}

/// Returns `NVML_STRUCT_VERSION` of a structure, which combines its size and the version of its
/// layout.
pub(crate) const fn version_of<T>(version: u32) -> u32 {
    size_of::<T>() as u32 | (version << 24)
}

impl Library {
    /// Creates a library with this number of functions.
    pub(super) fn with_functions(opened: libloading::Library, count: usize) -> Self {
        let addresses = (0..count).map(|_| OnceLock::new()).collect();
        Self { opened, addresses }
    }

    pub(crate) fn find<S: Signature>(&self, function: &Function<S>) -> Result<S::Call, Code> {
        let address = self.addresses[function.place].get_or_init(|| {
            // SAFETY: the function is not called with this type.
            let symbol = unsafe { self.opened.get::<Address>(function.name.as_bytes()) };
            symbol.ok().map(|symbol| *symbol)
        });
        let address = address.ok_or(Code::FUNCTION_NOT_FOUND)?;
        // SAFETY: the creator of the `Function` has guaranteed that the function has this type, and
        // both types are function pointers.
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

/// Returns the text in a C array, up to the first NUL.
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
