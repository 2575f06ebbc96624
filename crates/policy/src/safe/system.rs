//! Programs that say something about the machine, its processes, its people and its time.
//!
//! What looks a name up that the command line gives is left out (`id NAME`, `ps -u NAME`, `host`):
//! the lookup may be answered over the network, and the name carries data out.

use super::options::{Operands, Program, Seen, is_number, named, named_in, walk};
use super::{NotSafe, unknown};
use crate::command::Word;

const ABOUT: &[&str] = &["help", "version"];

/// Sorted by name.
#[rustfmt::skip] // A table, laid out by hand.
pub(super) const PROGRAMS: &[Program] = &[
    // The program, which has no -v. A shell's own is in `builtins`.
    named("[").operands(Operands::Free),
    named("arch").long(&[ABOUT]),
    named("cal").flags("13jmnswyY").harmless(),
    // Not -s, --set, and no operand but a format: it is the new time. Not -f: in BSD it comes before
    // a new time. What -d may be is in `check_date`.
    named("date").flags("jnRu").valued("drv").attached("I").operands(Operands::Each(is_format)).long(&[
        ABOUT,
        &["date=", "debug", "iso-8601[=]", "reference=", "resolution", "rfc-2822", "rfc-3339="],
        &["rfc-822", "rfc-email", "universal", "utc"],
    ]),
    // Bare it prints the environment. With operands it runs them.
    named("env").flags("0").long(&[ABOUT, &["null"]]),
    // Not -s, -c: goes on and on.
    named("free").flags("bghklmtvVw").long(&[
        ABOUT,
        &["bytes", "committed", "gibi", "giga", "human", "kibi", "kilo", "lohi", "mebi"],
        &["mega", "pebi", "peta", "si", "tebi", "tera", "total", "wide"],
    ]),
    // Not -v: runs another getconf.
    named("getconf").flags("a").operands(Operands::AtMost(2)),
    named("groups").long(&[ABOUT]),
    // An operand sets the name; most options ask the resolver.
    named("hostname"),
    named("id").flags("aAFgGnpPruzZ").long(&[
        ABOUT,
        &["context", "group", "groups", "name", "real", "user", "zero"],
    ]),
    // Not -m, --charmaps: runs gzip.
    named("locale").flags("ackvV").reads().long(&[
        ABOUT,
        &["all-locales", "category-name", "keyword-name", "usage", "verbose"],
    ]),
    named("logname").long(&[ABOUT]),
    named("lscpu").flags("abBcCehJpxyV").long(&[
        ABOUT,
        &["all", "bytes", "caches[=]", "extended[=]", "hex", "json", "offline", "online"],
        &["output-all", "parse[=]", "physical"],
    ]),
    // Only with -n, without which it resolves every address.
    named("netstat").never_bare().words(&[
        "-an", "-anp", "-ant", "-antp", "-anu", "-in", "-lnt", "-lntp", "-lntu", "-lntup", "-ltn",
        "-ltnp", "-ltunp", "-nlt", "-nltp", "-nr", "-ntl", "-ntlp", "-ntulp", "-plnt", "-plunt",
        "-rn", "-tan", "-tln", "-tlnp", "-tlpn", "-tnl", "-tnlp", "-tuln", "-tulnp", "-tulpn",
        "-tunlp",
    ]),
    named("nproc").long(&[ABOUT, &["all", "ignore="]]),
    named("printenv").flags("0").reads().long(&[ABOUT, &["null"]]),
    // Not -u, -U, -g, -G, which take names; but -aux is written by everybody who means aux. A word
    // without a dash is a bundle of BSD's letters, or ids.
    named("ps").flags("AacdefFHjLlMmNTVwyZ").valued("COopqst").words(&["-aux", "-auxww"]).long(&[
        &["cols=", "columns=", "context", "cumulative", "deselect", "forest", "format=", "headers"],
        &["help", "info", "lines=", "no-headers", "no-heading", "no-headings", "noheading"],
        &["noheadings", "pid=", "ppid=", "quick-pid=", "rows=", "sid=", "sort=", "tty=", "version"],
        &["width="],
    ]).operands(Operands::Each(is_ps_bundle)),
    named("sleep").long(&[ABOUT]).operands(Operands::Each(is_time_span)),
    // Not -r: resolves. Not -K: closes connections. Not -D: writes. Not -F and no operand: a filter
    // can name a host.
    named("ss").flags("046aBbdeHhilmMnoOpSstTuVwxzZ").long(&[
        ABOUT,
        &["all", "dccp", "extended", "info", "ipv4", "ipv6", "listening", "memory", "no-header"],
        &["numeric", "oneline", "options", "packet", "processes", "raw", "summary", "tcp", "udp"],
        &["unix"],
    ]),
    named("test").operands(Operands::Free),
    named("tty").flags("s").long(&[ABOUT, &["quiet", "silent"]]),
    named("uname").flags("aimnoprsv").long(&[
        ABOUT,
        &["all", "hardware-platform", "kernel-name", "kernel-release", "kernel-version", "machine"],
        &["nodename", "operating-system", "processor"],
    ]),
    named("uptime").flags("hpsV").long(&[ABOUT, &["pretty", "since"]]),
    // Not --lookup: resolves. No operand: it is another file, or two words that mean -m.
    named("who").flags("abdHlmpqrsTtu").long(&[
        ABOUT,
        &["all", "boot", "count", "dead", "heading", "login", "message", "mesg", "process"],
        &["runlevel", "short", "time", "users", "writable"],
    ]),
    named("whoami").long(&[ABOUT]),
];

/// `date`, whose -d is a time to GNU and, if it is a whole number, a setting of the kernel to older
/// BSDs.
pub(super) fn check_date(arguments: &[Word]) -> Result<(), NotSafe> {
    let Some(date) = named_in(PROGRAMS, "date") else { return Err(unknown("date")) };
    walk(date, arguments, &mut |seen| match seen {
        Seen::Option { name: "d", value: Some(value) } if is_whole(value) => {
            Err(NotSafe("a number behind -d of date sets the kernel's clock in BSD".to_owned()))
        }
        _ => Ok(()),
    })
}

/// A whole number, however many digits it has.
fn is_whole(value: &str) -> bool {
    let digits = value.trim().trim_start_matches(['+', '-']);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_format(operand: &str) -> bool {
    operand.starts_with('+')
}

fn is_ps_bundle(operand: &str) -> bool {
    let ids = |byte: u8| byte.is_ascii_digit() || byte == b',';
    // Not e: shows what each process was given, keys among it.
    let letters = |byte: u8| b"acfghHjlLmnrsSTuvVwxXZ".contains(&byte);
    operand.bytes().all(ids) || operand.bytes().all(letters)
}

/// A number with a unit, or without one.
fn is_time_span(operand: &str) -> bool {
    is_number(operand.strip_suffix(['s', 'm', 'h', 'd']).unwrap_or(operand))
}
