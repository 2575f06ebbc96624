//! Names that some crates' sources may not mention, whatever their `Cargo.toml` allows.
//!
//! The rules hold for `src/`, with the tests that are in it. Integration tests are outside the
//! product and may look at the world. A wall stands around a whole crate, or around some of its modules.

use super::rust::{NamedPath, is_punct, paths};
use super::tree::package_of;
use super::{Finding, Tree};
use proc_macro2::{Delimiter, TokenTree};

/// Paths and methods that some crates may not name, and the reason.
struct Wall {
    crates: &'static [&'static str],
    /// The modules that it stands around, as paths below `src/`; all of them if none is named.
    modules: &'static [&'static str],
    paths: &'static [&'static str],
    methods: &'static [&'static str],
    reason: &'static str,
}

/// The methods of `Path` that ask the file system.
const FILE_SYSTEM_METHODS: &[&str] = &[
    "canonicalize",
    "exists",
    "is_dir",
    "is_file",
    "is_symlink",
    "metadata",
    "read_dir",
    "read_link",
    "symlink_metadata",
    "try_exists",
];

const WALLS: &[Wall] = &[
    Wall {
        crates: &["policy"],
        modules: &[],
        paths: &["std::env", "std::fs", "std::net", "std::process", "tokio"],
        methods: FILE_SYSTEM_METHODS,
        reason: "policy judges what it is handed and touches nothing; let runtime look it up and \
                 pass it in",
    },
    Wall {
        crates: &["protocol"],
        modules: &[],
        paths: &["std::fs", "std::net", "std::process", "tokio"],
        methods: FILE_SYSTEM_METHODS,
        reason: "protocol is plain data without I/O; move this to the crate that does the work",
    },
    Wall {
        crates: &["agent", "cli", "server", "tui"],
        modules: &[],
        paths: &["sandgate_process", "sandgate_sandbox"],
        methods: &[],
        reason: "a front end names no type of sandbox or process; ask runtime for it",
    },
    Wall {
        crates: &["server"],
        modules: &["acp", "mcp"],
        paths: &[
            "sandgate_runtime::Approver",
            "sandgate_runtime::Desk",
            "sandgate_runtime::Desks",
            "sandgate_runtime::Session::approver",
            "sandgate_runtime::approval",
            "Session::approver",
            "ClientApprover::new",
            "asking::ClientApprover::new",
            "crate::ClientApprover::new",
            "crate::asking::ClientApprover::new",
            "super::super::ClientApprover::new",
            "super::super::asking::ClientApprover::new",
        ],
        methods: &["approver"],
        reason: "these doors answer nothing by a right of their own; they have a `DeskPlace` and a \
                 `ClientApprover` that cli makes",
    },
];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust_files() {
        let Some(package) = package_of(file.path) else { continue };
        let Some(module) = file.path.strip_prefix(&format!("crates/{package}/src/")) else {
            continue;
        };
        let walls = WALLS.iter().filter(|wall| wall.crates.contains(&package));
        for wall in walls.filter(|wall| wall.stands_around(module)) {
            for tokens in file.sequences() {
                let named = paths(&tokens);
                let named =
                    named.iter().filter_map(|path| Some((path.line, named_by(wall, path)?)));
                let called =
                    method_calls(&tokens).filter(|(_, name)| wall.methods.contains(&name.as_str()));
                findings.extend(
                    named
                        .map(|(line, name)| (line, name.to_owned()))
                        .chain(called.map(|(line, name)| (line, format!(".{name}()"))))
                        .map(|(line, name)| {
                            let message = format!("`{package}` names `{name}`; {}", wall.reason);
                            Finding::new(file.path, line, message)
                        }),
                );
            }
        }
    }
    findings
}

impl Wall {
    fn stands_around(&self, path: &str) -> bool {
        let is_inside = |module: &&'static str| match path.strip_prefix(*module) {
            Some(rest) => rest.starts_with('/') || rest == ".rs",
            None => false,
        };
        self.modules.is_empty() || self.modules.iter().any(is_inside)
    }
}

fn named_by(wall: &Wall, path: &NamedPath) -> Option<&'static str> {
    wall.paths.iter().copied().find(|forbidden| path.is_inside(forbidden))
}

/// Every `.name(…)` among these neighbours.
fn method_calls(tokens: &[TokenTree]) -> impl Iterator<Item = (usize, String)> {
    tokens.windows(3).filter_map(|window| match window {
        [dot, TokenTree::Ident(name), TokenTree::Group(arguments)]
            if is_punct(Some(dot), '.') && arguments.delimiter() == Delimiter::Parenthesis =>
        {
            Some((name.span().start().line, name.to_string()))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        check(&Tree::of(&[(path, text)])).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn words_in_strings_and_comments_reach_nowhere() {
        let text =
            "// std::fs is not for us.\nconst NOTE: &str = \"std::fs\";\nuse std::path::Path;";
        assert!(found("crates/policy/src/lib.rs", text).is_empty());
    }

    /// spec TIDY.14: Sources of `policy` that name `std::fs`, `std::process`, `std::net`,
    /// `std::env` or `tokio`, or call a method of `Path` that asks the file system, are findings.
    #[test]
    fn policy_touches_nothing() {
        let text = "use std::path::Path;\nuse std::{collections::BTreeMap, fs::File};\n\
                    fn f(path: &Path) -> bool {\n    path.exists()\n}\n\
                    fn g() {\n    std::env::var(\"HOME\").ok();\n    vec![tokio::spawn(x)];\n}\n";
        let lines = found("crates/policy/src/lib.rs", text);
        assert_eq!(lines.len(), 4, "{lines:?}");
        let starts = ["2: `policy` names `std::fs`;", "7: `policy` names `std::env`;"];
        for start in starts {
            let start = format!("crates/policy/src/lib.rs:{start}");
            assert!(lines.iter().any(|line| line.starts_with(&start)), "{start}");
        }
        assert!(lines.iter().any(|line| line.contains(":4: `policy` names `.exists()`;")));
        assert!(lines.iter().any(|line| line.contains(":8: `policy` names `tokio`;")));
    }

    /// spec TIDY.15: Sources of `protocol` that name `std::fs`, `std::process`, `std::net` or
    /// `tokio` are findings.
    #[test]
    fn protocol_does_no_input_or_output() {
        let lines = found("crates/protocol/src/event.rs", "use std::net::TcpStream;\n");
        assert_eq!(
            lines,
            [
                "crates/protocol/src/event.rs:1: `protocol` names `std::net`; protocol is plain data \
              without I/O; move this to the crate that does the work"
            ]
        );
        assert!(found("crates/protocol/src/event.rs", "use std::env;\n").is_empty());
    }

    /// spec TIDY.16: Sources of `cli`, `tui`, `server` and `agent` that name `sandgate_sandbox` or
    /// `sandgate_process` are findings.
    #[test]
    fn front_ends_do_not_see_the_machinery() {
        let text = "fn f() {\n    sandgate_process::spawn();\n}\n";
        for front_end in ["cli", "tui", "server", "agent"] {
            let lines = found(&format!("crates/{front_end}/src/deep/in.rs"), text);
            assert_eq!(lines.len(), 1);
            assert!(lines[0].contains(":2: "), "{lines:?}");
        }
        assert!(found("crates/runtime/src/lib.rs", text).is_empty());
    }

    /// spec TIDY.18: Sources of `server` in `mcp` and `acp` that name the runtime's `Approver` or `Desk`, make a
    /// `ClientApprover`, or name or call `approver` of a session, are findings.
    #[test]
    fn doors_for_agents_answer_nothing_themselves() {
        let text = "use sandgate_runtime::{Approver, Session};\nfn f(session: &Session) {\n    \
                    session.approver(\"mcp\");\n}\n";
        for door in ["mcp/mod.rs", "mcp/deep/in.rs", "acp/mod.rs", "acp.rs"] {
            let lines = found(&format!("crates/server/src/{door}"), text);
            assert_eq!(lines.len(), 2, "{door}: {lines:?}");
            assert!(lines.iter().any(|line| line.contains(":1: ")), "{lines:?}");
            assert!(lines.iter().any(|line| line.contains(":3: ")), "{lines:?}");
        }
        for line in [
            "use sandgate_runtime::{Asker, Desk};",
            "fn f() { sandgate_runtime::Desks::in_settings(x); }",
            "fn f(session: &Session) { Session::approver(session, \"mcp\"); }",
            "fn f() { ClientApprover::new(x); }",
            "fn f() { let make = crate::asking::ClientApprover::new; }",
        ] {
            let lines = found("crates/server/src/mcp/place.rs", line);
            assert_eq!(lines.len(), 1, "{line}: {lines:?}");
        }
        let fine = "use sandgate_runtime::DeskPlace;\nuse crate::asking::ClientApprover;\n";
        assert!(found("crates/server/src/mcp/place.rs", fine).is_empty());
        for elsewhere in ["asking.rs", "http/mod.rs", "mcpx/mod.rs"] {
            assert!(found(&format!("crates/server/src/{elsewhere}"), text).is_empty());
        }
    }

    #[test]
    fn integration_tests_may_look_at_the_world() {
        assert!(found("crates/policy/tests/corpus.rs", "use std::fs;\n").is_empty());
    }
}
