package dispatcher

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
)

// crowd is an index of n groups, and a change of an object from owner 6 to
// owner 7 that has some other attributes too.
func crowd(n int, filter func(int) *store.Filter) (*interest[int], store.Event) {
	i := newInterest[int]()
	for g := range n {
		i.add(filter(g), g)
	}
	o := func(owner string) *store.Object {
		o := &store.Object{
			Key:    "ns" + owner + "/pod",
			Labels: store.LabelsOf(labels.Set{"owner": owner, "owner-" + owner: "yes", "app": "web", "tier": "front", "track": "stable"}),
		}
		setField(o, "metadata.namespace", "default")
		setField(o, "metadata.name", "pod-"+owner)
		setField(o, "spec.nodeName", "n"+owner)
		return o
	}
	return i, store.Event{Type: store.Modified, Revision: 2, Object: o("7"), Prev: o("6")}
}

func BenchmarkInterest(b *testing.B) {
	for name, filter := range map[string]func(int) *store.Filter{
		"5000 label values": func(n int) *store.Filter { return byLabel("owner", fmt.Sprint(n)) },
		"5000 label names":  func(n int) *store.Filter { return byLabel(fmt.Sprintf("owner-%d", n), "yes") },
		"5000 field values": func(n int) *store.Filter {
			return filter(store.FilterOptions{Fields: fmt.Sprintf("spec.nodeName=n%d", n)})
		},
		"5000 keys":     func(n int) *store.Filter { return filter(store.FilterOptions{Key: fmt.Sprintf("ns%d/pod", n)}) },
		"5000 prefixes": func(n int) *store.Filter { return filter(store.FilterOptions{Prefix: fmt.Sprintf("ns%d/", n)}) },
	} {
		b.Run(name, func(b *testing.B) {
			i, ev := crowd(5000, filter)
			asked := 0
			b.ReportAllocs()
			for b.Loop() {
				candidates(i, ev, func(int) { asked++ })
			}
			b.ReportMetric(float64(asked)/float64(b.N), "asked/op")
		})
	}
}

func BenchmarkInterestAddRemove(b *testing.B) {
	i, _ := crowd(5000, func(n int) *store.Filter { return byLabel("owner", fmt.Sprint(n%10)) })
	f := byLabel("owner", "7")
	b.ReportAllocs()
	for b.Loop() {
		i.remove(i.add(f, 0))
	}
}

// BenchmarkInterest_WithoutEquality has selectors that demand no value: 20,000 that all
// differ, and 20,000 of which a hundred do.
func BenchmarkInterest_WithoutEquality(b *testing.B) {
	byLabels := func(format string, args ...any) *store.Filter {
		return filter(store.FilterOptions{Labels: fmt.Sprintf(format, args...)})
	}
	for _, distinct := range []int{100, 20_000} {
		for name, selector := range map[string]func(int) *store.Filter{
			"in":     func(n int) *store.Filter { return byLabels("owner in (%d,x%d)", n, n) },
			"exists": func(n int) *store.Filter { return byLabels("owner-%d", n) },
			"notin":  func(n int) *store.Filter { return byLabels("owner notin (%d,x%d)", n, n) },
			"!=":     func(n int) *store.Filter { return byLabels("owner!=%d", n) },
			"shared": func(n int) *store.Filter { return byLabels("app!=web,owner!=%d", n) },
			"mixed": func(n int) *store.Filter {
				return byLabels([]string{"owner in (%d,x)", "owner-%d", "app!=web,owner!=%d", "track notin (stable),owner notin (%d,y)"}[n%4], n)
			},
		} {
			b.Run(fmt.Sprintf("%s/%d", name, distinct), func(b *testing.B) {
				i, ev := crowd(distinct, func(n int) *store.Filter { return selector(n + 8) })
				filters := make([]*store.Filter, distinct)
				for n := range filters {
					filters[n] = selector(n + 8)
				}
				seen := 0
				b.ReportAllocs()
				for b.Loop() {
					candidates(i, ev, func(n int) {
						if _, ok := watcher.Convert(schema, filters[n], ev); ok {
							seen++
						}
					})
				}
				b.ReportMetric(float64(seen)/float64(b.N), "seen/op")
			})
		}
	}
}
