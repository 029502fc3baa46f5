//! Who hears of warnings.

use std::fmt;
use std::sync::Arc;

use kubestrata_api_types::ResourceType;

type Hook = dyn Fn(&ResourceType, &str) + Send + Sync;

/// Called with each warning of the server, be the answer a success or a failure (client-go `rest.WarningHandler`).
///
/// Warnings tell of deprecated versions and of fields that are unknown or of no effect. They come with the answer as well
/// (`ApiResponse::warnings`); a hook is for programs that do not look there. The text is the server's, and can quote names
/// and values of an object: nothing of it is logged unless the hook does.
#[derive(Clone, Default)]
pub struct WarningHook(Option<Arc<Hook>>);

impl WarningHook {
    /// Calls this with the resource of the request and the text. It runs where the answer is read, and must not block.
    pub fn new(hook: impl Fn(&ResourceType, &str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hook)))
    }

    pub(crate) fn call(&self, resource: &ResourceType, texts: &[String]) {
        if let Some(hook) = &self.0 {
            for text in texts {
                hook(resource, text);
            }
        }
    }
}

impl fmt::Debug for WarningHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "WarningHook(set)" } else { "WarningHook(none)" })
    }
}
