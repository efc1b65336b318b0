package engine_test

import (
	"context"
	"fmt"
	"go/parser"
	"go/token"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend/memory"
)

// This file sets every field of every option as a user would, and imports for it
// package engine and a backend alone.

func everyHostOption() engine.HostConfig {
	return engine.HostConfig{
		Metrics: new(ages),
		Clock:   engine.NewVirtualClock(epoch), Executor: engine.NewSeededExecutor(1), Seed: 1,
		Logger: slog.New(slog.DiscardHandler), OnFailure: func(failed engine.Failure) { fmt.Println(failed) },
		CloseTimeout: time.Second,
	}
}

func everyConfig(t *testing.T, host *engine.Host) engine.Config[pod] {
	t.Helper()
	c := engine.Config[pod]{
		Key:    func(p pod) string { return p.Name },
		Labels: func(p pod) labels.Set { return labels.Set{"app": p.App} },
		Fields: engine.Fields[pod]{"n": func(p pod) string { return fmt.Sprint(p.N) }},
		Size:   func(p pod) int { return len(p.Name) + len(p.App) },
		Equal:  func(a, b pod) bool { return a == b },

		SetRevision: func(p pod, _ engine.Revision) pod { return p },
		Carry:       func(_ context.Context, p pod) pod { return p },
		Metrics:     new(ages),
		Index:       []string{"n"}, IndexLabels: []string{"app"},
		Window:         engine.Window{MinAge: time.Minute, MinEvents: 10, MaxEvents: 1000, MaxBytes: 1 << 20, ChunkSize: 64},
		Host:           host,
		Name:           "pods",
		BookmarkPeriod: time.Second, FreshnessTimeout: time.Second, VerifyEvery: time.Minute,
		Backoff:         engine.Backoff{Initial: time.Second, Max: time.Minute, Factor: 2, Jitter: 1, HealthyAfter: time.Minute},
		ListWhenBehind:  100_000,
		DetectMutations: true,
		OnError:         func(err error) { fmt.Println(err) },
		OnEnd:           func(end engine.WatchEnd) { fmt.Println(end.Name, end.Err) },
	}
	storage, err := memory.New(c.Schema(), memory.Options{Clock: host.Clock(), FirstRevision: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, storage.Close()) })
	c.Backend = storage
	return c
}

func TestOptions_NeedOneImport(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "options_test.go", nil, parser.ImportsOnly)
	require.NoError(t, err)
	var ours []string
	for _, imported := range file.Imports {
		if path := strings.Trim(imported.Path.Value, `"`); strings.HasPrefix(path, module) {
			ours = append(ours, strings.TrimPrefix(path, module))
		}
	}
	require.Equal(t, []string{"/engine", "/store/backend/memory"}, ours)

	hosted := everyHostOption()
	host := hostFor(t, hosted)
	cfg := everyConfig(t, host)
	e, err := engine.New(cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	o, err := e.Create(t.Context(), pod{Name: "a", App: "web"})
	require.NoError(t, err)
	now, err := e.Timeline(t.Context())
	require.NoError(t, err)
	watched := engine.WatchOptions{
		Labels: "app=web", Fields: "n=0", LabelSelector: labels.Everything(), FieldSelector: fields.Everything(),
		From: o.Revision, Timeline: now, InitialState: true, Linearizable: true, Bookmarks: true, Progress: true,
		Policy: engine.Conflate, Buffer: 10, Timeout: time.Minute, Detached: true, OnPool: true, Name: "all options",
	}
	w, err := e.Watch(t.Context(), watched)
	require.NoError(t, err)
	listed := engine.ListOptions{
		Labels: "app=web", Fields: "n=0", LabelSelector: labels.Everything(), FieldSelector: fields.Everything(), Limit: 1, Start: "a", Read: engine.Exactly(o.Revision),
	}
	l, err := e.List(t.Context(), listed)
	require.NoError(t, err)
	require.Len(t, l.Items, 1)
	var stats engine.Stats = e.Stats()
	var source engine.SourceStats = stats.Source
	require.NotZero(t, source.Lists)
	require.NoError(t, w.Err())

	// Workers excludes Executor, FirstRevision Backend, NoCache VerifyEvery, LabelValues Labels; the
	// others of a watch and a list exclude each other.
	require.Equal(t, []string{"Workers"}, unset(hosted))
	require.Equal(t, []string{"LabelValues", "NoCache", "FirstRevision"}, unset(cfg))
	require.Empty(t, unset(cfg.Window))
	require.Empty(t, unset(cfg.Backoff))
	require.Equal(t, []string{"Key", "Prefix", "Last"}, unset(watched))
	require.Equal(t, []string{"Key", "Prefix", "Continue"}, unset(listed))
}

// unset returns the exported fields of a struct that are zero.
func unset(options any) (names []string) {
	for field, value := range reflect.ValueOf(options).Fields() {
		if field.IsExported() && value.IsZero() {
			names = append(names, field.Name)
		}
	}
	return slices.Clip(names)
}

// An option that is wrong is the same error whichever package has checked it.
func TestErrConfig_IsThatOfEveryPackage(t *testing.T) {
	e, ctx := newEngine(t, nil)
	_, err := e.Update(ctx, "a", nil, engine.UpdateOptions{})
	var wrong *engine.ConfigError
	require.ErrorIs(t, err, engine.ErrConfig)
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, "change", wrong.Field)
	_, err = memory.New(cfg().Schema(), memory.Options{Retain: engine.Window{MaxEvents: -1}})
	require.ErrorIs(t, err, engine.ErrConfig)
}
