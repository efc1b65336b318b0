package avoid

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
)

// Avoidance is what a client knows about the members. It is of one client, and safe for concurrent use. Make it with
// [New].
type Avoidance struct {
	patience time.Duration
	// total is how many members there are.
	total int
	// ask asks the member at an address for the revision, and returns when it has answered.
	ask func(address string)

	mu      sync.Mutex // guards all below, and what changes in targets and requests
	targets map[string]*target
}

// target is a member that requests go to.
type target struct {
	// waiting are the requests that it has not answered.
	waiting map[*request]struct{}
	// silent: it was sent a request since its last answer, or had others then. timer rings when it has been for too long.
	silent bool
	timer  *time.Timer
	// asked: it is being asked for the revision. late: it has not answered that in time.
	asked, late bool
}

// request is the context of a request, by which the picker knows it.
type request struct {
	context.Context
	avoidance *Avoidance
	// only is the address of the member to ask, even if it is late; "" for any that is not.
	only string
	// counts: the member is to answer in time.
	counts bool
	// again ends the attempt, so that etcd's client makes another one; nil if it must not.
	again context.CancelFunc
	// at is the member that has not answered yet; nil if there is none.
	at *target
}

type requestKey struct{}

// Value returns the request, for requestKey.
func (r *request) Value(key any) any {
	if key == (requestKey{}) {
		return r
	}
	return r.Context.Value(key)
}

// choose chooses a member for a request, from the one whose turn it is on. It returns false if the request is for one that
// is not connected.
func (a *Avoidance) choose(r *request, connected []connection, turn int) (i int, found bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for n := range connected {
		i = (turn + n) % len(connected)
		if found = a.fits(r, connected[i].address); found {
			break
		}
	}
	if !found && r.only == "" {
		i, found = turn, true // all that are connected are late
	}
	if found && r.counts {
		a.send(r, connected[i].address)
	}
	return i, found
}

// fits reports whether a request can go to a member. The caller holds the lock.
func (a *Avoidance) fits(r *request, address string) bool {
	if r.only != "" {
		return address == r.only
	}
	t := a.targets[address]
	return t == nil || !t.late || !a.fewAreLate()
}

// fewAreLate reports whether less than half of the members are late. The caller holds the lock.
func (a *Avoidance) fewAreLate() bool {
	late := 0
	for _, t := range a.targets {
		if t.late {
			late++
		}
	}
	return 2*late < a.total
}

// send notes that a request goes to a member. The caller holds the lock.
func (a *Avoidance) send(r *request, address string) {
	if r.at != nil { // gRPC has not sent it there
		delete(r.at.waiting, r)
	}
	t := a.targets[address]
	if t == nil {
		t = &target{waiting: map[*request]struct{}{}}
		t.timer = time.AfterFunc(a.patience, func() { a.doubt(t, address) })
		a.targets[address] = t
	}
	r.at = t
	t.waiting[r] = struct{}{}
	if !t.silent {
		t.silent = true
		t.timer.Reset(a.patience)
	}
}

// end notes that a request was answered, or has ended without an answer.
func (a *Avoidance) end(r *request, answered bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := r.at
	if t == nil {
		return
	}
	r.at = nil
	delete(t.waiting, r)
	if answered {
		a.heard(t)
	}
}

// heard notes that a member has answered. The caller holds the lock.
func (a *Avoidance) heard(t *target) {
	if t.silent = len(t.waiting) > 0; t.silent {
		t.timer.Reset(a.patience)
	} else {
		t.timer.Stop()
	}
}

// doubt asks a member that has been silent for too long. It is called by the timer.
func (a *Avoidance) doubt(t *target, address string) {
	a.mu.Lock()
	asks := t.silent && !t.asked
	t.asked = t.asked || asks
	a.mu.Unlock()
	if !asks {
		return
	}
	overdue := time.AfterFunc(a.patience, func() { a.miss(t) })
	a.ask(address)
	overdue.Stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	t.asked, t.late = false, false
	a.heard(t)
	a.endReads() // of others: there may be enough members again
}

// miss makes a member late that has not answered in time.
func (a *Avoidance) miss(t *target) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t.asked {
		t.late = true
		a.endReads()
	}
}

// endReads ends the reads that wait for members that are avoided. The caller holds the lock.
func (a *Avoidance) endReads() {
	if !a.fewAreLate() {
		return
	}
	for _, t := range a.targets {
		for r := range t.waiting {
			if t.late && r.again != nil {
				r.again()
			}
		}
	}
}

// Answered reports whether the code that a request has ended with is from a member that is in touch with the others.
func Answered(code codes.Code) bool {
	switch code {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return false
	}
	return true
}

// New returns the avoidance for a client of a number of members. One that has answered nothing for as long as patience is
// asked: ask asks the member at an address, by a request with a context by [Only], and returns when that is [Answered], or
// the client is to be closed. It is called in a goroutine of its own, for several members at a time.
func New(members int, patience time.Duration, ask func(address string)) *Avoidance {
	return &Avoidance{patience: patience, total: members, ask: ask, targets: map[string]*target{}}
}

// onlyKey is the key of the address of the one member that a request is for.
type onlyKey struct{}

// Only returns a context for requests to the member at an address alone, which wait until it is connected.
func Only(ctx context.Context, address string) context.Context {
	return context.WithValue(ctx, onlyKey{}, address)
}

// Member returns the address that [Only] was given for ctx; "" means that there is none.
func Member(ctx context.Context) (address string) {
	address, _ = ctx.Value(onlyKey{}).(string)
	return address
}
