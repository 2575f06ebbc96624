//! Which words name a program of the system.

/// The directories that hold the system's programs. No session can write to them.
const SYSTEM_DIRECTORIES: [&str; 4] = ["/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/"];

/// The bare name of a program that the system has, if that is what the word names: a name without
/// a slash, or one directly in a directory of the system. Letters are compared as they are: `LS` and
/// look-alikes from other alphabets are other programs.
pub(super) fn is_system_program(name: &str) -> Option<&str> {
    let bare = SYSTEM_DIRECTORIES.iter().find_map(|directory| name.strip_prefix(directory));
    let bare = bare.unwrap_or(name);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+[:".contains(&byte);
    let is_name = !matches!(bare, "" | "." | "..") && bare.bytes().all(plain);
    is_name.then_some(bare)
}
