//! Programs that turn text into other text.
//!
//! One entry a program: short flags, short options with a value, long options. "Harmless" marks
//! those of which no version, GNU, BSD or other, has any option or operand that writes, runs or
//! connects; there an option that is not listed is refused only because nobody has looked at it.

use super::options::{Operands, Program, named};

/// What GNU programs answer by themselves.
const ABOUT: &[&str] = &["help", "version"];

/// The checksum programs of GNU. `-c` reads the files that a list names.
const SUMS: Program = named("").flags("bctwz").long(&[
    ABOUT,
    &["binary", "check", "ignore-missing", "quiet", "status", "strict", "tag", "text", "warn"],
    &["zero"],
]);

const fn sum(name: &'static str) -> Program {
    SUMS.called(name).harmless()
}

/// Sorted by name.
#[rustfmt::skip] // A table, laid out by hand.
pub(super) const PROGRAMS: &[Program] = &[
    named("b2sum").flags("bctwz").valued("l").harmless().long(&[
        ABOUT,
        &["binary", "check", "ignore-missing", "length=", "quiet", "status", "strict", "tag"],
        &["text", "warn", "zero"],
    ]),
    named("base32").flags("d").valued("w").long(&[
        ABOUT,
        &["decode", "ignore-garbage", "wrap="],
    ]).operands(Operands::AtMost(1)),
    // Not -i: GNU ignores garbage, macOS takes the name of the input. Not -o: macOS writes there.
    named("base64").flags("dD").valued("w").long(&[
        ABOUT,
        &["decode", "ignore-garbage", "wrap="],
    ]).operands(Operands::AtMost(1)),
    named("cksum").flags("cwz").valued("al").harmless().long(&[
        ABOUT,
        &["algorithm=", "base64", "check", "debug", "ignore-missing", "length=", "quiet", "raw"],
        &["status", "strict", "tag", "untagged", "warn", "zero"],
    ]),
    named("column").flags("tndeLJxhV").valued("cosNOEHRTWlrip").harmless().long(&[
        ABOUT,
        &["fillrows", "json", "keep-empty-lines", "output-separator=", "output-width="],
        &["separator=", "table", "table-columns=", "table-columns-limit=", "table-header-repeat"],
        &["table-hide=", "table-name=", "table-noextreme=", "table-noheadings", "table-order="],
        &["table-right=", "table-truncate=", "table-wrap=", "tree=", "tree-id=", "tree-parent="],
    ]),
    named("comm").flags("123iz").harmless().long(&[
        ABOUT,
        &["check-order", "nocheck-order", "output-delimiter=", "total", "zero-terminated"],
    ]),
    named("cut").flags("nswz").valued("bcdf").harmless().long(&[
        ABOUT,
        &["bytes=", "characters=", "complement", "delimiter=", "fields=", "only-delimited"],
        &["output-delimiter=", "zero-terminated"],
    ]),
    named("echo").operands(Operands::Free),
    named("expand").flags("i").valued("t").numbers().harmless().long(&[
        ABOUT,
        &["initial", "tabs="],
    ]),
    named("expr").operands(Operands::Free),
    named("factor").harmless().long(&[ABOUT]),
    named("false").operands(Operands::Free),
    named("fmt").flags("cstumn").valued("pwgdl").numbers().harmless().long(&[
        ABOUT,
        &["crown-margin", "goal=", "prefix=", "split-only", "tagged-paragraph", "uniform-spacing"],
        &["width="],
    ]),
    named("fold").flags("bs").valued("w").numbers().harmless().long(&[
        ABOUT,
        &["bytes", "spaces", "width="],
    ]),
    // Not -f: the format file may be anything, but it is only read; nobody uses it.
    named("hexdump").flags("bcCdovxX").valued("ens").attached("L").harmless().long(&[
        ABOUT,
        &["canonical", "color[=]", "format=", "length=", "no-squeezing", "one-byte-char"],
        &["one-byte-hex", "one-byte-octal", "skip=", "two-bytes-decimal", "two-bytes-hex"],
        &["two-bytes-octal"],
    ]),
    // Not -o, --output: writes.
    named("iconv").flags("lcs").valued("ft").reads().long(&[
        ABOUT,
        &["from-code=", "list", "silent", "to-code=", "verbose"],
    ]),
    named("join").flags("iz").valued("aejotv12").harmless().long(&[
        ABOUT,
        &["check-order", "header", "ignore-case", "nocheck-order", "zero-terminated"],
    ]),
    // jq's language has no means to write, run or connect. -f, -L, --slurpfile and --rawfile read.
    named("jq").flags("acCejMnrRsShV").valued("fL").reads().long(&[
        ABOUT,
        &["arg==", "argfile==", "argjson==", "args", "ascii-output", "color-output"],
        &["compact-output", "exit-status", "from-file=", "indent=", "join-output", "jsonargs"],
        &["monochrome-output", "null-input", "raw-input", "raw-output", "raw-output0"],
        &["rawfile==", "seq", "slurp", "slurpfile==", "sort-keys", "stream", "stream-errors"],
        &["tab", "unbuffered"],
    ]),
    named("md5").flags("qrnptx").valued("s").harmless(),
    sum("md5sum"),
    named("nl").flags("p").valued("bdfhilnsvw").harmless().long(&[
        ABOUT,
        &["body-numbering=", "footer-numbering=", "header-numbering=", "join-blank-lines="],
        &["line-increment=", "no-renumber", "number-format=", "number-separator="],
        &["number-width=", "section-delimiter=", "starting-line-number="],
    ]),
    named("numfmt").flags("z").valued("d").numbers().harmless().long(&[
        ABOUT,
        &["debug", "delimiter=", "field=", "format=", "from=", "from-unit=", "grouping"],
        &["header[=]", "invalid=", "padding=", "round=", "suffix=", "to=", "to-unit="],
        &["zero-terminated"],
    ]),
    named("od").flags("abcdfilosxvBDeFhHILOXp").valued("AjNtS").attached("w").harmless().long(&[
        ABOUT,
        &["address-radix=", "endian=", "format=", "output-duplicates", "read-bytes="],
        &["skip-bytes=", "strings[=]", "traditional", "width[=]"],
    ]),
    named("paste").flags("sz").valued("d").harmless().long(&[
        ABOUT,
        &["delimiters=", "serial", "zero-terminated"],
    ]),
    // The program, which has no -v. A shell's own is in `builtins`.
    named("printf").operands(Operands::Free),
    named("rev").flags("0hV").harmless().long(&[ABOUT, &["zero"]]),
    named("seq").flags("w").valued("fst").numbers().harmless().long(&[
        ABOUT,
        &["equal-width", "format=", "separator="],
    ]),
    sum("sha1sum"),
    sum("sha224sum"),
    sum("sha256sum"),
    sum("sha384sum"),
    sum("sha512sum"),
    named("shasum").flags("bctUw0sS").valued("a").harmless().long(&[
        ABOUT,
        &["algorithm=", "binary", "check", "ignore-missing", "quiet", "status", "strict", "tag"],
        &["text", "warn"],
    ]),
    // Not -o, --output: writes. One operand: a second one is an error today.
    // Not -r, --repeat: never ends.
    named("shuf").flags("ez").valued("in").reads().long(&[
        ABOUT,
        &["echo", "head-count=", "input-range=", "random-source=", "zero-terminated"],
    ]),
    // Not -o, --output: writes. Not --compress-program: runs. Not -T: says where temporary files
    // are written. Not -S, --batch-size, -m: make it write them for small inputs too.
    named("sort").flags("bcCdfghiMnRrsuVz").valued("kt").reads().long(&[
        ABOUT,
        &["check[=]", "debug", "dictionary-order", "field-separator=", "files0-from="],
        &["general-numeric-sort", "human-numeric-sort", "ignore-case", "ignore-leading-blanks"],
        &["ignore-nonprinting", "key=", "month-sort", "numeric-sort", "parallel="],
        &["random-sort", "random-source=", "reverse", "sort=", "stable", "unique"],
        &["version-sort", "zero-terminated"],
    ]),
    // `@file` names more options, of which none does harm either.
    named("strings").flags("adfowhvV").valued("nteTsU").numbers().harmless().long(&[
        ABOUT,
        &["all", "bytes=", "data", "encoding=", "include-all-whitespace", "output-separator="],
        &["print-file-name", "radix=", "target=", "unicode="],
    ]),
    named("sum").flags("rs").harmless().long(&[ABOUT, &["sysv"]]),
    named("tac").flags("br").valued("s").harmless().long(&[
        ABOUT,
        &["before", "regex", "separator="],
    ]),
    named("tr").flags("cCdstu").harmless().long(&[
        ABOUT,
        &["complement", "delete", "squeeze-repeats", "truncate-set1"],
    ]),
    named("true").operands(Operands::Free),
    named("tsort").flags("dlq").harmless().long(&[ABOUT]),
    named("unexpand").flags("a").valued("t").harmless().long(&[
        ABOUT,
        &["all", "first-only", "tabs="],
    ]),
    // A second operand is a file that is written.
    named("uniq").flags("cdDiuz").valued("fsw").long(&[
        ABOUT,
        &["all-repeated[=]", "check-chars=", "count", "group[=]", "ignore-case", "repeated"],
        &["skip-chars=", "skip-fields=", "unique", "zero-terminated"],
    ]).operands(Operands::AtMost(1)),
    // A second operand is a file that is written. Not -r: with it even the offsets of what is
    // written come from the input.
    named("xxd").flags("abCdeEiupv").valued("cglnos").single_letters().words(&[
        "-autoskip", "-bits", "-capitalize", "-include", "-plain", "-postscript", "-ps", "-uppercase",
    ]).operands(Operands::AtMost(1)),
];

/// Whether a program of jq's could go on for ever: by a function of its own, or by one of those that do.
/// `.repeat` is what an object holds under that name, and `$repeat` a variable.
pub(super) fn may_go_on(program: &str) -> bool {
    let apart = |letter: char| !letter.is_ascii_alphanumeric() && letter != '_';
    let endless = ["def", "infinite", "recurse", "recurse_down", "repeat", "until", "while"];
    let mut at = 0;
    program.split(apart).any(|word| {
        let before = program[..at].chars().next_back();
        // What separates words is one character at a time.
        at += word.len() + program[at + word.len()..].chars().next().map_or(0, char::len_utf8);
        endless.contains(&word) && !matches!(before, Some('.' | '$'))
    })
}
