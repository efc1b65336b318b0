package inflight_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/serve/internal/inflight"
)

// request is a request of a test.
type request struct {
	user             string
	place            inflight.Place
	began            time.Time // of its answer
	stubborn         bool      // it cannot be cut off, or given up
	cutOff, bodyLeft bool
}

func (r *request) User() string               { return r.user }
func (r *request) Place() *inflight.Place     { return &r.place }
func (r *request) Sending() (time.Time, bool) { return r.began, !r.began.IsZero() }
func (r *request) CutOff() error              { return r.end(&r.cutOff) }
func (r *request) GiveUpBody() error          { return r.end(&r.bodyLeft) }

func (r *request) end(what *bool) error {
	if r.stubborn {
		return errors.ErrUnsupported
	}
	*what = true
	return nil
}

// limits are small, and let a user have two of three requests.
var limits = inflight.Limits{Reads: 3, ReadsPerUser: 2, Writes: 3, WritesPerUser: 2, Watches: 3, WatchesPerUser: 2, Unadmitted: 3}

// entered enters requests of users.
func entered(t *testing.T, l *inflight.Limiter, as inflight.Sort, users ...string) (all []*request) {
	t.Helper()
	for _, user := range users {
		r := &request{user: user}
		require.NoError(t, l.Enter(r, as))
		all = append(all, r)
	}
	return all
}

// leave has requests leave, after which there are none.
func leave(t *testing.T, l *inflight.Limiter, all ...*request) {
	t.Helper()
	for _, r := range all {
		l.Leave(r)
		l.Leave(r) // has no place any more
	}
	require.Zero(t, l.Counts())
	require.Zero(t, inflight.Users(l), "nothing is kept of users without requests")
}

// Each sort of requests has its limits, of one user and of all.
func TestEnter_IsRefusedAboveTheLimits(t *testing.T) {
	for as, counted := range map[inflight.Sort]inflight.Counts{inflight.Read: {Reads: 3}, inflight.Write: {Writes: 3}, inflight.Watch: {Watches: 3}} {
		l := inflight.NewLimiter(limits)
		all := entered(t, l, as, "a", "a")
		err := l.Enter(&request{user: "a"}, as)
		require.Equal(t, inflight.FullError{Of: as, PerUser: true}, err)
		require.ErrorContains(t, err, "you have as many")
		all = append(all, entered(t, l, as, "b")...)
		require.Equal(t, counted, l.Counts())
		for _, user := range []string{"b", "c"} {
			err = l.Enter(&request{user: user}, as)
			require.Equal(t, inflight.FullError{Of: as}, err)
			require.ErrorContains(t, err, "the server has as many")
		}
		l.Leave(all[0])
		all = append(all[1:], entered(t, l, as, "c")...)
		leave(t, l, all...)
	}
}

// A user may have all reads if it is the only one. Then the limit of all is what it is told of.
func TestEnter_OfTheOnlyUser(t *testing.T) {
	l := inflight.NewLimiter(inflight.Limits{Reads: 2, ReadsPerUser: 2})
	all := entered(t, l, inflight.Read, "", "")
	require.Equal(t, inflight.FullError{Of: inflight.Read}, l.Enter(&request{}, inflight.Read))
	leave(t, l, all...)
}
