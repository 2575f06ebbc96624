//! Which peers there are, where they come from and what their programs are called.

use super::python;
use std::path::Path;

/// A package that holds a peer.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: &'static str,
    pub(crate) origin: Origin,
    /// Its program below its directory; `*` stands for one directory of any name. The system's own is taken first
    /// where the origin is the system.
    pub(crate) program: &'static str,
}

/// Where a package comes from.
#[derive(Debug)]
pub(crate) enum Origin {
    Npm(&'static str),
    Python(&'static str),
    /// A crate's program, or one of its examples.
    Crate {
        name: &'static str,
        example: Option<&'static str>,
    },
    /// Packages of Debian, unpacked beside each other and never installed.
    Debian(&'static [&'static str]),
    /// Only if the system has it: it needs rights that nothing below a target directory has.
    System,
}

const fn npm(name: &'static str, package: &'static str, program: &'static str) -> Package {
    Package { name, origin: Origin::Npm(package), program }
}

const fn python_package(name: &'static str, program: &'static str) -> Package {
    Package { name, origin: Origin::Python(name), program }
}

const fn krate(
    name: &'static str,
    package: &'static str,
    example: Option<&'static str>,
    program: &'static str,
) -> Package {
    Package { name, origin: Origin::Crate { name: package, example }, program }
}

pub(crate) const PACKAGES: &[Package] = &[
    Package { name: "bubblewrap", origin: Origin::Debian(&["bubblewrap"]), program: "bin/bwrap" },
    Package { name: "firejail", origin: Origin::System, program: "bin/firejail" },
    // The launcher of the package is a script for node; the program that it starts is measured.
    npm("codex", "@openai/codex", "node_modules/@openai/codex-linux-x64/vendor/*/bin/codex"),
    npm("srt", "@anthropic-ai/sandbox-runtime", "node_modules/.bin/srt"),
    // srt does not start without them.
    Package { name: "socat", origin: Origin::Debian(&["socat", "libwrap0"]), program: "bin/socat" },
    Package { name: "ripgrep", origin: Origin::Debian(&["ripgrep"]), program: "bin/rg" },
    krate("landlock", "landlock", Some("sandboxer"), "bin/sandboxer"),
    krate("birdcage", "birdcage", Some("sandbox"), "bin/sandbox"),
    krate("hakoniwa", "hakoniwa-cli", None, "bin/hakoniwa"),
    krate("sandlock", "sandlock-cli", None, "bin/sandlock"),
    npm("mcp-server-commands", "mcp-server-commands", "node_modules/.bin/mcp-server-commands"),
    npm(
        "desktop-commander",
        "@wonderwhy-er/desktop-commander",
        "node_modules/.bin/desktop-commander",
    ),
    python_package("pexpect", "pexpect"),
    python_package("pty-mcp", "bin/pty-mcp"),
    python_package("libtmux-mcp", "bin/libtmux-mcp"),
    python_package("swe-rex", "swerex"),
];

impl Origin {
    /// The commands that bring it, run in the directory that is to hold it.
    pub(super) fn installer(&self, home: &Path) -> Vec<Vec<String>> {
        let home = home.display().to_string();
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        match self {
            Self::Npm(package) => vec![words(&[
                "npm",
                "install",
                "--no-audit",
                "--no-fund",
                "--loglevel=error",
                "--prefix",
                &home,
                package,
            ])],
            Self::Python(package) => {
                let python = python().display().to_string();
                vec![words(&[
                    &python,
                    "-m",
                    "pip",
                    "install",
                    "--quiet",
                    "--no-warn-script-location",
                    "--root-user-action=ignore",
                    "--target",
                    &home,
                    package,
                ])]
            }
            Self::Crate { name, example } => {
                // Its own target directory goes again: programs stay.
                let build = format!("CARGO_TARGET_DIR={home}/build");
                let mut install = words(&[
                    "env", &build, "cargo", "install", "--quiet", "--locked", "--root", &home, name,
                ]);
                if let Some(example) = example {
                    install.extend(words(&["--example", example]));
                }
                vec![install, words(&["rm", "-rf", &format!("{home}/build")])]
            }
            Self::Debian(packages) => {
                let mut get = words(&["apt-get", "download", "--quiet"]);
                get.extend(packages.iter().map(ToString::to_string));
                vec![get, words(&["sh", "-c", UNPACK])]
            }
            Self::System => Vec::new(),
        }
    }
}

/// What was unpacked is started by a script of two lines that tells it where its libraries are.
const UNPACK: &str = r#"set -e
for package in *.deb; do dpkg-deb -x "$package" root; done
mkdir -p bin
for program in root/usr/bin/*; do
    script=bin/${program##*/}
    printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' \
        "$(echo "$PWD"/root/usr/lib/*-linux-gnu | tr ' ' :)" "$PWD/$program" > "$script"
    chmod 755 "$script"
done"#;
