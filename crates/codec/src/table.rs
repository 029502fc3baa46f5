//! Tables: what a server shows of objects to people.

use kubestrata_api_types::{Format, ListMeta, Object as _, PartialObjectMetadata, Undecodable};
use serde::Deserialize;
use serde_json::Value;

use crate::Encoded;
use crate::list::JsonMeta;

/// The `Table` of `meta.k8s.io/v1`, which servers write as JSON only.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Table {
    /// Version, continue token and remaining count, as those of a list.
    pub meta: ListMeta,
    /// What stands in the cells of each row, in order.
    pub columns: Vec<Column>,
    /// A row for each object.
    pub rows: Vec<Row>,
}

/// A column of a [`Table`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Column {
    /// What a person reads above the column.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `array`.
    #[serde(rename = "type")]
    pub value_type: String,
    /// What a string is, as `name` or `date`; often empty.
    pub format: String,
    /// What the column says.
    pub description: String,
    /// Zero: always shown. Others are for whoever asks for more.
    pub priority: i32,
}

/// A row of a [`Table`].
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Row {
    /// The cells; null where an object says nothing.
    pub cells: Vec<Value>,
    /// Whether the object has come to its end, as a pod that is done.
    #[serde(deserialize_with = "completed", rename = "conditions")]
    pub completed: bool,
    /// The object's metadata, which servers send by default.
    pub object: Option<PartialObjectMetadata>,
}

impl Table {
    /// Decodes the answer to a request with [`Representation::Table`](kubestrata_api_types::Representation::Table).
    ///
    /// # Errors
    ///
    /// [`Undecodable`] if it is no table.
    pub fn decode(encoded: &Encoded) -> Result<Self, Undecodable> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Wire {
            #[serde(default)]
            metadata: JsonMeta,
            #[serde(default)]
            column_definitions: Option<Vec<Column>>,
            #[serde(default)]
            rows: Option<Vec<Row>>,
        }
        let resource = encoded.resource();
        if encoded.format() != Format::Json || &*resource.kind != "Table" {
            return Err(Undecodable {
                key: encoded.key(),
                path: String::new(),
                offset: 0,
                problem: format!("a {} where a Table is expected", resource.kind),
            });
        }
        let table: Wire = encoded.decode()?;
        Ok(Self {
            meta: table.metadata.into(),
            columns: table.column_definitions.unwrap_or_default(),
            rows: table.rows.unwrap_or_default(),
        })
    }
}

/// Of the conditions of a row there is one, `Completed`.
fn completed<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    #[derive(Deserialize)]
    struct Condition {
        r#type: String,
        status: String,
    }
    let conditions: Option<Vec<Condition>> = Deserialize::deserialize(deserializer)?;
    let is_completed =
        |condition: &Condition| condition.r#type == "Completed" && condition.status == "True";
    Ok(conditions.unwrap_or_default().iter().any(is_completed))
}
