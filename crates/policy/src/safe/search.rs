//! Programs that search, other than `find` and git's own.

use super::options::{Operands, Program, named};

#[rustfmt::skip] // A table, laid out by hand.
const GREP_LONG: &[&str] = &[
    "after-context=", "basic-regexp", "before-context=", "binary", "binary-files=", "byte-offset",
    "color[=]", "colour[=]", "context=", "count", "dereference-recursive", "devices=",
    "directories=", "exclude=", "exclude-dir=", "exclude-from=", "extended-regexp", "file=",
    "files-with-matches", "files-without-match", "fixed-strings", "group-separator=", "help",
    "ignore-case", "include=", "include-dir=", "initial-tab", "invert-match", "label=",
    "line-buffered", "line-number", "line-regexp", "max-count=", "no-filename",
    "no-group-separator", "no-ignore-case", "no-messages", "null", "null-data", "only-matching",
    "perl-regexp", "quiet", "recursive", "regexp=", "silent", "text", "version", "with-filename",
    "word-regexp",
];

const fn grep(name: &'static str) -> Program {
    named(name)
        .flags("abcEFGHhIiLlnOoPpqRrSsTUuVvwxyZz")
        .valued("ABCDdefm")
        .numbers()
        .long(&[GREP_LONG])
        .harmless()
}

/// Not -x, -X, --exec, --exec-batch: run. Not -l, --list-details: runs ls. Not -o, --owner: asks the
/// user database, which may be on the network.
const fn fd(name: &'static str) -> Program {
    named(name).flags("01aFgHhIiLpqsuV").valued("cdeEjSt").reads().long(&[
        &["absolute-path", "and=", "base-directory=", "case-sensitive", "changed-before="],
        &["changed-within=", "color=", "exact-depth=", "exclude=", "extension=", "fixed-strings"],
        &["follow", "format=", "full-path", "glob", "help", "hidden", "ignore", "ignore-case"],
        &["ignore-file=", "max-depth=", "max-results=", "min-depth=", "no-follow", "no-hidden"],
        &["no-ignore", "no-ignore-parent", "no-ignore-vcs", "no-require-git", "one-file-system"],
        &["path-separator=", "print0", "prune", "quiet", "regex", "relative-path"],
        &["search-path=", "show-errors", "size=", "strip-cwd-prefix[=]", "threads=", "type="],
        &["unrestricted", "version"],
    ])
}

/// Sorted by name.
#[rustfmt::skip] // A table, laid out by hand.
pub(super) const PROGRAMS: &[Program] = &[
    fd("fd"),
    fd("fdfind"),
    // macOS' and GNU's. Not egrep, fgrep: scripts that run grep. zgrep and its kin are out: they run decompressors.
    grep("grep"),
    named("pgrep").flags("aAcfilnovwx").valued("dgPrst").reads().long(&[
        &["count", "delimiter=", "exact", "full", "help", "ignore-ancestors", "ignore-case"],
        &["inverse", "lightweight", "list-full", "list-name", "newest", "oldest", "parent="],
        &["pgroup=", "runstates=", "session=", "terminal=", "version"],
    ]),
    // Not --pre, --pre-glob, --hostname-bin: run. Not --hyperlink-format: asks for the host's name.
    // Not -z, --search-zip: run decompressors. A configuration file, which can hold all of these, is
    // named by an environment variable: keeping that unset is the runtime's part.
    named("rg").flags("abcFHhIiLlNnoPpqSsUuVvwx0.").valued("ABCdEefgjmMrTt").dashed("e").reads().long(&[
        &["after-context=", "auto-hybrid-regex", "before-context=", "binary", "block-buffered"],
        &["byte-offset", "case-sensitive", "color=", "colors=", "column", "context="],
        &["context-separator=", "count", "count-matches", "crlf", "debug", "dfa-size-limit="],
        &["encoding=", "engine=", "field-context-separator=", "field-match-separator=", "file="],
        &["files", "files-with-matches", "files-without-match", "fixed-strings", "follow"],
        &["glob=", "glob-case-insensitive", "heading", "help", "hidden", "ignore-case"],
        &["ignore-file=", "ignore-file-case-insensitive", "iglob=", "include-zero"],
        &["invert-match", "json", "line-buffered", "line-number", "line-regexp", "max-columns="],
        &["max-columns-preview", "max-count=", "max-depth=", "max-filesize=", "mmap", "multiline"],
        &["multiline-dotall", "no-binary", "no-column", "no-config", "no-context-separator"],
        &["no-crlf", "no-encoding", "no-filename", "no-heading", "no-hidden", "no-ignore"],
        &["no-ignore-dot", "no-ignore-exclude", "no-ignore-files", "no-ignore-global"],
        &["no-ignore-messages", "no-ignore-parent", "no-ignore-vcs", "no-json", "no-line-number"],
        &["no-messages", "no-mmap", "no-multiline", "no-pcre2", "no-pre", "no-require-git"],
        &["no-search-zip", "no-stats", "no-text", "no-unicode", "null", "null-data"],
        &["one-file-system", "only-matching", "passthru", "path-separator=", "pcre2"],
        &["pcre2-version", "pretty", "quiet", "regex-size-limit=", "regexp=", "replace="],
        &["smart-case", "sort=", "sort-files", "sortr=", "stats", "stop-on-nonmatch", "text"],
        &["threads=", "trace", "trim", "type=", "type-add=", "type-clear=", "type-list"],
        &["type-not=", "unrestricted", "version", "vimgrep", "with-filename", "word-regexp"],
    ]),
    named("whereis").flags("bhlmsuV").reads(),
    named("which").flags("as").operands(Operands::Any),
];
