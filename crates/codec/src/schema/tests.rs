use super::*;

#[test]
fn every_kind_is_found_and_every_name_leads_to_its_field() {
    assert_eq!(kinds().len(), 782);
    for entry in kinds() {
        let found = kind(entry.group, entry.version, entry.kind).unwrap();
        assert!(std::ptr::eq(found, entry.message()));
    }
    for message in &table::MESSAGES {
        check_message(message);
    }
    assert!(kind("", "v1", "Nonsense").is_none());
    assert!(kind("apps", "v2", "Deployment").is_none());
}

/// The field numbers along a way.
fn numbers(message: &Message, way: [u8; 3]) -> [u32; 3] {
    let mut message = Some(message);
    way.map(|position| {
        let Some(position) = usize::from(position).checked_sub(1) else { return 0 };
        let field = &message.unwrap().fields[position];
        message = field.message();
        field.number()
    })
}

fn check_message(message: &Message) {
    for field in message.fields() {
        assert!(std::ptr::eq(message.by_number(field.number()).unwrap(), field));
        if !field.is_inline() {
            assert!(std::ptr::eq(message.by_name(field.name()).unwrap(), field), "{message:?}");
        } else {
            for inner in field.message().unwrap().fields().iter().filter(|inner| !inner.is_inline())
            {
                assert!(std::ptr::eq(message.by_name(inner.name()).unwrap(), inner));
            }
        }
    }
    assert_eq!(message.written.is_none(), message.fields().iter().any(Field::is_inline));
    let mut last = [0; 3];
    for place in 0..message.places() {
        let field = message.by_place(u8::try_from(place).unwrap()).unwrap();
        let (found, at) = message.find(field.name()).unwrap();
        assert!(std::ptr::eq(found, field) && usize::from(at) == place, "{message:?}");
        let numbers = numbers(message, message.ways[place]);
        assert!(numbers > last, "{message:?}");
        last = numbers;
        if let Some(written) = message.written {
            assert_eq!(written >> place & 1 == 0, field.is_nil());
        }
    }
    assert!(message.by_place(u8::try_from(message.places()).unwrap()).is_none());
    assert!(message.find("").is_none());
    assert!(message.by_number(0).is_none());
    assert!(message.by_number(u32::MAX).is_none());
    assert!(message.by_name("nonsense").is_none());
}

#[test]
fn the_flags_mean_what_the_generator_means() {
    let pod = kind("", "v1", "Pod").unwrap();
    let spec = pod.by_name("spec").unwrap().message().unwrap();
    assert!(spec.by_name("containers").unwrap().is_list());
    assert!(!spec.by_name("containers").unwrap().omits_empty());
    assert!(spec.by_name("nodeSelector").unwrap().is_map());
    assert!(spec.by_name("activeDeadlineSeconds").unwrap().is_pointer());
    let volume = spec.by_name("volumes").unwrap().message().unwrap();
    assert!(volume.by_number(2).unwrap().is_inline());
    assert!(object_meta().by_name("creationTimestamp").unwrap().omits_zero());
    assert!(object_meta().by_name("managedFields").unwrap().is_managed_fields());
    let user = kind("authentication.k8s.io", "v1", "TokenReview").unwrap();
    let extra = user.by_name("status").unwrap().message().unwrap().by_name("user").unwrap();
    assert!(extra.message().unwrap().by_name("extra").unwrap().is_map());
}

#[test]
fn merge_rules_are_those_of_strategic_merge_patch() {
    let pod = kind("", "v1", "Pod").unwrap().by_name("spec").unwrap().message().unwrap();
    let containers = pod.by_name("containers").unwrap().merge();
    assert_eq!((containers.strategy, containers.key), ("merge", "name"));
    assert_eq!((containers.list_type, containers.list_keys), ("map", ["name"].as_slice()));
    assert_eq!(pod.by_name("nodeName").unwrap().merge().strategy, "");
}

#[test]
fn built_in_resources_have_messages() {
    assert_eq!(resources().len(), 72);
    for entry in resources() {
        assert!(resource(&entry.resource).is_some(), "{}", entry.resource);
        for sub in entry.subresources {
            assert!(
                kind(sub.group, sub.version, sub.kind).is_some(),
                "{}/{}",
                entry.resource,
                sub.name
            );
        }
    }
    let pods = resources().iter().find(|entry| entry.resource.plural == "pods").unwrap();
    assert_eq!(pods.short_names, ["po"]);
    assert!(pods.resource.is_namespaced());
    assert!(pods.subresources.iter().any(|sub| sub.kind == "Eviction" && sub.group == "policy"));
}

#[test]
fn kinds_that_travel_beside_objects_are_there() {
    for (api_version, name) in [
        ("v1", "Status"),
        ("v1", "WatchEvent"),
        ("v1", "List"),
        ("v1", "PodList"),
        ("v1", "DeleteOptions"),
        ("v1", "Binding"),
        ("meta.k8s.io/v1", "PartialObjectMetadata"),
        ("meta.k8s.io/v1", "PartialObjectMetadataList"),
        ("autoscaling/v1", "Scale"),
        ("policy/v1", "Eviction"),
        ("meta.k8s.io/v1", "Table"),
        ("admission.k8s.io/v1", "AdmissionReview"),
        ("apiextensions.k8s.io/v1", "ConversionReview"),
        ("imagepolicy.k8s.io/v1alpha1", "ImageReview"),
        ("authentication.k8s.io/v1", "TokenReview"),
        ("authentication.k8s.io/v1", "TokenRequest"),
        ("authentication.k8s.io/v1", "SelfSubjectReview"),
        ("authorization.k8s.io/v1", "SubjectAccessReview"),
        ("authorization.k8s.io/v1", "LocalSubjectAccessReview"),
        ("authorization.k8s.io/v1", "SelfSubjectAccessReview"),
        ("authorization.k8s.io/v1", "SelfSubjectRulesReview"),
        ("v1", "APIVersions"),
        ("v1", "APIGroup"),
        ("v1", "APIGroupList"),
        ("v1", "APIResourceList"),
        ("apidiscovery.k8s.io/v2", "APIGroupDiscovery"),
        ("apidiscovery.k8s.io/v2", "APIGroupDiscoveryList"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("apiregistration.k8s.io/v1", "APIService"),
    ] {
        assert!(kind_of(api_version, name).is_some(), "{api_version} {name}");
    }
    // A Table is of one group alone, and JSON alone on every server.
    assert!(kind_of("v1", "Table").is_none());
}
