package registry_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/memory"
	"github.com/watchmill/watchmill/usercode"
)

// opened are stores of widgets over one storage: as its objects are, and as a kind shows them that
// stores no color which is grey, and shows no widget without a color.
type opened struct {
	plain, shown *registry.Store[Widget]
}

// colored is the conversion of shown.
var colored = registry.Conversion[Widget]{
	ToStorage: func(w Widget) (Widget, bool) {
		if w.Spec.Color != "grey" {
			return w, false
		}
		w.Spec.Color = ""
		return w, true
	},
	FromStorage: func(w Widget) (Widget, bool) {
		if w.Spec.Color != "" {
			return w, false
		}
		w.Spec.Color = "grey"
		return w, true
	},
}

// withBackend returns the configuration of widgets in that storage, without defaults.
func withBackend(b backend.Backend, by *registry.Conversion[Widget]) registry.Config[Widget] {
	cfg := config()
	cfg.Strategy.Default, cfg.Engine.Backend, cfg.Conversion = nil, b, by
	return cfg
}

func newOpened(t *testing.T, by registry.Conversion[Widget]) *opened {
	t.Helper()
	b, err := memory.New(registry.Schema(config()), memory.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return &opened{newStore(t, withBackend(b, nil)), newStore(t, withBackend(b, &by))}
}

// colors returns what both show of the widget w.
func (o *opened) colors(t *testing.T) (plain, shown string) {
	t.Helper()
	of := func(s *registry.Store[Widget]) string {
		w, err := s.Engine().Get(t.Context(), "default/w", engine.GetOptions{})
		require.NoError(t, err)
		return w.Value.Spec.Color
	}
	return of(o.plain), of(o.shown)
}

func TestConversion_IsOfReadsSelectorsAndEvents(t *testing.T) {
	o := newOpened(t, colored)
	stored := create(t, o.plain, widget("w", 1))
	shown, err := o.shown.Engine().Get(t.Context(), "default/w", engine.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "grey", shown.Value.Spec.Color)
	require.Equal(t, stored.Revision, shown.Revision)
	grey, err := o.shown.Engine().List(t.Context(), engine.ListOptions{Fields: "spec.color=grey"})
	require.NoError(t, err)
	require.Len(t, grey.Items, 1)
	w, err := o.shown.Engine().Watch(t.Context(), engine.WatchOptions{Fields: "spec.color=grey", From: shown.Revision})
	require.NoError(t, err)
	defer w.Stop()
	create(t, o.plain, widget("w2", 1))
	events, err := w.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, "grey", events[0].Object.Value.Spec.Color)
	require.Empty(t, stored.Value.Spec.Color, "storage's own is as it was")
}

func TestConversion_IsOfWrites(t *testing.T) {
	o := newOpened(t, colored)
	for _, dryRun := range []bool{true, false} {
		made, err := o.shown.Create(t.Context(), widget("w", 1), registry.WriteOptions{DryRun: dryRun})
		require.NoError(t, err)
		require.Equal(t, "grey", made.Value.Spec.Color, "dry run: %t", dryRun)
	}
	plain, shown := o.colors(t)
	require.Equal(t, []string{"", "grey"}, []string{plain, shown})
	for _, dryRun := range []bool{true, false} {
		grown, _, err := o.shown.Update(t.Context(), "default/w", func(old *engine.Object[Widget]) (Widget, error) {
			require.Equal(t, "grey", old.Value.Spec.Color)
			w := old.Value
			w.Spec.Size++
			w.Spec.Color = ""
			return w, nil
		}, registry.WriteOptions{DryRun: dryRun})
		require.NoError(t, err)
		require.Equal(t, WidgetSpec{Size: 2, Color: "grey"}, grown.Value.Spec, "dry run: %t", dryRun)
	}
	gone, _, err := o.shown.Delete(t.Context(), "default/w", registry.DeleteOptions{})
	require.NoError(t, err)
	require.Equal(t, "grey", gone.Value.Spec.Color)
}

// An update that changes nothing to the eye stores what storage has in another form, once.
func TestConversion_AnUpdateStoresTheNewForm(t *testing.T) {
	o := newOpened(t, registry.Conversion[Widget]{FromStorage: colored.FromStorage})
	before := create(t, o.plain, widget("w", 1))
	same := func(old *engine.Object[Widget]) (Widget, error) { return old.Value, nil }
	stored, _, err := o.shown.Update(t.Context(), "default/w", same, registry.WriteOptions{})
	require.NoError(t, err)
	require.Greater(t, stored.Revision, before.Revision)
	plain, _ := o.colors(t)
	require.Equal(t, "grey", plain)
	again, _, err := o.shown.Update(t.Context(), "default/w", same, registry.WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, stored.Revision, again.Revision)
	require.Equal(t, stored.Value, again.Value)
}

// A deletion that is repeated changes nothing, as without a conversion.
func TestConversion_ADeletionIsMarkedOnce(t *testing.T) {
	o := newOpened(t, colored)
	held := widget("w", 1)
	held.Finalizers = []string{"example.com/hold"}
	create(t, o.shown, held)
	marked, gone, err := o.shown.Delete(t.Context(), "default/w", registry.DeleteOptions{})
	require.NoError(t, err)
	require.False(t, gone)
	again, _, err := o.shown.Delete(t.Context(), "default/w", registry.DeleteOptions{})
	require.NoError(t, err)
	require.Equal(t, marked.Revision, again.Revision)
	require.Equal(t, "grey", again.Value.Spec.Color)
}

func TestConversion_ThatPanicsFailsTheWrite(t *testing.T) {
	o := newOpened(t, registry.Conversion[Widget]{ToStorage: func(w Widget) (Widget, bool) {
		if w.Name == "odd" {
			panic("it is odd")
		}
		return w, false
	}})
	_, err := o.shown.Create(t.Context(), widget("odd", 1), registry.WriteOptions{})
	panicked := (*usercode.PanicError)(nil)
	require.ErrorAs(t, err, &panicked)
	require.Equal(t, "Conversion.ToStorage", panicked.Func)
}

// Objects in memory of the engine's own have all been stored by it.
func TestConversion_IsNoneOfTheEnginesOwnStorage(t *testing.T) {
	s := newStore(t, withBackend(nil, &registry.Conversion[Widget]{FromStorage: func(Widget) (Widget, bool) {
		t.Error("there is nothing to convert")
		return Widget{}, false
	}}))
	create(t, s, widget("w", 1))
}

// A kind with a conversion emits as another does.
func TestConversion_IsOfEmittedValues(t *testing.T) {
	o := newOpened(t, colored)
	passing := widget("w", 1)
	passing.Spec.Color = "grey"
	for of, want := range map[*registry.Store[Widget]]string{o.plain: "", o.shown: "grey"} {
		w, err := of.Engine().Watch(t.Context(), engine.WatchOptions{})
		require.NoError(t, err)
		defer w.Stop()
		_, err = o.shown.Engine().Emit(t.Context(), passing)
		require.NoError(t, err)
		events, err := w.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, engine.Emitted, events[0].Type)
		require.Equal(t, want, events[0].Object.Value.Spec.Color)
	}
}

// The fields that two stores over one storage can select by differ: those of a kind as it is, and as it was. Each
// sees the objects of the other by its own.
func TestConversion_DescribesObjectsByTheFieldsOfItsStore(t *testing.T) {
	b, err := memory.New(registry.Schema(config()), memory.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	open := func(fields map[string]func(*Widget) string) *registry.Store[Widget] {
		cfg := withBackend(b, &registry.Conversion[Widget]{})
		cfg.Fields = fields
		return newStore(t, cfg)
	}
	byNothing := open(nil)
	byColor := open(map[string]func(*Widget) string{"color": func(w *Widget) string { return w.Spec.Color }}) // it comes first
	bySize := open(map[string]func(*Widget) string{"size": func(w *Widget) string { return fmt.Sprint(w.Spec.Size) }})
	stores := map[string]*registry.Store[Widget]{"metadata.name=w1": byNothing, "color=red": byColor, "size=1": bySize}

	watches := map[string]*engine.Watch[Widget]{}
	for selector, s := range stores {
		watches[selector], err = s.Engine().Watch(t.Context(), engine.WatchOptions{Fields: selector})
		require.NoError(t, err)
		defer watches[selector].Stop()
	}
	for i, s := range []*registry.Store[Widget]{byNothing, byColor, bySize} {
		for j, color := range []string{"red", "blue"} {
			w := widget(fmt.Sprintf("w%d", 2*i+j+1), j+1)
			w.Spec.Color = color
			create(t, s, w)
		}
	}
	for selector, want := range map[string][]string{"metadata.name=w1": {"w1"}, "color=red": {"w1", "w3", "w5"}, "size=1": {"w1", "w3", "w5"}} {
		list, err := stores[selector].Engine().List(t.Context(), engine.ListOptions{Fields: selector})
		require.NoError(t, err)
		var listed, watched []string
		for _, o := range list.Items {
			listed = append(listed, o.Value.Name)
		}
		require.Equal(t, want, listed, selector)
		for len(watched) < len(want) {
			events, err := watches[selector].Next(t.Context())
			require.NoError(t, err)
			for _, ev := range events {
				watched = append(watched, ev.Object.Value.Name)
			}
		}
		require.Equal(t, want, watched, selector)
	}
}
