//! `Object` and `Kind` for every type of k8s-openapi.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::{ClusterResourceScope, Metadata, NamespaceResourceScope, Resource};

use crate::object::object_by_metadata;
use crate::{Kind, Meta, OwnerRef, ResourceType, ResourceVersion, Scope, Timestamp};

impl Meta for ObjectMeta {
    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref().filter(|namespace| !namespace.is_empty())
    }

    fn uid(&self) -> Option<&str> {
        self.uid.as_deref()
    }

    fn resource_version(&self) -> ResourceVersion {
        self.resource_version.as_deref().map_or(ResourceVersion::UNSET, ResourceVersion::new)
    }

    fn generation(&self) -> Option<i64> {
        self.generation
    }

    fn deletion_timestamp(&self) -> Option<Timestamp> {
        self.deletion_timestamp.as_ref().map(|time| time.0)
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.labels.as_ref()?.get(key).map(String::as_str)
    }

    fn for_each_label(&self, f: &mut dyn FnMut(&str, &str)) {
        for (key, value) in self.labels.iter().flatten() {
            f(key, value);
        }
    }

    fn for_each_owner(&self, f: &mut dyn FnMut(OwnerRef<'_>)) {
        for owner in self.owner_references.iter().flatten() {
            f(OwnerRef::new(
                &owner.api_version,
                &owner.kind,
                &owner.name,
                &owner.uid,
                owner.controller.unwrap_or_default(),
            ));
        }
    }
}

object_by_metadata!({K: Metadata<Ty = ObjectMeta> + Send + Sync + 'static} K, |this| Metadata::metadata(this));

/// The two scopes of top-level resources, as types.
#[expect(
    unnameable_types,
    reason = "a bound of the blanket implementation; nobody else implements it"
)]
pub trait TopLevelScope {
    /// The same as a value.
    const SCOPE: Scope;
}

impl TopLevelScope for ClusterResourceScope {
    const SCOPE: Scope = Scope::Cluster;
}

impl TopLevelScope for NamespaceResourceScope {
    const SCOPE: Scope = Scope::Namespaced;
}

/// Carries one constant per Rust type: a generic function cannot have a static of its own.
struct Of<K>(std::marker::PhantomData<K>);

impl<K: Resource<Scope: TopLevelScope>> Of<K> {
    const RESOURCE: &'static ResourceType = &ResourceType::from_static(
        K::GROUP,
        K::VERSION,
        K::KIND,
        K::URL_PATH_SEGMENT,
        <K::Scope as TopLevelScope>::SCOPE,
    );
}

impl<K> Kind for K
where
    K: Metadata<Ty = ObjectMeta> + Resource<Scope: TopLevelScope> + Send + Sync + 'static,
{
    fn resource() -> &'static ResourceType {
        Of::<K>::RESOURCE
    }
}
