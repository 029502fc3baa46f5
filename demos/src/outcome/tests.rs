//! Interrupts on the embedded server, which answers in the same process: nothing there ever waits by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use k8s_openapi::api::core::v1::ConfigMap;
use kubestrata_controller::api_types::{ApiRequest, Operation};
use serde_json::json;
use tower::ServiceExt as _;

use super::*;
use crate::{cleanup, target};

const NAMESPACE: &str = "interrupted";
/// More than a demo may go on after it is told to stop.
const OBJECTS: u32 = 200;
/// With which request somebody presses Ctrl-C.
const PRESSED: u32 = 20;

async fn make(
    service: &impl kubestrata_controller::codec::EncodedService,
    made: &AtomicU32,
) -> Result<(), BoxError> {
    cleanup::prepare(service, NAMESPACE).await?;
    for index in 0..OBJECTS {
        let object: ConfigMap = serde_json::from_value(json!({
            "metadata": { "name": format!("c-{index}"), "namespace": NAMESPACE }
        }))?;
        service.create(&object).await?;
        // Relaxed: read when this future is gone.
        made.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// The service, and what tells `Stop` with the `PRESSED`th request that `counts`.
fn pressing(
    server: &Transport,
    counts: fn(&Operation) -> bool,
) -> (Stop, impl kubestrata_controller::codec::EncodedService + use<>) {
    let (tell, stop) = Stop::told();
    let requests = Arc::new(AtomicU32::new(0));
    let service = server.clone().map_request(move |request: ApiRequest| {
        if counts(&request.operation) && requests.fetch_add(1, Ordering::Relaxed) + 1 == PRESSED {
            tell.try_send(()).unwrap();
        }
        request
    });
    (stop, service)
}

async fn left(server: &Transport) -> usize {
    server.list::<ConfigMap>(Some(NAMESPACE), ListOptions::default()).await.unwrap().items.len()
}

#[tokio::test]
async fn an_interrupt_ends_work_that_never_waits() {
    let server = target::connect(None).unwrap();
    let (mut stop, service) = pressing(&server, |what| matches!(what, Operation::Create { .. }));
    let made = AtomicU32::new(0);
    let work = make(&service, &made);
    let outcome = cleaned_unless(&mut stop, &server, NAMESPACE, work).await.unwrap();
    assert_eq!(outcome, Outcome::Interrupted);
    let made = made.into_inner();
    assert!(made <= PRESSED, "{made} objects were made");
    assert_eq!(left(&server).await, 0);
}

#[tokio::test]
async fn a_second_interrupt_ends_the_clean_up() {
    let server = target::connect(None).unwrap();
    let (mut stop, service) = pressing(&server, |what| matches!(what, Operation::Delete { .. }));
    let made = AtomicU32::new(0);
    let work = make(&server, &made);
    let error = cleaned_unless(&mut stop, &service, NAMESPACE, work).await.unwrap_err();
    assert!(error.to_string().contains(NAMESPACE), "{error}");
    assert_eq!(error.source().unwrap().to_string(), "interrupted again");
    let left = left(&server).await;
    assert!(left > 0, "the clean-up went on to its end");
}

#[tokio::test]
async fn an_interrupt_between_work_and_clean_up_is_heard() {
    let server = target::connect(None).unwrap();
    let (tell, mut stop) = Stop::told();
    let work = async {
        tell.try_send(()).unwrap();
        Ok(())
    };
    let error = cleaned_unless(&mut stop, &server, NAMESPACE, work).await.unwrap_err();
    assert_eq!(error.source().unwrap().to_string(), "interrupted again");
}
