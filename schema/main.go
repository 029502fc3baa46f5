// schema-dump prints, as JSON, the wire schema of every built-in Kubernetes kind: for each message its
// fields with protobuf number and type, JSON name, and whether the JSON form inlines it. It reads only the
// struct tags of the published Go types, and, given a server's /openapi/v2 document as its argument, the list and
// map types that server-side apply needs. So the output holds facts about the API and nothing else.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	discoveryv2 "k8s.io/api/apidiscovery/v2"
	discoveryv2beta1 "k8s.io/api/apidiscovery/v2beta1"
	imagepolicyv1alpha1 "k8s.io/api/imagepolicy/v1alpha1"
	apiextv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	aggv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

type field struct {
	N        int    `json:"n"`                   // protobuf field number
	Name     string `json:"name,omitempty"`      // JSON name; absent when inlined
	T        string `json:"t"`                   // scalar type, or message name
	Repeated bool   `json:"repeated,omitempty"`  // list
	Map      string `json:"map,omitempty"`       // key type of a map; T is then the value type
	Inline   bool   `json:"inline,omitempty"`    // nested on the wire, inlined in JSON
	Omit     bool   `json:"omitempty,omitempty"` // absent from JSON when empty: says nothing of structs
	OmitZero bool   `json:"omitzero,omitempty"`  // absent from JSON when zero: structs too
	Ptr      bool   `json:"ptr,omitempty"`       // optional with presence
	Patch    string `json:"patch,omitempty"`     // strategic merge patch: the field's strategy
	Key      string `json:"key,omitempty"`       // strategic merge patch: the list's merge key
	// server-side apply: atomic, set or map for lists (with the keys of a map); atomic or granular for structs and maps
	ListType string   `json:"listType,omitempty"`
	ListKeys []string `json:"listKeys,omitempty"`
	MapType  string   `json:"mapType,omitempty"`
}

type kind struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

var messages = map[string][]field{}

func name(t reflect.Type) string {
	p := t.PkgPath()
	p = strings.TrimPrefix(p, "k8s.io/")
	return strings.ReplaceAll(p, "/", ".") + "." + t.Name()
}

// special types keep their own JSON form; the consumer writes them by hand.
func special(t reflect.Type) string {
	switch name(t) {
	case "apimachinery.pkg.apis.meta.v1.Time":
		return "@time"
	case "apimachinery.pkg.apis.meta.v1.MicroTime":
		return "@microtime"
	case "apimachinery.pkg.apis.meta.v1.Duration":
		return "@duration"
	case "apimachinery.pkg.apis.meta.v1.FieldsV1":
		return "@fieldsv1"
	case "apimachinery.pkg.api.resource.Quantity":
		return "@quantity"
	case "apimachinery.pkg.util.intstr.IntOrString":
		return "@intorstring"
	case "apimachinery.pkg.runtime.RawExtension":
		return "@rawextension"
	case "apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON":
		return "@json"
	case "apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool":
		return "@schemaorbool"
	case "apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray":
		return "@schemaorarray"
	case "apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray":
		return "@schemaorstrings"
	}
	return ""
}

func scalar(t reflect.Type, wire string) string {
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int32:
		return "int32"
	case reflect.Int64, reflect.Int:
		return "int64"
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return "uint32"
	case reflect.Uint64:
		return "uint64"
	case reflect.Float64:
		return "double"
	case reflect.Float32:
		return "float"
	}
	return "?" + t.String() + ":" + wire
}

func typ(t reflect.Type, wire string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s := special(t); s != "" {
		return s
	}
	if t.Kind() == reflect.Struct {
		visit(t)
		return name(t)
	}
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
		return "bytes"
	}
	if t.Kind() == reflect.Slice || t.Kind() == reflect.Map { // named list or map types are wrapped in a message {items=1}
		k := name(t)
		if _, ok := messages[k]; !ok {
			messages[k] = nil
			f := field{N: 1, T: typ(t.Elem(), "")}
			if t.Kind() == reflect.Map {
				f.Map = scalar(t.Key(), "")
			} else {
				f.Repeated = true
			}
			f.Name = "@items"
			messages[k] = []field{f}
		}
		return k
	}
	return scalar(t, wire)
}

// wrapped says whether a named list or map type is a message of its own on the wire ({items=1}), as ExtraValue and Verbs are.
func wrapped(t reflect.Type) bool {
	if t.Name() == "" || t.Kind() != reflect.Slice && t.Kind() != reflect.Map {
		return false
	}
	_, ok := reflect.PointerTo(t).MethodByName("Unmarshal")
	return ok
}

func visit(t reflect.Type) {
	k := name(t)
	if _, ok := messages[k]; ok {
		return
	}
	messages[k] = []field{}
	fs := []field{}
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		pb := f.Tag.Get("protobuf")
		js := strings.Split(f.Tag.Get("json"), ",")
		inline := f.Anonymous && js[0] == ""
		if pb == "" || pb == "-" {
			continue // TypeMeta travels in the envelope
		}
		parts := strings.Split(pb, ",")
		n, err := strconv.Atoi(parts[1])
		if err != nil {
			panic(k + " " + f.Name + " " + pb)
		}
		o := field{N: n, Name: js[0], Inline: inline, Patch: f.Tag.Get("patchStrategy"), Key: f.Tag.Get("patchMergeKey")}
		for _, x := range js[1:] {
			o.Omit = o.Omit || x == "omitempty"
			o.OmitZero = o.OmitZero || x == "omitzero"
		}
		ft := f.Type
		if ft.Kind() == reflect.Pointer {
			o.Ptr = true
			ft = ft.Elem()
		}
		switch {
		case special(ft) != "":
			o.T = special(ft)
		case wrapped(ft):
			o.T = typ(ft, parts[0])
		case ft.Kind() == reflect.Map:
			o.Map, o.T = scalar(ft.Key(), ""), typ(ft.Elem(), parts[0])
		case ft.Kind() == reflect.Slice && ft.Elem().Kind() != reflect.Uint8:
			o.Repeated, o.T = true, typ(ft.Elem(), parts[0])
		default:
			o.T = typ(ft, parts[0])
		}
		fs = append(fs, o)
	}
	messages[k] = fs // in the order of the Go struct, which is the order of the JSON form
}

// addListTypes copies the x-kubernetes-* list and map types out of a server's /openapi/v2 document.
func addListTypes(file string) {
	b, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	var doc struct {
		Definitions map[string]struct {
			Properties map[string]struct {
				ListType string   `json:"x-kubernetes-list-type"`
				ListKeys []string `json:"x-kubernetes-list-map-keys"`
				MapType  string   `json:"x-kubernetes-map-type"`
			} `json:"properties"`
		} `json:"definitions"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		panic(err)
	}
	for d, def := range doc.Definitions {
		fs := messages[strings.TrimPrefix(d, "io.k8s.")]
		for i := range fs {
			p := def.Properties[fs[i].Name]
			fs[i].ListType, fs[i].ListKeys, fs[i].MapType = p.ListType, p.ListKeys, p.MapType
		}
	}
}

func main() {
	s := scheme.Scheme
	for _, f := range []func(*runtime.Scheme) error{
		apiextv1.AddToScheme, aggv1.AddToScheme, metav1.AddMetaToScheme, admissionv1.AddToScheme, admissionv1beta1.AddToScheme,
		discoveryv2.AddToScheme, discoveryv2beta1.AddToScheme, imagepolicyv1alpha1.AddToScheme,
	} {
		if err := f(s); err != nil {
			panic(err)
		}
	}
	var kinds []kind
	for gvk, t := range s.AllKnownTypes() {
		if gvk.Version == runtime.APIVersionInternal {
			continue
		}
		visit(t)
		kinds = append(kinds, kind{gvk.Group, gvk.Version, gvk.Kind, name(t)})
	}
	visit(reflect.TypeOf(metav1.Status{}))
	if len(os.Args) > 1 {
		addListTypes(os.Args[1])
	}
	sort.Slice(kinds, func(a, b int) bool {
		x, y := kinds[a], kinds[b]
		return x.Group+"/"+x.Version+"/"+x.Kind < y.Group+"/"+y.Version+"/"+y.Kind
	})
	// One kind or message a line, so that a change of the API reads as such in a diff.
	w := bufio.NewWriter(os.Stdout)
	fmt.Fprint(w, "{\"source\":\"k8s.io/api v0.37.2\",\n\"kinds\":[")
	for i, k := range kinds {
		fmt.Fprint(w, separator(i), line(k))
	}
	fmt.Fprint(w, "\n],\n\"messages\":{")
	for i, m := range slices.Sorted(maps.Keys(messages)) {
		fs := messages[m]
		if fs == nil {
			fs = []field{}
		}
		fmt.Fprint(w, separator(i), line(m), ":", line(fs))
	}
	fmt.Fprintln(w, "\n}}")
	if err := w.Flush(); err != nil {
		panic(err)
	}
}

func separator(i int) string {
	if i == 0 {
		return "\n"
	}
	return ",\n"
}

func line(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
