//! Keys and fixed values of the attributes of the trace contract.
//!
//! Keys are dotted lower case and end in their unit where they have one.

/// Resource: program name.
pub const SERVICE_NAME: &str = "service.name";
/// Resource: program version.
pub const SERVICE_VERSION: &str = "service.version";
/// Resource: UUID of this process.
pub const SERVICE_INSTANCE_ID: &str = "service.instance.id";
/// Resource: process id.
pub const PROCESS_PID: &str = "process.pid";
/// Resource: parent process id.
pub const PROCESS_PARENT_PID: &str = "process.parent_pid";
/// Resource: processor architecture.
pub const HOST_ARCH: &str = "host.arch";
/// Resource: operating system.
pub const OS_TYPE: &str = "os.type";
/// Resource: major version of the contract, an integer.
pub const TRACE_VERSION: &str = "coldpath.trace.version";
/// Resource of the last line of a closed file: `true`.
pub const TRACE_FINAL: &str = "coldpath.trace.final";
/// Resource of the last line of a rotated file: `true`.
pub const TRACE_CONTINUED: &str = "coldpath.trace.continued";
/// Resource of the last line: spans that the bounded channel refused, an integer.
pub const TRACE_DROPPED_SPANS: &str = "coldpath.trace.dropped_spans";
/// Resource of the last line: lines that the collector did not get, an integer; absent when none.
pub const TRACE_UNDELIVERED_LINES: &str = "coldpath.trace.undelivered_lines";
/// Resource: what the process's time zero is: `spawn` (a valid `COLDPATH_SPAWN`) or `main`.
pub const PROCESS_START: &str = "coldpath.process_start";
/// Value of [`PROCESS_START`]: the spawner's spawn instant.
pub const PROCESS_START_SPAWN: &str = "spawn";
/// Value of [`PROCESS_START`]: the first clock reading of `main`.
pub const PROCESS_START_MAIN: &str = "main";
/// Resource: inherited trace context or spawn stamps that were invalid and ignored, an integer.
pub const CONTEXT_REJECTED: &str = "coldpath.context.rejected";

/// `run`: position in the schedule, from 0, an integer.
pub const RUN_INDEX: &str = "coldpath.run.index";
/// `run`: name of the arm or cohort.
pub const RUN_COHORT: &str = "coldpath.run.cohort";
/// `run`: scenario.
pub const RUN_SCENARIO: &str = "coldpath.run.scenario";
/// `run`: whether the run is a warm-up and out of every statistic, a boolean.
pub const RUN_WARMUP: &str = "coldpath.run.warmup";
/// `run`: exit code of the program, an integer; negative is the signal that ended it.
pub const RUN_EXIT_CODE: &str = "coldpath.run.exit_code";
/// `run`: why the run failed; absent on success.
pub const RUN_FAILURE: &str = "coldpath.run.failure";
/// `run`: block of the schedule in which every arm stands once, from 0, an integer.
pub const RUN_PAIR_INDEX: &str = "coldpath.run.pair.index";
/// `run`: order inside the pair, `ab` or `ba`; with n arms the arm's place, from 0.
pub const RUN_PAIR_ORDER: &str = "coldpath.run.pair.order";
/// `run`: prefix of the host's covariates.
pub const HOST_PREFIX: &str = "coldpath.host.";
/// `run`: RSS of the process tree at the listener, bytes, an integer.
pub const RSS_LISTENER: &str = "coldpath.rss.listener_bytes";
/// `run`: RSS of the process tree with one session, bytes, an integer.
pub const RSS_SESSION: &str = "coldpath.rss.session_bytes";
/// `run`: RSS of the program alone (children excluded) with one session, bytes, an integer.
pub const RSS_SESSION_PROCESS: &str = "coldpath.rss.session_process_bytes";
/// `run`: peak RSS of the process tree, an upper bound, bytes, an integer.
pub const RSS_PEAK: &str = "coldpath.rss.peak_bytes";
/// `run`: largest RSS of the process tree among periodic samples, bytes, an integer.
pub const RSS_SAMPLED_PEAK: &str = "coldpath.rss.sampled_peak_bytes";
/// `run`: prefix of injected delays, followed by the stage; the suffix is `_ns`.
pub const RUN_INJECT_PREFIX: &str = "coldpath.run.inject.";
/// `run`: what the program does not offer, and what was done instead; absent when nothing.
pub const RUN_FALLBACK: &str = "coldpath.run.fallback";

/// `client.*`: `cold`, `warm` or `preheated`.
pub const SESSION_TEMPERATURE: &str = "coldpath.session.temperature";
/// Channel id: UUID of one agent process with its ACP connection.
pub const CHANNEL_ID: &str = "coldpath.channel.id";
/// `channel.wait`: `reused`, `joined` or `spawned_on_request`.
pub const CHANNEL_PATH: &str = "coldpath.channel.path";
/// `runtime.wait`: `started_on_request` or `joined`.
pub const RUNTIME_PATH: &str = "coldpath.runtime.path";
/// `runtime.start`: `health`, `request`, `fallback` or `immediate`.
pub const RUNTIME_TRIGGER: &str = "coldpath.runtime.trigger";
/// Request: `created`, `attached`, `coalesced`, `rejected` or `failed`.
pub const SESSION_OUTCOME: &str = "coldpath.session.outcome";
/// ACP session id, once known.
pub const SESSION_ID: &str = "session.id";
/// `channel.initialize`: agent program as the user named it.
pub const AGENT_COMMAND: &str = "coldpath.agent.command";
/// `channel.spawn`, `channel.initialize`: whether the agent is the embedded one, a boolean.
pub const AGENT_EMBEDDED: &str = "coldpath.agent.embedded";

/// `channel.initialize`: whether the agent's profile is complete, a boolean.
pub const STARTUP_COMPLETE: &str = "coldpath.startup.complete";
/// `channel.initialize`: agent's process start to initialize response, milliseconds.
pub const STARTUP_PROCESS_TO_RESPONSE_MS: &str = "coldpath.startup.process_to_response_ms";
/// `channel.initialize`: part of that in no phase, milliseconds.
pub const STARTUP_UNATTRIBUTED_MS: &str = "coldpath.startup.unattributed_ms";
/// `channel.initialize`: response built to response read, milliseconds.
pub const STARTUP_RESPONSE_TRANSPORT_MS: &str = "coldpath.startup.response_transport_ms";
/// `channel.initialize`: prefix of the phases; the suffix is `_ms`.
pub const STARTUP_PHASE_PREFIX: &str = "coldpath.startup.phase.";
/// `channel.initialize`: prefix of qwen's nested config values; the suffix is `_ms`.
pub const STARTUP_CONFIG_PREFIX: &str = "coldpath.startup.config.";

/// Time on a processor of the thread that runs the span, nanoseconds, an integer.
pub const SCHED_CPU_NS: &str = "coldpath.sched.cpu_ns";
/// Time that thread was runnable and waited for a processor, nanoseconds, an integer.
pub const SCHED_RUNQ_NS: &str = "coldpath.sched.runq_ns";
/// Major faults of the process during the span, an integer.
pub const IO_MAJOR_FAULTS: &str = "coldpath.io.major_faults";
/// Bytes that the process read from storage during the span, an integer.
pub const IO_READ_BYTES: &str = "coldpath.io.read_bytes";

/// `agent.session_start`: branch of the workspace.
pub const VCS_BRANCH: &str = "vcs.ref.head.name";
/// `agent.session_start`: commit of the workspace.
pub const VCS_COMMIT: &str = "vcs.ref.head.revision";

/// HTTP semantic conventions.
pub const HTTP_METHOD: &str = "http.request.method";
/// HTTP semantic conventions.
pub const HTTP_ROUTE: &str = "http.route";
/// HTTP semantic conventions; an integer.
pub const HTTP_STATUS: &str = "http.response.status_code";
/// Class of an error, in the semantic conventions' sense.
pub const ERROR_TYPE: &str = "error.type";

/// ACP `_meta` key: W3C trace context at the root of `_meta`, reserved by ACP.
pub const META_TRACEPARENT: &str = "traceparent";
/// ACP `_meta` key: W3C vendor state.
pub const META_TRACESTATE: &str = "tracestate";
/// ACP `_meta` key by which a qwen agent takes trace context.
pub const META_QWEN_TRACEPARENT: &str = "qwen.telemetry.traceparent";
/// ACP `_meta` key by which a qwen agent takes vendor state.
pub const META_QWEN_TRACESTATE: &str = "qwen.telemetry.tracestate";
/// ACP `_meta` key of Coldpath's startup profile: `{"v":1}` asks, the profile answers.
pub const META_STARTUP_PROFILE: &str = "coldpath.startupProfile";
/// ACP `_meta` key of qwen's startup profile: `{"v":1}` asks, the profile answers.
pub const META_QWEN_STARTUP_PROFILE: &str = "qwen.daemon.channelStartupProfile";

/// Every name of this module, in its order; tests hold the documentation to it.
pub const ALL: [&str; 63] = [
    SERVICE_NAME,
    SERVICE_VERSION,
    SERVICE_INSTANCE_ID,
    PROCESS_PID,
    PROCESS_PARENT_PID,
    HOST_ARCH,
    OS_TYPE,
    TRACE_VERSION,
    TRACE_FINAL,
    TRACE_CONTINUED,
    TRACE_DROPPED_SPANS,
    TRACE_UNDELIVERED_LINES,
    PROCESS_START,
    PROCESS_START_SPAWN,
    PROCESS_START_MAIN,
    CONTEXT_REJECTED,
    RUN_INDEX,
    RUN_COHORT,
    RUN_SCENARIO,
    RUN_WARMUP,
    RUN_EXIT_CODE,
    RUN_FAILURE,
    RUN_PAIR_INDEX,
    RUN_PAIR_ORDER,
    HOST_PREFIX,
    RSS_LISTENER,
    RSS_SESSION,
    RSS_SESSION_PROCESS,
    RSS_PEAK,
    RSS_SAMPLED_PEAK,
    RUN_INJECT_PREFIX,
    RUN_FALLBACK,
    SESSION_TEMPERATURE,
    CHANNEL_ID,
    CHANNEL_PATH,
    RUNTIME_PATH,
    RUNTIME_TRIGGER,
    SESSION_OUTCOME,
    SESSION_ID,
    AGENT_COMMAND,
    AGENT_EMBEDDED,
    STARTUP_COMPLETE,
    STARTUP_PROCESS_TO_RESPONSE_MS,
    STARTUP_UNATTRIBUTED_MS,
    STARTUP_RESPONSE_TRANSPORT_MS,
    STARTUP_PHASE_PREFIX,
    STARTUP_CONFIG_PREFIX,
    SCHED_CPU_NS,
    SCHED_RUNQ_NS,
    IO_MAJOR_FAULTS,
    IO_READ_BYTES,
    VCS_BRANCH,
    VCS_COMMIT,
    HTTP_METHOD,
    HTTP_ROUTE,
    HTTP_STATUS,
    ERROR_TYPE,
    META_TRACEPARENT,
    META_TRACESTATE,
    META_QWEN_TRACEPARENT,
    META_QWEN_TRACESTATE,
    META_STARTUP_PROFILE,
    META_QWEN_STARTUP_PROFILE,
];
