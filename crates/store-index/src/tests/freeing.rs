//! When objects are freed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use kubestrata_api_types::{
    FieldPath, Object, OwnerRef, ResourceVersion, Timestamp, View, ViewError, Weigh, Weight,
};

use super::{Item, item};
use crate::{Reader, store};

/// Reads the store while it is freed.
struct Looks(Item, Arc<Looking>);

#[derive(Default)]
struct Looking {
    reader: OnceLock<Reader<Looks>>,
    freed: AtomicUsize,
}

impl Clone for Looks {
    fn clone(&self) -> Self {
        Self(self.0.clone(), Arc::clone(&self.1))
    }
}

impl Drop for Looks {
    fn drop(&mut self) {
        if let Some(reader) = self.1.reader.get() {
            // Not a read of an object, whose clone would be freed in turn.
            let _ = reader.len();
            self.1.freed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Object for Looks {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn namespace(&self) -> Option<&str> {
        self.0.namespace()
    }
    fn uid(&self) -> Option<&str> {
        self.0.uid()
    }
    fn resource_version(&self) -> ResourceVersion {
        self.0.resource_version()
    }
    fn generation(&self) -> Option<i64> {
        None
    }
    fn deletion_timestamp(&self) -> Option<Timestamp> {
        None
    }
    fn label(&self, key: &str) -> Option<&str> {
        self.0.label(key)
    }
    fn for_each_label(&self, f: &mut dyn FnMut(&str, &str)) {
        self.0.for_each_label(f);
    }
    fn for_each_owner(&self, f: &mut dyn FnMut(OwnerRef<'_>)) {
        self.0.for_each_owner(f);
    }
}

impl View for Looks {
    fn field(&self, path: &FieldPath, out: &mut dyn FnMut(&str)) -> Result<(), ViewError> {
        self.0.field(path, out)
    }
}

impl Weigh for Looks {
    fn weight(&self) -> Weight {
        self.0.weight()
    }
}

/// kube-rs L12: what a replacement takes out is freed when nobody is locked out any more. Each object reads the store while
/// it is freed, which would never end under the lock.
#[test]
fn l12_what_is_replaced_is_freed_without_the_lock() {
    let (mut writer, reader) = store();
    let looking = Arc::new(Looking::default());
    let looks = |name: &str, version| Looks(item(name, version, "", &[]), Arc::clone(&looking));
    writer.replace((0..100).map(|n| looks(&format!("a/{n}"), 1)).collect(), 1.into());
    assert!(looking.reader.set(reader.clone()).is_ok());
    let kept = looks("a/0", 2);
    let (done, is_done) = mpsc::channel();
    let replacing = thread::spawn(move || {
        drop(writer.replace(vec![kept], 2.into()));
        done.send(()).unwrap();
    });
    is_done.recv_timeout(Duration::from_secs(60)).expect("nothing is freed under the lock");
    replacing.join().unwrap();
    assert!(looking.freed.load(Ordering::Relaxed) >= 100);
    assert_eq!(reader.len(), 1);
}
