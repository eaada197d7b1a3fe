//! Programs that are no daemon of the v1 contract, each by its driver.

use crate::fake;
use crate::lab::{Lab, names, only, run_of};
use std::path::Path;

const ONE_RUN: [&str; 4] = ["--runs", "1", "--warmup", "0"];

#[test]
fn a_web_server_that_knows_nothing_of_this_is_driven_by_a_file() {
    let lab = Lab::new();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/plain-http.toml");
    // As the example, but for the output on which this server speaks.
    let text = std::fs::read_to_string(example).unwrap();
    let driver = lab.path("plain.toml");
    std::fs::write(&driver, text.replace("stdout", "stderr")).unwrap();
    let mut options = ONE_RUN.to_vec();
    options.extend(["--driver", driver.to_str().unwrap()]);
    let output = lab.measure("plain", &options);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let runs = lab.runs();
    assert_eq!(
        names(&runs[0]),
        [
            "run",
            "client.listener",
            "client.health",
            "client.request",
            "client.shutdown"
        ]
    );
    let request = only(&runs[0], "client.request");
    assert_eq!(request.text("http.response.status_code"), "404");
    assert_eq!(lab.manifest()["arms"][0]["driver"]["name"], "plain-http");
}

#[test]
fn a_command_is_timed_whole_and_its_own_code_counts() {
    for (program, code) in [("/bin/true", 0), ("/bin/false", 1)] {
        let lab = Lab::new();
        let mut options = ONE_RUN.to_vec();
        options.extend(["--driver", "command", "--", program]);
        let output = lab.bare(&options).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let runs = lab.runs();
        assert_eq!(names(&runs[0]), ["run", "client.command"]);
        let run = run_of(&runs[0]);
        assert_eq!(only(&runs[0], "client.command").start, run.start);
        assert_eq!(run.text("coldpath.run.exit_code"), code.to_string());
    }
}

#[test]
fn an_agent_is_driven_raw_whatever_it_says_before_its_answers() {
    let lab = Lab::new();
    let mut options = ONE_RUN.to_vec();
    options.extend(["--driver", "acp-stdio"]);
    let output = lab.measure("agent", &options);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let runs = lab.runs();
    assert_eq!(
        names(&runs[0]),
        [
            "run",
            "client.initialize",
            "client.action",
            "client.session",
            "client.session",
            "client.shutdown"
        ]
    );
    let run = run_of(&runs[0]);
    // It ended at the end of its input, without a signal.
    assert_eq!(run.text("coldpath.run.exit_code"), "0");
    assert_eq!(only(&runs[0], "client.action").text("session.id"), "s-1");
    let log = lab.log();
    let workspace = lab.path("workspace").canonicalize().unwrap();
    let asked = |method: &str| {
        log.iter()
            .filter_map(|line| line.strip_prefix("line "))
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .find(|line| line["method"] == method)
            .unwrap()
    };
    let new = asked("session/new");
    assert_eq!(new["params"]["cwd"], workspace.to_str().unwrap());
    let session = only(&runs[0], "client.action");
    let parent = new["params"]["_meta"]["traceparent"].as_str().unwrap();
    assert!(parent.starts_with(&format!("00-{}-", session.trace)));
    // Its own request was refused under its id.
    let refused = log.iter().filter(|line| line.contains("-32601")).count();
    assert!(refused >= 2, "{log:#?}");
}

#[test]
fn the_shim_holds_up_an_agent_that_cannot_do_it_itself() {
    let lab = Lab::new();
    let agent = fake::command().join(" ");
    let arm = |name: &str| format!("{name}=env {}=agent {{shim}} {agent}", fake::BEHAVIOUR);
    // `env` is the program, so that the shim's own words are inside the command.
    let output = lab
        .bare(&["--runs", "2", "--warmup", "0", "--driver", "acp-stdio"])
        .args(["--arm", &arm("control"), "--arm", &arm("candidate")])
        .args(["--inject", "candidate=agent.session_start=+40ms"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    for spans in lab.runs() {
        let (run, action) = (run_of(&spans), only(&spans, "client.action"));
        let held_up = run.text("coldpath.run.cohort") == "candidate";
        assert_eq!(
            run.has("coldpath.run.inject.agent.session_start_ns"),
            held_up
        );
        if held_up {
            assert!(action.end - action.start >= 40_000_000, "no delay");
        }
    }
}
