//! Which names of programs are believed.
//!
//! A bare name is looked up by the runtime in directories that no workspace is in, and a file in
//! one of the system's directories belongs to the system. Any other path is just a file that may
//! have borrowed a known name.

/// The directories whose programs are the system's own.
const SYSTEM_DIRECTORIES: &[&str] = &["/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/"];

/// The name without its directory, if `name` is bare or lies in a directory of the system.
///
/// The path has to be written in the one usual way: what takes a detour is not believed. Letters are
/// compared as they are: `LS` and look-alikes from other alphabets are other programs.
pub fn is_system_program(name: &str) -> Option<&str> {
    let base = SYSTEM_DIRECTORIES
        .iter()
        .find_map(|directory| name.strip_prefix(directory))
        .unwrap_or(name);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+[:".contains(&byte);
    let is_name = !matches!(base, "" | "." | "..") && base.bytes().all(plain);
    is_name.then_some(base)
}

#[cfg(test)]
mod tests {
    use super::is_system_program;

    #[test]
    fn bare_names_and_the_systems_directories_are_believed_and_nothing_else_is() {
        for name in ["ls", "/bin/ls", "/usr/bin/ls", "/sbin/ls", "/usr/sbin/ls"] {
            assert_eq!(is_system_program(name), Some("ls"), "{name}");
        }
        for name in [
            "",
            ".",
            "..",
            "./ls",
            "bin/ls",
            "/tmp/ls",
            "/usr/local/bin/ls",
            "/bin/",
            "/bin//ls",
            "/bin/../ls",
            "/usr/bin/../../tmp/ls",
            "//bin/ls",
            "~/ls",
            "/ls",
        ] {
            assert_eq!(is_system_program(name), None, "{name}");
        }
    }
}
