//! Model providers and MCP servers, as the settings describe them.

use sandgate_config::{
    Anchor, Config, KeySource, Layer, Layers, McpTransport, Owner, Trust, WireApi, check, resolve,
};
use sandgate_protocol::{NetworkAccess, SandboxPolicy};
use std::path::{Path, PathBuf};
use std::time::Duration;

fn layer(text: &str, owner: Owner) -> Layer {
    let (file, directory) = match owner {
        Owner::Person => ("/settings/config.toml", "/settings"),
        Owner::Project => ("/project/.codex/config.toml", "/project"),
    };
    let home = Some(Path::new("/home/user"));
    let anchor = Anchor { directory: Path::new(directory), home };
    Layer::read(text, Path::new(file), owner, anchor).unwrap().0
}

fn config(text: &str) -> Config {
    let layers = Layers { user: Some(layer(text, Owner::Person)), ..Layers::default() };
    resolve(&layers, Trust::Trusted).unwrap()
}

/// spec CONFIG.50: A model provider is an address with what it needs besides; whatever is not said has
/// the default that the page names.
#[test]
fn a_provider_has_its_defaults() {
    let config = config("[model_providers.local]\nbase_url = \"http://localhost:8000/v1\"\n");
    let provider = config.model_provider("local").unwrap().unwrap();
    assert_eq!((provider.id.as_str(), provider.name.as_str()), ("local", "local"));
    assert_eq!(provider.base_url.as_str(), "http://localhost:8000/v1");
    assert_eq!((provider.key, provider.wire_api), (None, WireApi::Responses));
    assert_eq!((provider.request_max_retries, provider.stream_max_retries), (4, 5));
    assert_eq!(provider.stream_idle_timeout, Duration::from_secs(300));
    assert_eq!(provider.ca_file, None);
    assert_eq!(config.model_provider("other").unwrap(), None);
}

#[test]
fn a_provider_is_as_it_is_described() {
    let config = config(
        r#"
        model_provider = "team"
        [model_providers.team]
        name = "The team's"
        base_url = "https://models.example.com"
        env_key = "TEAM_KEY"
        env_key_instructions = "Ask."
        wire_api = "anthropic"
        query_params = { v = "2" }
        http_headers = { X-Team = "tools" }
        env_http_headers = { X-Key = "OTHER_KEY" }
        request_max_retries = 0
        stream_max_retries = 1
        stream_idle_timeout_ms = 1500
        ca_file = "office.pem"
        "#,
    );
    let provider = config.model_provider("team").unwrap().unwrap();
    let Some(KeySource::Variable { name, instructions }) = provider.key else { panic!("no key") };
    assert_eq!((name.as_str(), instructions.as_deref()), ("TEAM_KEY", Some("Ask.")));
    assert_eq!((provider.name.as_str(), provider.wire_api), ("The team's", WireApi::Anthropic));
    assert_eq!(provider.query_params["v"], "2");
    let (header, value) = provider.http_headers.first_key_value().unwrap();
    assert_eq!((header.as_str(), value.as_str()), ("X-Team", "tools"));
    let (header, variable) = provider.env_http_headers.first_key_value().unwrap();
    assert_eq!((header.as_str(), variable.as_str()), ("X-Key", "OTHER_KEY"));
    assert_eq!((provider.request_max_retries, provider.stream_max_retries), (0, 1));
    assert_eq!(provider.stream_idle_timeout, Duration::from_millis(1500));
    assert_eq!(provider.ca_file, Some(PathBuf::from("/settings/office.pem")));
}

/// spec CONFIG.51: A key comes from a variable, from a program or from a file, and from one of them
/// only.
#[test]
fn a_key_has_one_source() {
    let of = |lines: &str| {
        config(&format!("[model_providers.p]\nbase_url = \"https://p\"\n{lines}"))
            .model_provider("p")
            .map(|provider| provider.unwrap().key)
            .map_err(|error| error.to_string())
    };
    let Ok(Some(KeySource::Command(argv))) = of("key_command = [\"pass\", \"show\"]\n") else {
        panic!("no command");
    };
    assert_eq!(argv.words(), ["pass", "show"]);
    let file = of("key_file = \"~/key\"\n");
    assert_eq!(file, Ok(Some(KeySource::File("/home/user/key".into()))));
    for (lines, both) in [
        ("env_key = \"K\"\nkey_command = [\"x\"]\n", "env_key and key_command"),
        ("env_key = \"K\"\nkey_file = \"x\"\n", "env_key and key_file"),
        ("key_command = [\"x\"]\nkey_file = \"x\"\n", "key_command and key_file"),
    ] {
        let error = of(lines).unwrap_err();
        assert_eq!(error, format!("model_providers.p has both {both}; take one of them away"));
    }
    let error = config("[model_providers.p]\nenv_key = \"K\"\n").model_provider("p").unwrap_err();
    assert_eq!(error.to_string(), "model_providers.p has no base_url");
}

/// spec CONFIG.52: A project's file cannot say which program or file a key comes from, not even when
/// the person has seen it.
#[test]
fn a_project_names_no_source_of_a_key_but_a_variable() {
    let theirs = "\
        [model_providers.p]\nbase_url = \"https://evil\"\nkey_command = [\"sh\"]\n\
        key_file = \"/home/user/.ssh/id_ed25519\"\n\
        [profiles.q.model_providers.p]\nkey_command = [\"sh\"]\n";
    for own in ["", "[model_providers.p]\nkey_file = \"/own\"\n"] {
        for profile in [None, Some("q".to_owned())] {
            let layers = Layers {
                user: Some(layer(own, Owner::Person)),
                project: Some(layer(theirs, Owner::Project)),
                profile,
                ..Layers::default()
            };
            let config = resolve(&layers, Trust::TrustedAndSeen).unwrap();
            let provider = config.model_provider("p").unwrap().unwrap();
            let expected = (!own.is_empty()).then(|| KeySource::File("/own".into()));
            assert_eq!(provider.key, expected);
            assert_eq!(provider.base_url.as_str(), "https://evil");
        }
    }
    let warned = check(theirs, "config.toml", Owner::Project).unwrap().warnings;
    let keys: Vec<&str> = warned.iter().map(|warning| warning.key.as_str()).collect();
    let expected = [
        "model_providers.p.key_command",
        "model_providers.p.key_file",
        "profiles.q.model_providers.p.key_command",
    ];
    assert_eq!(keys, expected);
    assert_eq!(check(theirs, "config.toml", Owner::Person).unwrap().warnings, []);
}

/// spec CONFIG.53: An MCP server is a program, which may only read unless more is said, or an address.
#[test]
fn a_server_is_a_program_or_an_address() {
    let config = config(
        r#"
        [mcp_servers.docs]
        command = "npx"
        [mcp_servers.files]
        command = "files"
        args = ["--all"]
        env = { LEVEL = "info" }
        env_vars = ["FILES_TOKEN"]
        cwd = "work"
        sandbox_mode = "workspace-write"
        network_access = true
        writable_roots = ["~/.npm"]
        startup_timeout_sec = 2.5
        tool_timeout_sec = 7
        enabled_tools = ["read", "write"]
        disabled_tools = ["write"]
        [mcp_servers.off]
        command = "off"
        enabled = false
        [mcp_servers.web]
        url = "https://mcp.example.com/mcp"
        bearer_token_env_var = "WEB_TOKEN"
        "#,
    );
    let servers: Vec<_> = config.mcp_servers().map(Result::unwrap).collect();
    let [docs, files, web] = servers.as_slice() else { panic!("{servers:?}") };

    let McpTransport::Stdio { command, args, cwd, sandbox, .. } = &docs.transport else { panic!() };
    assert_eq!((command.as_str(), args.len(), cwd), ("npx", 0, &None));
    assert_eq!(sandbox, &SandboxPolicy::ReadOnly);
    assert_eq!(docs.startup_timeout, Duration::from_secs(10));
    assert_eq!(docs.tool_timeout, Duration::from_secs(60));
    assert!(docs.tools.contains("anything"));

    let McpTransport::Stdio { env_vars, cwd, sandbox, .. } = &files.transport else { panic!() };
    assert_eq!(env_vars[0].as_str(), "FILES_TOKEN");
    assert_eq!(cwd, &Some(PathBuf::from("/settings/work")));
    let SandboxPolicy::WorkspaceWrite { writable_roots, network_access, .. } = sandbox else {
        panic!("{sandbox:?}")
    };
    assert_eq!(writable_roots, &[PathBuf::from("/home/user/.npm")]);
    assert_eq!(network_access, &NetworkAccess::Enabled);
    assert_eq!(files.startup_timeout, Duration::from_millis(2500));
    let usable = ["read", "write", "other"].map(|tool| files.tools.contains(tool));
    assert_eq!(usable, [true, false, false]);

    let McpTransport::Http { url, bearer_token_env_var, .. } = &web.transport else { panic!() };
    assert_eq!(url.as_str(), "https://mcp.example.com/mcp");
    assert_eq!(bearer_token_env_var.as_ref().unwrap().as_str(), "WEB_TOKEN");
}

/// spec CONFIG.54: What does not go together in one provider or server is an error for that one, and
/// the others are used.
#[test]
fn a_server_that_makes_no_sense_is_alone_with_that() {
    for (lines, said) in [
        ("args = []\n", "has no command and no url"),
        (
            "command = \"x\"\nurl = \"https://x\"\n",
            "has both command and url; take one of them away",
        ),
        ("url = \"https://x\"\nargs = []\n", "has args, which is for one with command only"),
        (
            "url = \"https://x\"\nsandbox_mode = \"read-only\"\n",
            "has sandbox_mode, which is for one with command only",
        ),
        (
            "command = \"x\"\nhttp_headers = { A = \"b\" }\n",
            "has http_headers, which is for one with url only",
        ),
        (
            "command = \"x\"\nnetwork_access = true\n",
            "has network_access, which is for one with sandbox_mode = \"workspace-write\" only",
        ),
        (
            "command = \"x\"\nsandbox_mode = \"read-only\"\nwritable_roots = [\"/\"]\n",
            "has writable_roots, which is for one with sandbox_mode = \"workspace-write\" only",
        ),
    ] {
        let config = config(&format!("[mcp_servers.a]\n{lines}[mcp_servers.b]\ncommand = \"b\"\n"));
        let servers: Vec<_> = config.mcp_servers().collect();
        let error = servers[0].clone().unwrap_err().to_string();
        assert_eq!(error, format!("mcp_servers.a {said}"));
        assert!(servers[1].is_ok());
    }
}
