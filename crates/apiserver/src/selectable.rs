//! Fields that a field selector may name, by kind.

use kubestrata_api_types::FieldSelector;
use serde_json::{Map, Value};

use crate::failure::{Outcome, bad_request};

/// The selectable fields of a kind, beside `metadata.name` and `metadata.namespace`.
#[derive(Debug, Default)]
pub(crate) struct Selectable {
    fields: Vec<Field>,
    refusal: Refusal,
}

/// How a field that is not selectable is refused.
#[derive(Debug, Default, Clone, Copy)]
enum Refusal {
    /// By the scheme's default conversion.
    #[default]
    Default,
    /// By a conversion of the kind's own.
    Own,
    /// By the conversion of `batch/v1` Job.
    Job,
}

#[derive(Debug)]
struct Field {
    /// As the selector names it.
    label: String,
    /// Where the value is.
    path: Vec<String>,
}

impl Field {
    fn new(label: &str, path: &str) -> Self {
        Self { label: label.to_owned(), path: path.split('.').map(str::to_owned).collect() }
    }
}

/// Label, and path where it differs.
type Row = (&'static str, &'static str);

const POD: &[Row] = &[
    ("spec.nodeName", ""),
    ("spec.host", "spec.nodeName"),
    ("spec.restartPolicy", ""),
    ("spec.schedulerName", ""),
    ("spec.serviceAccountName", ""),
    ("spec.hostNetwork", ""),
    ("status.phase", ""),
    ("status.podIP", ""),
    ("status.podIPs", "status.podIP"),
    ("status.nominatedNodeName", ""),
];
const EVENT: &[Row] = &[
    ("involvedObject.kind", ""),
    ("involvedObject.namespace", ""),
    ("involvedObject.name", ""),
    ("involvedObject.uid", ""),
    ("involvedObject.apiVersion", ""),
    ("involvedObject.resourceVersion", ""),
    ("involvedObject.fieldPath", ""),
    ("reason", ""),
    ("reportingComponent", ""),
    ("source", "source.component"),
    ("type", ""),
];
const EVENTS_EVENT: &[Row] = &[
    ("regarding.kind", ""),
    ("regarding.namespace", ""),
    ("regarding.name", ""),
    ("regarding.uid", ""),
    ("regarding.apiVersion", ""),
    ("regarding.resourceVersion", ""),
    ("regarding.fieldPath", ""),
    ("reason", ""),
    ("reportingController", ""),
    ("type", ""),
];

impl Selectable {
    /// The table of kube-apiserver 1.37.
    pub(crate) fn builtin(group: &str, kind: &str) -> Self {
        let (rows, refusal): (&[Row], Refusal) = match (group, kind) {
            ("", "Pod") => (POD, Refusal::Own),
            ("", "Event") => (EVENT, Refusal::Own),
            ("events.k8s.io", "Event") => (EVENTS_EVENT, Refusal::Own),
            ("", "Node") => (&[("spec.unschedulable", "")], Refusal::Own),
            ("", "Namespace") => (&[("status.phase", "")], Refusal::Own),
            ("", "Secret") => (&[("type", "")], Refusal::Own),
            ("", "Service") => (&[("spec.clusterIP", ""), ("spec.type", "")], Refusal::Own),
            ("", "ReplicationController") => (&[("status.replicas", "")], Refusal::Own),
            ("batch", "Job") => (&[("status.successful", "status.succeeded")], Refusal::Job),
            ("certificates.k8s.io", "CertificateSigningRequest" | "ClusterTrustBundle") => {
                (&[("spec.signerName", "")], Refusal::Own)
            }
            ("certificates.k8s.io", "PodCertificateRequest") => {
                (&[("spec.signerName", ""), ("spec.nodeName", "")], Refusal::Own)
            }
            ("resource.k8s.io", "ResourceSlice") => (
                &[("spec.nodeName", ""), ("spec.driver", ""), ("spec.pool.name", "")],
                Refusal::Own,
            ),
            _ => (&[], Refusal::Default),
        };
        let fields = rows
            .iter()
            .map(|(label, path)| Field::new(label, if path.is_empty() { label } else { path }));
        Self { fields: fields.collect(), refusal }
    }

    /// The `selectableFields` of a custom resource definition, as simple JSON paths.
    pub(crate) fn custom<'a>(paths: impl Iterator<Item = &'a str>) -> Self {
        let fields = paths.map(|path| {
            let path = path.trim_start_matches('.');
            Field::new(path, path)
        });
        Self { fields: fields.collect(), refusal: Refusal::Own }
    }

    /// The values of the selectable fields of an object, in this table's order. An absent field is empty.
    pub(crate) fn values(&self, object: &Map<String, Value>) -> Box<[Box<str>]> {
        let value = |field: &Field| -> Box<str> {
            let mut names = field.path.iter();
            let first = names.next().and_then(|name| object.get(name));
            let value = names.try_fold(first, |value, name| value.map(|value| value.get(name)));
            match value.flatten() {
                Some(Value::String(text)) => text.as_str().into(),
                Some(Value::Bool(flag)) => flag.to_string().into(),
                Some(Value::Number(number)) => number.to_string().into(),
                _ => match field.path.last().map(String::as_str) {
                    Some("unschedulable" | "hostNetwork") => "false".into(),
                    Some("succeeded" | "replicas") => "0".into(),
                    _ => "".into(),
                },
            }
        };
        self.fields.iter().map(value).collect()
    }

    /// Turns the selector's names into places of [`Selectable::values`].
    pub(crate) fn compile(
        &self,
        selector: &FieldSelector,
        namespaced: bool,
    ) -> Outcome<Vec<FieldTest>> {
        let tests = selector.terms().iter().map(|term| {
            let place = match term.field.as_str() {
                "metadata.name" => Place::Name,
                // A cluster-scoped kind with a conversion of its own does not know the namespace.
                "metadata.namespace" if namespaced || matches!(self.refusal, Refusal::Default) => {
                    Place::Namespace
                }
                label => {
                    let index = self.fields.iter().position(|field| field.label == label);
                    index.map(Place::Value).ok_or_else(|| bad_request(self.refuse(label)))?
                }
            };
            Ok(FieldTest { place, value: term.value.clone(), equal: term.equal })
        });
        tests.collect()
    }

    fn refuse(&self, label: &str) -> String {
        match self.refusal {
            Refusal::Default => format!(
                "{label:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
            ),
            Refusal::Own => format!("field label not supported: {label}"),
            Refusal::Job => format!("field label {label:?} not supported for Job"),
        }
    }
}

/// One term of a field selector, ready to be compared.
#[derive(Debug, Clone)]
pub(crate) struct FieldTest {
    pub(crate) place: Place,
    pub(crate) value: String,
    pub(crate) equal: bool,
}

/// Where a selectable value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Name,
    Namespace,
    Value(usize),
}
