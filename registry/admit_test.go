package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
)

// A value that change makes of the stored one has the maps and lists of its metadata. What an
// admitter adds to those is not added to the stored object, which readers share.
func TestAdmission_ChangesOfMetadataLeaveTheStoredObjectAlone(t *testing.T) {
	for name, write := range map[string]func(*registry.Store[Widget]) (*engine.Object[Widget], error){
		"update": func(s *registry.Store[Widget]) (*engine.Object[Widget], error) {
			o, _, err := s.Update(t.Context(), "default/a", grow(1), registry.WriteOptions{})
			return o, err
		},
		"status": func(s *registry.Store[Widget]) (*engine.Object[Widget], error) {
			return s.UpdateStatus(t.Context(), "default/a", grow(1), registry.WriteOptions{})
		},
		"dry status": func(s *registry.Store[Widget]) (*engine.Object[Widget], error) {
			return s.UpdateStatus(t.Context(), "default/a", grow(1), registry.WriteOptions{DryRun: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config()
			cfg.Strategy.StatusOnly = true
			cfg.Admit = []registry.Admitter{registry.AdmitFunc(func(_ context.Context, a *registry.Admission) error {
				if w := a.Object.(*Widget); a.Operation == registry.OperationUpdate {
					w.Labels["seen"], w.Annotations["seen"] = "yes", "yes"
					w.Finalizers[0], w.OwnerReferences[0].Name = "example.com/seen", "seen"
				}
				return nil
			})}
			s := newStore(t, cfg)
			w := widget("a", 1)
			w.Labels, w.Annotations = map[string]string{"a": "b"}, map[string]string{"a": "b"}
			w.Finalizers = []string{"example.com/wait"}
			w.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Box", Name: "box", UID: "1"}}
			before := create(t, s, w)
			after, err := write(s)
			require.NoError(t, err)
			require.Equal(t, "yes", after.Value.Labels["seen"])
			require.Equal(t, "yes", after.Value.Annotations["seen"])
			require.Equal(t, "example.com/seen seen", after.Value.Finalizers[0]+" "+after.Value.OwnerReferences[0].Name)
			require.Equal(t, map[string]string{"a": "b"}, before.Value.Labels)
			require.Equal(t, map[string]string{"a": "b"}, before.Value.Annotations)
			require.Equal(t, "example.com/wait box", before.Value.Finalizers[0]+" "+before.Value.OwnerReferences[0].Name)
		})
	}
}

// A program may create many objects from one template, whose maps and lists they share until Create copies them.
func TestAdmission_ChangesOfMetadataLeaveTheTemplateAlone(t *testing.T) {
	cfg := config()
	cfg.Admit = []registry.Admitter{registry.AdmitFunc(func(_ context.Context, a *registry.Admission) error {
		w := a.Object.(*Widget)
		w.Labels["of"], w.Finalizers[0] = w.Name, "example.com/"+w.Name
		return nil
	})}
	s := newStore(t, cfg)
	template := widget("", 1)
	template.Labels, template.Finalizers = map[string]string{"app": "web"}, []string{"example.com/any"}
	for _, name := range []string{"a", "b"} {
		w := template
		w.Name = name
		o := create(t, s, w)
		require.Equal(t, map[string]string{"app": "web", "of": name}, o.Value.Labels)
		require.Equal(t, []string{"example.com/" + name}, o.Value.Finalizers)
	}
	require.Equal(t, map[string]string{"app": "web"}, template.Labels)
	require.Equal(t, []string{"example.com/any"}, template.Finalizers)
}

func TestAdmission_ChangesAndRefuses(t *testing.T) {
	cfg := config()
	refused := errors.New("not today")
	var seen []registry.Operation
	cfg.Admit = []registry.Admitter{
		registry.AdmitFunc(func(_ context.Context, a *registry.Admission) error {
			seen = append(seen, a.Operation)
			if w, ok := a.Object.(*Widget); ok && w.Spec.Color == "pink" {
				w.Spec.Color = "RED"
			}
			return nil
		}),
		registry.AdmitFunc(func(_ context.Context, a *registry.Admission) error {
			if a.Operation == registry.OperationDelete && a.Old.(*Widget).Labels["keep"] != "" {
				return refused
			}
			return nil
		}),
	}
	s := newStore(t, cfg)
	w := widget("a", 1)
	w.Spec.Color, w.Labels = "pink", map[string]string{"keep": "yes"}
	require.Equal(t, "red", create(t, s, w).Value.Spec.Color, "admitted before it is canonicalized")
	_, _, err := s.Delete(t.Context(), "default/a", registry.DeleteOptions{})
	require.ErrorIs(t, err, refused)
	require.ErrorAs(t, err, new(*registry.AdmissionError))
	require.Equal(t, []registry.Operation{registry.OperationCreate, registry.OperationDelete}, seen)
}

// Admitters of all kinds, to which each kind appends its own: the slices share memory if there is
// room for more.
func TestNew_KeepsAdmittersAndDecodersThatTheCallerChangesLater(t *testing.T) {
	allow := registry.AdmitFunc(func(context.Context, *registry.Admission) error { return nil })
	refuse := registry.AdmitFunc(func(context.Context, *registry.Admission) error { return errors.New("not today") })
	ofAll := append(make([]registry.Admitter, 0, 2), allow)
	decode := func(body []byte) ([]byte, error) { return body, nil }
	decoders := map[string]func([]byte) ([]byte, error){"application/yaml": decode}

	strict := config()
	strict.Admit, strict.Decoders = append(ofAll, refuse), decoders
	s := newStore(t, strict)
	lax := config()
	lax.Admit = append(ofAll, allow)
	newStore(t, lax)
	delete(decoders, "application/yaml")

	_, err := s.Create(t.Context(), widget("a", 1), registry.WriteOptions{})
	require.ErrorAs(t, err, new(*registry.AdmissionError))
	require.Contains(t, s.Resources()[0].Info().Decoders, "application/yaml")
}

// Several kinds made from one configuration: each changes what the one before was made of.
func TestNew_KeepsTheKindThatTheCallerChangesLater(t *testing.T) {
	cfg := scaled()
	cfg.Kind.ShortNames, cfg.Kind.Categories = []string{"wd"}, []string{"all"}
	cfg.Schema = json.RawMessage(`{"type":"object"}`)
	s := newStore(t, cfg)
	create(t, s, widget("a", 3))
	format, err := registry.FormatOf(cfg)
	require.NoError(t, err)

	cfg.Kind.ShortNames[0], cfg.Kind.Categories[0] = "gd", "none"
	cfg.Columns[0] = registry.Column[Widget]{Name: "Color", Type: "string", Value: func(w *Widget) any { return w.Spec.Color }}
	copy(cfg.Schema, `{"type":"number"}`)
	cfg.Scale.Replicas = func(*Widget) (int32, bool) { return 7, true }

	info := s.Resources()[0].Info()
	require.Equal(t, "[wd] [all]", fmt.Sprint(info.Kind.ShortNames, info.Kind.Categories))
	require.Equal(t, "[wd] [all]", fmt.Sprint(format.Kind().ShortNames, format.Kind().Categories))
	require.Equal(t, "Size", info.Columns[0].Name)
	require.Equal(t, `{"type":"object"}`, string(info.Schema))
	item, err := s.Resources()[0].Get(t.Context(), "default/a", engine.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, []any{3}, item.AppendCells(nil))
	scale, err := scaleOf(t, s).Get(t.Context(), "default/a", engine.GetOptions{})
	require.NoError(t, err)
	text, err := scale.JSON()
	require.NoError(t, err)
	require.Contains(t, string(text), `"spec":{"replicas":3}`)
}
