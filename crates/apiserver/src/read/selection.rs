//! Which objects of a resource a request is about.

use kubestrata_api_types::LabelSelector;

use crate::catalog::Resource;
use crate::failure::{Outcome, bad_request};
use crate::options::ListOptions;
use crate::record::Item;
use crate::selectable::{FieldTest, Place};

/// Scope and selectors of a request.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    pub(crate) namespace: Option<String>,
    /// The only name that can match.
    pub(crate) name: Option<String>,
    labels: LabelSelector,
    fields: Vec<FieldTest>,
}

impl Selection {
    /// `name` is the name of the path, which a selector must not contradict.
    pub(crate) fn new(
        resource: &Resource,
        namespace: Option<&str>,
        name: Option<&str>,
        options: &ListOptions,
    ) -> Outcome<Self> {
        let namespaced = resource.ty.is_namespaced();
        let fields = resource.info.selectable.compile(&options.fields, namespaced)?;
        let named = fields.iter().find(|test| test.equal && test.place == Place::Name);
        let selected = named.map(|test| test.value.as_str());
        if let (Some(name), Some(selected)) = (name, selected)
            && name != selected
        {
            return Err(bad_request("fieldSelector metadata.name doesn't match requested name"));
        }
        Ok(Self {
            namespace: namespace.map(str::to_owned),
            name: name.or(selected).map(str::to_owned),
            labels: options.labels.clone(),
            fields,
        })
    }

    pub(crate) fn matches(&self, item: &Item) -> bool {
        self.name.as_ref().is_none_or(|name| item.key.name() == name)
            && (self.fields.is_empty() || item.matches_fields(&self.fields))
            && (self.labels.is_empty() || item.matches_labels(&self.labels))
    }

    /// Whether there is a selector beside the scope.
    pub(crate) fn is_selective(&self) -> bool {
        self.name.is_some() || !self.fields.is_empty() || !self.labels.is_empty()
    }
}
