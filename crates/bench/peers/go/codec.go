package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
)

// message is what the generated types have in common.
type message interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
	metav1.Object
}

// codecMain measures one round of the codec of client-go on recorded lists, one JSON line for each figure.
func codecMain(folder string) {
	codecSet(folder, "pods", func(l *corev1.PodList) []message { return each(l.Items, func(o *corev1.Pod) message { return o }) }, func() message { return &corev1.Pod{} })
	codecSet(folder, "running-pods", func(l *corev1.PodList) []message { return each(l.Items, func(o *corev1.Pod) message { return o }) }, func() message { return &corev1.Pod{} })
	codecSet(folder, "configmaps", func(l *corev1.ConfigMapList) []message {
		return each(l.Items, func(o *corev1.ConfigMap) message { return o })
	}, func() message { return &corev1.ConfigMap{} })
	codecSet(folder, "endpointslices", func(l *discoveryv1.EndpointSliceList) []message {
		return each(l.Items, func(o *discoveryv1.EndpointSlice) message { return o })
	}, func() message { return &discoveryv1.EndpointSlice{} })
}

func each[T any](items []T, one func(*T) message) []message {
	all := make([]message, 0, len(items))
	for i := range items {
		all = append(all, one(&items[i]))
	}
	return all
}

// codecSet measures one recorded list. Bytes of single objects are made from the list's items: the generated encoders
// write the same bytes again.
func codecSet[L any](folder, set string, items func(*L) []message, empty func() message) {
	read := func(suffix string) []byte {
		body, err := os.ReadFile(filepath.Join(folder, set+suffix))
		must(err)
		return body
	}
	lists := [][]byte{read(".pb"), read(".json")}
	decode := scheme.Codecs.UniversalDeserializer()
	list, _, err := decode.Decode(lists[0], nil, nil)
	must(err)
	objects := items(any(list).(*L))
	var whole, stripped, wholeJSON, strippedJSON [][]byte
	bytesOf := func(pb, text *[][]byte) {
		for _, o := range objects {
			b, err := o.Marshal()
			must(err)
			t, err := json.Marshal(o)
			must(err)
			*pb, *text = append(*pb, b), append(*text, t)
		}
	}
	bytesOf(&whole, &wholeJSON)
	for _, o := range objects {
		o.SetManagedFields(nil)
	}
	bytesOf(&stripped, &strippedJSON)

	unmarshal := func(b []byte) { must(empty().Unmarshal(b)) }
	unmarshalJSON := func(b []byte) { must(kjson.Unmarshal(b, empty())) }
	measure(set, "decode", "client-go", stripped, 1, func(i int) { unmarshal(stripped[i]) })
	measure(set, "decode", "client-go json", strippedJSON, 1, func(i int) { unmarshalJSON(strippedJSON[i]) })
	measure(set, "decode whole", "client-go", whole, 1, func(i int) { unmarshal(whole[i]) })
	measure(set, "decode whole", "client-go json", wholeJSON, 1, func(i int) { unmarshalJSON(wholeJSON[i]) })
	measure(set, "encode", "client-go", stripped, 1, func(i int) {
		_, err := objects[i].Marshal()
		must(err)
	})
	measure(set, "encode", "client-go json", strippedJSON, 1, func(i int) {
		_, err := json.Marshal(objects[i])
		must(err)
	})
	// To JSON as a Go program does it: through the type.
	measure(set, "transcode", "client-go", whole, 1, func(i int) {
		o := empty()
		must(o.Unmarshal(whole[i]))
		_, err := json.Marshal(o)
		must(err)
	})
	for i, by := range []string{"client-go", "client-go json"} {
		measure(set, "list", by, lists[i:i+1], len(objects), func(int) {
			_, _, err := decode.Decode(lists[i], nil, nil)
			must(err)
		})
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// measure runs work on all inputs for 10 ms of CPU, which includes that of the collector.
func measure(set, what, by string, inputs [][]byte, perCall int, work func(i int)) {
	run := func() {
		for i := range inputs {
			work(i)
		}
	}
	run()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run()
	runtime.ReadMemStats(&after)
	calls, start := 0, processCPU()
	var spent time.Duration
	for spent < 10*time.Millisecond {
		run()
		calls += len(inputs)
		spent = processCPU() - start
	}
	size := 0
	for _, b := range inputs {
		size += len(b)
	}
	once := float64(len(inputs) * perCall)
	out(map[string]any{
		"set": set, "what": what, "by": by,
		"input":       float64(size) / once,
		"ns":          float64(spent.Nanoseconds()) / float64(calls*perCall),
		"allocations": float64(after.Mallocs-before.Mallocs) / once,
		"allocated":   float64(after.TotalAlloc-before.TotalAlloc) / once,
	})
}
