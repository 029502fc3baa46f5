//! How many bytes the two item types hold.

use kubestrata_api_types::{Weigh, Weight};

use crate::{Decoded, Encoded};

impl Weigh for Encoded {
    /// The body is the object's bytes, exactly; the head is all else that [`Encoded::size`] counts.
    fn weight(&self) -> Weight {
        let body = self.bytes().len();
        Weight { head: self.size().saturating_sub(body), body }
    }
}

impl<K: 'static> Weigh for Decoded<K> {
    /// An estimate, made when the object was decoded: the Rust value itself, and for what it points to the size that the
    /// object had on the wire. Decoded strings, lists and maps are larger than that, by a factor that differs by kind.
    fn weight(&self) -> Weight {
        self.estimate()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::core::v1::ConfigMap;
    use kubestrata_api_types::{Format, Kind as _, Weigh as _};

    use crate::{Decoded, Encoded};

    #[test]
    fn items_weigh_their_bytes() {
        let data = "x".repeat(1000);
        let json = format!(r#"{{"metadata":{{"name":"a"}},"data":{{"k":"{data}"}}}}"#);
        let resource = Arc::new(ConfigMap::resource().clone());
        let encoded = Encoded::read(&resource, Format::Json, json.as_bytes(), &[]).unwrap();
        let weight = encoded.weight();
        assert_eq!((weight.body, weight.total()), (json.len(), encoded.size()));
        assert!(weight.head > 0);
        let decoded = Decoded::<ConfigMap>::decode(&encoded).weight();
        assert_eq!(decoded.body, json.len() + size_of::<ConfigMap>());
    }
}
