//! Documents of EXPLAIN: properties in PostgreSQL's order, written as it writes JSON, YAML and XML
//! (explain.c), down to the spaces, since tools compare texts, too.

use std::borrow::Cow;

use archipel_sql::ast::ExplainFormat;

/// A property with its name.
pub type Property = (Cow<'static, str>, Value);

/// Properties in the order in which they are written.
pub type Properties = Vec<Property>;

/// What a property says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Text(String),
    /// As it is written.
    Number(String),
    Bool(bool),
    Null,
    Texts(Vec<String>),
    /// As they are written.
    Numbers(Vec<String>),
    Group(Properties),
    /// Groups of one kind, which XML calls by this name.
    Groups(&'static str, Vec<Properties>),
}

impl Value {
    /// A number with so many digits after its point.
    pub fn decimal(number: f64, digits: usize) -> Value {
        Value::Number(format!("{number:.digits$}"))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Value {
        Value::Number(number.to_string())
    }
}

impl From<Vec<String>> for Value {
    fn from(texts: Vec<String>) -> Value {
        Value::Texts(texts)
    }
}

/// Adds a property.
pub fn add(properties: &mut Properties, name: &'static str, value: impl Into<Value>) {
    properties.push((Cow::Borrowed(name), value.into()));
}

/// What is written of a query. A plan as text is no document: the format is one of the others.
pub fn query(format: ExplainFormat, properties: &[Property]) -> String {
    let mut out = String::new();
    match format {
        ExplainFormat::Xml => {
            out.push_str("<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n  <Query>\n");
            xml_group(&mut out, properties, 2);
            out.push_str("  </Query>\n</explain>");
        }
        ExplainFormat::Yaml => {
            out.push_str("- ");
            yaml_group(&mut out, properties, 1);
        }
        _ => {
            out.push_str("[\n  ");
            json_group(&mut out, properties, 1);
            out.push_str("\n]");
        }
    }
    out
}

/// What is written of a statement that has no plan.
pub fn utility(format: ExplainFormat) -> &'static str {
    match format {
        ExplainFormat::Xml => {
            "<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n  <Utility-Statement />\n</explain>"
        }
        ExplainFormat::Yaml => "- \"Utility Statement\"",
        _ => "[\n  \"Utility Statement\"\n]",
    }
}

fn spaces(out: &mut String, depth: usize) {
    out.extend(std::iter::repeat_n(' ', depth * 2));
}

/// A text as JSON and YAML write it (escape_json).
fn quoted(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => out.push(other),
        }
    }
    out.push('"');
}

/// A group that begins at `depth`, where the line stands already.
fn json_group(out: &mut String, properties: &[Property], depth: usize) {
    out.push('{');
    for (place, (name, value)) in properties.iter().enumerate() {
        out.push_str(if place == 0 { "\n" } else { ",\n" });
        spaces(out, depth + 1);
        quoted(out, name);
        out.push_str(": ");
        json_value(out, value, depth + 1);
    }
    out.push('\n');
    spaces(out, depth);
    out.push('}');
}

fn json_value(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Text(text) => quoted(out, text),
        Value::Number(number) => out.push_str(number),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Null => out.push_str("null"),
        Value::Texts(texts) => {
            out.push('[');
            for (place, text) in texts.iter().enumerate() {
                out.push_str(if place == 0 { "" } else { ", " });
                quoted(out, text);
            }
            out.push(']');
        }
        Value::Numbers(numbers) => out.push_str(&format!("[{}]", numbers.join(", "))),
        Value::Group(properties) => json_group(out, properties, depth),
        Value::Groups(_, groups) => {
            out.push('[');
            for (place, group) in groups.iter().enumerate() {
                out.push_str(if place == 0 { "\n" } else { ",\n" });
                spaces(out, depth + 1);
                json_group(out, group, depth + 1);
            }
            out.push('\n');
            spaces(out, depth);
            out.push(']');
        }
    }
}

/// A group whose first name goes where the line stands, and its others to `depth`.
fn yaml_group(out: &mut String, properties: &[Property], depth: usize) {
    for (place, (name, value)) in properties.iter().enumerate() {
        if place > 0 {
            out.push('\n');
            spaces(out, depth);
        }
        out.push_str(name);
        out.push_str(": ");
        yaml_value(out, value, depth);
    }
}

fn yaml_value(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Text(text) => quoted(out, text),
        Value::Number(number) => out.push_str(number),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Null => out.push_str("null"),
        Value::Texts(texts) => {
            for text in texts {
                out.push('\n');
                spaces(out, depth + 1);
                out.push_str("- ");
                quoted(out, text);
            }
        }
        Value::Numbers(numbers) => {
            for number in numbers {
                out.push('\n');
                spaces(out, depth + 1);
                out.push_str(&format!("- {number}"));
            }
        }
        Value::Group(properties) => {
            if !properties.is_empty() {
                out.push('\n');
                spaces(out, depth + 1);
            }
            yaml_group(out, properties, depth + 1);
        }
        Value::Groups(_, groups) => {
            for group in groups {
                out.push('\n');
                spaces(out, depth + 1);
                out.push_str("- ");
                yaml_group(out, group, depth + 2);
            }
        }
    }
}

fn xml_group(out: &mut String, properties: &[Property], depth: usize) {
    for (name, value) in properties {
        let tag = tag(name);
        spaces(out, depth);
        out.push_str(&format!("<{tag}>"));
        match value {
            Value::Text(text) => escaped(out, text),
            Value::Number(number) => out.push_str(number),
            Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Value::Null => {}
            Value::Texts(texts) | Value::Numbers(texts) => {
                out.push('\n');
                for text in texts {
                    spaces(out, depth + 1);
                    out.push_str("<Item>");
                    escaped(out, text);
                    out.push_str("</Item>\n");
                }
                spaces(out, depth);
            }
            Value::Group(properties) => {
                out.push('\n');
                xml_group(out, properties, depth + 1);
                spaces(out, depth);
            }
            Value::Groups(kind, groups) => {
                out.push('\n');
                for group in groups {
                    xml_group(out, &[(Cow::Borrowed(*kind), Value::Group(group.clone()))], depth + 1);
                }
                spaces(out, depth);
            }
        }
        out.push_str(&format!("</{tag}>\n"));
    }
}

/// A name as the name of an element.
fn tag(name: &str) -> String {
    let allowed = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    name.chars().map(|character| if allowed(character) { character } else { '-' }).collect()
}

/// A text as XML writes it (escape_xml).
fn escaped(out: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\r' => out.push_str("&#x0d;"),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Properties {
        let mut scan = Properties::new();
        add(&mut scan, "Node Type", "Seq Scan");
        add(&mut scan, "Output", vec!["a".to_owned(), "'\"<\n'::text".to_owned()]);
        let mut plan = Properties::new();
        add(&mut plan, "Node Type", "Limit");
        add(&mut plan, "Parallel Aware", false);
        add(&mut plan, "Total Cost", Value::decimal(1.5, 2));
        add(&mut plan, "Plans", Value::Groups("Plan", vec![scan]));
        let mut whole = Properties::new();
        add(&mut whole, "Plan", Value::Group(plan));
        add(&mut whole, "Settings", Value::Group(Properties::new()));
        add(&mut whole, "Triggers", Value::Groups("Trigger", Vec::new()));
        whole
    }

    #[test]
    fn json_is_written_as_postgresql_writes_it() {
        let expected = r#"[
  {
    "Plan": {
      "Node Type": "Limit",
      "Parallel Aware": false,
      "Total Cost": 1.50,
      "Plans": [
        {
          "Node Type": "Seq Scan",
          "Output": ["a", "'\"<\n'::text"]
        }
      ]
    },
    "Settings": {
    },
    "Triggers": [
    ]
  }
]"#;
        assert_eq!(query(ExplainFormat::Json, &sample()), expected);
    }

    #[test]
    fn yaml_is_written_as_postgresql_writes_it() {
        let expected = [
            "- Plan: ",
            "    Node Type: \"Limit\"",
            "    Parallel Aware: false",
            "    Total Cost: 1.50",
            "    Plans: ",
            "      - Node Type: \"Seq Scan\"",
            "        Output: ",
            "          - \"a\"",
            "          - \"'\\\"<\\n'::text\"",
            "  Settings: ",
            "  Triggers: ",
        ];
        assert_eq!(query(ExplainFormat::Yaml, &sample()), expected.join("\n"));
    }

    #[test]
    fn xml_is_written_as_postgresql_writes_it() {
        let expected = "<explain xmlns=\"http://www.postgresql.org/2009/explain\">
  <Query>
    <Plan>
      <Node-Type>Limit</Node-Type>
      <Parallel-Aware>false</Parallel-Aware>
      <Total-Cost>1.50</Total-Cost>
      <Plans>
        <Plan>
          <Node-Type>Seq Scan</Node-Type>
          <Output>
            <Item>a</Item>
            <Item>'\"&lt;
'::text</Item>
          </Output>
        </Plan>
      </Plans>
    </Plan>
    <Settings>
    </Settings>
    <Triggers>
    </Triggers>
  </Query>
</explain>";
        assert_eq!(query(ExplainFormat::Xml, &sample()), expected);
    }
}
