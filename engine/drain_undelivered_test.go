package engine_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/actors"
	"github.com/watchmill/watchmill/clock"
	"github.com/watchmill/watchmill/engine"
)

// The context ends first: the error names the watches that had not had everything,
// and no others, and the engine is closed.
func TestDrain_NamesThoseThatWereNotGivenEverything(t *testing.T) {
	f := newFixture(t, nil)
	idle := f.watch(engine.WatchOptions{Name: "idle", Key: "other"})
	slow := f.watch(engine.WatchOptions{Name: "slow"})
	slower := f.watch(engine.WatchOptions{Name: "slower", InitialState: true})
	for range 100 {
		f.put("a")
	}
	for range slow.Events() {
		break
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	err := f.engine.Drain(ctx)
	var undelivered *engine.UndeliveredError
	require.ErrorAs(t, err, &undelivered)
	require.ErrorIs(t, err, engine.ErrUndelivered)
	require.ErrorIs(t, err, enough)
	require.Equal(t, []engine.Undelivered{
		{Name: "slower", Events: 100, Initial: true}, {Name: "slow", Events: 99, Revision: 2},
	}, undelivered.Watches)
	require.ErrorContains(t, err, "slow: 99 events behind, at revision 2")
	require.ErrorContains(t, err, "slower: 100 events behind, at revision 0, and the rest of its initial state")
	for _, w := range []*engine.Watch[thing]{idle, slow, slower} {
		require.ErrorIs(t, w.Err(), engine.ErrEngineClosed)
	}
	require.NoError(t, f.engine.Close())
}

// A watch that waits for its start has not had what has been committed beyond that, even if its engine has yet to see that
// the start has come.
func TestDrain_NamesAWatchWhoseStartHasComeMeanwhile(t *testing.T) {
	f := newFixture(t, nil)
	f.put("a")
	f.watch(engine.WatchOptions{Name: "come", From: 5})
	f.watch(engine.WatchOptions{Name: "to come", From: 101})
	for range 99 {
		f.write("a")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := f.engine.Drain(ctx)
	var undelivered *engine.UndeliveredError
	require.ErrorAs(t, err, &undelivered)
	require.Equal(t, []engine.Undelivered{{Name: "come", Events: 96, Revision: 5}}, undelivered.Watches)
}

// The cause of its context may be that another engine is closed.
func TestDrain_IsCutShortByTheEndOfAnotherEngine(t *testing.T) {
	f := newFixture(t, nil)
	f.watch(engine.WatchOptions{})
	f.put("a")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(engine.ErrEngineClosed)
	require.ErrorIs(t, f.engine.Drain(ctx), engine.ErrUndelivered)
}

// A Drain that waits for another one, or is cut short by Close, says what was dropped, too.
func TestDrain_EachSaysWhatWasDropped(t *testing.T) {
	for name, cutShort := range map[string]func(context.Context, *engine.Engine[pod]){
		"another Drain": func(ctx context.Context, e *engine.Engine[pod]) { _ = e.Drain(ctx) },
		"Close":         func(_ context.Context, e *engine.Engine[pod]) { _ = e.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, err := engine.New(cfg())
				require.NoError(t, err)
				_, err = e.Watch(t.Context(), engine.WatchOptions{Name: "unread"})
				require.NoError(t, err)
				_, err = e.Put(t.Context(), pod{Name: "a"})
				require.NoError(t, err)
				drained := make(chan error, 2)
				for range cap(drained) {
					go func() { drained <- e.Drain(t.Context()) }()
					synctest.Wait()
				}
				done, cancel := context.WithCancel(t.Context())
				cancel()
				cutShort(done, e)
				for range cap(drained) {
					var late *engine.UndeliveredError
					require.ErrorAs(t, <-drained, &late)
					require.Len(t, late.Watches, 1)
					require.ErrorIs(t, late, engine.ErrEngineClosed)
				}
				require.ErrorIs(t, e.Drain(t.Context()), engine.ErrUndelivered, "once more")
			})
		})
	}
}

// Close drops what is not delivered, and names the watches.
func TestClose_NamesTheWatchesItCutsShort(t *testing.T) {
	host := hostFor(t, engine.HostConfig{Executor: actors.NewSeeded(1), Clock: clock.NewVirtual(epoch)})
	topic := engine.NewTopicWith[int](engine.TopicOptions{Host: host, FirstRevision: 1})
	_, err := topic.SubscribeWith(t.Context(), engine.SubscribeOptions{Name: "billing"}, func(int) {})
	require.NoError(t, err)
	publish(t, topic, 0, 100)
	require.NoError(t, topic.Close())
	require.Equal(t, []engine.Undelivered{{Name: "billing", Events: 100, Revision: 1}}, topic.Stats().Undelivered)
}

// The log has the number of all of them, of which a thousand are named.
func TestClose_CountsTheWatchesItCutsShort(t *testing.T) {
	var log bytes.Buffer
	host, err := engine.NewHost(engine.HostConfig{
		Executor: actors.NewSeeded(1), Clock: clock.NewVirtual(epoch), Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, host.Close()) }()
	topic := engine.NewTopicWith[int](engine.TopicOptions{Host: host})
	for range 1001 {
		_, err := topic.Subscribe(t.Context(), func(int) {})
		require.NoError(t, err)
	}
	publish(t, topic, 0, 1)
	require.NoError(t, topic.Close())
	late := &engine.UndeliveredError{Watches: topic.Stats().Undelivered, Cause: errDown}
	require.Len(t, late.Watches, 1000)
	require.Contains(t, log.String(), " watches=1001 ")
	require.ErrorContains(t, late, "; and at least 990 more")
}
