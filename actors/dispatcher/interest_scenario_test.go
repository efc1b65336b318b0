package dispatcher

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors/watcher"
	"github.com/watchmill/watchmill/store"
)

// TestInterest_Scenarios runs testdata/interest. Its commands are:
//
//	watch <name>   a group and what it selects: "key: …", "prefix: …",
//	               "labels: …", "fields: …", one to a line
//	forget <name>  removes the group
//	write          the events, one per line; prints the candidates of each, and
//	               in brackets those that see it
//	index          prints the groups by bucket
func TestInterest_Scenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/interest", func(t *testing.T, path string) {
		s := &interestScenario{
			t: t, index: newInterest[string](), history: newHistory(t),
			filters: map[string]*store.Filter{}, handles: map[string]handle{},
		}
		datadriven.RunTest(t, path, s.run)
	})
}

type interestScenario struct {
	t       *testing.T
	index   *interest[string]
	history *history
	filters map[string]*store.Filter
	handles map[string]handle
}

func (s *interestScenario) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "watch":
		name := d.CmdArgs[0].Key
		s.filters[name] = parseFilter(t, d.Input)
		s.handles[name] = s.index.add(s.filters[name], name)
		return ""
	case "forget":
		name := d.CmdArgs[0].Key
		s.index.remove(s.handles[name])
		delete(s.filters, name)
		return ""
	case "write":
		var out strings.Builder
		for line := range strings.Lines(d.Input) {
			fmt.Fprintln(&out, s.write(strings.TrimSpace(line)))
		}
		return out.String()
	case "index":
		return s.index.describe()
	}
	t.Fatalf("unknown command %q", d.Cmd)
	return ""
}

func (s *interestScenario) write(line string) string {
	ev := s.history.write(strings.Fields(line)...)
	var asked []string
	candidates(s.index, ev, func(name string) {
		require.NotContains(s.t, asked, name)
		if _, sees := watcher.Convert(schema, s.filters[name], ev); sees {
			name = "[" + name + "]"
		}
		asked = append(asked, name)
	})
	for name, f := range s.filters {
		if _, sees := watcher.Convert(schema, f, ev); sees && ev.Type != store.Bookmark {
			require.Contains(s.t, asked, "["+name+"]", "%s was not asked about %s", name, line)
		}
	}
	return fmt.Sprintf("%s -> %s", line, strings.Join(asked, " "))
}

// describe prints the groups by bucket, for goldens.
func (i *interest[G]) describe() string {
	lines := []string{}
	add := func(where string, b *bucket) {
		if b.live == 0 {
			return
		}
		for _, p := range b.appendTo(nil) {
			where += fmt.Sprintf(" %v", i.groups[p.group])
		}
		lines = append(lines, where)
	}
	tables := map[string]table{"key": i.keys, "prefix": i.prefixes}
	for _, v := range i.fields.all {
		tables["field "+v.attribute.Name] = v.table
	}
	for _, v := range i.labels.all {
		tables["label "+v.attribute.Name] = v.table
	}
	for _, v := range i.labels.all {
		if v.present != nil {
			add(fmt.Sprintf("label %s present:", v.attribute.Name), v.present)
		}
	}
	for _, x := range i.exclusions.active {
		add(fmt.Sprintf("exclusion %s, in %d filters:", x, x.filters), &x.bucket)
	}
	for kind, table := range tables {
		for name, b := range table {
			add(fmt.Sprintf("%s %q:", kind, name), b)
		}
	}
	add("scan:", i.scan)
	if len(lines) == 0 {
		return "none"
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

func parseFilter(t *testing.T, input string) *store.Filter {
	var opts store.FilterOptions
	options := map[string]*string{"key": &opts.Key, "prefix": &opts.Prefix, "labels": &opts.Labels, "fields": &opts.Fields}
	for line := range strings.Lines(input) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		require.Contains(t, slices.Collect(maps.Keys(options)), name)
		*options[name] = value
	}
	f, err := store.NewFilter(columns, opts)
	require.NoError(t, err)
	return f
}
