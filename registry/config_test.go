package registry_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
)

func TestKind_WrongOnesAreRefused(t *testing.T) {
	for told, kind := range map[string]registry.Kind{
		`Kind.Version is empty; give one such as v1`: {}, `Kind.Kind is empty`: {Group: "example.com", Version: "v1"},
		`Kind.Group has the name "Example"`:     {Group: "Example", Version: "v1", Kind: "Widget"},
		`Kind.Version has the name "1"`:         {Group: "example.com", Version: "1", Kind: "Widget"},
		`Kind.Kind has the name "Wid get"`:      {Group: "example.com", Version: "v1", Kind: "Wid get"},
		`Kind.Plural has the name "Widgets"`:    {Group: "example.com", Version: "v1", Kind: "Widget", Plural: "Widgets"},
		`Kind.ListKind has the name "Wid gets"`: {Group: "example.com", Version: "v1", Kind: "Widget", ListKind: "Wid gets"},
		`Kind.ListKind is "Widget", as Kind`:    {Group: "example.com", Version: "v1", Kind: "Widget", ListKind: "Widget"},
		`Kind.ShortNames has the name "w/w"`:    {Group: "example.com", Version: "v1", Kind: "Widget", ShortNames: []string{"w/w"}},
	} {
		_, err := registry.New(registry.Config[Widget]{Kind: kind})
		require.ErrorIs(t, err, engine.ErrConfig, "%+v", kind)
		require.ErrorContains(t, err, told)
	}
}

func TestConfig_WrongOnesAreRefused(t *testing.T) {
	none := func(*Widget) string { return "" }
	for _, tc := range []struct {
		told  string
		wrong func(cfg *registry.Config[Widget])
	}{
		{"Engine sets Key", func(cfg *registry.Config[Widget]) { cfg.Engine.Key = func(Widget) string { return "" } }},
		{"Engine sets Key", func(cfg *registry.Config[Widget]) { cfg.Engine.Labels = func(Widget) labels.Set { return nil } }},
		{"Engine sets Key", func(cfg *registry.Config[Widget]) {
			cfg.Engine.LabelValues = engine.LabelValues[Widget]{"app": func(Widget) string { return "" }}
		}},
		{"Engine sets Key", func(cfg *registry.Config[Widget]) { cfg.Engine.Fields = engine.Fields[Widget]{} }},
		{"Engine sets Key", func(cfg *registry.Config[Widget]) { cfg.Engine.Equal = func(_, _ Widget) bool { return false } }},
		{"Engine.Carry is set", func(cfg *registry.Config[Widget]) {
			cfg.Engine.Carry = func(_ context.Context, w Widget) Widget { return w }
		}},
		{"Engine.SetRevision is set", func(cfg *registry.Config[Widget]) {
			cfg.Engine.SetRevision = func(w Widget, _ engine.Revision) Widget { return w }
		}},
		{"TTL is -1s, which is negative", func(cfg *registry.Config[Widget]) { cfg.TTL = -time.Second }},
		{`Fields has no function for "spec.size"`, func(cfg *registry.Config[Widget]) {
			cfg.Fields = map[string]func(*Widget) string{"spec.size": nil}
		}},
		{`Fields has a function for "metadata.name"`, func(cfg *registry.Config[Widget]) {
			cfg.Fields = map[string]func(*Widget) string{"metadata.name": none}
		}},
		{`Fields has a function for "metadata.namespace"`, func(cfg *registry.Config[Widget]) {
			cfg.Fields = map[string]func(*Widget) string{"metadata.namespace": none}
		}},
		{`Decoders has no function for "application/yaml"`, func(cfg *registry.Config[Widget]) {
			cfg.Decoders = map[string]func([]byte) ([]byte, error){"application/yaml": nil}
		}},
		{`Decoders has "Application/YAML"; give a media type in lower case`, func(cfg *registry.Config[Widget]) {
			cfg.Decoders = map[string]func([]byte) ([]byte, error){"Application/YAML": func(body []byte) ([]byte, error) { return body, nil }}
		}},
		{`Decoders has "application/yaml; charset=utf-8"; give a media type in lower case and without parameters`, func(cfg *registry.Config[Widget]) {
			cfg.Decoders = map[string]func([]byte) ([]byte, error){"application/yaml; charset=utf-8": func(body []byte) ([]byte, error) { return body, nil }}
		}},
		{"Schema is no JSON object", func(cfg *registry.Config[Widget]) { cfg.Schema = []byte(`["object"]`) }},
		{`StorageVersion is "V1"`, func(cfg *registry.Config[Widget]) { cfg.StorageVersion = "V1" }},
		{"Columns[0] needs", func(cfg *registry.Config[Widget]) {
			cfg.Columns = []registry.Column[Widget]{{Type: "string", Value: func(*Widget) any { return "" }}}
		}},
		{"Columns[0] needs", func(cfg *registry.Config[Widget]) {
			cfg.Columns = []registry.Column[Widget]{{Name: "Size", Value: func(*Widget) any { return "" }}}
		}},
		{"Columns[0] needs", func(cfg *registry.Config[Widget]) {
			cfg.Columns = []registry.Column[Widget]{{Name: "Size", Type: "string"}}
		}},
		{`Columns[0].Type is "int"; give one of string, integer,`, func(cfg *registry.Config[Widget]) {
			cfg.Columns = []registry.Column[Widget]{{Name: "Size", Type: "int", Value: func(*Widget) any { return 1 }}}
		}},
		{"Admit[0] is nil", func(cfg *registry.Config[Widget]) { cfg.Admit = []registry.Admitter{nil} }},
	} {
		cfg := config()
		tc.wrong(&cfg)
		s, err := registry.New(cfg)
		if err == nil {
			s.Close()
		}
		require.ErrorIs(t, err, engine.ErrConfig)
		require.ErrorContains(t, err, tc.told)
	}
}

// Of several errors the same one is told every time.
func TestConfig_TellsTheFirstWrongName(t *testing.T) {
	for range 50 {
		cfg := config()
		cfg.Fields = map[string]func(*Widget) string{"b": nil, "a": nil, "metadata.name": nil}
		_, err := registry.New(cfg)
		require.ErrorContains(t, err, `no function for "a"`)
		cfg = config()
		cfg.Decoders = map[string]func([]byte) ([]byte, error){"text/b": nil, "text/a": nil, "text/c": nil}
		_, err = registry.New(cfg)
		require.ErrorContains(t, err, `no function for "text/a"`)
	}
}
