//! The tools that a turn offers to a model: names, descriptions, JSON Schemas.
//!
//! Built and serialised once at start-up. Which of them a session offers depends
//! on what its client does for the agent (`fs`, `terminal`) and on the settings.
//! Nothing is run here.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Names of all tools, in the order in which they are offered.
pub(crate) const NAMES: [&str; 5] = [
    "read_file",
    "write_file",
    "list_directory",
    "search_text",
    "run_command",
];

/// Whether there is a tool of that name.
pub(crate) fn is_tool(name: &str) -> bool {
    NAMES.contains(&name)
}

/// What a tool needs of the client; ACP's `clientCapabilities`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// `fs.readTextFile`
    ReadTextFile,
    /// `fs.writeTextFile`
    WriteTextFile,
    /// `terminal`
    Terminal,
}

impl Needs {
    fn are_met(self, client: &Map<String, Value>) -> bool {
        let is_true = |value: Option<&Value>| value == Some(&Value::Bool(true));
        let file_system = |key| is_true(client.get("fs").and_then(|fs| fs.get(key)));
        match self {
            Self::Nothing => true,
            Self::ReadTextFile => file_system("readTextFile"),
            Self::WriteTextFile => file_system("writeTextFile"),
            Self::Terminal => is_true(client.get("terminal")),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tool {
    name: &'static str,
    description: &'static str,
    input_schema: Value,
    #[serde(skip)]
    needs: Needs,
}

/// The tools that are not disabled, and their definitions as JSON.
#[derive(Debug)]
pub(crate) struct Registry {
    offered: Vec<(&'static str, Needs)>,
    definitions: Box<RawValue>,
}

impl Registry {
    /// Builds every tool but the `disabled` ones.
    pub(crate) fn build(disabled: &[String]) -> Self {
        let mut tools = all();
        tools.retain(|tool| disabled.iter().all(|name| name != tool.name));
        let definitions = serde_json::value::to_raw_value(&tools)
            // Text and JSON values are always JSON.
            .unwrap_or_else(|_| RawValue::NULL.to_owned());
        Self {
            offered: tools.iter().map(|tool| (tool.name, tool.needs)).collect(),
            definitions,
        }
    }

    /// Definitions of all tools: an array of `{name, description, inputSchema}`.
    pub(crate) fn definitions(&self) -> &RawValue {
        &self.definitions
    }

    /// Names of the tools whose needs a client with these capabilities meets.
    pub(crate) fn for_client(&self, capabilities: &Map<String, Value>) -> Vec<&'static str> {
        self.offered
            .iter()
            .filter(|(_, needs)| needs.are_met(capabilities))
            .map(|(name, _)| *name)
            .collect()
    }
}

fn all() -> Vec<Tool> {
    vec![
        Tool {
            name: "read_file",
            description: "Read a text file of the workspace, whole or some lines of it.",
            input_schema: object(
                &json!({
                    "path": {"type": "string", "description": "Absolute path of the file."},
                    "line": {"type": "integer", "minimum": 1, "description": "First line; the file's first by default."},
                    "limit": {"type": "integer", "minimum": 1, "description": "Number of lines; all by default."}
                }),
                &["path"],
            ),
            needs: Needs::ReadTextFile,
        },
        Tool {
            name: "write_file",
            description: "Write a text file of the workspace, replacing what it held.",
            input_schema: object(
                &json!({
                    "path": {"type": "string", "description": "Absolute path of the file."},
                    "content": {"type": "string", "description": "The whole new text."}
                }),
                &["path", "content"],
            ),
            needs: Needs::WriteTextFile,
        },
        Tool {
            name: "list_directory",
            description: "List the names in a directory of the workspace.",
            input_schema: object(
                &json!({
                    "path": {"type": "string", "description": "Absolute path of the directory."}
                }),
                &["path"],
            ),
            needs: Needs::Nothing,
        },
        Tool {
            name: "search_text",
            description: "Find lines that hold a text in the files of the workspace.",
            input_schema: object(
                &json!({
                    "text": {"type": "string", "minLength": 1, "description": "The text, taken literally."},
                    "path": {"type": "string", "description": "Absolute path of the directory to search; the workspace by default."},
                    "limit": {"type": "integer", "minimum": 1, "description": "Most lines to return."}
                }),
                &["text"],
            ),
            needs: Needs::Nothing,
        },
        Tool {
            name: "run_command",
            description: "Run a program in the workspace and return what it prints.",
            input_schema: object(
                &json!({
                    "command": {"type": "string", "description": "Program to run."},
                    "args": {"type": "array", "items": {"type": "string"}, "description": "Its arguments."},
                    "cwd": {"type": "string", "description": "Absolute path to run it in; the workspace by default."}
                }),
                &["command"],
            ),
            needs: Needs::Terminal,
        },
    ]
}

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definitions(disabled: &[&str]) -> Vec<Value> {
        let disabled: Vec<_> = disabled.iter().map(|name| (*name).to_owned()).collect();
        serde_json::from_str(Registry::build(&disabled).definitions().get()).unwrap()
    }

    #[test]
    fn every_definition_is_a_named_schema_that_requires_its_own_properties() {
        let definitions = definitions(&[]);
        let names: Vec<_> = definitions
            .iter()
            .map(|tool| tool["name"].clone())
            .collect();
        assert_eq!(names, NAMES);
        for tool in &definitions {
            let schema = &tool["inputSchema"];
            assert_eq!(schema["type"], "object");
            assert!(tool["description"].as_str().unwrap().ends_with('.'));
            for required in schema["required"].as_array().unwrap() {
                let property = &schema["properties"][required.as_str().unwrap()];
                assert!(property["type"].is_string(), "{tool}");
            }
        }
    }

    #[test]
    fn disabled_tools_are_left_out() {
        let left = definitions(&["run_command", "write_file"]);
        assert_eq!(left.len(), 3);
    }

    #[test]
    fn a_client_is_offered_what_it_can_serve() {
        let registry = Registry::build(&["search_text".to_owned()]);
        let offered = |client: Value| registry.for_client(client.as_object().unwrap()).join(" ");
        assert_eq!(offered(json!({})), "list_directory");
        assert_eq!(
            offered(
                json!({"fs": {"readTextFile": true, "writeTextFile": false}, "terminal": "yes"})
            ),
            "read_file list_directory"
        );
        assert_eq!(
            offered(json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true})),
            "read_file write_file list_directory run_command"
        );
    }
}
