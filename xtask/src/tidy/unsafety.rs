//! Where unsafe code may be, and that each piece of it says why it is sound.

use super::rust::{RustFile, all_attributes, is_ident};
use super::tree::package_of;
use super::{Finding, Tree};
use proc_macro2::{Delimiter, TokenTree};

/// The crates that may have one `sys` module with unsafe code.
const WITH_SYS: &[&str] = &["process", "sandbox"];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust_files() {
        for found in find_uses(&file.top_level()) {
            let message = if !in_sys(file.path) {
                "unsafe code lives in the `sys` module of process or sandbox; move it there, or \
                 find a safe way"
            } else if !has_note(&file, &found) {
                "unsafe without a note; write `// SAFETY: …` above it and say why it is sound"
            } else {
                continue;
            };
            findings.push(Finding::new(file.path, found.line, message));
        }
        findings.extend(check_root(tree, &file));
    }
    findings
}

/// One use of the keyword.
struct Use {
    line: usize,
    /// The first line of the statement or item that it is in.
    statement_line: usize,
    /// Whether it is a promise to callers, which is documented under the heading `# Safety`.
    declares: bool,
}

/// Finds the keyword, and with it where its statement begins. A call's arguments belong to the
/// statement around them; each block has statements of its own.
fn find_uses(tokens: &[TokenTree]) -> Vec<Use> {
    let mut uses = Vec::new();
    let mut statement: Option<usize> = None;
    for (index, token) in tokens.iter().enumerate() {
        let line = token.span().start().line;
        let statement_line = *statement.get_or_insert(line);
        match token {
            TokenTree::Ident(ident) if ident == "unsafe" => {
                let declares = declaration(&tokens[index + 1..]);
                uses.extend(declares.map(|declares| Use { line, statement_line, declares }));
            }
            TokenTree::Group(group) => {
                let content: Vec<TokenTree> = group.stream().into_iter().collect();
                let inner = find_uses(&content).into_iter();
                if group.delimiter() == Delimiter::Brace {
                    uses.extend(inner);
                    statement = None;
                } else {
                    uses.extend(inner.map(|found| Use { statement_line, ..found }));
                }
            }
            TokenTree::Punct(punct) if matches!(punct.as_char(), ';' | ',') => statement = None,
            _ => {}
        }
    }
    uses
}

/// Whether what follows the keyword declares an unsafe function or trait. Nothing for the type of a
/// function pointer, which does nothing.
fn declaration(after: &[TokenTree]) -> Option<bool> {
    let abi = match after {
        [first, TokenTree::Literal(_), ..] if is_ident(Some(first), "extern") => 2,
        [first, ..] if is_ident(Some(first), "extern") => 1,
        _ => 0,
    };
    let after = &after[abi..];
    if is_ident(after.first(), "fn") {
        return matches!(after.get(1), Some(TokenTree::Ident(_))).then_some(true);
    }
    Some(is_ident(after.first(), "trait"))
}

/// Whether a comment with the note stands on the lines directly above the keyword or above its
/// statement, or on its own line before it.
fn has_note(file: &RustFile<'_>, found: &Use) -> bool {
    let lines: Vec<&str> = file.text.lines().collect();
    let says_why =
        |line: &str| line.contains("SAFETY:") || (found.declares && line.contains("# Safety"));
    let above = |line: usize| {
        lines[..line - 1]
            .iter()
            .rev()
            .map(|line| line.trim_start())
            .take_while(|line| line.starts_with("//") || line.starts_with('#'))
            .any(says_why)
    };
    let before = lines[found.line - 1].split("unsafe").next().unwrap_or_default();
    (before.contains("/*") && says_why(before)) || above(found.line) || above(found.statement_line)
}

/// Whether a path is in the one module that may have unsafe code.
fn in_sys(path: &str) -> bool {
    WITH_SYS.iter().any(|name| {
        let sys = format!("crates/{name}/src/sys");
        path.strip_prefix(&sys).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    })
}

/// The root of a library or a program forbids unsafe code. A library with a `sys` module denies it,
/// so that only that module can allow it again.
fn check_root(tree: &Tree, file: &RustFile<'_>) -> Option<Finding> {
    let package = package_of(file.path)?;
    let directories = if package == "xtask" { 1 } else { 2 };
    let name = file.path.splitn(directories + 1, '/').last()?.strip_prefix("src/")?;
    let is_program = name
        .strip_prefix("bin/")
        .is_some_and(|rest| !rest.contains('/') || rest.ends_with("/main.rs"));
    if !(name == "lib.rs" || name == "main.rs" || is_program) {
        return None;
    }
    let has_sys = name == "lib.rs"
        && tree.texts().any(|(path, _)| package_of(path) == Some(package) && in_sys(path));
    let level = if has_sys { "deny" } else { "forbid" };
    let carries = all_attributes(&file.top_level())
        .iter()
        .any(|attribute| attribute.is_inner && attribute.is_call(level, "unsafe_code"));
    let message = format!("this crate root lacks `#![{level}(unsafe_code)]`; add it");
    (!carries).then(|| Finding::new(file.path, 1, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYS: &str = "crates/process/src/sys/fork.rs";

    fn found(path: &str, text: &str) -> Vec<String> {
        check(&Tree::of(&[(path, text)])).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn unsafe_with_a_note_in_sys_passes() {
        for text in [
            "fn f() {\n    // SAFETY: it is sound\n    // because it is.\n    unsafe { g() };\n}\n",
            "fn f() {\n    // SAFETY: sound.\n    let x = g(\n        1,\n        unsafe { h() },\n    );\n}\n",
            "fn f() {\n    let x = /* SAFETY: sound. */ unsafe { h() };\n}\n",
            "// SAFETY: sound.\n#[cfg(unix)]\nunsafe impl Send for X {}\n",
            "/// Does it.\n///\n/// # Safety\n/// Hold the lock.\npub unsafe fn f() {}\n",
            "type Callback = unsafe extern \"C\" fn(i32);\n",
            "// unsafe { }\nconst S: &str = \"unsafe { }\";\n",
        ] {
            assert_eq!(found(SYS, text), Vec::<String>::new(), "{text}");
        }
        assert!(
            found("crates/sandbox/src/sys.rs", "// SAFETY: sound.\nunsafe impl X for Y {}")
                .is_empty()
        );
    }

    /// spec TIDY.20: Unsafe code without a `SAFETY:` note directly above it or its statement is a
    /// finding; the `# Safety` section of an unsafe function's documentation is such a note.
    #[test]
    fn unsafe_without_a_note_is_found() {
        for (text, line) in [
            ("fn f() {\n    unsafe { g() };\n}\n", 2),
            ("fn f() {\n    // SAFETY: sound.\n    unsafe { g() };\n    unsafe { h() };\n}\n", 4),
            ("fn f() {\n    // SAFETY: sound.\n\n    unsafe { g() };\n}\n", 4),
            ("fn f() {\n    let note = \"SAFETY: none\"; unsafe { g() };\n}\n", 2),
            ("/// # Safety\nunsafe impl Send for X {}\n", 2),
            ("/// Does it.\npub unsafe fn f() {}\n", 2),
            ("#[unsafe(no_mangle)]\nfn f() {}\n", 1),
            ("macro_rules! m {\n    () => {\n        unsafe { g() }\n    };\n}\n", 3),
        ] {
            assert_eq!(
                found(SYS, text),
                [format!(
                    "{SYS}:{line}: unsafe without a note; write `// SAFETY: …` above it and say \
                     why it is sound"
                )],
                "{text}"
            );
        }
    }

    /// spec TIDY.21: Unsafe code outside the `sys` modules of `process` and `sandbox` is a finding,
    /// also in tests.
    #[test]
    fn unsafe_elsewhere_is_found() {
        let text = "fn f() {\n    // SAFETY: sound.\n    unsafe { g() };\n}\n";
        for path in [
            "crates/process/src/pipe.rs",
            "crates/process/tests/pipe.rs",
            "crates/runtime/src/sys.rs",
            "xtask/src/bench/sys.rs",
        ] {
            assert_eq!(
                found(path, text),
                [format!(
                    "{path}:3: unsafe code lives in the `sys` module of process or sandbox; move \
                     it there, or find a safe way"
                )]
            );
        }
    }

    /// spec TIDY.22: The root of a library or program without `#![forbid(unsafe_code)]` is a
    /// finding; a library with a `sys` module must have `#![deny(unsafe_code)]`.
    #[test]
    fn crate_roots_forbid_unsafe_code() {
        for root in [
            "crates/policy/src/lib.rs",
            "crates/cli/src/main.rs",
            "testing/model-server/src/lib.rs",
            "xtask/src/main.rs",
        ] {
            assert!(found(root, "//! Roots.\n\n#![forbid(unsafe_code)]\n").is_empty());
            assert_eq!(
                found(root, "#![deny(unsafe_code)]\n// #![forbid(unsafe_code)]\n"),
                [format!("{root}:1: this crate root lacks `#![forbid(unsafe_code)]`; add it")]
            );
        }
        let sandbox = "crates/sandbox/src/lib.rs";
        assert_eq!(found(sandbox, "#![deny(unsafe_code)]\n").len(), 1);
        let with_sys =
            |root| check(&Tree::of(&[(sandbox, root), ("crates/sandbox/src/sys.rs", "")]));
        assert!(with_sys("#![deny(unsafe_code)]\nmod sys;\n").is_empty());
        assert_eq!(with_sys("mod sys;\n").len(), 1);
        assert!(found("crates/sandbox/src/bin/cage.rs", "fn main() {}\n").len() == 1);
    }
}
