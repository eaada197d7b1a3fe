//! The tools that a turn offers to a model: names, descriptions, JSON Schemas.
//!
//! Written down as constants and serialised once at start-up: a tree of JSON
//! values made first costs five times as much. Which of them a session offers
//! depends on what its client does for the agent (`fs`, `terminal`) and on the
//! settings. Nothing is run here.

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

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

/// A tool; serialises as its definition for a model.
struct Tool {
    name: &'static str,
    description: &'static str,
    input: &'static [Property],
    needs: Needs,
}

/// One argument of a tool.
struct Property {
    name: &'static str,
    kind: Kind,
    presence: Presence,
    description: &'static str,
}

#[derive(Clone, Copy)]
enum Kind {
    Text,
    /// An integer from 1.
    Count,
    TextList,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Required,
    Optional,
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
        let tools: Vec<&Tool> = TOOLS
            .iter()
            .filter(|tool| disabled.iter().all(|name| name != tool.name))
            .collect();
        let definitions = serde_json::value::to_raw_value(&tools)
            // Text in maps with text keys is always JSON.
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

const TOOLS: [Tool; NAMES.len()] = [
    Tool {
        name: "read_file",
        description: "Read a text file of the workspace, whole or some lines of it.",
        input: &[
            required("path", Kind::Text, "Absolute path of the file."),
            optional(
                "line",
                Kind::Count,
                "First line; the file's first by default.",
            ),
            optional("limit", Kind::Count, "Number of lines; all by default."),
        ],
        needs: Needs::ReadTextFile,
    },
    Tool {
        name: "write_file",
        description: "Write a text file of the workspace, replacing what it held.",
        input: &[
            required("path", Kind::Text, "Absolute path of the file."),
            required("content", Kind::Text, "The whole new text."),
        ],
        needs: Needs::WriteTextFile,
    },
    Tool {
        name: "list_directory",
        description: "List the names in a directory of the workspace.",
        input: &[required(
            "path",
            Kind::Text,
            "Absolute path of the directory.",
        )],
        needs: Needs::Nothing,
    },
    Tool {
        name: "search_text",
        description: "Find lines that hold a text in the files of the workspace.",
        input: &[
            required("text", Kind::Text, "The text, taken literally."),
            optional(
                "path",
                Kind::Text,
                "Absolute path of the directory to search; the workspace by default.",
            ),
            optional("limit", Kind::Count, "Most lines to return."),
        ],
        needs: Needs::Nothing,
    },
    Tool {
        name: "run_command",
        description: "Run a program in the workspace and return what it prints.",
        input: &[
            required("command", Kind::Text, "Program to run."),
            optional("args", Kind::TextList, "Its arguments."),
            optional(
                "cwd",
                Kind::Text,
                "Absolute path to run it in; the workspace by default.",
            ),
        ],
        needs: Needs::Terminal,
    },
];

const fn required(name: &'static str, kind: Kind, description: &'static str) -> Property {
    Property {
        name,
        kind,
        presence: Presence::Required,
        description,
    }
}

const fn optional(name: &'static str, kind: Kind, description: &'static str) -> Property {
    Property {
        presence: Presence::Optional,
        ..required(name, kind, description)
    }
}

impl Serialize for Tool {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("name", self.name)?;
        map.serialize_entry("description", self.description)?;
        map.serialize_entry("inputSchema", &Schema(self.input))?;
        map.end()
    }
}

/// A JSON Schema of an object with these properties and no others.
struct Schema(&'static [Property]);

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let required = self
            .0
            .iter()
            .filter(|property| property.presence == Presence::Required)
            .map(|property| property.name);
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("type", "object")?;
        map.serialize_entry("properties", &Properties(self.0))?;
        map.serialize_entry("required", &required.collect::<Vec<_>>())?;
        map.serialize_entry("additionalProperties", &false)?;
        map.end()
    }
}

struct Properties(&'static [Property]);

impl Serialize for Properties {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|property| (property.name, property)))
    }
}

impl Serialize for Property {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self.kind {
            Kind::Text => map.serialize_entry("type", "string")?,
            Kind::Count => {
                map.serialize_entry("type", "integer")?;
                map.serialize_entry("minimum", &1)?;
            }
            Kind::TextList => {
                map.serialize_entry("type", "array")?;
                map.serialize_entry("items", &TextItems { kind: "string" })?;
            }
        }
        map.serialize_entry("description", self.description)?;
        map.end()
    }
}

#[derive(serde::Serialize)]
struct TextItems {
    #[serde(rename = "type")]
    kind: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
    fn a_definition_is_a_json_schema() {
        assert_eq!(
            definitions(&[])[4],
            json!({
                "name": "run_command",
                "description": "Run a program in the workspace and return what it prints.",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "command": {"type": "string", "description": "Program to run."},
                        "args": {"type": "array", "items": {"type": "string"}, "description": "Its arguments."},
                        "cwd": {"type": "string", "description": "Absolute path to run it in; the workspace by default."},
                    },
                    "required": ["command"],
                    "additionalProperties": false,
                },
            })
        );
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
