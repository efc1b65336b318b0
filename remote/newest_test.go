package remote_test

import (
	"context"
	"errors"
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
	"github.com/watchmill/watchmill/usercode"
)

// desk is an origin, reached without a network, whose requests the test answers.
type desk struct{ arrived chan *exchange }

// exchange is a request that waits for its answer.
type exchange struct {
	answer chan int
	gone   <-chan struct{}
}

func (d *desk) RoundTrip(r *http.Request) (*http.Response, error) {
	e := &exchange{make(chan int), r.Context().Done()}
	select {
	case d.arrived <- e:
	case <-e.gone:
		return nil, r.Context().Err()
	}
	select {
	case revision := <-e.answer:
		text := fmt.Sprintf(`{"metadata":{"resourceVersion":"%d"},"items":[]}`, revision)
		return &http.Response{StatusCode: 200, Header: http.Header{registry.StorageHeader: {"s"}}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
	case <-e.gone:
		return nil, r.Context().Err()
	}
}

// none requires that no request waits to be taken, once everything is at rest.
func (d *desk) none(t *testing.T) {
	t.Helper()
	synctest.Wait()
	select {
	case <-d.arrived:
		t.Fatal("one request too many")
	default:
	}
}

// told is what a call of Revision returned.
type told struct {
	revision store.Revision
	err      error
}

// asking calls Revision, and returns where the result will be.
func asking(ctx context.Context, b *remote.Backend) <-chan told {
	result := make(chan told, 1)
	go func() {
		rev, err := b.Revision(ctx)
		result <- told{rev, err}
	}()
	return result
}

func newDesk(t *testing.T) (*desk, *remote.Backend) {
	t.Helper()
	d := &desk{make(chan *exchange)}
	return d, backendAt(t, "http://origin", func(c *remote.Config) { c.Client = &http.Client{Transport: d} })
}

// All callers that wait while a request is under way share the next one: the one under
// way may have been answered before a write that they know of.
func TestRevision_OneRequestServesAllThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, b := newDesk(t)
		first := asking(t.Context(), b)
		one := <-d.arrived
		var others []<-chan told
		for range 50 {
			others = append(others, asking(t.Context(), b))
		}
		d.none(t)
		one.answer <- 7
		require.Equal(t, told{7, nil}, <-first)
		two := <-d.arrived
		two.answer <- 8
		for _, other := range others {
			require.Equal(t, told{8, nil}, <-other)
		}
		d.none(t)
		last := asking(t.Context(), b)
		(<-d.arrived).answer <- 9
		require.Equal(t, told{9, nil}, <-last, "an answer is not kept")
	})
}

// A caller that gives up takes nothing from the others, and the last one that does ends
// the request.
func TestRevision_CallersThatGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, b := newDesk(t)
		why := errors.New("enough")
		impatient, giveUp := context.WithCancelCause(t.Context())
		alone := asking(impatient, b)
		one := <-d.arrived
		beside := asking(impatient, b)
		stays := asking(t.Context(), b)
		synctest.Wait()
		giveUp(why)
		require.Equal(t, told{0, why}, <-alone)
		require.Equal(t, told{0, why}, <-beside)
		<-one.gone
		(<-d.arrived).answer <- 8
		require.Equal(t, told{8, nil}, <-stays)
		d.none(t)

		later, giveUpToo := context.WithCancelCause(t.Context())
		hangs := asking(t.Context(), b)
		two := <-d.arrived
		waits := asking(later, b)
		synctest.Wait()
		giveUpToo(why)
		require.Equal(t, told{0, why}, <-waits)
		two.answer <- 9
		require.Equal(t, told{9, nil}, <-hangs)
		d.none(t)
	})
}

// Callers that give up while a request hangs do not let another one be sent beside it.
func TestRevision_CallersThatGiveUpSendNothingBesideTheRequestThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, b := newDesk(t)
		hangs := asking(t.Context(), b)
		stuck := <-d.arrived
		for range 10 {
			impatient, giveUp := context.WithCancel(t.Context())
			waits := asking(impatient, b)
			synctest.Wait()
			giveUp()
			require.ErrorIs(t, (<-waits).err, context.Canceled)
			d.none(t)
		}
		next := asking(t.Context(), b)
		d.none(t)
		stuck.answer <- 7
		require.Equal(t, told{7, nil}, <-hangs)
		(<-d.arrived).answer <- 8
		require.Equal(t, told{8, nil}, <-next)
		d.none(t)
	})
}

// A panic of the user's transport is an error of all callers, and the next call asks again.
func TestRevision_APanicOfTheTransportIsAnError(t *testing.T) {
	panics := true
	b := backendAt(t, "http://origin", func(c *remote.Config) {
		c.Client = &http.Client{Transport: pretended(func(r *http.Request) (*http.Response, error) {
			if panics {
				panic("no transport today")
			}
			return reply(http.StatusOK, strings.NewReader(`{"metadata":{"resourceVersion":"7"},"items":[]}`))
		})}
	})
	_, err := b.Revision(t.Context())
	require.ErrorIs(t, err, usercode.ErrPanic)
	require.ErrorContains(t, err, "no transport today")
	panics = false
	rev, err := b.Revision(t.Context())
	require.NoError(t, err)
	require.Equal(t, store.Revision(7), rev)
}

// A request that gets no answer holds up the next for a second only.
func TestRevision_ARequestWithoutAnAnswerHoldsUpTheNextBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, b := newDesk(t)
		began := time.Now()
		hangs := asking(t.Context(), b)
		stuck := <-d.arrived
		next := asking(t.Context(), b)
		(<-d.arrived).answer <- 8
		require.Equal(t, told{8, nil}, <-next)
		require.Equal(t, time.Second, time.Since(began))
		stuck.answer <- 7
		require.Equal(t, told{7, nil}, <-hangs)
	})
}

// An error is that of all callers of the request, and a closed backend asks nothing.
func TestRevision_ErrorsAndClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, b := newDesk(t)
		refused := asking(t.Context(), b)
		(<-d.arrived).answer <- 0
		require.ErrorContains(t, (<-refused).err, "there is no resourceVersion")

		hangs := asking(t.Context(), b)
		<-d.arrived
		waits := asking(t.Context(), b)
		synctest.Wait()
		require.NoError(t, b.Close())
		require.ErrorIs(t, (<-hangs).err, store.ErrClosed)
		require.ErrorIs(t, (<-waits).err, store.ErrClosed)
		_, err := b.Revision(t.Context())
		require.ErrorIs(t, err, store.ErrClosed)
		d.none(t)
	})
}

// slowContext is a context that has ended, of a goroutine that is held up before it looks at that.
type slowContext struct{ context.Context }

func (c slowContext) Done() <-chan struct{} {
	synctest.Wait()
	return c.Context.Done()
}

// A call whose context is over fails, and has no answer that has come meanwhile.
func TestRevision_OfACallThatIsOverIsNotAsked(t *testing.T) {
	why := errors.New("enough")
	ctx, giveUp := context.WithCancelCause(t.Context())
	giveUp(why)
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			b := pretend(t, func(*http.Request) (*http.Response, error) {
				return reply(http.StatusOK, strings.NewReader(`{"metadata":{"resourceVersion":"7"},"items":[]}`))
			})
			_, err := b.Revision(slowContext{ctx})
			require.ErrorIs(t, err, why)
		})
	}
}
