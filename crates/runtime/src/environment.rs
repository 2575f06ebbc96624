//! The environment that commands are given: what of the person's own, without its secrets.

use sandgate_process::ScreenWanted;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// What of the person's environment a command is given: `shell_environment_policy`.
///
/// ```
/// use sandgate_runtime::{InheritEnvironment, ShellEnvironmentPolicy};
///
/// let policy = ShellEnvironmentPolicy {
///     inherit: InheritEnvironment::Core,
///     exclude: vec!["AWS_*".to_owned()],
///     set: [("CI".to_owned(), "1".to_owned())].into(),
///     ..ShellEnvironmentPolicy::default()
/// };
/// # let _ = policy;
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShellEnvironmentPolicy {
    /// Where it begins.
    pub inherit: InheritEnvironment,
    /// Keeps the variables whose names look like secrets, which are left out otherwise.
    pub ignore_default_excludes: bool,
    /// Patterns of names that are left out: `*` is any text, `?` one character, case does not matter.
    pub exclude: Vec<String>,
    /// Variables that are set.
    pub set: BTreeMap<String, String>,
    /// If there are any, only names that match one of these patterns remain.
    pub include_only: Vec<String>,
}

/// Where a command's environment begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InheritEnvironment {
    /// With all of the person's.
    #[default]
    All,
    /// With what nearly every program needs.
    Core,
    /// With nothing.
    None,
}

/// What nearly every program needs.
const CORE: &[&str] = &[
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "USER",
    "USERNAME",
    "TMPDIR",
    "TEMP",
    "TMP",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TERM",
    "TZ",
    // Without these nothing starts on Windows.
    "SystemRoot",
    "COMSPEC",
    "PATHEXT",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
];

/// What the names of secrets look like.
const SECRETS: &[&str] = &[
    "*KEY*",
    "*SECRET*",
    "*TOKEN*",
    // What proves to a collector of telemetry who we are.
    "OTEL_EXPORTER_*HEADERS",
];

impl ShellEnvironmentPolicy {
    /// The environment of a command of a person with this one.
    pub fn apply(&self, own: &BTreeMap<OsString, OsString>) -> BTreeMap<OsString, OsString> {
        let mut env: BTreeMap<OsString, OsString> = match self.inherit {
            InheritEnvironment::All => own.clone(),
            InheritEnvironment::Core => {
                let is_core = |name: &&OsString| CORE.iter().any(|core| is_same(core, name));
                let kept = own.iter().filter(|(name, _)| is_core(name));
                kept.map(|(name, value)| (name.clone(), value.clone())).collect()
            }
            InheritEnvironment::None => BTreeMap::new(),
        };
        if !self.ignore_default_excludes {
            env.retain(|name, _| !matches_any(SECRETS, name));
        }
        env.retain(|name, _| !matches_any(&self.exclude, name));
        for (name, value) in &self.set {
            env.insert(name.into(), value.into());
        }
        if !self.include_only.is_empty() {
            env.retain(|name, _| matches_any(&self.include_only, name));
        }
        env
    }

    /// Whether it leaves a variable out because of its name.
    #[cfg(unix)]
    pub(crate) fn leaves_out(&self, name: &OsStr) -> bool {
        let is_included = self.include_only.is_empty() || matches_any(&self.include_only, name);
        self.names_a_secret(name) || !is_included
    }

    /// Whether a variable of this name is one that nobody may learn of.
    #[cfg(unix)]
    pub(crate) fn names_a_secret(&self, name: &OsStr) -> bool {
        let by_default = !self.ignore_default_excludes && matches_any(SECRETS, name);
        by_default || matches_any(&self.exclude, name)
    }
}

/// What every process that lives across calls is given: nobody pages, colours or draws for a person.
/// A terminal whose screen is kept can do what most can.
pub(crate) fn for_sessions(env: &mut BTreeMap<OsString, OsString>, screen: ScreenWanted) {
    const SETTINGS: &[(&str, &str)] = &[
        ("NO_COLOR", "1"),
        ("TERM", "dumb"),
        ("LANG", "C.UTF-8"),
        ("LC_CTYPE", "C.UTF-8"),
        ("LC_ALL", "C.UTF-8"),
        ("COLORTERM", ""),
        ("PAGER", "cat"),
        ("GIT_PAGER", "cat"),
        ("GH_PAGER", "cat"),
        ("CODEX_CI", "1"),
    ];
    env.extend(SETTINGS.iter().map(|(name, value)| ((*name).into(), (*value).into())));
    if screen == ScreenWanted::Always {
        env.insert("TERM".into(), "xterm-256color".into());
    }
}

/// What keeps commands that only read from running a program that a repository names.
///
/// Set on every command that counts as safe: it does so only with this. A repository's configuration
/// is text that somebody else may have written; these settings are stronger than any file.
pub(crate) fn keep_to_reading(env: &mut BTreeMap<OsString, OsString>) {
    const SETTINGS: &[(&str, &str)] = &[
        ("core.fsmonitor", "false"),
        ("core.hooksPath", "/dev/null"),
        ("safe.bareRepository", "explicit"),
        ("diff.autoRefreshIndex", "false"),
        ("core.pager", "cat"),
        // A format may ask for a signature, which gpg is run for.
        ("log.showSignature", "false"),
        ("gpg.program", "false"),
        ("gpg.ssh.program", "false"),
        ("gpg.x509.program", "false"),
        // Others make merges again to show them, and write what they make.
        ("log.diffMerges", "separate"),
        // A submodule is another repository, with a configuration of its own.
        ("diff.ignoreSubmodules", "all"),
        ("diff.submodule", "short"),
        ("status.submoduleSummary", "false"),
        ("submodule.recurse", "false"),
    ];
    read_letters_as_we_do(env);
    env.insert("GIT_OPTIONAL_LOCKS".into(), "0".into());
    env.insert("GIT_PAGER".into(), "cat".into());
    // What a clone left out would be fetched when it is read.
    env.insert("GIT_NO_LAZY_FETCH".into(), "1".into());
    env.remove(OsStr::new("GIT_EXTERNAL_DIFF"));
    // Its options could name a program.
    env.remove(OsStr::new("RIPGREP_CONFIG_PATH"));
    // Settings of this kind that are there already are the person's own, and are kept.
    let first: usize = env
        .get(OsStr::new("GIT_CONFIG_COUNT"))
        .and_then(|count| count.to_str()?.parse().ok())
        .unwrap_or(0);
    for (index, (key, value)) in (first..).zip(SETTINGS) {
        env.insert(format!("GIT_CONFIG_KEY_{index}").into(), (*key).into());
        env.insert(format!("GIT_CONFIG_VALUE_{index}").into(), (*value).into());
    }
    env.insert("GIT_CONFIG_COUNT".into(), (first + SETTINGS.len()).to_string().into());
}

/// Has programs take letters for UTF-8, as the judgement does. In a locale of GBK, Big5 or Shift JIS a backslash can be
/// the second half of a letter, so that `sed` finds another command in its script.
fn read_letters_as_we_do(env: &mut BTreeMap<OsString, OsString>) {
    // It could have another locale by the same name.
    env.remove(OsStr::new("LOCPATH"));
    let names = ["LC_ALL", "LC_CTYPE", "LANG"];
    let mut said = names.iter().filter_map(|name| env.get(OsStr::new(name)));
    let Some(locale) = said.find(|locale| !locale.is_empty()) else { return };
    let locale = locale.to_string_lossy().to_ascii_lowercase();
    let locale = locale.split('@').next().unwrap_or_default();
    let letters = locale.split_once('.').map(|(_, letters)| letters);
    // The two without a name for their letters take bytes as they are.
    let is_ours = matches!(letters, Some("utf-8" | "utf8")) || ["c", "posix"].contains(&locale);
    if !is_ours {
        env.insert("LC_ALL".into(), "C.UTF-8".into());
    }
}

fn is_same(core: &str, name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    if cfg!(windows) { core.eq_ignore_ascii_case(&name) } else { core == name }
}

fn matches_any(patterns: &[impl AsRef<str>], name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_uppercase();
    patterns.iter().any(|pattern| matches(&pattern.as_ref().to_uppercase(), &name))
}

/// Whether a name matches a pattern of `*`, `?` and letters. No pattern takes longer than the product
/// of the two lengths.
fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut p, mut n) = (0, 0);
    // Where the last star stands, and how far the name was when it began to match.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    p = at + 1;
                    n = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn own() -> BTreeMap<OsString, OsString> {
        ["PATH", "HOME", "OPENAI_API_KEY", "my_secret", "GITHUB_TOKEN", "EDITOR", "FOO_BAR"]
            .into_iter()
            .map(|name| (name.into(), "x".into()))
            .collect()
    }

    fn names(policy: &ShellEnvironmentPolicy) -> Vec<String> {
        policy.apply(&own()).keys().map(|name| name.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn secrets_are_left_out_unless_they_are_wanted() {
        let policy = ShellEnvironmentPolicy::default();
        assert_eq!(names(&policy), ["EDITOR", "FOO_BAR", "HOME", "PATH"]);
        let policy = ShellEnvironmentPolicy { ignore_default_excludes: true, ..policy };
        assert_eq!(names(&policy).len(), own().len());
    }

    /// spec TELEMETRY.6: Commands are not given the headers that the exporter sends, with which somebody
    /// could write to the collector in the person's name.
    #[test]
    fn what_proves_who_we_are_to_a_collector_is_a_secret() {
        let own: BTreeMap<OsString, OsString> = [
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=x"),
            ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "authorization=x"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318"),
        ]
        .into_iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
        let given = ShellEnvironmentPolicy::default().apply(&own);
        assert_eq!(given.keys().collect::<Vec<_>>(), ["OTEL_EXPORTER_OTLP_ENDPOINT"]);
    }

    #[test]
    fn a_policy_can_begin_with_little_and_add_to_it() {
        let policy = ShellEnvironmentPolicy {
            inherit: InheritEnvironment::Core,
            set: [("NEW".to_owned(), "1".to_owned())].into(),
            ..ShellEnvironmentPolicy::default()
        };
        assert_eq!(names(&policy), ["HOME", "NEW", "PATH"]);
        let policy = ShellEnvironmentPolicy { inherit: InheritEnvironment::None, ..policy };
        assert_eq!(names(&policy), ["NEW"]);
    }

    #[test]
    fn patterns_choose_by_name() {
        let exclude = vec!["foo_*".to_owned()];
        let policy = ShellEnvironmentPolicy { exclude, ..ShellEnvironmentPolicy::default() };
        assert_eq!(names(&policy), ["EDITOR", "HOME", "PATH"]);
        let include_only = vec!["PA?H".to_owned(), "HOME".to_owned()];
        let policy = ShellEnvironmentPolicy { include_only, ..policy };
        assert_eq!(names(&policy), ["HOME", "PATH"]);
    }

    #[test]
    fn a_reader_is_told_what_no_repository_can_change() {
        let mut env: BTreeMap<OsString, OsString> = BTreeMap::new();
        env.insert("GIT_CONFIG_COUNT".into(), "1".into());
        env.insert("GIT_CONFIG_KEY_0".into(), "user.name".into());
        env.insert("GIT_EXTERNAL_DIFF".into(), "x".into());
        keep_to_reading(&mut env);
        let get = |name: &str| env.get(OsStr::new(name)).and_then(|value| value.to_str());
        assert_eq!(get("GIT_CONFIG_KEY_0"), Some("user.name"));
        assert_eq!(get("GIT_CONFIG_KEY_1"), Some("core.fsmonitor"));
        assert_eq!(get("GIT_CONFIG_COUNT"), Some("15"));
        assert_eq!(get("GIT_OPTIONAL_LOCKS"), Some("0"));
        assert_eq!(get("GIT_EXTERNAL_DIFF"), None);
    }

    /// spec SAFE.22: A command that counts as safe takes letters for UTF-8, whatever the person's locale is.
    #[test]
    fn a_reader_reads_letters_as_we_do() {
        let locale = |said: &[(&str, &str)]| {
            let said = said.iter().map(|(name, value)| ((*name).into(), (*value).into()));
            let mut env: BTreeMap<OsString, OsString> = said.collect();
            keep_to_reading(&mut env);
            assert!(!env.contains_key(OsStr::new("LOCPATH")));
            env.get(OsStr::new("LC_ALL")).and_then(|value| value.to_str()).map(str::to_owned)
        };
        for ours in [
            &[("LANG", "de_DE.UTF-8"), ("LOCPATH", "/x")][..],
            &[("LANG", "zh_CN.GBK"), ("LC_CTYPE", "C")],
            &[("LANG", "zh_CN.GBK"), ("LC_ALL", ""), ("LC_CTYPE", "ca_ES.utf8@valencia")],
            &[],
        ] {
            assert!(locale(ours).is_none_or(|locale| locale.is_empty()), "{ours:?}");
        }
        assert_eq!(locale(&[("LC_ALL", "en_US.utf8")]).as_deref(), Some("en_US.utf8"));
        for theirs in [
            &[("LANG", "zh_CN.GBK")][..],
            // Without a name for its letters it is one of GB 2312.
            &[("LANG", "zh_CN")],
            &[("LANG", "C.UTF-8"), ("LC_CTYPE", "ja_JP.SJIS")],
            &[("LC_CTYPE", "C.UTF-8"), ("LC_ALL", "zh_TW.Big5")],
        ] {
            assert_eq!(locale(theirs).as_deref(), Some("C.UTF-8"), "{theirs:?}");
        }
    }

    proptest! {
        #[test]
        fn a_name_matches_itself_and_every_star_around_its_parts(
            a in "[A-Z_]{0,8}", b in "[A-Z_]{0,8}", c in "[A-Z_]{0,8}",
        ) {
            let name = format!("{a}{b}{c}");
            for pattern in [name.clone(), format!("*{b}*"), format!("{a}*{c}"), "*".to_owned()] {
                prop_assert!(matches(&pattern, &name), "{pattern} {name}");
            }
            let longer = format!("{name}X");
            prop_assert!(!matches(&name, &longer));
        }
    }
}
