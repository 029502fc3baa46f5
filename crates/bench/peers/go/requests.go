package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const annotation = "bench/number"

// requestsMain sends n GETs of pods one at a time, ten times as many with 100 at a time, and a tenth as many PATCHes.
// Each of the workers has a pod of its own.
func requestsMain(ctx context.Context, cs *kubernetes.Clientset, ns, ct string, n int) {
	result := map[string]any{"what": "client-go requests", "ct": ct}
	pods := cs.CoreV1().Pods(ns)
	var numbers atomic.Int64
	get := func(name string, _ int64) {
		p, err := pods.Get(ctx, name, metav1.GetOptions{})
		must(err)
		if p.Name != name {
			panic("another pod than was asked for")
		}
	}
	patch := func(name string, number int64) {
		text := fmt.Sprintf("%d-%d", os.Getpid(), number)
		body := fmt.Appendf(nil, `{"metadata":{"annotations":{"%s":"%s"}}}`, annotation, text)
		p, err := pods.Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{})
		must(err)
		if p.Annotations[annotation] != text {
			panic("the change is not there")
		}
	}
	for _, verb := range []struct {
		name  string
		fewer int
		one   func(string, int64)
	}{{"get", 1, get}, {"patch", 10, patch}} {
		for _, size := range []struct{ inFlight, more int }{{1, 1}, {100, 10}} {
			count := max(1, n*size.more/verb.fewer)
			send(&numbers, size.inFlight, (count+9)/10, verb.one)
			cpu, start := processCPU(), time.Now()
			times := send(&numbers, size.inFlight, count, verb.one)
			wall, used := time.Since(start), processCPU()-cpu
			slices.Sort(times)
			var sum time.Duration
			for _, t := range times {
				sum += t
			}
			micros := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
			rank := func(percent int) float64 { return micros(times[max(0, (len(times)*percent+99)/100-1)]) }
			total := float64(len(times))
			for name, figure := range map[string]float64{"p50_us": rank(50), "p99_us": rank(99), "mean_us": micros(sum) / total,
				"per_s": total / wall.Seconds(), "cpu_us": micros(used) / total} {
				result[fmt.Sprintf("%s_%d_%s", verb.name, size.inFlight, name)] = figure
			}
		}
	}
	result["peak_kb"] = rssKB("VmHWM")
	out(result)
}

// send gives the time of each of count requests.
func send(numbers *atomic.Int64, inFlight, count int, one func(string, int64)) []time.Duration {
	end := numbers.Load() + int64(count)
	all := make([][]time.Duration, inFlight)
	var wg sync.WaitGroup
	for worker := range inFlight {
		wg.Go(func() {
			name := fmt.Sprintf("pod-%06d", worker)
			for {
				number := numbers.Add(1) - 1
				if number >= end {
					return
				}
				start := time.Now()
				one(name, number)
				all[worker] = append(all[worker], time.Since(start))
			}
		})
	}
	wg.Wait()
	return slices.Concat(all...)
}
