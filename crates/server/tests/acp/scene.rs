//! An editor that does what a test says, and a model that does what a file says.

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    ContentBlock, InitializeRequest, NewSessionRequest, PromptRequest, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, SessionId, SessionNotification,
    SessionUpdate, StopReason, TextContent,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Agent, Client, Error, Lines};
use futures_util::{SinkExt, StreamExt as _};
use sandgate_agent::{Conversation, ConversationOptions, Surroundings};
use sandgate_protocol::AskForApproval;
use sandgate_runtime::{Desk, Runtime, Session, SessionConfig};
use sandgate_server::{
    AcpDoor, ClientApprover, OpenError, OpenedConversation, Opener, WantedAgent, WantedSession,
    serve_acp,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::codec::{FramedRead, FramedWrite, LinesCodec};

pub(crate) fn says(text: &str) -> Value {
    json!({ "type": "message", "text": text })
}

pub(crate) fn runs(command: &str) -> Value {
    let arguments = json!({ "command": command, "login": false });
    json!({ "type": "call", "name": "shell_command", "arguments": arguments })
}

/// What the person at the editor does about a question.
pub(crate) enum Answer {
    Now(RequestPermissionOutcome),
}

/// What an editor saw.
#[derive(Default)]
pub(crate) struct Saw {
    pub(crate) updates: Vec<SessionUpdate>,
    pub(crate) asked: Vec<RequestPermissionRequest>,
    /// How each turn ended.
    pub(crate) ends: Vec<Result<StopReason, String>>,
}

/// A directory to work in, and a model.
pub(crate) struct Scene {
    base: tempfile::TempDir,
    opener: Arc<Scripted>,
}

/// Opens sessions that ask before everything.
pub(crate) struct Scripted {
    runtime: Arc<Runtime>,
    provider: String,
}

impl Opener for Scripted {
    fn session(&self, wanted: WantedSession) -> Result<Session, OpenError> {
        let mut config = SessionConfig::new(wanted.workspace.unwrap_or_default());
        config.approval_policy = AskForApproval::UnlessTrusted;
        config.own_env = std::env::vars_os().collect();
        Session::start(Arc::clone(&self.runtime), config)
            .map_err(|error| OpenError::Refused(error.to_string()))
    }

    fn conversation(
        &self,
        wanted: WantedSession,
        _: WantedAgent,
    ) -> Result<OpenedConversation, OpenError> {
        let session = self.session(wanted)?;
        let nothing = |_: &str| None;
        let surroundings = Surroundings { variable: &nothing, key_command: None };
        let provider =
            sandgate_agent::provider(&self.provider, &BTreeMap::new(), surroundings).unwrap();
        let options = ConversationOptions::new("scripted");
        let conversation = Conversation::start(session.requester(), provider, options);
        let (mcp_servers, own_env, notes) = (Vec::new(), BTreeMap::new(), Vec::new());
        Ok(OpenedConversation { session, conversation, mcp_servers, own_env, notes })
    }
}

impl Scene {
    pub(crate) fn new(turns: &[Value]) -> Self {
        let base = tempfile::tempdir_in("/var/tmp").unwrap();
        std::fs::create_dir(base.path().join("ws")).unwrap();
        let lines: Vec<String> = turns.iter().map(Value::to_string).collect();
        let model = base.path().join("model.jsonl");
        std::fs::write(&model, lines.join("\n")).unwrap();
        let runtime = Arc::new(Runtime::start().unwrap().with_shell("bash").unwrap());
        let provider = format!("script:{}", model.display());
        Self { base, opener: Arc::new(Scripted { runtime, provider }) }
    }

    pub(crate) fn opener(&self) -> &Scripted {
        &self.opener
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.base.path().join("ws")
    }

    /// Says these things one after the other, and answers questions in this order.
    pub(crate) async fn drive(
        &self,
        answers: impl IntoIterator<Item = Answer>,
        prompts: &[&str],
    ) -> Saw {
        let workspace = self.workspace();
        self.talk(answers.into_iter().collect(), async |editor, saw| {
            let session = begin(&editor, &workspace).await?;
            for text in prompts {
                let ended = editor.send_request(prompt(&session, text)).block_task().await;
                let ended = ended.map(|end| end.stop_reason).map_err(|error| error.message);
                saw.lock().unwrap().ends.push(ended);
            }
            Ok(())
        })
        .await
    }

    /// Prompts, and prompts again while the first prompt asks something. Gives back why that was refused.
    pub(crate) async fn prompt_twice(&self) -> String {
        let workspace = self.workspace();
        let saw = self
            .talk(VecDeque::new(), async |editor, saw| {
                let session = begin(&editor, &workspace).await?;
                let first = editor.send_request(prompt(&session, "one"));
                while saw.lock().unwrap().asked.is_empty() {
                    tokio::task::yield_now().await;
                }
                let second = editor.send_request(prompt(&session, "two")).block_task().await;
                let second = second.map(|end| end.stop_reason).map_err(|error| error.message);
                saw.lock().unwrap().ends.push(second);
                drop(first);
                Ok(())
            })
            .await;
        saw.ends.into_iter().next().unwrap().unwrap_err()
    }

    /// Asks for a session there, and gives back why there is none.
    pub(crate) async fn begin_in(&self, directory: &str) -> String {
        let saw = self
            .talk(VecDeque::new(), async |editor, saw| {
                let refused = begin(&editor, Path::new(directory)).await.unwrap_err();
                saw.lock().unwrap().ends.push(Err(refused.message));
                Ok(())
            })
            .await;
        saw.ends.into_iter().next().unwrap().unwrap_err()
    }

    async fn talk(
        &self,
        answers: VecDeque<Answer>,
        work: impl AsyncFnOnce(ConnectionTo<Agent>, &Mutex<Saw>) -> Result<(), Error> + Send,
    ) -> Saw {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(theirs);
        let door = AcpDoor {
            opener: Arc::clone(&self.opener) as Arc<dyn Opener>,
            desk: Arc::new(Desk::default()).place(),
            person: Arc::new(|session| ClientApprover::new(session.approver("acp"))),
        };
        let serving = tokio::spawn(serve_acp(door, read, write));
        let saw = Arc::new(Mutex::new(Saw::default()));
        let (hears, asks, answers) = (Arc::clone(&saw), Arc::clone(&saw), Mutex::new(answers));
        let (read, write) = tokio::io::split(ours);
        let connection = Client
            .v1()
            .on_receive_notification(
                async move |told: SessionNotification, _| {
                    hears.lock().unwrap().updates.push(told.update);
                    Ok(())
                },
                agent_client_protocol::on_receive_notification!(),
            )
            .on_receive_request(
                async move |asked: RequestPermissionRequest,
                            responder: Responder<RequestPermissionResponse>,
                            editor: ConnectionTo<Agent>| {
                    asks.lock().unwrap().asked.push(asked);
                    let answer = answers.lock().unwrap().pop_front();
                    match answer {
                        Some(Answer::Now(outcome)) => {
                            responder.respond(RequestPermissionResponse::new(outcome))
                        }
                        // The person takes their time.
                        None => editor.spawn(async move {
                            std::future::pending::<()>().await;
                            drop(responder);
                            Ok(())
                        }),
                    }
                },
                agent_client_protocol::on_receive_request!(),
            )
            .connect_with(lines(read, write), async |editor: ConnectionTo<Agent>| {
                let hello = InitializeRequest::new(ProtocolVersion::V1);
                editor.send_request(hello).block_task().await?;
                work(editor, &saw).await
            });
        connection.await.unwrap();
        // The editor has gone, and with it all that went on.
        serving.await.unwrap().unwrap();
        std::mem::take(&mut *saw.lock().unwrap())
    }
}

async fn begin(editor: &ConnectionTo<Agent>, directory: &Path) -> Result<SessionId, Error> {
    let begun = editor.send_request(NewSessionRequest::new(directory)).block_task().await?;
    Ok(begun.session_id)
}

fn prompt(session: &SessionId, text: &str) -> PromptRequest {
    PromptRequest::new(session.clone(), vec![ContentBlock::Text(TextContent::new(text))])
}

fn lines(
    reading: impl AsyncRead + Send + 'static,
    writing: impl AsyncWrite + Send + 'static,
) -> Lines<
    impl futures_util::Sink<String, Error = std::io::Error> + Send + 'static,
    impl futures_util::Stream<Item = std::io::Result<String>> + Send + 'static,
> {
    let incoming =
        FramedRead::new(reading, LinesCodec::new()).map(|line| line.map_err(std::io::Error::other));
    let outgoing = FramedWrite::new(writing, LinesCodec::new());
    let outgoing = SinkExt::<String>::sink_map_err(outgoing, std::io::Error::other);
    Lines::new(Box::pin(outgoing), Box::pin(incoming))
}
