//! The layers, and which of two wins.

use sandgate_config::{Anchor, Config, Layer, Layers, Origin, Owner, ResolveError, Trust, resolve};
use sandgate_protocol::{AskForApproval, NetworkAccess, SandboxPolicy};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn anchor() -> Anchor<'static> {
    Anchor { directory: Path::new("/settings"), home: Some(Path::new("/home/user")) }
}

fn user(text: &str) -> Option<Layer> {
    let file = Path::new("/settings/config.toml");
    let (layer, warnings) = Layer::read(text, file, Owner::Person, anchor()).unwrap();
    assert_eq!(warnings, []);
    Some(layer)
}

fn project(text: &str) -> Option<Layer> {
    let file = Path::new("/project/.codex/config.toml");
    let anchor = Anchor { directory: Path::new("/project"), ..anchor() };
    Some(Layer::read(text, file, Owner::Project, anchor).unwrap().0)
}

fn override_of(text: &str) -> Layer {
    Layer::of_override(text, anchor()).unwrap()
}

fn flag(word: &str) -> Layer {
    Layer::of_flag("--sandbox", [("sandbox_mode", word.into())])
}

/// What was not set by anybody is left out.
fn shown(config: &Config) -> String {
    let mut shown = String::new();
    for (key, entry) in config.entries() {
        if entry.origin != sandgate_config::Origin::Default {
            writeln!(shown, "{key} = {}  # {}", entry.value, entry.origin).unwrap();
        }
    }
    shown
}

/// The file that the specification gives as its example.
const EXAMPLE: &str = r#"
approval_policy = "on-request"
sandbox_mode = "workspace-write"

[sandbox_workspace_write]
writable_roots = ["/home/user/.cache", "/home/user/.local/share"]
network_access = true
exclude_tmpdir_env_var = false
exclude_slash_tmp = false

[projects."/home/user/myrepo"]
trust_level = "trusted"

[profiles.paranoid]
approval_policy = "untrusted"
sandbox_mode = "read-only"

[profiles.paranoid.shell_environment_policy]
inherit = "core"
exclude = ["*TOKEN*", "*KEY*", "*SECRET*"]

[profiles.ci]
approval_policy = "never"
sandbox_mode = "read-only"

[features]
experimental_sandbox_command_assessment = true
enable_experimental_windows_sandbox = false
"#;

/// spec CONFIG.1: The example file of the specification is read without a warning, and every value in
/// it holds.
#[test]
fn the_example_of_the_specification_holds_in_full() {
    let mut layers = Layers { user: user(EXAMPLE), ..Layers::default() };
    let config = resolve(&layers, Trust::Untrusted).unwrap();
    assert_eq!(config.approval_policy(), AskForApproval::OnRequest);
    let roots = ["/home/user/.cache", "/home/user/.local/share"].map(PathBuf::from).to_vec();
    let policy = SandboxPolicy::WorkspaceWrite {
        writable_roots: roots,
        network_access: NetworkAccess::Enabled,
        exclude_tmpdir_env_var: false,
        exclude_slash_tmp: false,
    };
    assert_eq!(config.sandbox_policy(), policy);
    let features = config.settings().features.clone().unwrap();
    assert_eq!(features.experimental_sandbox_command_assessment, Some(true));
    assert_eq!(features.enable_experimental_windows_sandbox, Some(false));

    layers.profile = Some("paranoid".to_owned());
    let config = resolve(&layers, Trust::Untrusted).unwrap();
    assert_eq!(config.approval_policy(), AskForApproval::UnlessTrusted);
    assert_eq!(config.sandbox_policy(), SandboxPolicy::ReadOnly);
    let environment = config.settings().shell_environment_policy.clone().unwrap();
    assert_eq!(environment.inherit, Some(sandgate_config::InheritPolicy::Core));
    assert_eq!(environment.exclude.unwrap(), ["*TOKEN*", "*KEY*", "*SECRET*"]);

    layers.profile = Some("ci".to_owned());
    let config = resolve(&layers, Trust::Untrusted).unwrap();
    assert_eq!(config.approval_policy(), AskForApproval::Never);
    assert_eq!(config.sandbox_policy(), SandboxPolicy::ReadOnly);
}

/// spec CONFIG.11: When nothing is set, a directory that is not trusted has `read-only` and
/// `untrusted`, and a trusted one `workspace-write` and `on-request`.
#[test]
fn trust_chooses_the_preset() {
    let of = |trust| {
        let config = resolve(&Layers::default(), trust).unwrap();
        (config.sandbox_policy(), config.approval_policy())
    };
    assert_eq!(of(Trust::Untrusted), (SandboxPolicy::ReadOnly, AskForApproval::UnlessTrusted));
    for trust in [Trust::Trusted, Trust::TrustedAndSeen] {
        assert_eq!(of(trust), (SandboxPolicy::workspace_write(), AskForApproval::OnRequest));
    }
}

/// The name of a layer, and what puts it there.
type Setting = (&'static str, fn(&mut Layers));

/// spec CONFIG.10: Later layers win, value by value: defaults, the preset that trust chooses, the
/// person's file, the project's file, the profile, `-c`, options.
#[test]
fn of_two_layers_the_later_wins() {
    // Each layer sets the mode, and something that no other sets.
    let set: [Setting; 5] = [
        ("user", |layers| {
            layers.user = user(
                "sandbox_mode = \"read-only\"\nmodel = \"of-user\"\n[profiles.p]\n\
                 sandbox_mode = \"workspace-write\"\nmodel_provider = \"of-profile\"\n",
            );
        }),
        ("project", |layers| {
            layers.project =
                project("sandbox_mode = \"danger-full-access\"\naudit.fsync = \"each\"\n");
        }),
        ("profile", |layers| {
            let own = "[profiles.p]\nsandbox_mode = \"workspace-write\"\nmodel_provider = \"of-profile\"\n";
            layers.user = layers.user.take().or_else(|| user(own));
            layers.profile = Some("p".to_owned());
        }),
        ("override", |layers| {
            layers.overrides = vec![
                override_of("sandbox_mode=danger-full-access"),
                override_of("limits.output_tokens=5"),
            ];
        }),
        ("flag", |layers| layers.flags = vec![flag("read-only")]),
    ];
    let mut all = String::new();
    for (index, (name, one)) in set.iter().enumerate() {
        let mut layers = Layers::default();
        one(&mut layers);
        let config = resolve(&layers, Trust::TrustedAndSeen).unwrap();
        writeln!(all, "# {name}\n{}", shown(&config)).unwrap();
        for (other_name, other) in &set[index + 1..] {
            let mut layers = Layers::default();
            one(&mut layers);
            other(&mut layers);
            let config = resolve(&layers, Trust::TrustedAndSeen).unwrap();
            writeln!(all, "# {name} and {other_name}\n{}", shown(&config)).unwrap();
        }
    }
    insta::assert_snapshot!("layers", all);
}

/// Which layer a value came from, the lowest first. A new kind of layer must be named here, and then
/// below.
fn rank(origin: &Origin) -> usize {
    match origin {
        Origin::Default => 0,
        Origin::Preset { .. } => 1,
        Origin::User { .. } => 2,
        Origin::Project { .. } => 3,
        Origin::Profile { .. } => 4,
        Origin::Override => 5,
        Origin::Flag { .. } => 6,
    }
}

/// Every pair of layers that set the same key, and the one that wins.
#[test]
fn every_pair_of_layers_has_a_winner() {
    const BOTH: &str = "sandbox_mode = \"read-only\"\nlimits.output_tokens = 7\n";
    let add: [fn(&mut Layers, &str); 7] = [
        |_, _| {},
        |_, _| {},
        |layers, file| layers.user = user(&format!("{BOTH}{file}")),
        |layers, _| layers.project = project(BOTH),
        |layers, file| {
            layers.user = layers.user.take().or_else(|| user(file));
            layers.profile = Some("p".to_owned());
        },
        |layers, _| {
            let settings = ["sandbox_mode=read-only", "limits.output_tokens=7"];
            layers.overrides = settings.map(override_of).to_vec();
        },
        |layers, _| {
            let settings =
                [("sandbox_mode", "read-only".into()), ("limits.output_tokens", 7.into())];
            layers.flags = vec![Layer::of_flag("--both", settings)];
        },
    ];
    let profile = "[profiles.p]\nsandbox_mode = \"read-only\"\nlimits.output_tokens = 7\n";
    let mut pairs = 0;
    for lower in 0..add.len() {
        for upper in lower + 1..add.len() {
            let mut layers = Layers::default();
            add[lower](&mut layers, profile);
            add[upper](&mut layers, profile);
            let config = resolve(&layers, Trust::TrustedAndSeen).unwrap();
            // A preset sets what has no default, so these two alone never meet.
            let keys: &[(&str, usize)] = match (lower, upper) {
                (0, 1) => &[("limits.output_tokens", 0), ("sandbox_mode", 1)],
                _ => &[("limits.output_tokens", upper), ("sandbox_mode", upper)],
            };
            for (key, winner) in keys {
                let found = config.origin(key).map(rank);
                assert_eq!(found, Some(*winner), "{key} of {lower} and {upper}");
            }
            pairs += 1;
        }
    }
    assert_eq!(pairs, 21);
    // Of two of one kind the later wins.
    let overrides = ["model=a", "model=b"].map(override_of).to_vec();
    let config = resolve(&Layers { overrides, ..Layers::default() }, Trust::Trusted).unwrap();
    assert_eq!(config.settings().model.as_deref(), Some("b"));
}

/// spec CONFIG.12: The profile is the one that `--profile` names, otherwise the one that the files
/// name; a profile that there is not is an error that names the nearest.
#[test]
fn a_profile_is_chosen_by_name() {
    let text = "profile = \"one\"\n[profiles.one]\nmodel = \"1\"\n[profiles.two]\nmodel = \"2\"\n";
    let mut layers = Layers { user: user(text), ..Layers::default() };
    let model = |layers: &Layers| {
        let config = resolve(layers, Trust::Untrusted).unwrap();
        (config.profile().map(str::to_owned), config.settings().model.clone())
    };
    assert_eq!(model(&layers), (Some("one".to_owned()), Some("1".to_owned())));
    layers.overrides = vec![override_of("profile=two")];
    assert_eq!(model(&layers), (Some("two".to_owned()), Some("2".to_owned())));
    layers.profile = Some("one".to_owned());
    assert_eq!(model(&layers), (Some("one".to_owned()), Some("1".to_owned())));

    layers.profile = Some("onne".to_owned());
    let error = resolve(&layers, Trust::Untrusted).unwrap_err();
    assert!(matches!(error, ResolveError::NoProfile { .. }));
    assert_eq!(error.to_string(), "there is no profile called \"onne\"; did you mean one?");
    layers.profile = Some("xyz".to_owned());
    let error = resolve(&layers, Trust::Untrusted).unwrap_err();
    assert_eq!(error.to_string(), "there is no profile called \"xyz\"; there are one, two");
}

/// spec CONFIG.13: The value of `-c KEY=VALUE` is TOML or a text without quotes, and a key that is no
/// setting is an error.
#[test]
fn an_override_is_toml_or_a_bare_text() {
    for (given, key, value) in [
        ("model=gpt-5", "model", toml::Value::from("gpt-5")),
        ("model=\"quoted\"", "model", "quoted".into()),
        ("model=4.1", "model", "4.1".into()),
        ("model = a b = c", "model", "a b = c".into()),
        ("timeouts.command_ms=1_000", "timeouts.command_ms", 1000.into()),
        (
            "features.enable_experimental_windows_sandbox=true",
            "features.enable_experimental_windows_sandbox",
            true.into(),
        ),
        (
            "sandbox_workspace_write={network_access=true}",
            "sandbox_workspace_write.network_access",
            true.into(),
        ),
        ("model_providers.\"a.b\".name=x", "model_providers.\"a.b\".name", "x".into()),
        ("model=line\nother = 1", "model", "line\nother = 1".into()),
    ] {
        let layers = Layers { overrides: vec![override_of(given)], ..Layers::default() };
        let config = resolve(&layers, Trust::Untrusted).unwrap();
        let found = config.entries().find(|(name, _)| name == key);
        assert_eq!(found.map(|(_, entry)| entry.value.clone()), Some(value), "{given}");
    }
    let mut told = String::new();
    for wrong in [
        "modle=x",
        "model",
        "=x",
        "a b=1",
        "sandbox_mode=none",
        "sandbox_require_full=maybe",
        "a\nmodel=x",
    ] {
        writeln!(told, "{}\n", Layer::of_override(wrong, anchor()).unwrap_err()).unwrap();
    }
    insta::assert_snapshot!("wrong_overrides", told);
}

/// spec CONFIG.15: A relative path begins at the directory of the person's file or at the project's
/// root, and `~/` is the person's home.
#[test]
fn paths_mean_the_same_wherever_they_are_used() {
    let text =
        "[sandbox_workspace_write]\nwritable_roots = [\"out\", \"./a/../b\", \"~/x\", \"/abs\"]\n";
    let layers = Layers { user: user(text), ..Layers::default() };
    let roots = |layers: &Layers| {
        let config = resolve(layers, Trust::TrustedAndSeen).unwrap();
        config.settings().sandbox_workspace_write.clone().unwrap().writable_roots.unwrap()
    };
    let expected = ["/settings/out", "/settings/a/../b", "/home/user/x", "/abs"];
    assert_eq!(roots(&layers), expected.map(PathBuf::from));
    let layers = Layers { project: project(text), ..Layers::default() };
    let expected = ["/project/out", "/project/a/../b", "/home/user/x", "/abs"];
    assert_eq!(roots(&layers), expected.map(PathBuf::from));
}

/// spec CONFIG.23: A project cannot put something else under the name of a profile that the person
/// has.
#[test]
fn a_profile_of_the_person_is_the_persons() {
    let own = "[profiles.safe]\nsandbox_mode = \"read-only\"\n";
    let theirs = "[profiles.safe]\nsandbox_mode = \"danger-full-access\"\napproval_policy = \"never\"\n\
                  [profiles.theirs]\napproval_policy = \"never\"\n";
    let mut layers = Layers {
        user: user(own),
        project: project(theirs),
        profile: Some("safe".to_owned()),
        ..Layers::default()
    };
    for trust in [Trust::Untrusted, Trust::Trusted, Trust::TrustedAndSeen] {
        let config = resolve(&layers, trust).unwrap();
        assert_eq!(config.sandbox_policy(), SandboxPolicy::ReadOnly);
        assert_ne!(config.approval_policy(), AskForApproval::Never);
    }
    // One of its own can be used once the person has seen it.
    layers.profile = Some("theirs".to_owned());
    assert!(resolve(&layers, Trust::Untrusted).is_err());
    assert!(resolve(&layers, Trust::Trusted).is_err());
    let config = resolve(&layers, Trust::TrustedAndSeen).unwrap();
    assert_eq!(config.approval_policy(), AskForApproval::Never);
}

#[test]
fn a_profile_that_only_the_project_names_stops_nothing() {
    let layers = Layers { project: project("profile = \"nowhere\"\n"), ..Layers::default() };
    let config = resolve(&layers, Trust::TrustedAndSeen).unwrap();
    assert_eq!(config.profile(), None);
    assert_eq!(config.notes().len(), 1);
}
