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
        self.uid.as_deref().filter(|uid| !uid.is_empty())
    }

    fn resource_version(&self) -> ResourceVersion {
        self.resource_version.as_deref().map_or(ResourceVersion::UNSET, ResourceVersion::new)
    }

    fn generation(&self) -> Option<i64> {
        self.generation.filter(|generation| *generation != 0)
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
///
/// A bound of the blanket implementation and of [`impl_kind_for_kube`](crate::impl_kind_for_kube); nobody else needs it.
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

/// Implements [`Object`](crate::Object) and [`Kind`](crate::Kind) for a struct made by kube's derive `CustomResource`.
///
/// Call it in the crate that defines the struct, once per struct. The path of `kube` (or `kube_core`) can follow, if it
/// is not in your manifest as `kube`. kube and this crate must use one version of `k8s-openapi`.
///
/// ```
/// # mod kube {
/// #     use std::borrow::Cow;
/// #     pub trait Resource {
/// #         type DynamicType;
/// #         type Scope;
/// #         fn kind(dt: &Self::DynamicType) -> Cow<'_, str>;
/// #         fn group(dt: &Self::DynamicType) -> Cow<'_, str>;
/// #         fn version(dt: &Self::DynamicType) -> Cow<'_, str>;
/// #         fn plural(dt: &Self::DynamicType) -> Cow<'_, str>;
/// #         fn meta(&self) -> &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
/// #     }
/// # }
/// # use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
/// # #[derive(Default)]
/// # struct Widget { metadata: ObjectMeta }
/// # impl kube::Resource for Widget {
/// #     type DynamicType = ();
/// #     type Scope = k8s_openapi::NamespaceResourceScope;
/// #     fn kind((): &()) -> std::borrow::Cow<'_, str> { "Widget".into() }
/// #     fn group((): &()) -> std::borrow::Cow<'_, str> { "example.com".into() }
/// #     fn version((): &()) -> std::borrow::Cow<'_, str> { "v1".into() }
/// #     fn plural((): &()) -> std::borrow::Cow<'_, str> { "widgets".into() }
/// #     fn meta(&self) -> &ObjectMeta { &self.metadata }
/// # }
/// // `Widget` is what #[derive(kube::CustomResource)] made.
/// kubestrata_api_types::impl_kind_for_kube!(Widget, kube);
///
/// use kubestrata_api_types::{Kind, Scope};
/// assert_eq!(Widget::resource().to_string(), "widgets.example.com");
/// assert_eq!(Widget::resource().scope, Scope::Namespaced);
/// ```
#[macro_export]
macro_rules! impl_kind_for_kube {
    ($type:ty) => {
        $crate::impl_kind_for_kube!($type, ::kube);
    };
    ($type:ty, ::$($kube:ident)::+) => {
        $crate::impl_kind_for_kube!(@ $type, (::$($kube)::+::Resource));
    };
    ($type:ty, $($kube:ident)::+) => {
        $crate::impl_kind_for_kube!(@ $type, ($($kube)::+::Resource));
    };
    (@ $type:ty, ($($resource:tt)+)) => {
        impl $crate::Object for $type {
            fn name(&self) -> &str {
                $crate::Meta::name(<Self as $($resource)+>::meta(self))
            }
            fn namespace(&self) -> ::core::option::Option<&str> {
                $crate::Meta::namespace(<Self as $($resource)+>::meta(self))
            }
            fn uid(&self) -> ::core::option::Option<&str> {
                $crate::Meta::uid(<Self as $($resource)+>::meta(self))
            }
            fn resource_version(&self) -> $crate::ResourceVersion {
                $crate::Meta::resource_version(<Self as $($resource)+>::meta(self))
            }
            fn generation(&self) -> ::core::option::Option<i64> {
                $crate::Meta::generation(<Self as $($resource)+>::meta(self))
            }
            fn deletion_timestamp(&self) -> ::core::option::Option<$crate::Timestamp> {
                $crate::Meta::deletion_timestamp(<Self as $($resource)+>::meta(self))
            }
            fn label(&self, key: &str) -> ::core::option::Option<&str> {
                $crate::Meta::label(<Self as $($resource)+>::meta(self), key)
            }
            fn for_each_label(&self, f: &mut dyn ::core::ops::FnMut(&str, &str)) {
                $crate::Meta::for_each_label(<Self as $($resource)+>::meta(self), f)
            }
            fn for_each_owner(&self, f: &mut dyn ::core::ops::FnMut($crate::OwnerRef<'_>)) {
                $crate::Meta::for_each_owner(<Self as $($resource)+>::meta(self), f)
            }
        }

        impl $crate::Kind for $type {
            fn resource() -> &'static $crate::ResourceType {
                static RESOURCE: ::std::sync::LazyLock<$crate::ResourceType> =
                    ::std::sync::LazyLock::new(|| {
                        $crate::ResourceType::new(
                            <$type as $($resource)+>::group(&()),
                            <$type as $($resource)+>::version(&()),
                            <$type as $($resource)+>::kind(&()),
                            <$type as $($resource)+>::plural(&()),
                            <<$type as $($resource)+>::Scope as $crate::TopLevelScope>::SCOPE,
                        )
                    });
                &RESOURCE
            }
        }
    };
}
