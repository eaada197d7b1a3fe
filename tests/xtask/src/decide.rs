//! `decide`: this project's own open questions, put to its own tools.
//!
//! Each question is a control and a candidate; each case is a circumstance in which
//! both are measured in pairs beside identical arms of the control, and judged by the
//! policy `docs/decisions/QUESTION/CASE.toml`. What follows from the verdicts is
//! written by hand, beside the policies. Measures and judges nothing itself.

use crate::cargo::{Build, Programs, build, program};
use crate::dist::{self, Panic};
use crate::qwen;
use crate::steps::{Outcome, fresh_dir, quoted, root, say, target_dir};
use crate::workspace;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Bound of each step: Node on a busy machine takes seconds.
const STEP_TIMEOUT_MS: &str = "60000";
/// Exit codes of `analyze gate` that are verdicts: passed, failed, cannot judge.
const VERDICTS: [i32; 3] = [0, 1, 3];

/// What is asked.
struct Question {
    name: &'static str,
    control: Arm,
    candidate: Arm,
    cases: &'static [&'static str],
}

/// A circumstance. The policies declare the same number of pairs.
struct Case {
    name: &'static str,
    pairs: u32,
}

/// One side of a question.
struct Arm {
    panic: Panic,
    options: [&'static str; 2],
}

const QUESTIONS: [Question; 2] = [
    Question {
        name: "runtime-start",
        control: Arm {
            panic: Panic::Unwind,
            options: ["--runtime-start", "health"],
        },
        candidate: Arm {
            panic: Panic::Unwind,
            options: ["--runtime-start", "immediate"],
        },
        cases: &["embedded", "embedded-600", "one-core", "qwen"],
    },
    Question {
        name: "panic",
        control: Arm {
            panic: Panic::Unwind,
            options: ["--runtime-start", "health"],
        },
        candidate: Arm {
            panic: Panic::Abort,
            options: ["--runtime-start", "health"],
        },
        cases: &["embedded", "embedded-600", "qwen"],
    },
];
/// With the embedded agent; the same with the pairs that sixty said were needed;
/// everything on one processor; with a real agent.
const CASES: [Case; 4] = [
    Case {
        name: "embedded",
        pairs: 60,
    },
    Case {
        name: "embedded-600",
        pairs: 600,
    },
    Case {
        name: ONE_CORE,
        pairs: 60,
    },
    Case {
        name: REAL_AGENT,
        pairs: 60,
    },
];
const ONE_CORE: &str = "one-core";
const REAL_AGENT: &str = "qwen";
/// Name of the identical arms among the questions.
const PLACEBO: &str = "placebo";

/// What is asked of what there is: everything, or what the words name. Words of one
/// kind, cases or questions, are alternatives.
struct Wanted<'a>(&'a [&'a str]);

impl Wanted<'_> {
    fn check(&self) -> Outcome {
        match self
            .0
            .iter()
            .find(|word| !names().any(|name| name == **word))
        {
            Some(unknown) => Err(format!(
                "unknown case or question `{unknown}`; there are {}",
                names().collect::<Vec<_>>().join(", ")
            )),
            None => Ok(()),
        }
    }

    fn case(&self, name: &str) -> bool {
        self.is_among(name, CASES.iter().map(|case| case.name))
    }

    fn question(&self, name: &str) -> bool {
        self.is_among(name, questions())
    }

    fn is_among(&self, name: &str, mut kind: impl Iterator<Item = &'static str>) -> bool {
        self.0.contains(&name) || !kind.any(|one| self.0.contains(&one))
    }
}

fn questions() -> impl Iterator<Item = &'static str> {
    std::iter::once(PLACEBO).chain(QUESTIONS.iter().map(|question| question.name))
}

fn names() -> impl Iterator<Item = &'static str> {
    CASES.iter().map(|case| case.name).chain(questions())
}

/// Asks what the words name, or everything.
pub(crate) fn run(words: &[&str]) -> Outcome {
    let wanted = Wanted(words);
    wanted.check()?;
    let bench = Bench::prepare(wanted.case(REAL_AGENT))?;
    for case in CASES.iter().filter(|case| wanted.case(case.name)) {
        bench.case(case, &wanted)?;
    }
    Ok(())
}

/// Everything that is built and made before the first run.
struct Bench {
    dir: PathBuf,
    files: PathBuf,
    home: PathBuf,
    tools: Programs,
    unwinding: PathBuf,
    aborting: PathBuf,
    /// The real agent's command line, and its model.
    agent: Option<(String, String)>,
}

impl Bench {
    fn prepare(real_agent: bool) -> Outcome<Self> {
        let wanted = &dist::PROGRAMS[..2];
        let aborting = dist::build_with(wanted, Panic::Abort)?;
        let unwinding = dist::build_with(wanted, Panic::Unwind)?;
        let tools = build(&Build {
            profile: "release",
            packages: &["coldpath-measure", "coldpath-analyzer"],
            ..Build::default()
        })?;
        let dir = target_dir().join("decide");
        std::fs::create_dir_all(&dir)
            .map_err(|error| format!("cannot make {}: {error}", dir.display()))?;
        let (files, home) = (dir.join("workspace"), dir.join("home"));
        workspace::make(&files)?;
        fresh_dir(&home)?;
        let agent = if real_agent {
            Some((qwen::install()?.agent()?, qwen::serve_model()?))
        } else {
            None
        };
        Ok(Self {
            unwinding: program(&unwinding, "coldpathd")?.clone(),
            aborting: program(&aborting, "coldpathd")?.clone(),
            dir,
            files,
            home,
            tools,
            agent,
        })
    }

    /// Identical arms first, then each question that is asked in this case.
    fn case(&self, case: &Case, wanted: &Wanted<'_>) -> Outcome {
        let load =
            std::fs::read_to_string("/proc/loadavg").unwrap_or_else(|_| "unknown".to_owned());
        say(&format!(
            "\n== {}; load before: {}\n",
            case.name,
            load.trim()
        ))?;
        let placebo = self.dir.join(format!("{PLACEBO}-{}.json", case.name));
        if wanted.question(PLACEBO) {
            let control = self.words(&QUESTIONS[0].control, case)?;
            let identical = self.dir.join(format!("{PLACEBO}-{}", case.name));
            let words: Vec<&str> = control.iter().map(String::as_str).collect();
            self.measure(case, &identical, "aa", &[&["--"], &words[..]].concat())?;
            self.analyze(&[PLACEBO.as_ref(), &identical, "-o".as_ref(), &placebo])?;
        }
        for question in &QUESTIONS {
            if question.cases.contains(&case.name) && wanted.question(question.name) {
                self.ask(question, case, &placebo)?;
            }
        }
        Ok(())
    }

    fn ask(&self, question: &Question, case: &Case, placebo: &Path) -> Outcome {
        let name = format!("{}-{}", question.name, case.name);
        let traces = self.dir.join(&name);
        let control = line(&self.words(&question.control, case)?)?;
        let candidate = line(&self.words(&question.candidate, case)?)?;
        let arms = ["--control", &control, "--candidate", &candidate];
        self.measure(case, &traces, "pair", &arms)?;
        let policy = root()
            .join("docs/decisions")
            .join(question.name)
            .join(format!("{}.toml", case.name));
        let result = self.dir.join(format!("{name}.md"));
        let gate: [&Path; 5] = [
            "gate".as_ref(),
            &policy,
            &traces,
            "--placebo".as_ref(),
            placebo,
        ];
        self.analyze(&gate)?;
        let more: [&Path; 4] = [
            "--format".as_ref(),
            "markdown".as_ref(),
            "-o".as_ref(),
            &result,
        ];
        self.analyze(&[&gate[..], &more[..]].concat())
    }

    /// The command of an arm.
    fn words(&self, arm: &Arm, case: &Case) -> Outcome<Vec<String>> {
        let daemon = match arm.panic {
            Panic::Unwind => &self.unwinding,
            Panic::Abort => &self.aborting,
        };
        let daemon = daemon
            .to_str()
            .ok_or_else(|| format!("{} is not UTF-8", daemon.display()))?;
        let mut words = vec![daemon, "--port", "0", "--workspace", "{workspace}"];
        words.extend(arm.options);
        if let Some((agent, _)) = self.agent.as_ref().filter(|_| case.name == REAL_AGENT) {
            words.extend(["--agent", agent]);
        }
        Ok(words.into_iter().map(str::to_owned).collect())
    }

    /// Runs `measure`, on one processor where the case says so.
    fn measure(&self, case: &Case, out: &Path, verb: &str, arms: &[&str]) -> Outcome {
        fresh_dir(out)?;
        let measure = program(&self.tools, "measure")?;
        let mut command = if case.name == ONE_CORE {
            let mut pinned = Command::new("taskset");
            pinned.args(["-c", "0"]).arg(measure);
            pinned
        } else {
            Command::new(measure)
        };
        if let Some((_, endpoint)) = &self.agent {
            command.envs(qwen::variables(&self.home, endpoint));
        }
        command
            .arg(verb)
            .args(["--pairs", &case.pairs.to_string(), "--rss", "untimed"]);
        command.args(["--timeout-ms", STEP_TIMEOUT_MS]);
        command.arg("--workspace").arg(&self.files);
        command.arg("--out").arg(out).args(arms);
        match status(&mut command)? {
            Some(0) => Ok(()),
            code => Err(format!("measure ended with {code:?}")),
        }
    }

    fn analyze(&self, arguments: &[&Path]) -> Outcome {
        let mut command = Command::new(program(&self.tools, "analyze")?);
        match status(command.args(arguments))? {
            Some(code) if VERDICTS.contains(&code) => Ok(()),
            code => Err(format!("analyze ended with {code:?}")),
        }
    }
}

/// Words as one command line in POSIX quoting.
fn line(words: &[String]) -> Outcome<String> {
    let quoted: Outcome<Vec<String>> = words.iter().map(|word| quoted(Path::new(word))).collect();
    Ok(quoted?.join(" "))
}

fn status(command: &mut Command) -> Outcome<Option<i32>> {
    let name = Path::new(command.get_program()).display().to_string();
    command
        .current_dir(root())
        .stdin(Stdio::null())
        .status()
        .map(|status| status.code())
        .map_err(|error| format!("cannot run {name}: {error}"))
}
