//! Memory that survives when a forked process gives back all that it inherited.

use rustix::fd::{BorrowedFd, RawFd};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::ffi::c_void;
use std::io;
use std::ops::Deref;
use std::ptr::{self, NonNull};

/// A value without pointers, in a read-only mapping of its own. A process that is forked from the one
/// that made it can go on reading it whatever it drops of the rest of its memory.
#[derive(Debug)]
pub struct Kept<T: ?Sized + 'static>(NonNull<T>);

/// A value, and bytes that belong to it.
#[derive(Debug)]
#[repr(C)]
pub struct WithBytes<T> {
    pub(crate) value: T,
    pub(crate) bytes: [u8],
}

impl<T: Copy + 'static> Kept<WithBytes<T>> {
    /// Of no more memory than they need: every page that is written to costs time.
    pub(crate) fn with_bytes(value: &T, bytes: &[u8]) -> io::Result<Self> {
        let size = (size_of::<T>() + bytes.len()).next_multiple_of(align_of::<T>());
        let start = map(size)?.cast::<u8>();
        // SAFETY: the mapping is as large as both together, aligned to a page, and nobody else's.
        unsafe { start.cast::<T>().write(*value) };
        // SAFETY: as above. The bytes begin where the value ends.
        let behind = unsafe { start.add(size_of::<T>()) };
        // SAFETY: as above.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), behind.as_ptr(), bytes.len()) };
        let both = ptr::slice_from_raw_parts_mut(start.as_ptr(), bytes.len()) as *mut WithBytes<T>;
        NonNull::new(both).map(Self).ok_or(io::ErrorKind::OutOfMemory)?.close()
    }
}

impl Kept<[u8]> {
    /// The same for bytes. Of what is not used no memory is taken.
    pub(crate) fn bytes(bytes: &[u8]) -> io::Result<Self> {
        let start = map(bytes.len())?.cast();
        let kept = Self(NonNull::slice_from_raw_parts(start, bytes.len()));
        // SAFETY: the mapping has room for as many bytes, and is nobody else's.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), start.as_ptr(), bytes.len()) };
        kept.close()
    }
}

fn map(size: usize) -> io::Result<NonNull<c_void>> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: an anonymous mapping at an address of the kernel's choice overlaps nothing.
    let mapping =
        unsafe { mmap_anonymous(ptr::null_mut(), size.max(1), access, MapFlags::PRIVATE) }?;
    NonNull::new(mapping).ok_or(io::ErrorKind::OutOfMemory.into())
}

impl<T: ?Sized + 'static> Kept<T> {
    /// Nobody writes to it any more.
    fn close(self) -> io::Result<Self> {
        // SAFETY: this is the whole mapping, and nothing has a reference into it yet.
        unsafe { mprotect(self.0.as_ptr().cast(), self.size(), MprotectFlags::READ) }?;
        Ok(self)
    }

    /// How large the mapping is.
    fn size(&self) -> usize {
        size_of_val(&**self).max(1)
    }
}

impl<T: ?Sized + 'static> Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the mapping holds a value, is never written to, and lives as long as this.
        unsafe { self.0.as_ref() }
    }
}

impl<T: ?Sized + 'static> Drop for Kept<T> {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this size, and no reference outlives this value.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), self.size()) };
    }
}

// SAFETY: it is the only owner of a value that never changes.
unsafe impl<T: ?Sized + Send> Send for Kept<T> {}
// SAFETY: it only gives out shared references.
unsafe impl<T: ?Sized + Sync> Sync for Kept<T> {}

/// A descriptor that somebody else owns, by its number: the host, which keeps it open as long as
/// values like this one are used, and the processes that are forked from it, which inherit it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Inherited(RawFd);

impl Inherited {
    /// No descriptor at all.
    pub(crate) const NONE: Self = Self(-1);

    pub(crate) fn new(fd: BorrowedFd<'_>) -> Self {
        Self(rustix::fd::AsRawFd::as_raw_fd(&fd))
    }

    /// One by its number, as [`Inherited::number`] gave it.
    pub(crate) const fn numbered(number: RawFd) -> Self {
        Self(number)
    }

    pub(crate) fn number(self) -> RawFd {
        self.0
    }

    pub(crate) fn borrow(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: the owner keeps it open, as this type asks for.
        (self.0 >= 0).then(|| unsafe { BorrowedFd::borrow_raw(self.0) })
    }
}
