//! Everything behind the first answer, on a thread of its own.
//!
//! [`start_runtime`] is the one edge from the bootstrap loop to telemetry, async
//! runtime, store and agents. The thread builds them, says over a pipe whether it
//! is ready, gets the listener with all open connections in one message, and
//! serves until the process stops. The agent's start does not wait for that
//! message.

mod body;
mod children;
mod connections;
mod hold_up;
mod requests;
mod rewound;
mod server;
mod session_route;
mod starting;

pub(crate) use hold_up::hold_up;

use crate::boot::{BootRecord, BootTold, HealthRecord, Pending, RequestRecord, Trigger};
use crate::channel::{Channels, Services};
use crate::config::Config;
use crate::contract::{self, Phase};
use crate::exit;
use crate::http::{Answer, Head};
use crate::session::Sessions;
use crate::signals::StopSignal;
use crate::store::{ProcessIdentity, Store};
use coldpath_trace_format::emit::{MonoNanos, SpanContext, Stage, Telemetry, fault, inject};
use coldpath_trace_format::{attributes as keys, spans};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::oneshot;

pub(crate) use server::App;
pub(crate) use starting::Starting;
use starting::{Progress, Shared, Why};

/// What the bootstrap loop hands over when the runtime is ready.
#[derive(Debug)]
pub(crate) struct HandOver {
    pub(crate) listener: TcpListener,
    pub(crate) stop: StopSignal,
    pub(crate) connections: Vec<Pending>,
    /// The first answered `/health`, when there was one by now.
    pub(crate) health: Option<HealthRecord>,
}

/// What the runtime is built from.
#[derive(Debug)]
pub(crate) struct StartOrder {
    pub(crate) config: Arc<Config>,
    pub(crate) record: BootRecord,
    pub(crate) address: SocketAddr,
    pub(crate) trigger: Trigger,
    /// When the trigger came.
    pub(crate) at: MonoNanos,
    /// The request that was the trigger.
    pub(crate) request: Option<RequestRecord>,
}

/// Starts the thread that builds and then is the runtime.
///
/// The only way from the bootstrap loop to what it must not know; kept out of line
/// so that this can be seen in the program.
#[inline(never)]
pub(crate) fn start_runtime(order: StartOrder) -> io::Result<Starting> {
    let (ready, announce) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let (hand_over, handed) = oneshot::channel();
    let shared = Arc::new(Shared::default());
    let theirs = Arc::clone(&shared);
    let thread = std::thread::Builder::new()
        .name("runtime".to_owned())
        .spawn(move || {
            Building {
                order,
                shared: theirs,
                announce,
            }
            .run(handed)
        })?;
    Ok(Starting {
        ready,
        shared,
        hand_over,
        thread,
    })
}

/// Why the thread does not serve.
#[derive(Debug)]
enum Unbuilt {
    Failed(String),
    GivenUp(Why),
}

impl Unbuilt {
    /// Class and message for the spans that end with it.
    fn describe(&self) -> (&'static str, String) {
        match self {
            Self::Failed(message) => ("runtime_start_failed", message.clone()),
            Self::GivenUp(Why::Late) => {
                ("runtime_start_failed", "it was ready too late".to_owned())
            }
            Self::GivenUp(Why::Stopping) => {
                ("daemon_shutdown", "the daemon is stopping".to_owned())
            }
        }
    }
}

/// The thread's own side.
struct Building {
    order: StartOrder,
    shared: Arc<Shared>,
    announce: OwnedFd,
}

impl Building {
    fn run(self, handed: oneshot::Receiver<HandOver>) -> ExitCode {
        let begun = MonoNanos::now();
        let BootTold {
            telemetry,
            boot,
            health,
        } = self.order.record.open_telemetry();
        telemetry.attach_thread();
        *self.shared.telemetry() = telemetry.clone();
        let mut stage = telemetry
            .stage_at(spans::RUNTIME_START, boot.as_ref(), self.order.at)
            .with_sched_from_thread_start();
        stage.set(keys::RUNTIME_TRIGGER, self.order.trigger.name());
        let request = self
            .order
            .request
            .as_ref()
            .map(|request| requests::begin(&telemetry, request));
        let cause = request.as_ref().and_then(Stage::context).or(health);
        if let Some(cause) = &cause {
            stage.link(cause);
        }
        fault::block(spans::RUNTIME_START);
        inject::hold_up("", spans::RUNTIME_START);
        telemetry
            .stage_at(spans::RUNTIME_TELEMETRY, stage.context().as_ref(), begun)
            .end();
        let built = self.build(telemetry.clone(), &stage, boot);
        // What was built for nobody is let go of with its lock.
        let built = built.map_err(Unbuilt::Failed).and_then(|built| {
            self.say(Progress::Ready)
                .map(|()| built)
                .map_err(Unbuilt::GivenUp)
        });
        match built {
            Ok(built) => self.serve(built, stage, request, handed),
            Err(unbuilt) => {
                self.end_unbuilt(unbuilt, stage, request);
                ExitCode::from(exit::REFUSED)
            }
        }
    }

    fn end_unbuilt(&self, unbuilt: Unbuilt, mut stage: Stage, request: Option<Stage>) {
        let (class, message) = unbuilt.describe();
        if let Some(mut request) = request {
            if !matches!(unbuilt, Unbuilt::GivenUp(Why::Stopping)) {
                requests::refuse(&mut request, self.order.request.as_ref());
            }
            request.fail(class, message.clone());
            request.end();
        }
        stage.fail(class, message);
        stage.end();
        self.shared.telemetry().close();
        if let Unbuilt::Failed(message) = unbuilt {
            // Nobody listens when it was given up.
            let _ = self.say(Progress::Failed(message));
        }
    }

    fn build(
        &self,
        telemetry: Telemetry,
        stage: &Stage,
        boot: Option<SpanContext>,
    ) -> Result<Built, String> {
        let parent = stage.context();
        let mut opening = telemetry.stage(spans::RUNTIME_STORE, parent.as_ref());
        inject::hold_up("", spans::RUNTIME_STORE);
        let opened = Store::open(&self.order.config.state_dir).map_err(|error| error.to_string());
        if let Err(message) = &opened {
            opening.fail("store_unavailable", message.clone());
        }
        opening.end();
        let (store, survivors) = opened?;
        let routing = telemetry.stage(spans::RUNTIME_ROUTER, parent.as_ref());
        // Agents that fork twice would be nobody's children otherwise.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(|error| format!("cannot become the parent of orphaned agents: {error}"))?;
        let tokio = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("cannot build the async runtime: {error}"))?;
        routing.end();
        Ok(Built {
            telemetry,
            boot,
            store,
            survivors,
            tokio,
        })
    }

    fn serve(
        self,
        built: Built,
        stage: Stage,
        request: Option<Stage>,
        handed: oneshot::Receiver<HandOver>,
    ) -> ExitCode {
        let Built {
            telemetry,
            boot,
            store,
            survivors,
            tokio,
        } = built;
        let local = tokio::task::LocalSet::new();
        let runtime_start = stage.context();
        stage.end();
        let code = local.block_on(&tokio, async {
            let services = Services {
                config: Arc::clone(&self.order.config),
                telemetry: telemetry.clone(),
                store,
                survivors,
            };
            let channels = Channels::new(services);
            let app = App::new(server::Parts {
                sessions: Sessions::new(
                    std::rc::Rc::clone(&channels),
                    telemetry.clone(),
                    &self.order.config,
                ),
                channels,
                config: Arc::clone(&self.order.config),
                telemetry: telemetry.clone(),
                record: self.order.record.clone(),
                port: self.order.address.port(),
                boot,
                runtime_start: runtime_start.clone(),
            });
            app.preheat(runtime_start.as_ref());
            if let Ok(everything) = handed.await {
                app.serve(everything, request).await
            } else {
                // The daemon stopped before anything could be served.
                app.stop().await;
                ExitCode::from(exit::CLEAN)
            }
        });
        // Tasks that are left end with their spans, before the trace is closed.
        drop(local);
        drop(tokio);
        if let Some(problem) = telemetry.close().live.and_then(|live| live.problem()) {
            crate::log::warn(problem);
        }
        code
    }

    /// Tells the loop how far this is, unless it does not wait any more.
    fn say(&self, told: Progress) -> Result<(), Why> {
        let mut progress = self.shared.progress();
        if let Progress::GivenUp(why) = *progress {
            return Err(why);
        }
        *progress = told;
        drop(progress);
        // The loop looks at the progress, not at the byte.
        let _ = rustix::io::write(&self.announce, b"!");
        Ok(())
    }
}

struct Built {
    telemetry: Telemetry,
    boot: Option<SpanContext>,
    store: Store,
    survivors: Vec<ProcessIdentity>,
    tokio: tokio::runtime::Runtime,
}

/// The answer to `GET /daemon/status` in either loop.
pub(crate) fn status_answer(
    config: &Config,
    record: &BootRecord,
    head: &Head<'_>,
    phase: &Phase,
) -> Answer {
    match head.query_value("detail").unwrap_or("summary") {
        detail @ ("summary" | "full") => Answer::json(
            200,
            &contract::status(config, detail, &record.facts(), phase),
        ),
        _ => Answer::error(
            400,
            "detail must be one of: summary, full",
            Some("invalid_detail"),
        ),
    }
}
