//! Credential plugins: a program that prints an `ExecCredential` (client.authentication.k8s.io/v1, v1beta1).

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use kubestrata_api_types::Timestamp;
use secrecy::SecretString;
use serde::Deserialize;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

use super::AuthError;

/// How long a plugin may run. Some ask a cloud over the network.
const RUN_LIMIT: Duration = Duration::from_secs(60);
/// How much a plugin may print, in bytes.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;
/// A token is renewed this long before it expires, so that it does not expire on its way.
const LEEWAY: Duration = Duration::from_secs(10);

/// What a kubeconfig says of a plugin.
#[derive(Debug)]
pub(crate) struct ExecPlugin {
    pub(crate) api_version: String,
    pub(crate) command: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, SecretString)>,
    pub(crate) install_hint: Option<String>,
}

impl ExecPlugin {
    pub(crate) fn new(api_version: String, command: PathBuf) -> Self {
        Self { api_version, command, args: Vec::new(), env: Vec::new(), install_hint: None }
    }

    fn error(&self, problem: impl Into<String>) -> AuthError {
        AuthError::Exec { command: self.command.clone(), problem: problem.into(), hint: None }
    }
}

/// A token, and for how long it may be used. `None`: until the server refuses it.
pub(super) struct Token {
    pub(super) token: SecretString,
    pub(super) lifetime: Option<Duration>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecCredential {
    api_version: String,
    kind: String,
    status: Option<ExecStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecStatus {
    expiration_timestamp: Option<Timestamp>,
    token: Option<String>,
    client_certificate_data: Option<serde::de::IgnoredAny>,
}

/// Runs the plugin. The process is killed if the future is dropped.
pub(super) async fn run(plugin: &ExecPlugin) -> Result<Token, AuthError> {
    match tokio::time::timeout(RUN_LIMIT, output(plugin)).await {
        Ok(output) => parse(plugin, &output?),
        Err(_) => Err(AuthError::ExecTimeout { command: plugin.command.clone(), limit: RUN_LIMIT }),
    }
}

async fn output(plugin: &ExecPlugin) -> Result<Vec<u8>, AuthError> {
    use secrecy::ExposeSecret as _;
    let info = serde_json::json!({
        "apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": {"interactive": false},
    });
    let mut command = Command::new(&plugin.command);
    command
        .args(&plugin.args)
        .envs(plugin.env.iter().map(|(name, value)| (name, value.expose_secret())))
        .env("KUBERNETES_EXEC_INFO", info.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        // What a plugin tells people goes where they see it; it never becomes part of an error.
        .stderr(Stdio::inherit())
        .kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| AuthError::Exec {
        command: plugin.command.clone(),
        problem: error.to_string(),
        hint: plugin.install_hint.clone(),
    })?;
    let mut bytes = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        let mut stdout = stdout.take(OUTPUT_BYTES_MAX + 1);
        stdout.read_to_end(&mut bytes).await.map_err(|error| plugin.error(error.to_string()))?;
    }
    if bytes.len() as u64 > OUTPUT_BYTES_MAX {
        return Err(plugin.error(format!("it prints more than {OUTPUT_BYTES_MAX} bytes")));
    }
    let status = child.wait().await.map_err(|error| plugin.error(error.to_string()))?;
    if status.success() { Ok(bytes) } else { Err(plugin.error(status.to_string())) }
}

fn parse(plugin: &ExecPlugin, output: &[u8]) -> Result<Token, AuthError> {
    let credential: ExecCredential = serde_json::from_slice(output).map_err(|error| {
        // Line and column only: the parser's own text can quote the token.
        plugin.error(format!(
            "its output is no ExecCredential (line {}, column {})",
            error.line(),
            error.column()
        ))
    })?;
    if credential.kind != "ExecCredential" || credential.api_version != plugin.api_version {
        return Err(plugin.error(format!("its output is not of {}", plugin.api_version)));
    }
    let status = credential.status.ok_or_else(|| plugin.error("its output has no status"))?;
    if status.client_certificate_data.is_some() {
        return Err(plugin.error("it gives a client certificate, and only tokens are supported"));
    }
    let token = status
        .token
        .filter(|token| !token.is_empty())
        .ok_or_else(|| plugin.error("its output has no token"))?;
    let lifetime = status.expiration_timestamp.map(|end| {
        let left = Duration::try_from(end.duration_since(Timestamp::now())).unwrap_or_default();
        left.saturating_sub(LEEWAY)
    });
    Ok(Token { token: token.into(), lifetime })
}
