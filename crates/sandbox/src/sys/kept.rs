//! Memory that survives when a forked process gives back all that it inherited.

use rustix::fd::{BorrowedFd, RawFd};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::io;
use std::ops::Deref;
use std::ptr::{self, NonNull};

/// A value without pointers, in a read-only mapping of its own. A process that is forked from the one
/// that made it can go on reading it whatever it drops of the rest of its memory.
#[derive(Debug)]
pub struct Kept<T: Copy + 'static>(NonNull<T>);

impl<T: Copy + 'static> Kept<T> {
    pub(crate) fn new(value: &T) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: an anonymous mapping at an address of the kernel's choice overlaps nothing.
        let mapping = unsafe {
            mmap_anonymous(ptr::null_mut(), size_of::<T>().max(1), access, MapFlags::PRIVATE)
        }?;
        let kept = Self(NonNull::new(mapping.cast()).ok_or(io::ErrorKind::OutOfMemory)?);
        // SAFETY: the mapping is as large as the value, aligned to a page, and nobody else's.
        unsafe { ptr::copy_nonoverlapping(value, kept.0.as_ptr(), 1) };
        // SAFETY: nothing has a reference into the mapping yet.
        unsafe { mprotect(mapping, size_of::<T>().max(1), MprotectFlags::READ) }?;
        Ok(kept)
    }
}

impl<T: Copy + 'static> Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the mapping holds a value, is never written to, and lives as long as this.
        unsafe { self.0.as_ref() }
    }
}

impl<T: Copy + 'static> Drop for Kept<T> {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this size, and no reference outlives this value.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), size_of::<T>().max(1)) };
    }
}

// SAFETY: it is the only owner of a value that never changes.
unsafe impl<T: Copy + Send> Send for Kept<T> {}
// SAFETY: it only gives out shared references.
unsafe impl<T: Copy + Sync> Sync for Kept<T> {}

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

    pub(crate) fn number(self) -> RawFd {
        self.0
    }

    pub(crate) fn borrow(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: the owner keeps it open, as this type asks for.
        (self.0 >= 0).then(|| unsafe { BorrowedFd::borrow_raw(self.0) })
    }
}
