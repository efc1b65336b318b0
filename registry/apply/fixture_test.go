package apply_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
)

// Gear has a field of each way to merge.
type Gear struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              GearSpec   `json:"spec"`
	Status            GearStatus `json:"status,omitzero"`
}

type GearSpec struct {
	Size  int    `json:"size,omitempty"`
	Color string `json:"color,omitempty"`
	// Teeth are merged by name, Tags as a set; Order is one field.
	Teeth []Tooth  `json:"teeth,omitempty" patchMergeKey:"name" patchStrategy:"merge"`
	Tags  []string `json:"tags,omitempty" patchStrategy:"merge"`
	Order []string `json:"order,omitempty"`
	// Limits have a field for each key, Box is one field.
	Limits map[string]int    `json:"limits,omitempty"`
	Box    map[string]string `json:"box,omitempty" patchStrategy:"replace"`
}

type Tooth struct {
	Name   string `json:"name"`
	Length int    `json:"length,omitempty"`
	Metal  string `json:"metal,omitempty"`
}

type GearStatus struct {
	Turns int    `json:"turns,omitempty"`
	Phase string `json:"phase,omitempty"`
}

// gears is a store of gears with a short way to write.
type gears struct {
	t     *testing.T
	store *registry.Store[Gear]
}

func config() registry.Config[Gear] {
	return registry.Config[Gear]{
		Kind:  registry.Kind{Group: "example.com", Version: "v1", Kind: "Gear", Status: true},
		Apply: apply.New,
	}
}

func newGears(t *testing.T, edit ...func(*registry.Config[Gear])) *gears {
	t.Helper()
	cfg := config()
	for _, e := range edit {
		e(&cfg)
	}
	s, err := registry.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return &gears{t, s}
}

// configuration returns a gear's configuration with the members of body.
func configuration(body string) []byte {
	return []byte(`{"apiVersion":"example.com/v1","kind":"Gear",` + body + `}`)
}

func (g *gears) try(manager, body string, edit ...func(*registry.WriteOptions)) (*engine.Object[Gear], error) {
	opts := registry.WriteOptions{Manager: manager}
	for _, e := range edit {
		e(&opts)
	}
	o, _, err := g.store.Apply(g.t.Context(), "default/a", configuration(body), opts)
	return o, err
}

func (g *gears) apply(manager, body string, edit ...func(*registry.WriteOptions)) *engine.Object[Gear] {
	g.t.Helper()
	o, err := g.try(manager, body, edit...)
	require.NoError(g.t, err)
	return o
}

// update changes the gear by an update.
func (g *gears) update(manager string, change func(*Gear)) *engine.Object[Gear] {
	g.t.Helper()
	o, _, err := g.store.Update(g.t.Context(), "default/a", changing(change), registry.WriteOptions{Manager: manager})
	require.NoError(g.t, err)
	return o
}

// changing returns what changes a copy.
func changing(change func(*Gear)) func(*engine.Object[Gear]) (Gear, error) {
	return func(old *engine.Object[Gear]) (Gear, error) {
		text, err := json.Marshal(old.Value)
		if err != nil {
			return Gear{}, err
		}
		var next Gear
		if err := json.Unmarshal(text, &next); err != nil {
			return Gear{}, err
		}
		change(&next)
		return next, nil
	}
}

func force(o *registry.WriteOptions)  { o.Force = true }
func dryRun(o *registry.WriteOptions) { o.DryRun = true }

// conflicts returns the fields that an error names.
func conflicts(t *testing.T, err error) []string {
	t.Helper()
	var conflict *registry.FieldConflictError
	require.ErrorAs(t, err, &conflict)
	require.ErrorIs(t, err, engine.ErrConflict)
	var all []string
	for _, c := range conflict.Conflicts {
		all = append(all, c.Field)
	}
	slices.Sort(all)
	return all
}

// spec returns the gear's spec as JSON.
func spec(t *testing.T, o *engine.Object[Gear]) string {
	t.Helper()
	text, err := json.Marshal(o.Value.Spec)
	require.NoError(t, err)
	return string(text)
}

// owners returns the managed fields as text: a line for each manager, with the operation,
// the subresource and the fields that have no fields.
func owners(t *testing.T, m metav1.Object) string {
	t.Helper()
	var lines []string
	for _, e := range m.GetManagedFields() {
		name := e.Manager + " " + string(e.Operation)
		if e.Subresource != "" {
			name += "/" + e.Subresource
		}
		var fields map[string]any
		require.NoError(t, json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields))
		lines = append(lines, name+": "+strings.Join(leaves(fields, ""), " "))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// leaves returns the paths of a set of fields, which is a tree. A dot is the field itself
// that others are in.
func leaves(fields map[string]any, path string) []string {
	var all []string
	for name, below := range fields {
		if name == "." {
			continue
		}
		name = strings.TrimPrefix(name, "f:")
		inner, _ := below.(map[string]any)
		if len(inner) == 0 {
			all = append(all, strings.TrimPrefix(path+"."+name, "."))
			continue
		}
		all = append(all, leaves(inner, path+"."+name)...)
	}
	slices.Sort(all)
	return all
}
