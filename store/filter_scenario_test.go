package store_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/internal/storetest"
)

// TestFilter_Scenarios runs testdata/filter. Its commands are:
//
//	filter             options as "key: …", "prefix: …", "labels: …", "fields: …",
//	                   one to a line; prints what became of them
//	match              objects, one to a line: a key and attributes, where a
//	                   leading dot marks a field; prints whether the filter wants it
//	same               filters, one to a line, options separated by ";": groups
//	                   the lines that share a canonical form
func TestFilter_Scenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/filter", func(t *testing.T, path string) {
		var current *store.Filter
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "filter":
				f, err := store.NewFilter(storetest.Columns, parseOptions(t, strings.Split(d.Input, "\n")))
				if err != nil {
					return err.Error()
				}
				current = f
				return describe(f)
			case "match":
				return eachLine(d.Input, func(line string) string {
					if store.Matches(current, parseObject(t, line)) {
						return "yes  " + line
					}
					return "no   " + line
				})
			case "same":
				return groupByCanonical(t, d.Input)
			}
			t.Fatalf("unknown command %q", d.Cmd)
			return ""
		})
	})
}

func describe(f *store.Filter) string {
	var b strings.Builder
	fmt.Fprintln(&b, f)
	for _, r := range f.Exact() {
		fmt.Fprintf(&b, "  index on %s: %q\n", r.Attribute, r.Value)
	}
	return b.String()
}

func groupByCanonical(t *testing.T, input string) string {
	numbers := map[string]int{}
	return eachLine(input, func(line string) string {
		f, err := store.NewFilter(storetest.Columns, parseOptions(t, strings.Split(line, ";")))
		if err != nil {
			t.Fatal(err)
		}
		if numbers[f.Canonical()] == 0 {
			numbers[f.Canonical()] = len(numbers) + 1
		}
		return fmt.Sprintf("%d: %s", numbers[f.Canonical()], line)
	})
}

func eachLine(input string, f func(string) string) string {
	var b strings.Builder
	for line := range strings.Lines(input) {
		fmt.Fprintln(&b, f(strings.TrimSuffix(line, "\n")))
	}
	return b.String()
}

func parseOptions(t *testing.T, lines []string) (opts store.FilterOptions) {
	for _, line := range lines {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "key":
			opts.Key = value
		case "prefix":
			opts.Prefix = value
		case "labels":
			opts.Labels = value
		case "fields":
			opts.Fields = value
		case "", "everything":
		default:
			t.Fatalf("unknown option %q", name)
		}
	}
	return opts
}

func parseObject(t *testing.T, line string) *store.Object {
	if line == "nil" {
		return nil
	}
	words := strings.Fields(line)
	l, f := labels.Set{}, fields.Set{}
	for _, word := range words[1:] {
		name, value, ok := strings.Cut(word, "=")
		if !ok {
			t.Fatalf("attribute %q has no value", word)
		}
		if field, isField := strings.CutPrefix(name, "."); isField {
			f[field] = value
		} else {
			l[name] = value
		}
	}
	return object(words[0], l, f)
}
