//! Keys: where they come from, and that nobody sees them.

use super::server::{Server, status, stream};
use super::{INTERACTIVE, answer, ask, made, outcome, own, request};
use crate::provider::choose::{Surroundings, default_model, key_variables, provider};
use crate::provider::{KeyCommand, ModelError, ModelEvent, Provider, StopReason};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use sandgate_config::ModelProviderSettings;
use secrecy::SecretString;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn chosen(
    name: &str,
    settings: &str,
    variables: &[(&str, &str)],
) -> Result<Arc<dyn Provider>, ModelError> {
    let settings: BTreeMap<String, ModelProviderSettings> = toml::from_str(settings).unwrap();
    let variable = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    provider(name, &settings, Surroundings { variable: &variable, key_command: None })
}

fn refusal(name: &str, settings: &str, variables: &[(&str, &str)]) -> String {
    chosen(name, settings, variables).err().unwrap().to_string()
}

/// spec MODEL.40: A key is in nothing that is told: not in errors, whatever the server repeats and
/// wherever the key was, and not in what is printed of a provider.
#[tokio::test]
async fn keys_are_never_told() {
    let secrets = [
        "sk-very-secret-1",
        "other/secret+2",
        "other%2Fsecret%2B2",
        "query secret",
        "query+secret",
    ];
    let echo = secrets.join(" and ");
    let lines = "env_http_headers = { X-Key = \"OTHER_KEY\" }\nquery_params = { key = \"query secret\" }\n\
                 request_max_retries = 1\nstream_max_retries = 1\n";
    let error = format!(r#"{{"error": {{"message": "you said {echo}", "type": "x"}}}}"#);
    let event = format!("data: {error}\n\n");
    let not_json = format!("data: {{\"choices\": \"{echo}\"}}\n\n");
    for answers in [
        vec![status(400, "", &error)],
        vec![status(500, "retry-after: 0\r\n", &echo), status(401, "", &error)],
        vec![stream(&event), stream(&event)],
        vec![stream(&not_json)],
        vec![status(307, &format!("location: http://x/{}\r\n", secrets[0]), "")],
        vec![status(200, "content-type: application/json\r\n", &error), status(400, "", "")],
    ] {
        let server = Server::start(answers).await;
        let heard = ask(&own(&server, "chat", lines)).await;
        let told = format!("{heard:?}");
        for secret in secrets {
            assert!(!told.contains(secret), "{told}");
        }
        assert!(told.contains("Err("), "{told}");
    }
    // Nor where nobody answers: the address of the request has one in it.
    let own = made("http://127.0.0.1:1/v1", "chat", lines).unwrap();
    let told = format!("{:?}", ask(&own).await);
    assert!(told.contains("refused") && !told.contains("query"), "{told}");
}

/// spec MODEL.41: A missing key is told with the variable that should hold it and how to get one.
#[test]
fn a_missing_key_is_told_with_what_to_do() {
    let told = refusal("openai", "", &[("OPENAI_API_KEY", " ")]);
    let expected = "the key of openai is missing: set OPENAI_API_KEY. Make one at \
                    https://platform.openai.com/api-keys.";
    assert_eq!(told, expected);
    let settings = "[x]\nbase_url = \"https://x\"\nenv_key = \"X_KEY\"\n";
    assert_eq!(refusal("x", settings, &[]), "the key of x is missing: set X_KEY.");
    let settings = format!("{settings}env_key_instructions = \"Ask Ann.\"\n");
    assert_eq!(refusal("x", &settings, &[]), "the key of x is missing: set X_KEY. Ask Ann.");
    let told = refusal("x", &settings, &[("X_KEY", "two words")]);
    assert_eq!(told, "X_KEY: what is in it is no key: a key is one word of ASCII letters");
}

/// spec MODEL.42: A key goes over a network only with TLS, unless the settings say otherwise.
#[test]
fn no_key_without_tls() {
    let key = [("K", "secret")];
    let of = |url: &str, lines: &str| {
        chosen("x", &format!("[x]\nbase_url = \"{url}\"\n{lines}"), &key)
            .err()
            .map(|e| e.to_string())
    };
    let with_key = "env_key = \"K\"\n";
    let told = of("http://10.0.0.7/v1", with_key).unwrap();
    assert!(
        told.starts_with("model provider x: its key would go to 10.0.0.7 without TLS"),
        "{told}"
    );
    for lines in
        ["env_http_headers = { X = \"K\" }\n", "http_headers = { Authorization = \"secret\" }\n"]
    {
        assert!(of("http://example.com", lines).is_some());
    }
    for host in ["localhost", "127.0.0.1:8080", "[::1]:80", "models.localhost"] {
        assert_eq!(of(&format!("http://{host}/v1"), with_key), None, "{host}");
    }
    assert!(of("http://localhost.example.com", with_key).is_some());
    assert_eq!(of("http://10.0.0.7/v1", &format!("{with_key}allow_plain_http = true\n")), None);
    assert_eq!(of("http://10.0.0.7/v1", ""), None);
    assert_eq!(of("https://10.0.0.7/v1", with_key), None);
}

/// Writes a file with this mode.
fn file(directory: &Path, text: &[u8], mode: u32) -> std::path::PathBuf {
    let path = directory.join(format!("key-{mode:o}-{}", text.len()));
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path
}

/// spec MODEL.43: A file is taken for a key only if it is a file, belongs to the person, and nobody
/// else can read it.
#[tokio::test]
async fn only_a_private_file_holds_a_key() {
    let directory = tempfile::tempdir().unwrap();
    let told = async |path: &Path| {
        let server = Server::start(vec![stream(&answer("chat"))]).await;
        let own = own(&server, "chat", &format!("key_file = \"{}\"", path.display()));
        let (_, end) = outcome(ask(&own).await);
        let sent = server.received().first().map(|one| one.head.clone());
        end.map(|_| sent.unwrap()).map_err(|error| error.to_string())
    };
    let head = told(&file(directory.path(), b"  from-a-file\n", 0o600)).await.unwrap();
    assert!(head.contains("authorization: bearer from-a-file\r"), "{head}");
    for mode in [0o640, 0o604, 0o660] {
        let error = told(&file(directory.path(), b"x-key", mode)).await.unwrap_err();
        assert!(error.contains("others can read it") && error.contains("chmod 600"), "{error}");
    }
    for (text, why) in [
        (&b"\n"[..], "there is no key in it"),
        (&b"a\nb\n"[..], "what is in it is no key"),
        (&[b'x'; 70_000][..], "too long"),
        (&[0xff, 0xfe][..], "UTF-8"),
    ] {
        let error = told(&file(directory.path(), text, 0o600)).await.unwrap_err();
        assert!(error.contains(why), "{error}");
    }
    assert!(told(directory.path()).await.unwrap_err().contains("it is no file"));
    assert!(told(&directory.path().join("none")).await.is_err());
    let pipe = directory.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    assert!(told(&pipe).await.unwrap_err().contains("it is no file"));

    let of_another = file(directory.path(), b"of-another", 0o600);
    match std::os::unix::fs::chown(&of_another, Some(65_534), None) {
        Ok(()) => assert!(told(&of_another).await.unwrap_err().contains("somebody else")),
        Err(_) => eprintln!("SKIPPED: only root can make a file of somebody else's"),
    }
}

struct Counting(AtomicUsize);

impl KeyCommand for Counting {
    fn run<'a>(&'a self, argv: &'a [String]) -> BoxFuture<'a, Result<SecretString, String>> {
        assert_eq!(argv, ["pass", "show"]);
        let times = self.0.fetch_add(1, Ordering::SeqCst);
        async move { Ok(SecretString::from(format!("printed-{times}\n"))) }.boxed()
    }
}

/// spec MODEL.44: What a program printed is used until the provider refuses it; then the program is
/// asked once more.
#[tokio::test]
async fn a_program_prints_the_key() {
    let no = || status(401, "", r#"{"error": {"message": "no"}}"#);
    let yes = || stream(&answer("chat"));
    let server = Server::start(vec![yes(), yes(), no(), yes(), no(), no()]).await;
    let text = format!(
        "[x]\nbase_url = \"{}\"\nwire_api = \"chat\"\nkey_command = [\"pass\", \"show\"]\n",
        server.url
    );
    let settings: BTreeMap<String, ModelProviderSettings> = toml::from_str(&text).unwrap();
    let command: Arc<dyn KeyCommand> = Arc::new(Counting(AtomicUsize::new(0)));
    let surroundings = |key_command| Surroundings { variable: &|_: &str| None, key_command };
    assert!(matches!(provider("x", &settings, surroundings(None)), Err(ModelError::Key(_))));
    let own = provider("x", &settings, surroundings(Some(&command))).unwrap();
    for expected in [Ok(0), Ok(0), Ok(1), Err(1)] {
        let (retried, end) = outcome(ask(&own).await);
        let (Ok(times) | Err(times)) = expected;
        assert_eq!((retried.len(), end.is_ok()), (times, expected.is_ok()));
    }
    let sent: Vec<String> = server
        .received()
        .iter()
        .map(|one| one.head.split("printed-").nth(1).unwrap()[..1].to_owned())
        .collect();
    assert_eq!(sent, ["0", "0", "0", "1", "1", "2"]);
}

/// spec MODEL.45: Without settings there are openai, anthropic, openrouter and ollama, each with its
/// model, and settings under these names change them; with nothing at all there is no model.
#[tokio::test]
async fn what_is_built_in() {
    for name in ["openai", "anthropic", "openrouter", "ollama", "offline"] {
        let keys =
            ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY"].map(|name| (name, "k-1"));
        assert_eq!(chosen(name, "", &keys).unwrap().name(), name);
        assert!(default_model(name).is_some());
    }
    assert_eq!(default_model("own"), None);
    let told = refusal("opnai", "[own]\n", &[]);
    let expected = "there is no model provider opnai; there are openai, anthropic, openrouter, ollama, \
                    offline, script:FILE, own";
    assert_eq!(told, expected);
    assert_eq!(refusal("own", "[own]\n", &[]), "model_providers.own has no base_url");

    // An address of the environment, and one of the settings, which outweighs it.
    let server = Server::start(vec![stream(&answer("responses")), stream(&answer("chat"))]).await;
    let variables = [("OPENAI_API_KEY", "k-1"), ("OPENAI_BASE_URL", server.url.as_str())];
    let (_, end) = outcome(ask(&chosen("openai", "", &variables).unwrap()).await);
    assert_eq!(end, Ok(StopReason::Done));
    let settings = format!("[openai]\nbase_url = \"{}/\"\nwire_api = \"chat\"\n", server.url);
    let variables = [("OPENAI_API_KEY", "k-1"), ("OPENAI_BASE_URL", "https://nobody.invalid")];
    let (_, end) = outcome(ask(&chosen("openai", &settings, &variables).unwrap()).await);
    assert_eq!(end, Ok(StopReason::Done));
    let heads: Vec<String> = server.received().into_iter().map(|one| one.head).collect();
    assert!(heads[0].starts_with("post /v1/responses http"), "{}", heads[0]);
    assert!(heads[1].starts_with("post /v1/chat/completions http"), "{}", heads[1]);
    assert!(heads.iter().all(|head| head.contains("authorization: bearer k-1\r")));
    let told = refusal("openai", "", &[("OPENAI_BASE_URL", "https://me:pass@x")]);
    assert!(!told.contains("pass@"), "{told}");
}

/// spec MODEL.46: The variables that hold keys are known, so that nothing that is started is given
/// them.
#[test]
fn the_variables_that_hold_keys_are_known() {
    let text = "[x]\nenv_key = \"X_KEY\"\nenv_http_headers = { A = \"A_TOKEN\" }\n";
    let settings: BTreeMap<String, ModelProviderSettings> = toml::from_str(text).unwrap();
    let known: Vec<String> = key_variables(&settings).into_iter().collect();
    let expected =
        ["ANTHROPIC_API_KEY", "A_TOKEN", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "X_KEY"];
    assert_eq!(known, expected);
}

/// spec MODEL.47: The default provider is no model, and needs no network.
#[tokio::test]
async fn without_settings_there_is_no_model() {
    use futures_util::StreamExt as _;
    let offline = chosen(crate::provider::DEFAULT_PROVIDER, "", &[]).unwrap();
    let items = [sandgate_protocol::ResponseItem::message(sandgate_protocol::Role::User, "$ ls")];
    let heard: Vec<_> = offline.stream(request(&items, &INTERACTIVE)).collect().await;
    let is_call = |event: &Result<ModelEvent, ModelError>| {
        matches!(event, Ok(ModelEvent::Item(sandgate_protocol::ResponseItem::ToolCall { .. })))
    };
    assert!(heard.iter().any(is_call));
}
