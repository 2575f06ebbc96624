//! What `strace -f -y` wrote about calls that failed, understood as far as a sandbox could be the reason.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A call that failed in a way in which the cage makes calls fail.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Failure {
    pub(crate) operation: &'static str,
    /// What it may have been about: of two names that are renamed, either.
    pub(crate) targets: Vec<String>,
    /// The line, for whoever has to find out.
    pub(crate) line: String,
}

/// Where a call has its path: the place of the directory, if it has one, and of the text.
type At = (Option<usize>, usize);

/// Whether a link at the end of a path is meant, or what it leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Link {
    Followed,
    Meant,
}

use Link::{Followed, Meant};

const FIRST: &[At] = &[(None, 0)];
const SECOND: &[At] = &[(None, 1)];
const AT: &[At] = &[(Some(0), 1)];

/// Every call that the cage may refuse because of a path.
const FILES: &[(&str, &str, &[At], Link)] = &[
    ("open", "open", FIRST, Followed),
    ("creat", "open", FIRST, Followed),
    ("openat", "open", AT, Followed),
    ("openat2", "open", AT, Followed),
    ("truncate", "write", FIRST, Followed),
    ("mkdir", "create", FIRST, Meant),
    ("mkdirat", "create", AT, Meant),
    ("mknod", "create", FIRST, Meant),
    ("mknodat", "create", AT, Meant),
    ("symlink", "create", SECOND, Meant),
    ("symlinkat", "create", &[(Some(1), 2)], Meant),
    ("link", "create", SECOND, Meant),
    ("linkat", "create", &[(Some(2), 3)], Meant),
    ("unlink", "remove", FIRST, Meant),
    ("rmdir", "remove", FIRST, Meant),
    ("unlinkat", "remove", AT, Meant),
    ("rename", "rename", &[(None, 0), (None, 1)], Meant),
    ("renameat", "rename", &[(Some(0), 1), (Some(2), 3)], Meant),
    ("renameat2", "rename", &[(Some(0), 1), (Some(2), 3)], Meant),
    ("chmod", "change", FIRST, Followed),
    ("fchmodat", "change", AT, Followed),
    ("fchmodat2", "change", AT, Followed),
    ("chown", "change", FIRST, Followed),
    ("lchown", "change", FIRST, Meant),
    ("fchownat", "change", AT, Followed),
    ("utime", "change", FIRST, Followed),
    ("utimes", "change", FIRST, Followed),
    ("futimesat", "change", AT, Followed),
    ("utimensat", "change", AT, Followed),
    ("setxattr", "change", FIRST, Followed),
    ("lsetxattr", "change", FIRST, Meant),
    ("removexattr", "change", FIRST, Followed),
    ("lremovexattr", "change", FIRST, Meant),
    ("fchmod", "change", &[], Followed),
    ("fchown", "change", &[], Followed),
    ("fsetxattr", "change", &[], Followed),
    ("fremovexattr", "change", &[], Followed),
];

/// Calls that nothing in the cage may make, of those that a test makes.
const NEVER: &[&str] =
    &["mount", "umount2", "unshare", "chroot", "setns", "bpf", "ptrace", "keyctl"];

/// Reads a trace. `directory` is where relative paths begin.
pub(crate) fn failures(trace: &str, directory: &Path) -> Vec<Failure> {
    let mut unfinished = BTreeMap::new();
    let mut failures = Vec::new();
    for line in trace.lines() {
        let Some((pid, rest)) = line.split_once(' ') else { continue };
        let rest = rest.trim_start();
        if let Some(start) = rest.strip_suffix(" <unfinished ...>") {
            unfinished.insert(pid, start.to_owned());
            continue;
        }
        let whole = match rest.split_once(" resumed>") {
            Some((_, end)) => unfinished.remove(pid).unwrap_or_default() + end,
            None => rest.to_owned(),
        };
        failures.extend(failure(&whole, directory));
    }
    failures
}

fn failure(line: &str, directory: &Path) -> Option<Failure> {
    let (call, result) = line.rsplit_once(" = -1 ")?;
    let (name, arguments) = call.trim_end().strip_suffix(')')?.split_once('(')?;
    let errno = result.split(' ').next()?;
    let arguments = split(arguments);
    let found = |operation, targets| Some(Failure { operation, targets, line: line.to_owned() });
    match (name, errno) {
        ("connect", "ENETUNREACH" | "EACCES") => found("connect", vec![address(&arguments[1])?]),
        ("sendto", "ENETUNREACH") => found("send", vec![address(arguments.get(4)?)?]),
        ("socket", "EPERM") => {
            let family = arguments.first()?.clone();
            // Without a right, or as a matter of course.
            let is_quiet = family == "AF_INET" || family == "AF_UNIX";
            if is_quiet { None } else { found("socket", vec![format!("{family} socket")]) }
        }
        (name, "EPERM") if NEVER.contains(&name) => found("use", vec![name.to_owned()]),
        // To ask is not to try.
        ("access" | "faccessat" | "faccessat2", _) => None,
        (_, "EROFS" | "EBUSY") | ("rename" | "renameat" | "renameat2", "EXDEV") => {
            let Some((_, operation, places, link)) = FILES.iter().find(|row| row.0 == name) else {
                panic!("a call of which this test knows nothing was refused: {line}");
            };
            let meant = call.contains("NOFOLLOW") || *link == Meant;
            let mut targets: Vec<_> =
                places.iter().filter_map(|at| path(&arguments, *at, directory, meant)).collect();
            if targets.is_empty() {
                targets.push(described(&arguments[0])?.to_owned());
            }
            found(actual(operation, call, &targets[0]), targets)
        }
        _ => None,
    }
}

/// What an open was to do, which only the world can tell.
fn actual(operation: &'static str, call: &str, target: &str) -> &'static str {
    let is_new = call.contains("O_TMPFILE") || !Path::new(target).exists();
    match operation {
        "open" if is_new => "create",
        "open" => "write",
        other => other,
    }
}

/// The path that strace shows beside a descriptor.
fn described(argument: &str) -> Option<&str> {
    argument.split_once('<')?.1.strip_suffix('>')
}

fn path(arguments: &[String], at: At, directory: &Path, meant: bool) -> Option<String> {
    let text = arguments.get(at.1)?.strip_prefix('"')?.strip_suffix('"')?;
    let from = at.0.and_then(|index| described(&arguments[index]));
    let whole = from.map_or(directory, Path::new).join(text.trim_end_matches('/'));
    Some(canonical(&whole, meant).display().to_string())
}

/// Where a path leads. A name that is not there lies in a directory that is.
fn canonical(path: &Path, meant: bool) -> PathBuf {
    if !meant && let Ok(found) = path.canonicalize() {
        return found;
    }
    if !meant && let Ok(link) = path.read_link() {
        return canonical(&path.parent().unwrap_or(path).join(link), meant);
    }
    match (path.parent().map(Path::canonicalize), path.file_name()) {
        (Some(Ok(parent)), Some(name)) => parent.join(name),
        _ => path.to_owned(),
    }
}

fn address(argument: &str) -> Option<String> {
    let after = |key: &str| argument.split_once(key).map(|(_, rest)| rest);
    let until = |text: &'_ str, end: char| text.split(end).next().map(str::to_owned);
    if let Some(rest) = after("sun_path=\"") {
        return until(rest, '"');
    }
    let port = until(after("_port=htons(")?, ')')?;
    if let Some(rest) = after("inet_addr(\"") {
        return Some(format!("{}:{port}", until(rest, '"')?));
    }
    Some(format!("[{}]:{port}", until(after("inet_pton(AF_INET6, \"")?, '"')?))
}

/// Splits arguments at commas that are in no quotes, braces, brackets or angles.
fn split(text: &str) -> Vec<String> {
    let (mut parts, mut part, mut depth, mut quoted) = (Vec::new(), String::new(), 0, false);
    for character in text.chars() {
        match character {
            '"' => quoted = !quoted,
            '{' | '[' | '(' | '<' if !quoted => depth += 1,
            '}' | ']' | ')' | '>' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                parts.push(std::mem::take(&mut part).trim().to_owned());
                continue;
            }
            _ => {}
        }
        part.push(character);
    }
    parts.push(part.trim().to_owned());
    parts
}
