//! What the programs at a terminal or behind a pipe are doing: working, or waiting to be typed to.
//!
//! The kernel is asked, not the clock: `/proc` shows the call that each thread is in and what it waits
//! for there. One look is a snapshot and proves little by itself; `live::waiting` says how many of them,
//! and what else, it takes to believe one. Nothing here changes anything.

use crate::live::{Seen, Waiter};
use rustix::process::Pid;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

/// What a process reads its input from, as every process sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inlet {
    /// A terminal. Numbers of devices repeat where a cage has terminals of its own, files do not.
    Terminal {
        /// The file that the kernel made for it: its device and inode.
        file: (u64, u64),
        /// Whose `/dev/tty` it is.
        session: Option<i32>,
    },
    /// A pipe, by its device and inode.
    Pipe(u64, u64),
}

/// More processes than this are not looked at: such a job is at work.
const MOST_PROCESSES: usize = 256;

/// No program waits for more descriptors than this at once, or it is not looked at.
const MOST_DESCRIPTORS: usize = 1024;

/// `/dev/tty`: whatever terminal the process has.
const CONTROLLING_TERMINAL: (u32, u32) = (5, 0);

/// `/dev/ptmx`: the other side of a terminal that a program made itself.
const TERMINAL_MAKER: (u32, u32) = (5, 2);

/// Looks at the foreground `group` of a terminal, or at all processes beneath `root` if there is none.
pub(super) fn look(root: i32, group: Option<Pid>, inlet: Inlet) -> Seen {
    let members = members(root, group);
    let mut waiter = None;
    let mut hidden = false;
    for &process in &members {
        let Ok(threads) = numbers_in(&format!("/proc/{process}/task")) else { continue };
        for thread in threads {
            match what(process, thread, inlet) {
                Doing::Waits(found) => waiter = waiter.or(Some(found)),
                Doing::Works => return Seen::Working,
                Doing::WaitsElsewhere => {}
                Doing::Hidden => hidden = true,
            }
        }
    }
    match (waiter, hidden) {
        (Some(waiter), _) => Seen::Waiting(waiter),
        (None, true) => Seen::Hidden,
        (None, false) => match group.and_then(|_| reader_elsewhere(root, inlet)) {
            Some(waiter) => Seen::Waiting(waiter),
            None => Seen::Working,
        },
    }
}

/// Looks at one process alone: whether a thread of it waits for input, whatever its others do.
pub(super) fn look_at(process: i32, inlet: Inlet) -> Option<Waiter> {
    let threads = numbers_in(&format!("/proc/{process}/task")).ok()?;
    threads.into_iter().find_map(|thread| match what(process, thread, inlet) {
        Doing::Waits(waiter) => Some(waiter),
        Doing::WaitsElsewhere | Doing::Works | Doing::Hidden => None,
    })
}

/// Somebody who waits for input of the terminal from another session, to whom the foreground has handed it,
/// as a client of `tmux` does. Nobody else can: the kernel stops who reads in the background.
fn reader_elsewhere(root: i32, inlet: Inlet) -> Option<Waiter> {
    let session = session_of(root)?;
    let guard = stat(root, PARENT)?.parse().ok()?;
    let others = members(guard, None).into_iter();
    let others = others.filter(|&process| {
        process != guard && session_of(process).is_some_and(|other| other != session)
    });
    others.into_iter().find_map(|process| look_at(process, inlet))
}

/// Those of a group who may be of the job whose command this is, as far as numbers tell.
pub(super) fn members_of_job(command: i32, number: i32) -> Vec<i32> {
    let group = Pid::from_raw(number);
    let guard = stat(command, PARENT).and_then(|parent| parent.parse().ok());
    // Whoever has lost their parents is the guard's.
    let found = guard.map(|guard| members(guard, group)).unwrap_or_default();
    // Where nothing is told of children, or there are too many, there is still the one whose number it has.
    if found.is_empty() { vec![number] } else { found }
}

/// How long a thread has run, in nanoseconds.
fn has_run(thread: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{thread}/schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// The processes of a group, or all of them, that descend from `root`; none if there are too many.
fn members(root: i32, group: Option<Pid>) -> Vec<i32> {
    let group = group.map(|group| group.as_raw_nonzero().get());
    let mut found = Vec::new();
    // The leader of the group need not descend from a shell that was left to itself.
    if let Some(group) = group.filter(|&group| group != root && group_of(group) == Some(group)) {
        found.push(group);
    }
    let mut beneath = vec![root];
    let mut next = 0;
    while let Some(&process) = beneath.get(next) {
        next += 1;
        if group.is_none_or(|group| group_of(process) == Some(group)) && !found.contains(&process) {
            found.push(process);
        }
        beneath.extend(children(process));
        if beneath.len() > MOST_PROCESSES {
            return Vec::new();
        }
    }
    found.retain(|&process| !is_dead(process));
    found
}

fn children(process: i32) -> Vec<i32> {
    let threads = numbers_in(&format!("/proc/{process}/task")).unwrap_or_default();
    let list = |thread| fs::read_to_string(format!("/proc/{process}/task/{thread}/children"));
    let texts = threads.into_iter().flat_map(list);
    texts.flat_map(|text| numbers(&text)).collect()
}

fn numbers(text: &str) -> Vec<i32> {
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

fn numbers_in(directory: &str) -> std::io::Result<Vec<i32>> {
    let names = fs::read_dir(directory)?.flatten();
    Ok(names.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

/// Fields of `/proc/PID/stat`.
const STATE: usize = 0;
const PARENT: usize = 1;
const GROUP: usize = 2;
const SESSION: usize = 3;
const FLAGS: usize = 6;

/// A field of `/proc/PID/stat`, counted from the state, which comes after the name.
fn stat(process: i32, field: usize) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    text.rsplit(')').next()?.split_whitespace().nth(field).map(str::to_owned)
}

pub(super) fn group_of(process: i32) -> Option<i32> {
    stat(process, GROUP)?.parse().ok()
}

pub(super) fn session_of(process: i32) -> Option<i32> {
    stat(process, SESSION)?.parse().ok()
}

fn is_dead(process: i32) -> bool {
    matches!(stat(process, STATE).as_deref(), None | Some("Z" | "X"))
}

/// Whether a process is on its way out.
fn is_ending(process: i32) -> bool {
    /// The kernel's `PF_EXITING`.
    const EXITING: u32 = 0x4;
    let flags = stat(process, FLAGS).and_then(|flags| flags.parse::<u32>().ok());
    is_dead(process) || flags.is_none_or(|flags| flags & EXITING != 0)
}

/// What one thread is doing.
enum Doing {
    Waits(Waiter),
    WaitsElsewhere,
    Works,
    Hidden,
}

fn what(process: i32, thread: i32, inlet: Inlet) -> Doing {
    let text = match fs::read_to_string(format!("/proc/{process}/task/{thread}/syscall")) {
        Ok(text) => text,
        // It has ended since.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Doing::WaitsElsewhere,
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Doing::WaitsElsewhere,
        // One that is about to end is shown to nobody but root.
        Err(_) if is_ending(process) => return Doing::Works,
        Err(_) => return Doing::Hidden,
    };
    let Some(call) = Call::parse(&text) else { return Doing::Works };
    let Some(waits) = call.waits_for(process) else { return Doing::WaitsElsewhere };
    let is_inlet = |&fd: &i32| is(process, fd, inlet);
    if !waits.on.iter().any(is_inlet) {
        return Doing::WaitsElsewhere;
    }
    let others = waits.on.iter().filter(|fd| !is_inlet(fd));
    Doing::Waits(Waiter {
        thread,
        has_run: has_run(thread),
        limit: waits.limit,
        relays: others.into_iter().any(|&fd| brings_output(process, fd)),
    })
}

/// A call that a thread is in.
struct Call {
    number: i64,
    arguments: [u64; 6],
}

/// What a call waits for.
struct Waits {
    on: Vec<i32>,
    /// For how long.
    limit: Option<Duration>,
}

impl Call {
    /// None when the thread is not in one: it runs, or is about to.
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let number = words.next()?.parse().ok().filter(|&number| number >= 0)?;
        let mut arguments = [0; 6];
        for argument in &mut arguments {
            *argument = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
        }
        Some(Self { number, arguments })
    }

    /// The descriptors that it waits to read from, if it is a call that does so.
    #[expect(clippy::cast_possible_truncation, reason = "these arguments are 32 bits wide")]
    fn waits_for(&self, process: i32) -> Option<Waits> {
        let [first, second, third, fourth, fifth, _] = self.arguments;
        let count = usize::try_from(first).ok()?.min(MOST_DESCRIPTORS);
        let milliseconds = |limit: u64| u64::try_from(limit as i32).ok().map(Duration::from_millis);
        match self.number {
            libc::SYS_read | libc::SYS_readv => Some(Waits { on: vec![first as i32], limit: None }),
            number if is_select(number) => {
                let limit = match number == libc::SYS_pselect6 {
                    true => time_in(process, fifth, Unit::Nanoseconds)?,
                    false => time_in(process, fifth, Unit::Microseconds)?,
                };
                Some(Waits { on: selected(process, second, count)?, limit })
            }
            number if is_poll(number) => {
                let count = usize::try_from(second).ok()?.min(MOST_DESCRIPTORS);
                let limit = match number == libc::SYS_ppoll {
                    true => time_in(process, third, Unit::Nanoseconds)?,
                    false => milliseconds(third),
                };
                Some(Waits { on: polled(process, first, count)?, limit })
            }
            number if is_epoll(number) => {
                let limit = match number == libc::SYS_epoll_pwait2 {
                    true => time_in(process, fourth, Unit::Nanoseconds)?,
                    false => milliseconds(fourth),
                };
                Some(Waits { on: watched(process, first as i32)?, limit })
            }
            _ => None,
        }
    }
}

/// What the second number of a time counts.
#[derive(Clone, Copy)]
enum Unit {
    Microseconds,
    Nanoseconds,
}

/// A time in the memory of another process, or that there is none; nothing where it cannot be read.
#[expect(clippy::option_option, reason = "a time that is not there is not one that cannot be read")]
fn time_in(process: i32, address: u64, unit: Unit) -> Option<Option<Duration>> {
    if address == 0 {
        return Some(None);
    }
    let bytes = read_memory(process, address, 16)?;
    let number = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
    let (seconds, parts) = (number(&bytes[..8]), number(&bytes[8..]));
    let parts = match unit {
        Unit::Microseconds => Duration::from_micros(parts),
        Unit::Nanoseconds => Duration::from_nanos(parts),
    };
    Some(Some(Duration::from_secs(seconds).saturating_add(parts)))
}

fn is_select(number: i64) -> bool {
    #[cfg(target_arch = "x86_64")]
    if number == libc::SYS_select {
        return true;
    }
    number == libc::SYS_pselect6
}

fn is_poll(number: i64) -> bool {
    #[cfg(target_arch = "x86_64")]
    if number == libc::SYS_poll {
        return true;
    }
    number == libc::SYS_ppoll
}

fn is_epoll(number: i64) -> bool {
    #[cfg(target_arch = "x86_64")]
    if number == libc::SYS_epoll_wait {
        return true;
    }
    number == libc::SYS_epoll_pwait || number == libc::SYS_epoll_pwait2
}

/// The descriptors in a `select` set of another process.
fn selected(process: i32, set: u64, count: usize) -> Option<Vec<i32>> {
    if set == 0 {
        return Some(Vec::new());
    }
    let bytes = read_memory(process, set, count.div_ceil(64) * 8)?;
    let is_in = |fd: &usize| bytes.get(fd / 8).is_some_and(|byte| byte & (1 << (fd % 8)) != 0);
    Some((0..count).filter(is_in).filter_map(|fd| i32::try_from(fd).ok()).collect())
}

/// The descriptors that another process polls to read from.
fn polled(process: i32, list: u64, count: usize) -> Option<Vec<i32>> {
    let bytes = read_memory(process, list, count * 8)?;
    let entries = bytes.chunks_exact(8).map(|entry| {
        let events = i16::from_ne_bytes([entry[4], entry[5]]);
        (i32::from_ne_bytes([entry[0], entry[1], entry[2], entry[3]]), events)
    });
    Some(entries.filter(|(_, events)| events & libc::POLLIN != 0).map(|(fd, _)| fd).collect())
}

/// The descriptors that another process watches with an `epoll`.
fn watched(process: i32, epoll: i32) -> Option<Vec<i32>> {
    let text = fs::read_to_string(format!("/proc/{process}/fdinfo/{epoll}")).ok()?;
    let watched = text.lines().filter_map(|line| {
        let mut words = line.strip_prefix("tfd:")?.split_whitespace();
        let fd = words.next()?.parse().ok()?;
        let events = u32::from_str_radix(words.nth(1)?, 16).ok()?;
        (events & libc::EPOLLIN.cast_unsigned() != 0).then_some(fd)
    });
    Some(watched.take(MOST_DESCRIPTORS).collect())
}

fn read_memory(process: i32, address: u64, length: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0u8; length];
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: length };
    let address = usize::try_from(address).ok()?;
    let remote =
        libc::iovec { iov_base: std::ptr::without_provenance_mut(address), iov_len: length };
    // SAFETY: `local` describes memory that is ours and as long as it says; the kernel checks `remote`,
    // which is not memory of this process.
    let read =
        unsafe { libc::process_vm_readv(process, &raw const local, 1, &raw const remote, 1, 0) };
    (usize::try_from(read) == Ok(length)).then_some(bytes)
}

/// Whether a descriptor of a process is its input.
fn is(process: i32, fd: i32, inlet: Inlet) -> bool {
    let Ok(file) = fs::metadata(format!("/proc/{process}/fd/{fd}")) else { return false };
    match inlet {
        Inlet::Terminal { file: ours, session } => {
            let is_character = rustix::fs::FileType::from_raw_mode(file.mode()).is_char_device();
            let is_its_own = is_character && numbered(&file) == CONTROLLING_TERMINAL;
            (file.dev(), file.ino()) == ours
                || (is_its_own && session.is_some() && session_of(process) == session)
        }
        Inlet::Pipe(device, inode) => (file.dev(), file.ino()) == (device, inode),
    }
}

/// Whether output may come from elsewhere by this descriptor: from another machine, or from a terminal
/// that the program keeps for others.
fn brings_output(process: i32, fd: i32) -> bool {
    let path = format!("/proc/{process}/fd/{fd}");
    let is_socket = fs::read_link(&path)
        .is_ok_and(|link| link.as_os_str().as_encoded_bytes().starts_with(b"socket:"));
    is_socket || fs::metadata(&path).is_ok_and(|file| numbered(&file) == TERMINAL_MAKER)
}

fn numbered(device: &fs::Metadata) -> (u32, u32) {
    (rustix::fs::major(device.rdev()), rustix::fs::minor(device.rdev()))
}
