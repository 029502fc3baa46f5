//! Every kind that `k8s_openapi` has, so that none is forgotten: the conversion through its type, by name.

use k8s_openapi::api::admissionregistration::{
    v1 as admissionregistration_v1, v1alpha1 as admissionregistration_v1alpha1,
    v1beta1 as admissionregistration_v1beta1,
};
use k8s_openapi::api::apiserverinternal::v1alpha1 as apiserverinternal_v1alpha1;
use k8s_openapi::api::apps::v1 as apps_v1;
use k8s_openapi::api::authentication::v1 as authentication_v1;
use k8s_openapi::api::authorization::v1 as authorization_v1;
use k8s_openapi::api::autoscaling::{v1 as autoscaling_v1, v2 as autoscaling_v2};
use k8s_openapi::api::batch::v1 as batch_v1;
use k8s_openapi::api::certificates::{v1 as certificates_v1, v1beta1 as certificates_v1beta1};
use k8s_openapi::api::coordination::{
    v1 as coordination_v1, v1alpha2 as coordination_v1alpha2, v1beta1 as coordination_v1beta1,
};
use k8s_openapi::api::core::v1 as core_v1;
use k8s_openapi::api::discovery::v1 as discovery_v1;
use k8s_openapi::api::events::v1 as events_v1;
use k8s_openapi::api::flowcontrol::v1 as flowcontrol_v1;
use k8s_openapi::api::lifecycle::v1alpha1 as lifecycle_v1alpha1;
use k8s_openapi::api::networking::v1 as networking_v1;
use k8s_openapi::api::node::v1 as node_v1;
use k8s_openapi::api::policy::v1 as policy_v1;
use k8s_openapi::api::rbac::v1 as rbac_v1;
use k8s_openapi::api::resource::{
    v1 as resource_v1, v1alpha3 as resource_v1alpha3, v1beta1 as resource_v1beta1,
    v1beta2 as resource_v1beta2,
};
use k8s_openapi::api::scheduling::{
    v1 as scheduling_v1, v1alpha3 as scheduling_v1alpha3, v1beta1 as scheduling_v1beta1,
};
use k8s_openapi::api::storage::v1 as storage_v1;
use k8s_openapi::api::storagemigration::{
    v1 as storagemigration_v1, v1beta1 as storagemigration_v1beta1,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions_v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta_v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::DeleteOptions;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1 as apiregistration_v1;
use kubestrata_codec::proto::{self, Error, Lost, Options};
use kubestrata_codec::schema::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Protobuf to a type and back to protobuf.
type Through = fn(&[u8], &'static Message, &Options<'_>) -> Result<(Vec<u8>, Lost), Error>;

/// A kind that has a type.
pub(crate) struct Typed {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) through: Through,
}

fn through<K: DeserializeOwned + Serialize>(
    bytes: &[u8],
    message: &'static Message,
    options: &Options<'_>,
) -> Result<(Vec<u8>, Lost), Error> {
    let (value, lost) = proto::from_slice_lossy::<K>(bytes, message, options)?;
    Ok((proto::to_vec(&value, message)?, lost))
}

const fn typed<K: k8s_openapi::Resource + DeserializeOwned + Serialize>() -> Typed {
    Typed { api_version: K::API_VERSION, kind: K::KIND, through: through::<K> }
}

/// The type of a kind.
pub(crate) fn of(api_version: &str, kind: &str) -> Option<&'static Typed> {
    KINDS.iter().find(|typed| typed.api_version == api_version && typed.kind == kind)
}

macro_rules! kinds {
    ($($module:ident: $($name:ident)*;)*) => {
        &[
            $($(typed::<$module::$name>(),)*)*
            // The one that does not say what it is.
            Typed { api_version: "v1", kind: "DeleteOptions", through: through::<DeleteOptions> },
        ]
    };
}

/// All of them: every implementor of `k8s_openapi::Resource` that is not generic, and the options of a deletion.
pub(crate) const KINDS: &[Typed] = kinds! {
    admissionregistration_v1: MutatingAdmissionPolicy MutatingAdmissionPolicyBinding
        MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding
        ValidatingWebhookConfiguration;
    admissionregistration_v1alpha1: MutatingAdmissionPolicy MutatingAdmissionPolicyBinding;
    admissionregistration_v1beta1: MutatingAdmissionPolicy MutatingAdmissionPolicyBinding;
    apiextensions_v1: CustomResourceDefinition;
    apiregistration_v1: APIService;
    apiserverinternal_v1alpha1: StorageVersion;
    apps_v1: ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet;
    authentication_v1: SelfSubjectReview TokenRequest TokenReview;
    authorization_v1: LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview
        SubjectAccessReview;
    autoscaling_v1: HorizontalPodAutoscaler Scale;
    autoscaling_v2: HorizontalPodAutoscaler;
    batch_v1: CronJob Job;
    certificates_v1: CertificateSigningRequest ClusterTrustBundle PodCertificateRequest;
    certificates_v1beta1: ClusterTrustBundle PodCertificateRequest;
    coordination_v1: Lease;
    coordination_v1alpha2: LeaseCandidate;
    coordination_v1beta1: LeaseCandidate;
    core_v1: Binding ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node
        PersistentVolume PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota
        Secret Service ServiceAccount;
    discovery_v1: EndpointSlice;
    events_v1: Event;
    flowcontrol_v1: FlowSchema PriorityLevelConfiguration;
    lifecycle_v1alpha1: Eviction EvictionRequest;
    meta_v1: APIGroup APIGroupList APIResourceList APIVersions Status;
    networking_v1: IPAddress Ingress IngressClass NetworkPolicy ServiceCIDR;
    node_v1: RuntimeClass;
    policy_v1: Eviction PodDisruptionBudget;
    rbac_v1: ClusterRole ClusterRoleBinding Role RoleBinding;
    resource_v1: DeviceClass DeviceTaintRule ResourceClaim ResourceClaimTemplate ResourceSlice;
    resource_v1alpha3: DeviceTaintRule ResourcePoolStatusRequest;
    resource_v1beta1: DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice;
    resource_v1beta2: DeviceClass DeviceTaintRule ResourceClaim ResourceClaimTemplate ResourceSlice;
    scheduling_v1: PriorityClass;
    scheduling_v1alpha3: CompositePodGroup PodGroup Workload;
    scheduling_v1beta1: PodGroup Workload;
    storage_v1: CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment
        VolumeAttributesClass;
    storagemigration_v1: StorageVersionMigration;
    storagemigration_v1beta1: StorageVersionMigration;
};
