package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/usercode"
)

// staying is an answer with frames that then stays open.
func staying(frames string) pretended {
	return func(r *http.Request) (*http.Response, error) {
		return reply(http.StatusOK, io.MultiReader(strings.NewReader(frames), silence{r.Context()}))
	}
}

// emptyThen is a server of an empty list at revision 5, whose watches get the answer.
func emptyThen(watch pretended) pretended {
	return func(r *http.Request) (*http.Response, error) {
		if r.URL.Query().Has("watch") {
			return watch(r)
		}
		return reply(http.StatusOK, strings.NewReader(`{"metadata":{"resourceVersion":"5"},"items":[]}`))
	}
}

// pretend is a backend whose requests the function answers.
func pretend(t *testing.T, answer pretended, edit ...func(*remote.Config)) *remote.Backend {
	t.Helper()
	return backendAt(t, "http://origin.localhost", append(edit, func(c *remote.Config) { c.Client = &http.Client{Transport: answer} })...)
}

// An object that comes back after its deletion has no previous state.
func TestWatch_PreviousStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := pretend(t, emptyThen(staying(event("ADDED", "a", 6)+event("MODIFIED", "a", 7)+event("DELETED", "a", 8)+event("ADDED", "a", 9))))
		w, err := b.Watch(t.Context(), backend.WatchOptions{From: 5, Notify: func() {}})
		require.NoError(t, err)
		synctest.Wait()
		batch, err := w.Next(10)
		require.NoError(t, err)
		var prev []store.Revision
		for _, ev := range batch.Events {
			if ev.Prev == nil {
				prev = append(prev, 0)
				continue
			}
			prev = append(prev, ev.Prev.Revision)
		}
		require.Equal(t, []store.Revision{0, 6, 7, 0}, prev)
		w.Close()
		require.NoError(t, b.Close())
	})
}

// Next returns at least one event, and is complete up to no more than the last that it returns if
// there are others.
func TestWatch_NextOfFewerEventsThanThereAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := pretend(t, staying(event("ADDED", "a", 6)+event("ADDED", "b", 8)+event("ADDED", "c", 9)+bookmarkAt(12)))
		w, err := b.Watch(t.Context(), backend.WatchOptions{From: 5, NoPrev: true, Notify: func() {}})
		require.NoError(t, err)
		synctest.Wait()
		for _, c := range []struct {
			limit          int
			after, through store.Revision
		}{{0, 5, 6}, {-1, 6, 8}, {1, 8, 12}} {
			batch, err := w.Next(c.limit)
			require.NoError(t, err)
			require.Len(t, batch.Events, 1)
			require.Equal(t, c.after, batch.After)
			require.Equal(t, c.through, batch.Through)
		}
		w.Close()
		require.NoError(t, b.Close())
	})
}

// A batch without events is followed by a notification even if it reports progress, so a consumer need
// not call Next again before that.
func TestWatch_NotifiesAfterABatchOfProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := pretend(t, func(r *http.Request) (*http.Response, error) {
			return reply(http.StatusOK, io.MultiReader(strings.NewReader(bookmarkAt(7)), sleeper(time.Minute), strings.NewReader(event("ADDED", "a", 8)), silence{r.Context()}))
		})
		var notified atomic.Int64
		w, err := b.Watch(t.Context(), backend.WatchOptions{From: 5, NoPrev: true, Notify: func() { notified.Add(1) }})
		require.NoError(t, err)
		synctest.Wait()
		batch, err := w.Next(1)
		require.NoError(t, err)
		require.Equal(t, backend.Batch{After: 5, Through: 7}, batch)
		before := notified.Load()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, before+1, notified.Load())
		batch, err = w.Next(1)
		require.NoError(t, err)
		require.Equal(t, []string{"a@8"}, textOf(batch.Events))
		w.Close()
		require.NoError(t, b.Close())
	})
}

// Events of one revision that arrive together are in one batch, even for a consumer that reads as soon as
// it is notified.
func TestWatch_WhatArrivesTogetherIsReadTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := pretend(t, staying(event("ADDED", "a", 6)+event("ADDED", "b", 6)+event("ADDED", "c", 6)))
		notified, goOn := make(chan struct{}), make(chan struct{})
		w, err := b.Watch(t.Context(), backend.WatchOptions{From: 5, NoPrev: true, Notify: func() {
			close(notified)
			<-goOn // meanwhile the watch reads no further
		}})
		require.NoError(t, err)
		<-notified
		batch, err := w.Next(1)
		close(goOn)
		require.NoError(t, err)
		require.Equal(t, []string{"a@6", "b@6", "c@6"}, textOf(batch.Events))
		w.Close()
		require.NoError(t, b.Close())
	})
}

// A bookmark older than the last event does not move the watch back.
func TestWatch_AnOldBookmarkMovesNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := pretend(t, staying(event("ADDED", "a", 7)+bookmarkAt(6)))
		w, err := b.Watch(t.Context(), backend.WatchOptions{From: 5, NoPrev: true, Notify: func() {}})
		require.NoError(t, err)
		synctest.Wait()
		batch, err := w.Next(1)
		require.NoError(t, err)
		require.Equal(t, store.Revision(7), batch.Through)
		w.Close()
		require.NoError(t, b.Close())
	})
}

// What lies outside of the configured namespace is in no list and no watch, even if they ask for it.
func TestBackend_HasNothingOutsideOfItsNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := pretend(t, func(r *http.Request) (*http.Response, error) {
			if r.URL.Query().Has("watch") {
				return staying(event("ADDED", "a", 6))(r)
			}
			return reply(http.StatusOK, strings.NewReader(`{"metadata":{"resourceVersion":"5"},"items":[`+object("a", 5)+`]}`))
		}, func(c *remote.Config) { c.Namespace = "default" })
		list, err := b.List(t.Context(), backend.ListOptions{Prefix: "other"})
		require.NoError(t, err)
		require.Empty(t, list.Items)
		w, err := b.Watch(t.Context(), backend.WatchOptions{Prefix: "other", From: 5, NoPrev: true, Notify: func() {}})
		require.NoError(t, err)
		synctest.Wait()
		batch, err := w.Next(1)
		require.NoError(t, err)
		require.Empty(t, batch.Events)
		require.Equal(t, store.Revision(6), batch.Through)
		w.Close()
		require.NoError(t, b.Close())
	})
}

// A watch that begins while storage is replaced expires: its revision is of the old one, and the
// previous states of the new one.
func TestWatch_BeginsAtOneStorage(t *testing.T) {
	b := pretend(t, func(r *http.Request) (*http.Response, error) {
		answer, err := emptyThen(staying(""))(r)
		switch q := r.URL.Query(); {
		case q.Get("limit") == "1":
			answer.Header.Set(registry.StorageHeader, "old")
		case !q.Has("watch"):
			answer.Header.Set(registry.StorageHeader, "new")
		}
		return answer, err
	})
	_, err := b.Watch(t.Context(), backend.WatchOptions{Notify: func() {}})
	var replaced *remote.StorageError
	require.ErrorAs(t, err, &replaced)
	require.Equal(t, remote.StorageError{Before: "old", Now: "new"}, *replaced)
	require.ErrorIs(t, err, store.ErrExpired)
}

// Close of a watch is not an error to report, nor anything to be notified of.
func TestWatch_CloseIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported, notified atomic.Int64
		b := pretend(t, staying(""), func(c *remote.Config) { c.OnError = func(error) { reported.Add(1) } })
		w, err := b.Watch(t.Context(), backend.WatchOptions{From: 5, NoPrev: true, Notify: func() { notified.Add(1) }})
		require.NoError(t, err)
		_, err = w.Next(1)
		require.NoError(t, err)
		require.Equal(t, 1, remote.Watches(b))
		w.Close()
		w.Close()
		require.Zero(t, remote.Watches(b))
		require.NoError(t, b.Close())
		require.Zero(t, reported.Load())
		require.Zero(t, notified.Load())
	})
}

// Close is not an error either of a watch that waits for room.
func TestWatch_CloseWhileItWaitsForRoomIsQuiet(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			var reported atomic.Int64
			b := pretend(t, staying(event("ADDED", "a", 6)+event("MODIFIED", "a", 7)), func(c *remote.Config) {
				c.BufferBytes, c.OnError = 1, func(error) { reported.Add(1) }
			})
			w, err := b.Watch(t.Context(), backend.WatchOptions{From: 5, NoPrev: true, Notify: func() {}})
			require.NoError(t, err)
			synctest.Wait()
			require.Positive(t, remote.Held(w))
			w.Close()
			require.NoError(t, b.Close())
			require.Zero(t, reported.Load())
		})
	}
}

// Close does not wait for the end of a pause.
func TestWatch_CloseEndsAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := pretend(t, sends(""), func(c *remote.Config) { c.MinPause, c.MaxPause = time.Hour, time.Hour })
		w, err := b.Watch(t.Context(), backend.WatchOptions{From: 5, NoPrev: true, Notify: func() {}})
		require.NoError(t, err)
		synctest.Wait()
		began := time.Now()
		w.Close()
		require.Zero(t, time.Since(began), "of virtual time")
		require.NoError(t, b.Close())
	})
}

// Watches that began together do not reconnect together.
func TestWatch_LastsForARandomTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lasts := map[string]bool{}
		answers := make([]pretended, 30)
		for i := range answers {
			answers[i] = func(r *http.Request) (*http.Response, error) {
				lasts[r.URL.Query().Get("timeoutSeconds")] = true
				return sends("")(r)
			}
		}
		watchOf(t, func(c *remote.Config) { c.WatchTimeout = 100 * time.Second }, append(answers, sends(gone))...)
		require.Greater(t, len(lasts), 1)
		for seconds := range lasts {
			n, err := strconv.Atoi(seconds)
			require.NoError(t, err)
			require.GreaterOrEqual(t, n, 100)
			require.LessOrEqual(t, n, 150)
		}
	})
}

// A buffer that is smaller than what arrives at once is not exceeded by more than an event.
func TestWatch_ReadsNoMoreThanASmallBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all strings.Builder
		for rev := range 100 {
			all.WriteString(event("ADDED", fmt.Sprint("w", rev), 6+rev))
		}
		const buffer = 1000
		b := pretend(t, staying(all.String()), func(c *remote.Config) { c.BufferBytes = buffer })
		w, err := b.Watch(t.Context(), backend.WatchOptions{From: 5, NoPrev: true, Notify: func() {}})
		require.NoError(t, err)
		synctest.Wait()
		require.GreaterOrEqual(t, remote.Held(w), buffer)
		require.Less(t, remote.Held(w), 2*buffer+len(event("ADDED", "w99", 99)))
		w.Close()
		require.NoError(t, b.Close())
	})
}

// A watch whose start is given up, or whose backend is closed, while the server accepts it is
// none.
func TestWatch_EndsWhileItBegins(t *testing.T) {
	why := errors.New("the caller has had enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	var b *remote.Backend
	var closing error
	for name, c := range map[string]struct {
		ctx       context.Context
		meanwhile func()
		want      error
	}{
		"context": {ctx, func() { cancel(why) }, why},
		"backend": {t.Context(), func() { closing = b.Close() }, store.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan struct{})
			b = pretend(t, func(r *http.Request) (*http.Response, error) {
				c.meanwhile()
				context.AfterFunc(r.Context(), func() { close(ended) })
				return staying("")(r)
			})
			_, err := b.Watch(c.ctx, backend.WatchOptions{From: 5, NoPrev: true, Notify: func() {}})
			require.ErrorIs(t, err, c.want)
			require.NoError(t, closing)
			<-ended
			require.Zero(t, remote.Watches(b))
		})
	}
}

// A closed backend, and one that is called wrongly, sends no request.
func TestBackend_SendsNoRequestInVain(t *testing.T) {
	b := pretend(t, func(*http.Request) (*http.Response, error) {
		t.Error("a request was sent")
		return reply(http.StatusGone, strings.NewReader(""))
	})
	prev := &store.Object{Key: "default/a", Revision: 5}
	_, err := b.Watch(t.Context(), backend.WatchOptions{From: 5, NoPrev: true})
	require.ErrorIs(t, err, usercode.ErrConfig, "without Notify")
	_, err = b.Put(t.Context(), prev, prev, backend.PutOptions{TTL: -1})
	require.ErrorIs(t, err, usercode.ErrConfig, "of a negative TTL")

	require.NoError(t, b.Close())
	for name, call := range calls {
		require.ErrorIs(t, call(t.Context(), b), store.ErrClosed, name)
	}
	for name, call := range map[string]func() error{
		"watch": func() error {
			_, err := b.Watch(t.Context(), backend.WatchOptions{From: 5, NoPrev: true, Notify: func() {}})
			return err
		},
		"list":      func() error { _, err := b.List(t.Context(), backend.ListOptions{}); return err },
		"get":       func() error { _, err := b.Get(t.Context(), "default/a"); return err },
		"put":       func() error { _, err := b.Put(t.Context(), prev, prev, backend.PutOptions{}); return err },
		"remove":    func() error { _, err := b.Remove(t.Context(), prev); return err },
		"revision":  func() error { _, err := b.Revision(t.Context()); return err },
		"compacted": func() error { _, err := b.Compacted(t.Context()); return err },
		"forward update": func() error {
			_, _, err := b.ForwardUpdate(t.Context(), "default/a", "", nil, registry.WriteOptions{})
			return err
		},
		"forward apply": func() error {
			_, _, err := b.ForwardApply(t.Context(), "default/a", "", nil, registry.WriteOptions{})
			return err
		},
	} {
		require.ErrorIs(t, call(), store.ErrClosed, name)
	}
}
