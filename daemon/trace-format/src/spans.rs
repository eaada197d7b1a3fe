//! Names of the spans of the trace contract.
//!
//! A request's span is named by its method and route (`POST /session`).

/// One cold start as `measure` ran it; root.
pub const RUN: &str = "run";
/// Spawn instant to the ready line in the client's hands.
pub const CLIENT_LISTENER: &str = "client.listener";
/// One `GET /health` as the client saw it.
pub const CLIENT_HEALTH: &str = "client.health";
/// Prompt instant to session success, with whatever the arm does inside it.
pub const CLIENT_ACTION: &str = "client.action";
/// One `POST /session` as the client saw it.
pub const CLIENT_SESSION: &str = "client.session";
/// One `GET /capabilities` as the client saw it.
pub const CLIENT_CAPABILITIES: &str = "client.capabilities";
/// One explicit preheat call as the client saw it.
pub const CLIENT_PREHEAT: &str = "client.preheat";
/// One ACP `initialize` of an agent that is driven raw, as the client saw it.
pub const CLIENT_INITIALIZE: &str = "client.initialize";
/// Any other request as the client saw it.
pub const CLIENT_REQUEST: &str = "client.request";
/// A command that ends by itself: spawn instant to its end.
pub const CLIENT_COMMAND: &str = "client.command";
/// SIGTERM to the end of the process.
pub const CLIENT_SHUTDOWN: &str = "client.shutdown";

/// Spawn instant to listener.
pub const DAEMON_BOOT: &str = "daemon.boot";
/// Spawn instant to the first clock reading in `main`.
pub const BOOT_EXEC: &str = "boot.exec";
/// Arguments and environment.
pub const BOOT_ARGS: &str = "boot.args";
/// State check, socket, bind, listen.
pub const BOOT_BIND: &str = "boot.bind";
/// First `/health`: accept to flushed.
pub const HEALTH_FIRST: &str = "health.first";
/// Start of everything behind the first answer.
pub const RUNTIME_START: &str = "runtime.start";
/// Telemetry provider and writer.
pub const RUNTIME_TELEMETRY: &str = "runtime.telemetry";
/// State directory: lock, records of earlier processes.
pub const RUNTIME_STORE: &str = "runtime.store";
/// Async runtime, routes, take-over of the listener.
pub const RUNTIME_ROUTER: &str = "runtime.router";
/// The agent channel made ready before a session asks for it.
pub const CHANNEL_PREHEAT: &str = "channel.preheat";
/// Agent process started.
pub const CHANNEL_SPAWN: &str = "channel.spawn";
/// ACP `initialize`: request written to response read.
pub const CHANNEL_INITIALIZE: &str = "channel.initialize";
/// `POST /session`, the request that this project is about.
pub const POST_SESSION: &str = "POST /session";
/// A request that waits for the runtime.
pub const RUNTIME_WAIT: &str = "runtime.wait";
/// A request that waits for the agent channel.
pub const CHANNEL_WAIT: &str = "channel.wait";
/// ACP `session/new`: request written to response read.
pub const SESSION_NEW: &str = "session.new";

/// Agent: spawn instant to initialize response.
pub const AGENT_STARTUP: &str = "agent.startup";
/// Prefix of the children of [`AGENT_STARTUP`], one a phase.
pub const AGENT_PHASE_PREFIX: &str = "agent.phase.";
/// Agent: one `session/new`.
pub const AGENT_SESSION_START: &str = "agent.session_start";
/// Prefix of the children of [`AGENT_SESSION_START`], one a stage.
pub const AGENT_SESSION_PREFIX: &str = "agent.session.";

/// Every name of this module, in its order; tests hold the documentation to it.
pub const ALL: [&str; 31] = [
    RUN,
    CLIENT_LISTENER,
    CLIENT_HEALTH,
    CLIENT_ACTION,
    CLIENT_SESSION,
    CLIENT_CAPABILITIES,
    CLIENT_PREHEAT,
    CLIENT_INITIALIZE,
    CLIENT_REQUEST,
    CLIENT_COMMAND,
    CLIENT_SHUTDOWN,
    DAEMON_BOOT,
    BOOT_EXEC,
    BOOT_ARGS,
    BOOT_BIND,
    HEALTH_FIRST,
    RUNTIME_START,
    RUNTIME_TELEMETRY,
    RUNTIME_STORE,
    RUNTIME_ROUTER,
    CHANNEL_PREHEAT,
    CHANNEL_SPAWN,
    CHANNEL_INITIALIZE,
    POST_SESSION,
    RUNTIME_WAIT,
    CHANNEL_WAIT,
    SESSION_NEW,
    AGENT_STARTUP,
    AGENT_PHASE_PREFIX,
    AGENT_SESSION_START,
    AGENT_SESSION_PREFIX,
];
