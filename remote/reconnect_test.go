package remote_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// pretended answers requests without a network, so that time may be virtual.
type pretended func(r *http.Request) (*http.Response, error)

func (p pretended) RoundTrip(r *http.Request) (*http.Response, error) { return p(r) }

// reply is an answer with a body.
func reply(code int, body io.Reader) (*http.Response, error) {
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(body)}, nil
}

// sleeper is a reader of nothing, after a time.
type sleeper time.Duration

func (s sleeper) Read([]byte) (int, error) {
	time.Sleep(time.Duration(s))
	return 0, io.EOF
}

const gone = `{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}` + "\n"

// watchOf reads a watch whose connections get these answers, one after the other.
func watchOf(t *testing.T, edit func(*remote.Config), answers ...pretended) []store.Event {
	t.Helper()
	n := 0
	b := backendAt(t, "http://origin.localhost", func(c *remote.Config) {
		c.Client = &http.Client{Transport: pretended(func(r *http.Request) (*http.Response, error) {
			n++
			return answers[n-1](r)
		})}
		edit(c)
	})
	events, err := readAll(t, b, 1)
	require.ErrorIs(t, err, store.ErrExpired)
	require.Equal(t, len(answers), n)
	require.NoError(t, b.Close())
	return events
}

// sends is an answer with frames.
func sends(frames string) pretended {
	return func(*http.Request) (*http.Response, error) { return reply(http.StatusOK, strings.NewReader(frames)) }
}

// A server that takes a connection and says nothing is given RequestTimeout, after which
// the watch connects again. What has begun may last longer.
func TestWatch_AServerThatSaysNothingIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported []error
		began := time.Now()
		events := watchOf(t, func(c *remote.Config) {
			c.RequestTimeout, c.OnError = time.Minute, func(err error) { reported = append(reported, err) }
		},
			sends(event("ADDED", "a", 6)),
			func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			},
			func(r *http.Request) (*http.Response, error) {
				return reply(http.StatusOK, io.MultiReader(sleeper(3*time.Minute), strings.NewReader(event("MODIFIED", "a", 7)+gone)))
			},
		)
		require.Len(t, events, 2)
		require.Len(t, reported, 1)
		require.ErrorIs(t, reported[0], backend.ErrUnavailable)
		require.ErrorContains(t, reported[0], "RequestTimeout")
		require.Equal(t, 4*time.Minute, time.Since(began).Round(time.Minute), "of virtual time")
	})
}

// A Retry-After out of all reason does not stop a watch for days.
func TestWatch_RetryAfterIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := `{"kind":"Status","code":429,"details":{"retryAfterSeconds":2147483647}}`
		began := time.Now()
		events := watchOf(t, func(c *remote.Config) { c.MaxPause = time.Minute },
			sends(event("ADDED", "a", 6)),
			func(*http.Request) (*http.Response, error) {
				return reply(http.StatusTooManyRequests, strings.NewReader(busy))
			},
			sends(event("MODIFIED", "a", 7)+gone),
		)
		require.Len(t, events, 2)
		require.Equal(t, 10*time.Minute, time.Since(began).Round(time.Minute), "of virtual time")
	})
}

// A panic in OnError is the user's, and the watch goes on.
func TestWatch_GoesOnAfterAPanicInOnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := watchOf(t, func(c *remote.Config) { c.OnError = func(error) { panic("oh") } },
			sends(event("ADDED", "a", 6)),
			func(*http.Request) (*http.Response, error) {
				return reply(http.StatusServiceUnavailable, strings.NewReader("no"))
			},
			sends(event("MODIFIED", "a", 7)+gone),
		)
		require.Len(t, events, 2)
	})
}

// Connections that end at their time are not failures: the pauses between them do not grow,
// even if nothing is written for hours.
func TestWatch_OfAnIdleServerReconnectsAfterTheShortestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lasts, connections = 8 * time.Minute, 12
		bookmark := `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"6"}}}` + "\n"
		answers := []pretended{sends(event("ADDED", "a", 6))}
		for range connections {
			answers = append(answers, func(*http.Request) (*http.Response, error) {
				return reply(http.StatusOK, io.MultiReader(strings.NewReader(bookmark), sleeper(lasts)))
			})
		}
		began := time.Now()
		watchOf(t, func(c *remote.Config) { c.MinPause, c.MaxPause = time.Second, time.Minute }, append(answers, sends(gone))...)
		require.LessOrEqual(t, time.Since(began), connections*lasts+(connections+1)*time.Second, "of virtual time")
	})
}

// A proxy says by its header alone when to come back.
func TestWatch_RetryAfterOfAProxyIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		watchOf(t, func(c *remote.Config) { c.MaxPause = time.Minute },
			sends(event("ADDED", "a", 6)),
			func(*http.Request) (*http.Response, error) {
				answer, err := reply(http.StatusServiceUnavailable, strings.NewReader("<html>busy</html>"))
				answer.Header.Set("Retry-After", "20")
				return answer, err
			},
			sends(gone),
		)
		require.Equal(t, 20*time.Second, time.Since(began).Round(time.Second), "of virtual time")
	})
}

// refused is an answer with a Status.
func refused(code int, status string) pretended {
	return func(*http.Request) (*http.Response, error) {
		return reply(code, strings.NewReader(fmt.Sprintf(`{"kind":"Status","code":%d,%s}`, code, status)))
	}
}

// Pauses double while nothing is read, up to MaxPause, and then begin again; each is shortened
// by up to half.
func TestWatch_PausesDoubleUpToMaxPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []time.Time
		at := func(answer pretended) pretended {
			return func(r *http.Request) (*http.Response, error) {
				asked = append(asked, time.Now())
				return answer(r)
			}
		}
		busy := refused(http.StatusServiceUnavailable, `"reason":"ServiceUnavailable"`)
		watchOf(t, func(c *remote.Config) { c.MinPause, c.MaxPause = time.Second, 8*time.Second },
			at(sends(event("ADDED", "a", 6))), at(busy), at(busy), at(busy), at(busy), at(busy),
			at(sends(event("ADDED", "a", 7))), at(sends(gone)),
		)
		shorter := false
		for i, most := range []time.Duration{1, 2, 4, 8, 8, 8, 1} {
			pause := asked[i+1].Sub(asked[i])
			shorter = shorter || pause < most*time.Second
			require.LessOrEqual(t, pause, most*time.Second, "pause %d", i)
			require.GreaterOrEqual(t, pause, most*time.Second/2, "pause %d", i)
		}
		require.True(t, shorter, "by chance")
	})
}

func TestWatch_FromTheFutureTellsTheRevisionInEitherForm(t *testing.T) {
	b := pretend(t, refused(http.StatusGatewayTimeout, `"reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}`))
	for _, noPrev := range []bool{true, false} {
		_, err := b.Watch(t.Context(), backend.WatchOptions{From: 9, NoPrev: noPrev, Notify: func() {}})
		var future *store.FutureError
		require.ErrorAs(t, err, &future, "without previous states: %v", noPrev)
	}
}

// A watch ends that comes back to a server which says that the revision has not happened: its
// storage is another, or has gone back, and trying again cannot help before it has passed that.
func TestWatch_EndsWhenItsRevisionIsInTheFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := []pretended{
			sends(event("ADDED", "a", 9)),
			refused(http.StatusGatewayTimeout, `"reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}`),
			sends(gone),
		}
		b := backendAt(t, "http://origin.localhost", func(c *remote.Config) {
			c.Client = &http.Client{Transport: pretended(func(r *http.Request) (*http.Response, error) {
				answer := answers[0]
				answers = answers[1:]
				return answer(r)
			})}
		})
		_, err := readAll(t, b, 1)
		var future *store.FutureError
		require.ErrorAs(t, err, &future)
		require.Equal(t, store.Revision(8), future.Requested, "the last revision may be incomplete")
		require.NoError(t, b.Close())
	})
}

// A refusal as expired says which is the oldest revision; a number that is not a revision says nothing.
func TestBackend_ExpiredTellsTheOldestRevision(t *testing.T) {
	for text, oldest := range map[string]store.Revision{"7": 7, "18446744073709551616": 0, "": 0} {
		answer := refused(http.StatusGone, fmt.Sprintf(`"reason":"Expired","details":{"causes":[{"reason":%q,"message":%q}]}`, registry.CauseOldestRevision, text))
		b := backendAt(t, "http://origin.localhost", func(c *remote.Config) { c.Client = &http.Client{Transport: answer} })
		var expired *store.ExpiredError
		_, err := readAll(t, b, 1)
		require.ErrorAs(t, err, &expired)
		require.Equal(t, store.ExpiredError{Requested: 5, Oldest: oldest}, *expired)
		var status *remote.StatusError
		require.ErrorAs(t, err, &status, "what the server said")

		_, err = b.List(t.Context(), backend.ListOptions{Revision: 3})
		require.ErrorAs(t, err, &expired)
		require.Equal(t, store.ExpiredError{Requested: 3, Oldest: oldest}, *expired)
		require.ErrorAs(t, err, &status)

		_, err = b.List(t.Context(), backend.ListOptions{Continue: "remote:token"})
		var continued *backend.ExpiredContinueError
		require.ErrorAs(t, err, &continued)
		require.Equal(t, oldest, continued.Expired.Oldest)
		require.Empty(t, continued.Continue)
	}
}
