package apply_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
	"github.com/watchmill/watchmill/store/backend/memory"
	"github.com/watchmill/watchmill/usercode"
)

// field is one of what is written: a path, how to write it into a configuration, and
// whether updates change it, too.
type field struct {
	path    string
	set     func(spec *GearSpec, value int)
	get     func(spec *GearSpec) (value int, present bool)
	updates bool
}

func limit(name string) field {
	return field{
		"spec.limits." + name,
		func(s *GearSpec, v int) {
			if s.Limits == nil {
				s.Limits = map[string]int{}
			}
			s.Limits[name] = v
		},
		func(s *GearSpec) (int, bool) { v, present := s.Limits[name]; return v, present }, true,
	}
}

// tag and tooth are items: they have no value, and are there or not.
func tag(name string) field {
	return field{
		`spec.tags.v:"` + name + `"`,
		func(s *GearSpec, _ int) { s.Tags = append(s.Tags, name) },
		func(s *GearSpec) (int, bool) { return 0, slices.Contains(s.Tags, name) }, false,
	}
}

func tooth(name string) field {
	return field{
		`spec.teeth.k:{"name":"` + name + `"}.name`,
		func(s *GearSpec, _ int) { s.Teeth = append(s.Teeth, Tooth{Name: name}) },
		func(s *GearSpec) (int, bool) {
			return 0, slices.ContainsFunc(s.Teeth, func(t Tooth) bool { return t.Name == name })
		}, false,
	}
}

var fields = []field{
	{"spec.size", func(s *GearSpec, v int) { s.Size = v + 1 }, func(s *GearSpec) (int, bool) { return s.Size - 1, s.Size > 0 }, true},
	{"spec.color", func(s *GearSpec, v int) { s.Color = strings.Repeat("x", v+1) }, func(s *GearSpec) (int, bool) { return len(s.Color) - 1, s.Color != "" }, true},
	limit("a"), limit("b"), limit("c"), tag("p"), tag("q"), tooth("x"), tooth("y"),
}

// model says which value each field has, and which managers own it.
type model struct {
	values map[string]int
	owners map[string]map[string]bool
}

func (m *model) own(path, manager string) {
	if m.owners[path] == nil {
		m.owners[path] = map[string]bool{}
	}
	m.owners[path][manager] = true
}

// apply applies a configuration in any version, or returns the fields that are in conflict.
func (m *model) apply(manager string, config map[string]int, force bool) (inConflict []string) {
	manager += " Apply"
	for path, value := range config {
		others := maps.Clone(m.owners[path])
		delete(others, manager)
		if now, present := m.values[path]; len(others) > 0 && (!present || now != value) {
			inConflict = append(inConflict, path)
		}
	}
	if len(inConflict) > 0 && !force {
		return inConflict
	}
	for path, owners := range m.owners {
		if _, wanted := config[path]; wanted || !owners[manager] {
			continue
		}
		if delete(owners, manager); len(owners) == 0 {
			delete(m.values, path)
		}
	}
	for path, value := range config {
		if now, present := m.values[path]; !present || now != value {
			m.owners[path] = nil
		}
		m.values[path] = value
		m.own(path, manager)
	}
	return nil
}

// update makes the values those of next. A manager owns what it updates by each version apart.
func (m *model) update(manager, version string, next map[string]int) {
	for path := range m.values {
		if _, still := next[path]; !still {
			delete(m.owners, path)
		}
	}
	for path, value := range next {
		if now, present := m.values[path]; !present || now != value {
			m.owners[path] = nil
			m.own(path, manager+" Update "+version)
		}
	}
	m.values = next
}

// String returns a line for each field.
func (m *model) String() string {
	var lines []string
	for path, value := range m.values {
		lines = append(lines, fmt.Sprintf("%s=%d %v", path, value, slices.Sorted(maps.Keys(m.owners[path]))))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// observed returns the model of what is stored.
func observed(t require.TestingT, o *engine.Object[Gear]) *model {
	m := &model{map[string]int{}, map[string]map[string]bool{}}
	for _, f := range fields {
		if value, present := f.get(&o.Value.Spec); present {
			m.values[f.path] = value
		}
	}
	for _, e := range o.Value.ManagedFields {
		set, manager := map[string]any{}, e.Manager+" "+string(e.Operation)
		require.NoError(t, json.Unmarshal(e.FieldsV1.GetRawBytes(), &set))
		if e.Operation == metav1.ManagedFieldsOperationUpdate {
			manager += " " + e.APIVersion
		}
		for _, path := range leaves(set, "") {
			if slices.ContainsFunc(fields, func(f field) bool { return f.path == path }) {
				m.own(path, manager)
			}
		}
	}
	return m
}

// Random applies and updates of several managers in several versions leave the values and the owners
// that a model of a dozen lines has, and an apply that is repeated changes nothing.
func TestProperty_OwnershipIsThatOfTheModel(t *testing.T) {
	stores, number := openVersions(t, "v1", "v1beta1"), 0
	rapid.Check(t, func(t *rapid.T) {
		number++
		s := &scene{t: t, stores: stores, key: fmt.Sprintf("default/g%d", number), model: &model{map[string]int{}, map[string]map[string]bool{}}}
		s.apply("anchor", nil, `{"box":{"is":"there"}}`, false)
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "apply") {
				s.randomApply(t)
			} else {
				s.randomUpdate(t)
			}
			s.check(t)
		}
	})
}

// inVersion is the store of a version.
type inVersion struct {
	*registry.Store[Gear]
	version string
}

// openVersions opens the stores of some versions over one backend.
func openVersions(t *testing.T, versions ...string) (stores []inVersion) {
	schema := registry.Schema(config())
	objects, err := memory.New(schema, memory.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, objects.Close()) })
	for _, version := range versions {
		g := newGears(t, func(c *registry.Config[Gear]) {
			c.Kind.Version, c.Engine.Backend = version, objects
			c.Apply = func(kind registry.Kind, schema json.RawMessage) (registry.Applier, error) {
				schemas := map[string]json.RawMessage{}
				for _, version := range versions {
					schemas[version] = schema
				}
				return apply.Versions(schemas)(kind, schema)
			}
		})
		stores = append(stores, inVersion{g.store, "example.com/" + version})
	}
	return stores
}

// scene is one gear and the model of it.
type scene struct {
	t      *rapid.T
	stores []inVersion
	key    string
	model  *model
	last   *engine.Object[Gear]
}

// in returns the store of one of the versions.
func (s *scene) in() inVersion { return rapid.SampledFrom(s.stores).Draw(s.t, "version") }

var managers = rapid.SampledFrom([]string{"one", "two", "three"})

// draw returns values for some of the fields.
func draw(t *rapid.T, which func(field) bool) (map[string]int, *GearSpec) {
	values, spec := map[string]int{}, &GearSpec{}
	for _, f := range fields {
		if which(f) && rapid.Bool().Draw(t, f.path) {
			value := rapid.IntRange(0, 1).Draw(t, "value")
			if f.set(spec, value); !f.updates {
				value = 0
			}
			values[f.path] = value
		}
	}
	return values, spec
}

func (s *scene) randomApply(t *rapid.T) {
	values, spec := draw(t, func(field) bool { return true })
	text, err := json.Marshal(spec)
	require.NoError(t, err)
	s.apply(managers.Draw(t, "manager"), values, string(text), rapid.Bool().Draw(t, "force"))
}

func (s *scene) apply(manager string, values map[string]int, spec string, force bool) {
	opts, store := registry.WriteOptions{Manager: manager, Force: force}, s.in()
	config := []byte(`{"apiVersion":"` + store.version + `","kind":"Gear","spec":` + spec + `}`)
	o, _, err := store.Apply(s.t.Context(), s.key, config, opts)
	if want := s.model.apply(manager, values, force); want != nil {
		var conflict *registry.FieldConflictError
		require.ErrorAs(s.t, err, &conflict)
		fields := map[string]bool{}
		for _, c := range conflict.Conflicts {
			fields[c.Field] = true
		}
		require.Len(s.t, fields, len(want), "%v, not %v", conflict, want)
		return
	}
	require.NoError(s.t, err)
	s.last = o
	again, _, err := store.Apply(s.t.Context(), s.key, config, opts)
	require.NoError(s.t, err)
	require.Equal(s.t, o.Revision, again.Revision, "the same apply again is a change")
}

func (s *scene) randomUpdate(t *rapid.T) {
	values, drawn := draw(t, func(f field) bool { return f.updates })
	manager, store := managers.Draw(t, "manager"), s.in()
	o, _, err := store.Update(t.Context(), s.key, changing(func(g *Gear) {
		g.Spec.Size, g.Spec.Color, g.Spec.Limits = drawn.Size, drawn.Color, drawn.Limits
	}), registry.WriteOptions{Manager: manager})
	require.NoError(t, err)
	for _, f := range fields {
		if value, present := s.model.values[f.path]; present && !f.updates {
			values[f.path] = value
		}
	}
	s.model.update(manager, store.version, values)
	s.last = o
}

func (s *scene) check(t *rapid.T) {
	require.Equal(t, s.model.String(), observed(t, s.last).String())
	for _, f := range fields { // a field without a value has no owner either
		if _, present := s.model.values[f.path]; !present {
			require.Empty(t, observed(t, s.last).owners[f.path], f.path)
		}
	}
	now, err := s.stores[0].Engine().Get(t.Context(), s.key, engine.GetOptions{Read: engine.Latest()})
	require.NoError(t, err)
	require.Equal(t, s.last.Revision, now.Revision, "what was refused was stored")
}

// Whatever bytes a client sends as a configuration, it is an error or an object that can
// be applied again, and nothing panics.
func FuzzApply(f *testing.F) {
	cfg := config()
	store, err := registry.New(cfg)
	require.NoError(f, err)
	f.Cleanup(func() { _ = store.Close() })
	_, err = store.Create(f.Context(), Gear{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Spec: GearSpec{Size: 1}}, registry.WriteOptions{})
	require.NoError(f, err)
	f.Add(configuration(`"metadata":{"name":"a"},"spec":{"size":1,"teeth":[{"name":"x"}],"tags":["a"],"box":{"a":"b"}},"status":{"turns":1}`))
	f.Add([]byte("apiVersion: example.com/v1\nkind: Gear\nspec: &s\n  size: 0x10\nstatus: *s\n"))
	f.Add([]byte("a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\nd: [*c,*c]\n"))
	f.Add([]byte(strings.Repeat("[", 1000)))
	f.Add([]byte("? {a: b}\n: c\n1: 2\n.nan: .inf\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, key := range []string{"default/a", "default/new"} {
			opts := registry.WriteOptions{Manager: "one", Force: true, DryRun: true}
			_, _, err := store.Apply(t.Context(), key, text, opts)
			require.NotErrorIs(t, err, usercode.ErrPanic)
		}
	})
}
