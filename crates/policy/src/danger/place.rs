//! Where a word leads, by its letters alone: to the root, a home, the workspace, or nobody knows.
//!
//! Paths are compared by components, and without regard to case where a name is a known one. A home
//! is recognised as `~`, `$HOME`, the person's own and by the places where systems keep them, so
//! that nothing depends on a home being known.

use crate::command::{Shape, Word};
use crate::surroundings::Surroundings;
use std::cell::OnceCell;
use std::path::{Component, Path};

/// Where a path begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    /// `/`
    Root,
    /// A home whose path is not known.
    Home,
    /// The working directory, whose path is not known.
    Here,
    /// Above a directory whose path is not known.
    Above,
    /// Made while the script runs.
    Unknown,
}

/// Where a word leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) base: Base,
    pub(super) parts: Vec<String>,
    /// Its end is made while the script runs.
    pub(super) open: bool,
}

/// Ways to write the home directory that only a shell understands.
const HOMES: &[&str] = &[
    "$HOME",
    "${HOME}",
    "$env:USERPROFILE",
    "$env:HOME",
    "%USERPROFILE%",
    "%HOMEPATH%",
    "$USERPROFILE",
];

/// Ways to write the working directory that only a shell understands.
const HERES: &[&str] = &["$PWD", "${PWD}", "$(pwd)", "`pwd`", "%CD%"];

/// Directories that belong to the system: nothing in them is an agent's to change.
const SYSTEM: &[&str] = &[
    "etc",
    "boot",
    "bin",
    "sbin",
    "usr",
    "lib",
    "lib32",
    "lib64",
    "libexec",
    "opt",
    "var",
    "sys",
    "proc",
    "dev",
    "run",
    "srv",
    "root",
    "home",
    "Users",
    "System",
    "Library",
    "Applications",
    "private",
    "Windows",
    "Program Files",
    "Program Files (x86)",
    "ProgramData",
    "nix",
    "snap",
];

/// Where a command runs, worked out only when somebody asks: most commands never need it.
pub(super) struct Here<'a> {
    around: &'a Surroundings,
    place: OnceCell<Place>,
}

impl<'a> Here<'a> {
    /// The working directory that a script starts in.
    pub(super) fn start(around: &'a Surroundings) -> Self {
        Self { around, place: OnceCell::new() }
    }

    /// Where a script has moved to.
    pub(super) fn at(place: Place, around: &'a Surroundings) -> Self {
        Self { around, place: OnceCell::from(place) }
    }

    pub(super) fn place(&self) -> &Place {
        self.place.get_or_init(|| Place::here(self.around))
    }
}

impl Place {
    /// Where a text leads from a directory.
    pub(super) fn of(text: &str, shape: Shape, here: &Place, around: &Surroundings) -> Self {
        let bare: String;
        let mut text = text;
        if shape == Shape::Dynamic && text.contains(['"', '\'']) {
            bare = text.replace(['"', '\''], "");
            text = &bare;
        }
        let mut place = here.clone();
        let mut rest = text;
        if let Some(after) = after_any(text, HOMES).or_else(|| after_tilde(text)) {
            place = home(around);
            rest = after;
        } else if let Some(after) = after_any(text, HERES) {
            rest = after;
        } else if text.starts_with(['/', '\\']) || has_drive(text) {
            place = Self { base: Base::Root, parts: Vec::new(), open: false };
            rest = text.get(if has_drive(text) { 2 } else { 0 }..).unwrap_or_default();
        } else if shape == Shape::Dynamic && text.starts_with(['$', '`', '%', '<', '>', '…', '~'])
        {
            return Self { base: Base::Unknown, parts: after_unknown(text), open: true };
        }
        for part in rest.split(['/', '\\']) {
            if shape == Shape::Dynamic && part.contains(['$', '`', '%', '…']) {
                // `build/$NAME.o` begins with known letters, but where it ends is not known.
                place.open = true;
                return place;
            }
            place.step(part);
        }
        place
    }

    /// Where a word leads.
    pub(super) fn of_word(word: &Word, here: &Place, around: &Surroundings) -> Self {
        Self::of(&word.text, word.shape, here, around)
    }

    /// A path that is known, absolute and canonical.
    pub(super) fn at(path: &Path) -> Self {
        Self { base: Base::Root, parts: parts_of(path), open: false }
    }

    /// The working directory.
    fn here(around: &Surroundings) -> Self {
        match &around.cwd {
            Some(cwd) => Self { base: Base::Root, parts: parts_of(cwd), open: false },
            None => Self { base: Base::Here, parts: Vec::new(), open: false },
        }
    }

    fn step(&mut self, part: &str) {
        match part {
            "" | "." => {}
            ".." => {
                if self.parts.pop().is_none() && self.base != Base::Root {
                    self.base = match self.base {
                        Base::Unknown => Base::Unknown,
                        _ => Base::Above,
                    };
                }
            }
            _ => self.parts.push(part.to_owned()),
        }
    }

    /// The parts below a home, if it leads into one or to one.
    pub(super) fn in_home(&self, around: &Surroundings) -> Option<&[String]> {
        match self.base {
            Base::Home => return Some(&self.parts),
            Base::Root => {}
            Base::Here | Base::Above | Base::Unknown => return None,
        }
        if let Some(home) = &around.home {
            let home = parts_of(home);
            if !home.is_empty() && begins_with(&self.parts, &home) {
                return Some(&self.parts[home.len()..]);
            }
        }
        let first = self.parts.first()?;
        if first == "root" {
            return Some(&self.parts[1..]);
        }
        let homes = ["home", "users"].iter().any(|name| first.eq_ignore_ascii_case(name));
        (homes && self.parts.len() >= 2).then(|| &self.parts[2..])
    }

    /// Whether it leads into a root, or to one.
    pub(super) fn in_roots(&self, around: &Surroundings) -> bool {
        match self.base {
            Base::Here => true,
            Base::Root => self.root_above(around).is_some(),
            Base::Home | Base::Above | Base::Unknown => false,
        }
    }

    /// Whether it is a root itself, or the working directory where that is not known.
    pub(super) fn is_a_root(&self, around: &Surroundings) -> bool {
        match self.base {
            Base::Here => self.parts.is_empty(),
            Base::Root => match self.root_above(around) {
                Some(length) => length == self.parts.len(),
                None => false,
            },
            Base::Home | Base::Above | Base::Unknown => false,
        }
    }

    /// How many of its parts lead to the root that it lies in.
    pub(super) fn root_length(&self, around: &Surroundings) -> Option<usize> {
        if self.base == Base::Root { self.root_above(around) } else { None }
    }

    /// The length of the longest root that it lies in. With no root known, the working directory
    /// and what systems keep for temporary files stand in for them.
    fn root_above(&self, around: &Surroundings) -> Option<usize> {
        let inside = |root: &Path| {
            let root = parts_of(root);
            begins_with(&self.parts, &root).then_some(root.len())
        };
        if !around.roots.is_empty() {
            return around.roots.iter().filter_map(|root| inside(root)).max();
        }
        let temporary = ["/tmp", "/var/tmp", "/private/tmp"].map(Path::new);
        let cwd = around.cwd.as_deref().filter(|cwd| is_work(cwd, around));
        temporary.into_iter().chain(cwd).filter_map(inside).max()
    }

    /// Whether it is `/`.
    pub(super) fn is_root_directory(&self) -> bool {
        self.base == Base::Root && self.parts.is_empty()
    }

    /// The system directory that it leads into, such as `/etc`; not a home's own files.
    pub(super) fn in_system(&self, around: &Surroundings) -> bool {
        self.base == Base::Root
            && self.parts.first().is_some_and(|first| is_any(first, SYSTEM))
            && self.in_home(around).is_none()
            && !self.in_roots(around)
            && !matches!(
                self.names().as_slice(),
                ["var", "tmp" | "folders", ..]
                    | ["private", "tmp", ..]
                    | ["private", "var", "folders", ..]
            )
    }

    /// Its parts as plain text.
    pub(super) fn names(&self) -> Vec<&str> {
        self.parts.iter().map(String::as_str).collect()
    }

    /// Without a last part that matches everything, such as `*` or `.[!.]*`: to delete all that is
    /// in a directory is to delete it.
    pub(super) fn without_everything(mut self) -> Self {
        while self.parts.last().is_some_and(|part| is_everything(part)) {
            self.parts.pop();
        }
        self
    }
}

/// Whether a directory can be somebody's work: not `/`, a system's directory or a whole home.
fn is_work(directory: &Path, around: &Surroundings) -> bool {
    let place = Place { base: Base::Root, parts: parts_of(directory), open: false };
    let system = matches!(place.parts.as_slice(), [only] if is_any(only, SYSTEM));
    let home = place.in_home(around).is_some_and(<[String]>::is_empty);
    !place.parts.is_empty() && !system && !home
}

/// Whether a part is a pattern that matches everything, or nearly.
fn is_everything(part: &str) -> bool {
    part.contains(['*', '?']) && part.chars().all(|letter| "*?.![]^".contains(letter))
}

/// Whether a part of a path is this name, or a pattern that matches it.
pub(super) fn is_name(part: &str, name: &str) -> bool {
    if !part.contains(['*', '?', '[']) {
        return part.eq_ignore_ascii_case(name) || ends_as(part, name);
    }
    // `src/*` names nothing in particular, even if it would match a known name.
    if part.bytes().filter(|byte| !b"*?[]!^".contains(byte)).count() < 2 {
        return false;
    }
    could_be(part, name)
}

/// Whether a pattern, and be it a lone star, could match a name.
pub(super) fn could_be(part: &str, name: &str) -> bool {
    if !part.contains(['*', '?', '[']) {
        return is_name(part, name);
    }
    // A pattern does not match a leading dot unless it has one.
    (part.starts_with('.') || !name.starts_with('.')) && matches(part.as_bytes(), name.as_bytes())
}

/// A table's name may itself end in `*`.
fn ends_as(part: &str, name: &str) -> bool {
    name.strip_suffix('*').is_some_and(|start| {
        part.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start))
    })
}

/// A file name pattern against a name, which may end in `*`; a bracket counts as any one letter.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (name, open) = match name {
        [stem @ .., b'*'] => (stem, true),
        name => (name, false),
    };
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    loop {
        let step = match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, n));
                p += 1;
                continue;
            }
            None if n == name.len() => return true,
            Some(_) | None if n == name.len() => return open,
            Some(b'?') => Some(1),
            Some(b'[') => Some(bracket(&pattern[p..])),
            Some(letter) if letter.eq_ignore_ascii_case(&name[n]) => Some(1),
            Some(_) | None => None,
        };
        match (step, star) {
            (Some(length), _) => {
                p += length;
                n += 1;
            }
            (None, Some((after, at))) => {
                p = after;
                n = at + 1;
                star = Some((after, n));
            }
            (None, None) => return false,
        }
    }
}

fn bracket(pattern: &[u8]) -> usize {
    pattern.iter().skip(2).position(|byte| *byte == b']').map_or(1, |at| at + 3)
}

/// Whether a name is one of these, whatever its case.
pub(super) fn is_any(name: &str, names: &[&str]) -> bool {
    names.iter().any(|known| is_name(name, known))
}

/// `{a,b}/c`: each of the names that a shell makes of it.
pub(super) fn alternatives(word: &Word) -> Option<Vec<Word>> {
    if !matches!(word.shape, Shape::Dynamic | Shape::Home) {
        return None;
    }
    let (before, rest) = word.text.split_once('{').filter(|(before, _)| !before.ends_with('$'))?;
    let (inside, after) = rest.split_once('}')?;
    if !inside.contains(',') {
        return None;
    }
    let shape = if after.contains(['$', '`', '{']) { Shape::Dynamic } else { Shape::Pattern };
    let shape = if before.contains(['$', '`']) { Shape::Dynamic } else { shape };
    let shape = if word.shape == Shape::Home { Shape::Home } else { shape };
    let put = |name: &str| Word { text: format!("{before}{name}{after}"), shape };
    Some(inside.split(',').map(put).collect())
}

fn begins_with(parts: &[String], start: &[String]) -> bool {
    parts.len() >= start.len() && parts.iter().zip(start).all(|(part, start)| part == start)
}

fn parts_of(path: &Path) -> Vec<String> {
    let normal = |component: Component<'_>| match component {
        Component::Normal(part) => Some(part.to_string_lossy().into_owned()),
        _ => None,
    };
    path.components().filter_map(normal).collect()
}

fn home(around: &Surroundings) -> Place {
    match &around.home {
        Some(home) => Place { base: Base::Root, parts: parts_of(home), open: false },
        None => Place { base: Base::Home, parts: Vec::new(), open: false },
    }
}

fn after_any<'a>(text: &'a str, starts: &[&str]) -> Option<&'a str> {
    starts.iter().find_map(|start| {
        let begin = text.get(..start.len())?;
        let after = &text[start.len()..];
        let ends = after.is_empty() || after.starts_with(['/', '\\']);
        (begin.eq_ignore_ascii_case(start) && ends).then_some(after)
    })
}

/// `~`, `~/…` and `~name/…`, another person's home.
fn after_tilde(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('~')?;
    let name = rest.split(['/', '\\']).next().unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    name.bytes().all(plain).then(|| &rest[name.len()..])
}

fn has_drive(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 2
        && bytes[0].is_ascii_alphabetic()
        && bytes[1] == b':'
        && matches!(bytes.get(2), None | Some(b'/' | b'\\'))
}

/// The parts after the one that is made while the script runs.
fn after_unknown(text: &str) -> Vec<String> {
    text.split(['/', '\\']).skip(1).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}
