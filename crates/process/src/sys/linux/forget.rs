//! Drops what the nursery inherited from the host's memory.
//!
//! A fork copies everything: the host's secrets, and page tables that every later fork would copy
//! again. None of it is needed, so the pages are given back before the first warden is made.

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::mm::{Advice, madvise};
use std::ffi::CStr;
use std::ops::Range;
use std::ptr;

/// What `ps` shows for a nursery and its wardens in place of the host's command line. The program's
/// name is not in it: whoever kills everything called that should not kill those who clean up.
const TITLE: &[u8] = b"sg-guard";

/// Gives back the heap and the other threads' stacks, and wipes the arguments and the environment.
///
/// # Safety
/// After this the process may not allocate, nor read anything that lived on the host's heap, in its
/// arguments or in its environment.
pub(super) unsafe fn drop_host_memory() {
    // Both are best effort: a process that cannot read /proc works just as well, only larger.
    // SAFETY: the caller's promise.
    let _ = unsafe { drop_anonymous_pages() };
    // SAFETY: the caller's promise.
    let _ = unsafe { wipe_arguments() };
}

/// How much around this thread's stack pointer is kept.
pub(super) const KEPT: usize = 64 * 1024;

/// How much behind where the C library knows this thread by. What it needs of it is in the first bytes; the next thing
/// may be somebody's heap.
const KEPT_OF_THREAD: usize = 1024;

/// # Safety
/// As for [`drop_host_memory`].
unsafe fn drop_anonymous_pages() -> Result<(), Errno> {
    let here = 0u8;
    let stack = ptr::from_ref(&here).addr();
    // SAFETY: only gives an address; always succeeds.
    let errno = unsafe { libc::__errno_location() }.addr();
    // SAFETY: only gives an address; always succeeds.
    let thread = unsafe { libc::pthread_self() } as usize;
    // The kernel joins neighbouring mappings, so what is needed is spared by the page and not by the
    // mapping.
    // SAFETY: only asks for a number.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) });
    let page = page.unwrap_or(LARGEST_PAGE).clamp(1, LARGEST_PAGE);
    let pages = |from: usize, to: usize| from - from % page..to.next_multiple_of(page);
    let mut kept = [
        pages(stack.saturating_sub(KEPT), stack + KEPT),
        pages(errno, errno + size_of::<libc::c_int>()),
        pages(thread, thread + KEPT_OF_THREAD),
    ];
    kept.sort_unstable_by_key(|range| range.start);
    let mut data_end = 0;
    for_each_line(c"/proc/self/maps", |line| {
        let Some(mapping) = Mapping::parse(line) else { return };
        // Zero-initialised statics lie in anonymous pages right behind their file's data.
        let statics = mapping.kind == Kind::Anonymous && mapping.range.start == data_end;
        if mapping.kind == Kind::File && mapping.private_data {
            data_end = mapping.range.end;
        }
        if mapping.private_data && mapping.kind != Kind::File && !statics {
            let mut from = mapping.range.start;
            for keep in &kept {
                // SAFETY: nothing in it is used again, as the caller promised.
                unsafe { drop_pages(from..keep.start.min(mapping.range.end)) };
                from = from.max(keep.end);
            }
            // SAFETY: as above.
            unsafe { drop_pages(from..mapping.range.end) };
        }
    })
}

/// The largest page that any kernel has; ranges are of whole pages because mappings are.
const LARGEST_PAGE: usize = 64 * 1024;

/// # Safety
/// Private data that is not used again; it reads as zeros.
unsafe fn drop_pages(range: Range<usize>) {
    if !range.is_empty() {
        let start = ptr::with_exposed_provenance_mut(range.start);
        // SAFETY: the caller's promise.
        let _ = unsafe { madvise(start, range.len(), Advice::LinuxDontNeed) };
    }
}

/// One line of the list of mappings.
#[derive(Debug, PartialEq, Eq)]
struct Mapping {
    range: Range<usize>,
    /// Readable, writable, not executable, not shared.
    private_data: bool,
    kind: Kind,
}

/// What a mapping is of.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    File,
    Heap,
    Anonymous,
}

impl Mapping {
    /// Parses `start-end perms offset device inode [path]`.
    fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.split(|&byte| byte == b' ').filter(|field| !field.is_empty());
        let mut ends = fields.next()?.split(|&byte| byte == b'-');
        let range = hexadecimal(ends.next()?)?..hexadecimal(ends.next()?)?;
        let private_data = fields.next()? == b"rw-p";
        let inode = fields.nth(2)?;
        let kind = match fields.next() {
            _ if inode != b"0" => Kind::File,
            Some(b"[heap]") => Kind::Heap,
            _ => Kind::Anonymous,
        };
        Some(Self { range, private_data, kind })
    }
}

fn hexadecimal(digits: &[u8]) -> Option<usize> {
    digits.iter().try_fold(0usize, |number, &digit| {
        let value = char::from(digit).to_digit(16)?;
        number.checked_mul(16)?.checked_add(value as usize)
    })
}

/// Overwrites the memory that `/proc/PID/cmdline` and `environ` are read from.
///
/// # Safety
/// As for [`drop_host_memory`].
unsafe fn wipe_arguments() -> Result<(), Errno> {
    let mut areas = [0usize; 4];
    for_each_line(c"/proc/self/stat", |line| {
        // The name in the second field may hold anything; the last parenthesis ends it.
        let after_name = line.rsplit(|&byte| byte == b')').next().unwrap_or_default();
        // Fields are counted from one, and the state, which follows the name, is the third.
        let fields = after_name.split(|&byte| byte == b' ').filter(|field| !field.is_empty());
        for (area, field) in areas.iter_mut().zip(fields.skip(48 - 3)) {
            *area = decimal(field).unwrap_or(0);
        }
    })?;
    let [arg_start, arg_end, env_start, env_end] = areas;
    for (start, end) in [(arg_start, arg_end), (env_start, env_end)] {
        if start == 0 || end <= start {
            return Err(Errno::INVAL);
        }
        // SAFETY: the kernel says that this is the area, which is on the writable first stack, and
        // the caller promised that nobody reads it again.
        unsafe { ptr::write_bytes(ptr::with_exposed_provenance_mut::<u8>(start), 0, end - start) };
    }
    let length = TITLE.len().min(arg_end - arg_start - 1);
    let area = ptr::with_exposed_provenance_mut::<u8>(arg_start);
    // SAFETY: as above, and no longer than the area.
    unsafe { ptr::copy_nonoverlapping(TITLE.as_ptr(), area, length) };
    Ok(())
}

fn decimal(digits: &[u8]) -> Option<usize> {
    digits.iter().try_fold(0usize, |number, &digit| {
        let value = char::from(digit).to_digit(10)?;
        number.checked_mul(10)?.checked_add(value as usize)
    })
}

/// Reads a file of short lines without allocating. A line longer than the buffer is cut.
fn for_each_line(path: &CStr, mut f: impl FnMut(&[u8])) -> Result<(), Errno> {
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut line = [0u8; 1024];
    let mut held = 0;
    let mut block = [0u8; 2048];
    loop {
        let n = rustix::io::retry_on_intr(|| rustix::io::read(&file, &mut block))?;
        for &byte in block.get(..n).unwrap_or_default() {
            if byte == b'\n' {
                f(line.get(..held).unwrap_or_default());
                held = 0;
            } else if let Some(slot) = line.get_mut(held) {
                *slot = byte;
                held += 1;
            }
        }
        if n == 0 {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_read_as_the_kernel_writes_them() {
        let line = b"7f00a000-7f00c000 rw-p 00000000 00:00 0                          [heap]";
        let heap =
            Mapping { range: 0x7f00_a000..0x7f00_c000, private_data: true, kind: Kind::Heap };
        assert_eq!(Mapping::parse(line), Some(heap));
        let line = b"00400000-00452000 r-xp 00000000 08:02 173521      /usr/bin/dbus daemon";
        let text = Mapping { range: 0x40_0000..0x45_2000, private_data: false, kind: Kind::File };
        assert_eq!(Mapping::parse(line), Some(text));
        assert_eq!(Mapping::parse(b"nonsense"), None);
    }

    #[test]
    fn every_line_of_a_file_is_seen_once() {
        let mut lines = 0;
        let mut held_this_stack = false;
        let here = ptr::from_ref(&lines).addr();
        for_each_line(c"/proc/self/maps", |line| {
            lines += 1;
            let mapping = Mapping::parse(line).expect("a mapping");
            held_this_stack |= mapping.range.contains(&here);
        })
        .expect("read the mappings");
        assert!(lines > 5 && held_this_stack, "{lines} lines");
    }
}
