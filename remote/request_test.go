package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
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

// A key is part of a path, whatever characters it has, and only a body has a media type.
func TestBackend_RequestsOfAKey(t *testing.T) {
	var paths, media []string
	b := pretend(t, func(r *http.Request) (*http.Response, error) {
		paths, media = append(paths, r.URL.EscapedPath()), append(media, r.Header.Get("Content-Type"))
		return reply(http.StatusForbidden, strings.NewReader(""))
	})
	_, err := b.Get(t.Context(), "a%3Fb/c#d%2F")
	require.ErrorIs(t, err, backend.ErrDenied)
	_, _, err = b.ForwardUpdate(t.Context(), "a/b", "sta?tus", []byte("{}"), registry.WriteOptions{})
	require.ErrorIs(t, err, backend.ErrDenied)
	require.Equal(t, []string{
		"/apis/example.com/v1/namespaces/a%253Fb/widgets/c%23d%252F",
		"/apis/example.com/v1/namespaces/a/widgets/b/sta%3Ftus",
	}, paths)
	require.Equal(t, []string{"", "application/json"}, media)
}

// The context's cause ends a call even while the answer is read.
func TestBackend_TellsWhyItsContextEnded(t *testing.T) {
	why := errors.New("the caller has had enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	b := pretend(t, func(r *http.Request) (*http.Response, error) {
		cancel(why)
		return reply(http.StatusOK, silence{r.Context()})
	})
	_, err := b.Get(ctx, "default/a")
	require.ErrorIs(t, err, why)
}

func TestBackend_AsksForTheTokenOfEachRequest(t *testing.T) {
	asked := 0
	var sent []string
	b := pretend(t, func(r *http.Request) (*http.Response, error) {
		sent = append(sent, r.Header.Get("Authorization"))
		return reply(http.StatusForbidden, strings.NewReader(""))
	}, func(c *remote.Config) {
		c.TokenSource = func(context.Context) (string, error) {
			asked++
			return fmt.Sprint("t", asked), nil
		}
	})
	for range 2 {
		_, err := b.Get(t.Context(), "default/a")
		require.ErrorIs(t, err, backend.ErrDenied)
	}
	require.Equal(t, []string{"Bearer t1", "Bearer t2"}, sent)
}

// Without a token nothing is sent, so a write has certainly not been done.
func TestBackend_SendsNothingWithoutItsToken(t *testing.T) {
	broken := errors.New("the file is gone")
	for name, source := range map[string]func(context.Context) (string, error){
		"error": func(context.Context) (string, error) { return "", broken },
		"panic": func(context.Context) (string, error) { panic(broken) },
	} {
		t.Run(name, func(t *testing.T) {
			b := pretend(t, func(*http.Request) (*http.Response, error) {
				t.Error("sent")
				return nil, broken
			}, func(c *remote.Config) { c.TokenSource = source })
			_, err := b.ForwardCreate(t.Context(), "default", []byte("{}"), registry.WriteOptions{})
			require.ErrorIs(t, err, backend.ErrUnavailable)
			require.ErrorIs(t, err, broken)
			require.ErrorContains(t, err, "remote.Config.TokenSource")
			require.NotErrorIs(t, err, backend.ErrUncertain)
		})
	}
	why := errors.New("the caller has had enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	b := pretend(t, nil, func(c *remote.Config) {
		c.TokenSource = func(ctx context.Context) (string, error) {
			cancel(why)
			return "", ctx.Err()
		}
	})
	_, err := b.Get(ctx, "default/a")
	require.ErrorIs(t, err, why)
	require.NotErrorIs(t, err, backend.ErrUnavailable)
}

// What is not a token is not sent, and neither is its request.
func TestBackend_SendsNothingWithATokenOfSeveralLines(t *testing.T) {
	b := backendAt(t, newServer(t).url, func(c *remote.Config) {
		c.TokenSource = func(context.Context) (string, error) { return "secret\n", nil }
	})
	_, err := b.ForwardCreate(t.Context(), "default", []byte(object("a", 1)), registry.WriteOptions{})
	require.ErrorIs(t, err, backend.ErrUnavailable)
	require.ErrorContains(t, err, "remote.Config.TokenSource")
	require.NotContains(t, err.Error(), "secret")
	require.NotErrorIs(t, err, backend.ErrUncertain)
}

// A call that is over sends nothing, so it is known that its write was not done.
func TestBackend_AWriteOfACallThatIsOverIsNotUncertain(t *testing.T) {
	origin := newServer(t)
	why := errors.New("the caller has had enough")
	for name, c := range map[string]struct {
		over bool // before the call
		edit func(c *remote.Config, end context.CancelCauseFunc)
	}{
		"before the call": {true, func(*remote.Config, context.CancelCauseFunc) {}},
		"as it has no token": {true, func(c *remote.Config, _ context.CancelCauseFunc) {
			c.TokenSource = func(ctx context.Context) (string, error) { return "", context.Cause(ctx) }
		}},
		"while the token is made": {false, func(c *remote.Config, end context.CancelCauseFunc) {
			c.TokenSource = func(context.Context) (string, error) {
				end(why)
				return "token", nil
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, end := context.WithCancelCause(t.Context())
			b := backendAt(t, origin.url, func(cfg *remote.Config) { c.edit(cfg, end) })
			if c.over {
				end(why)
			}
			_, err := b.ForwardCreate(ctx, "default", []byte(object("a", 1)), registry.WriteOptions{})
			require.ErrorIs(t, err, why)
			require.NotErrorIs(t, err, backend.ErrUncertain)
		})
	}
	list, err := backendAt(t, origin.url).List(t.Context(), backend.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, list.Items)
}

// Only a write without a connection has certainly not been done.
func TestBackend_AWriteIsUncertainOnceItMayHaveBeenSent(t *testing.T) {
	for op, uncertain := range map[string]bool{"dial": false, "read": true, "write": true} {
		b := pretend(t, func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: op, Err: errors.New("reset")}
		})
		for name, write := range writes {
			err := write(t.Context(), b)
			require.ErrorIs(t, err, backend.ErrUnavailable)
			require.Equal(t, uncertain, errors.Is(err, backend.ErrUncertain), "%s: %s", op, name)
		}
	}
}

// The time that a dialer gives a connection is not that of the call, whose failure is no end of the caller's context.
func TestBackend_ADialersTimeIsNotTheCalls(t *testing.T) {
	b := pretend(t, func(*http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Err: context.DeadlineExceeded}
	})
	for name, call := range calls {
		err := call(t.Context(), b)
		require.ErrorIs(t, err, backend.ErrUnavailable, name)
		require.NotErrorIs(t, err, context.DeadlineExceeded, name)
		require.NotErrorIs(t, err, backend.ErrUncertain, name)
		require.ErrorContains(t, err, "dial: "+context.DeadlineExceeded.Error(), name)
	}
}

// decoded returns the object of a JSON text.
func decoded(text string) (*store.Object, error) {
	format, err := registry.FormatOf(widgets(nil))
	if err != nil {
		return nil, err
	}
	return format.Decode([]byte(text))
}

// writes are the writes of a backend.
var writes = map[string]func(context.Context, *remote.Backend) error{
	"put": func(ctx context.Context, b *remote.Backend) error {
		draft, err := decoded(object("a", 1))
		if err == nil {
			_, err = b.Put(ctx, draft, nil, backend.PutOptions{})
		}
		return err
	},
	"remove": func(ctx context.Context, b *remote.Backend) error {
		_, err := b.Remove(ctx, &store.Object{Key: "default/a", Revision: 5})
		return err
	},
	"create": func(ctx context.Context, b *remote.Backend) error {
		_, err := b.ForwardCreate(ctx, "default", []byte("{}"), registry.WriteOptions{})
		return err
	},
	"update": func(ctx context.Context, b *remote.Backend) error {
		_, _, err := b.ForwardUpdate(ctx, "default/a", "", []byte("{}"), registry.WriteOptions{})
		return err
	},
	"apply": func(ctx context.Context, b *remote.Backend) error {
		_, _, err := b.ForwardApply(ctx, "default/a", "", []byte("{}"), registry.WriteOptions{})
		return err
	},
	"delete": func(ctx context.Context, b *remote.Backend) error {
		_, _, err := b.ForwardDelete(ctx, "default/a", registry.DeleteOptions{})
		return err
	},
}

// hangingUp is a connection of a server that reads, and closes it without an answer.
func hangingUp() net.Conn {
	client, server := net.Pipe()
	go func() {
		_, _ = server.Read(make([]byte, 1<<10))
		_ = server.Close()
	}()
	return client
}

// Without a connection nothing was sent, whatever the reason is: even if the name of the server
// does not lead anywhere, or the server proves to be another one.
func TestBackend_AWriteWithoutAConnectionIsNotUncertain(t *testing.T) {
	refusal := errors.New("tls: the certificate is of another server")
	for name, c := range map[string]struct {
		dial      func(ctx context.Context) (net.Conn, error)
		uncertain bool
	}{
		"a handshake that fails": {func(context.Context) (net.Conn, error) { return nil, refusal }, false},
		"a server that does not answer": {func(ctx context.Context) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, false},
		"a server that hangs up": {func(context.Context) (net.Conn, error) { return hangingUp(), nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				by := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dial(ctx) }}
				b := backendAt(t, "http://origin.localhost", func(cfg *remote.Config) { cfg.Client = &http.Client{Transport: by} })
				_, err := b.ForwardCreate(t.Context(), "default", []byte("{}"), registry.WriteOptions{})
				require.ErrorIs(t, err, backend.ErrUnavailable)
				require.Equal(t, c.uncertain, errors.Is(err, backend.ErrUncertain), "%v", err)
				by.CloseIdleConnections()
			})
		})
	}
}

// An answer that does not come in time is told once, and names the field.
func TestBackend_TellsOnceThatThereIsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := pretend(t, func(r *http.Request) (*http.Response, error) { return reply(http.StatusOK, silence{r.Context()}) })
		_, err := b.Get(t.Context(), "default/a")
		require.ErrorContains(t, err, "no answer within 30s (remote.Config.RequestTimeout)")
		require.Equal(t, 1, strings.Count(err.Error(), backend.ErrUnavailable.Error()), "%v", err)
		require.NoError(t, b.Close())
	})
}

// A deletion is later than what it deletes, even if the server tells an older revision.
func TestRemove_IsLaterThanTheObject(t *testing.T) {
	for told, want := range map[string]store.Revision{"9": 9, "3": 6} {
		b := pretend(t, func(*http.Request) (*http.Response, error) {
			return reply(http.StatusOK, strings.NewReader(`{"kind":"Status","apiVersion":"v1","metadata":{"resourceVersion":"`+told+`"}}`))
		})
		prev, err := backendAt(t, frames(t, "200 "+object("a", 5)).URL).Get(t.Context(), "default/a")
		require.NoError(t, err)
		removed, err := b.Remove(t.Context(), prev)
		require.NoError(t, err)
		require.Equal(t, want, removed.Revision)
	}
}

// A server that does not tell the revision of a deletion is asked for its newest.
func TestRemove_AsksForARevisionThatIsNotTold(t *testing.T) {
	b := pretend(t, func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodGet {
			return reply(http.StatusOK, strings.NewReader(`{"metadata":{"resourceVersion":"12"},"items":[]}`))
		}
		return reply(http.StatusOK, strings.NewReader(`{"kind":"Status","apiVersion":"v1","metadata":{}}`))
	})
	_, at, err := b.ForwardDelete(t.Context(), "default/a", registry.DeleteOptions{})
	require.NoError(t, err)
	require.Equal(t, store.Revision(12), at)
}

// An object is not a Status, whatever its kind is called.
func TestForwardDelete_OfAKindThatIsCalledStatus(t *testing.T) {
	const marked = `{"kind":"Status","apiVersion":"example.com/v1","metadata":{"name":"a","resourceVersion":"12","deletionTimestamp":"2026-01-02T03:04:05Z","finalizers":["a/b"]}}`
	answer, at, err := pretend(t, sends(marked)).ForwardDelete(t.Context(), "default/a", registry.DeleteOptions{})
	require.NoError(t, err)
	require.JSONEq(t, marked, string(answer))
	require.Zero(t, at)
}

// Kubernetes answers the deletion of a pod, for one, with the pod, whether that is gone or only marked.
func TestRemove_OfAKindWhoseObjectIsTheAnswer(t *testing.T) {
	const marked = `"deletionTimestamp":"2026-01-02T03:04:05Z"`
	for text, isGone := range map[string]bool{
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":{}}`:                                                          true,
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a",` + marked + `,"deletionGracePeriodSeconds":0}}`:                      true,
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a",` + marked + `},"spec":"of another form"}`:                            true,
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a",` + marked + `,"deletionGracePeriodSeconds":30}}`:                     false,
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a",` + marked + `,"deletionGracePeriodSeconds":0,"finalizers":["a/b"]}}`: false,
		`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"a",` + marked + `},"spec":{"finalizers":["kubernetes"]}}`:          false,
		`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"a",` + marked + `},"spec":{"finalizers":[]}}`:                      true,
	} {
		b := pretend(t, func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet {
				return reply(http.StatusOK, strings.NewReader(`{"metadata":{"resourceVersion":"12"},"items":[]}`))
			}
			return reply(http.StatusOK, strings.NewReader(text))
		})
		answer, at, err := b.ForwardDelete(t.Context(), "default/a", registry.DeleteOptions{})
		require.NoError(t, err)
		require.Equal(t, isGone, answer == nil, text)
		require.Equal(t, isGone, at == 12, text)
		prev, err := backendAt(t, frames(t, "200 "+object("a", 5)).URL).Get(t.Context(), "default/a")
		require.NoError(t, err)
		_, err = b.Remove(t.Context(), prev)
		require.Equal(t, isGone, err == nil, "%s: %v", text, err)
	}
}

// A configuration that is empty is wrong, and of the right type, as the server says.
func TestForward_SaysOfWhatTypeAnEmptyBodyIs(t *testing.T) {
	var media []string
	b := pretend(t, func(r *http.Request) (*http.Response, error) {
		media = append(media, r.Header.Get("Content-Type"))
		return reply(http.StatusBadRequest, strings.NewReader(""))
	})
	_, _, err := b.ForwardApply(t.Context(), "default/a", "", nil, registry.WriteOptions{})
	require.Error(t, err)
	_, err = b.ForwardCreate(t.Context(), "default", nil, registry.WriteOptions{})
	require.Error(t, err)
	require.Equal(t, []string{"application/apply-patch+yaml", "application/json"}, media)
}

// A write has the parameters that its options name, and no others.
func TestForward_SendsTheOptionsThatAreGiven(t *testing.T) {
	var asked []string
	b := pretend(t, func(r *http.Request) (*http.Response, error) {
		asked = append(asked, r.URL.RawQuery)
		return sends("{}")(r)
	})
	for _, opts := range []registry.WriteOptions{{}, {DryRun: true, Validation: "Warn", Manager: "me", Force: true}} {
		_, _, err := b.ForwardApply(t.Context(), "default/a", "", []byte("{}"), opts)
		require.NoError(t, err)
	}
	require.Equal(t, []string{"", "dryRun=All&fieldManager=me&fieldValidation=Warn&force=true"}, asked)
}

// A deletion sends its options, above all the preconditions.
func TestForwardDelete_SendsTheOptionsThatAreGiven(t *testing.T) {
	var bodies []string
	b := pretend(t, func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		if err != nil {
			return nil, err
		}
		return sends(`{"kind":"Status","apiVersion":"v1","metadata":{"resourceVersion":"9"}}`)(r)
	})
	const head = `{"kind":"DeleteOptions","apiVersion":"v1"`
	now := int64(0)
	for _, c := range []struct {
		opts registry.DeleteOptions
		want string
	}{
		{registry.DeleteOptions{}, head + `}`},
		{registry.DeleteOptions{UID: "u"}, head + `,"preconditions":{"uid":"u"}}`},
		{registry.DeleteOptions{Revision: 5}, head + `,"preconditions":{"resourceVersion":"5"}}`},
		{registry.DeleteOptions{DryRun: true, Propagation: "Orphan", GracePeriodSeconds: &now}, head + `,"dryRun":["All"],"propagationPolicy":"Orphan","gracePeriodSeconds":0}`},
	} {
		_, _, err := b.ForwardDelete(t.Context(), "default/a", c.opts)
		require.NoError(t, err)
		require.JSONEq(t, c.want, bodies[len(bodies)-1])
	}
}

// Only the status code of the answer says whether an update or an apply has created the object.
func TestForward_TellsWhetherTheObjectIsNew(t *testing.T) {
	for code, isNew := range map[int]bool{http.StatusOK: false, http.StatusCreated: true} {
		b := pretend(t, func(*http.Request) (*http.Response, error) { return reply(code, strings.NewReader("{}")) })
		_, updated, err := b.ForwardUpdate(t.Context(), "default/a", "", []byte("{}"), registry.WriteOptions{})
		require.NoError(t, err)
		_, applied, err := b.ForwardApply(t.Context(), "default/a", "", []byte("{}"), registry.WriteOptions{})
		require.NoError(t, err)
		require.Equal(t, []bool{isNew, isNew}, []bool{updated, applied})
	}
}

// Written of a Put is the time of its answer, since the server reports only the time of the creation.
func TestPut_IsWrittenNow(t *testing.T) {
	const created = `"creationTimestamp":"2020-01-02T03:04:05Z",`
	text := strings.Replace(object("a", 6), `"uid"`, created+`"uid"`, 1)
	b := pretend(t, sends(text))
	draft, err := decoded(text)
	require.NoError(t, err)
	began := time.Now()
	o, err := b.Put(t.Context(), draft, &store.Object{Key: "default/a", Revision: 5}, backend.PutOptions{})
	require.NoError(t, err)
	require.False(t, o.Written.Before(began), "%v", o.Written)
	o, err = b.Get(t.Context(), "default/a")
	require.NoError(t, err)
	require.Equal(t, 2020, o.Written.UTC().Year())
}

// A server may send managed fields although it was asked to leave them out.
func TestGet_LeavesManagedFieldsOut(t *testing.T) {
	text := strings.Replace(object("a", 6), `"uid"`, `"managedFields":[{"manager":"m"}],"uid"`, 1)
	format, err := registry.FormatOf(widgets(nil))
	require.NoError(t, err)
	for _, keep := range []bool{true, false} {
		o, err := pretend(t, sends(text), func(c *remote.Config) { c.KeepManagedFields = keep }).Get(t.Context(), "default/a")
		require.NoError(t, err)
		require.Equal(t, keep, len(format.Meta(o).GetManagedFields()) > 0)
	}
}
